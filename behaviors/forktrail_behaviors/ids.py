"""Ids of what an execution is and makes: hashes of what it follows from, the same in every replay and every fork."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.ids import DERIVED_HEX_DIGITS
from forktrail_schemas.json_text import canonical_json

SEED_BYTES = 8
KIND_LENGTH_MAX = 32  # of the word that an id begins with (values.py, LocalId)
_UUID_BYTES = 16


def execution_id(trigger: str, behavior: str, version: str, handler: str, match: Sequence[str]) -> str:
    """The id of one firing of a handler.

    Args:
        trigger: event id of what fired it.
        match: bound ids in pattern order; empty but for a pattern.
    """
    return _uuid8(_digest(trigger, behavior, version, handler, list(match)))


def output_id(trigger: str, behavior: str, version: str, handler: str, match: Sequence[str], path: str) -> str:
    """The event id of what an execution makes at a path; see `execution_id`."""
    return _uuid8(_digest(trigger, behavior, version, handler, list(match), path))


def object_id(object_type: str, execution_id: str, path: str) -> str:
    """The id of an object that an execution makes at a path: its type's letters in lower case and 20 hex digits.

    Raises:
        InvalidInput: the type has no letter.
    """
    kind = "".join(letter for letter in object_type.lower() if "a" <= letter <= "z")[:KIND_LENGTH_MAX]
    if not kind:
        raise InvalidInput(f"an id begins with a word, and {object_type!r} is none", hint="say what it is the id of")
    return f"{kind}-{_digest(object_type, execution_id, path).hex()[:DERIVED_HEX_DIGITS]}"


def seed(execution_id: str, prefix: str) -> int:
    """What the random numbers of one branch of an execution start from, from 0 to 2^64 - 1."""
    return int.from_bytes(_digest(execution_id, prefix)[:SEED_BYTES], "big")


def _digest(*parts: str | list[str]) -> bytes:
    """SHA-256 of the parts as a canonical JSON list; ids of different kinds come from lists of different length."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).digest()


def _uuid8(digest: bytes) -> str:
    """The first 122 free bits of a digest as a UUID of version 8 (RFC 9562, section 5.8)."""
    octets = bytearray(digest[:_UUID_BYTES])
    octets[6] = 0x80 | octets[6] & 0x0F
    octets[8] = 0x80 | octets[8] & 0x3F
    digits = octets.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
