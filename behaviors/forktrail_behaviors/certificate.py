"""A certificate of a strict replay: a signed statement that anyone can hold against the log it speaks of.

It says that every execution of a log, up to an offset, was run again by code of these digests, and that all it made was
the same. The signature is DSSE (Ed25519) by a key of the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forktrail_behaviors.registrations import Registered
from forktrail_behaviors.replay import Replayed
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_schemas.catalog import by_fingerprint
from forktrail_schemas.errors import Corruption, InvalidInput
from forktrail_schemas.json_text import canonical_json, read_json
from forktrail_schemas.signatures import SigningKey, parse_envelope, verify

PAYLOAD_TYPE = "application/vnd.forktrail.replay+json"
LENGTH_MAX = 1_000_000


@dataclass(frozen=True)
class Certificate:
    """A certificate whose signature holds.

    Attributes:
        statement: what it says.
        key_id: whose key signed it.
    """

    statement: Mapping[str, Any]
    key_id: str


def statement(run: str, replayed: Replayed, behaviors: Iterable[Registered]) -> dict[str, object]:
    """What a certificate of a replay says.

    Raises:
        InvalidInput: there is nothing to certify: it found a divergence, or left executions out.
    """
    if replayed.divergences or replayed.changed:
        raise InvalidInput("only a replay that compared everything and found no difference can be certified")
    return {
        "run": run,
        "next_offset": replayed.next_offset,
        "log_root": replayed.log_root,
        "state_digest": replayed.state_digest,
        "fold_version": FOLD_VERSION,
        "schemas_sha256": schemas_sha256(),
        "behaviors": [{"name": one.name, "version": one.version, "code_sha256": one.code_sha256} for one in behaviors],
        "executions": replayed.executions,
        "events": replayed.events,
        "queries": replayed.queries,
        "divergences": 0,
    }


def signed(told: Mapping[str, object], key: SigningKey) -> str:
    """The statement in a DSSE envelope."""
    payload = canonical_json(dict(told)).encode()
    return key.sign(payload, PAYLOAD_TYPE).to_json_with(payload)


def read_certificate(text: str, public_keys: Mapping[str, str]) -> Certificate:
    """Read a certificate and check its signature.

    Args:
        public_keys: of the keys that count, in hex by their ids.

    Raises:
        Corruption: the signature doesn't hold, or is of a key that doesn't count.
        InvalidInput: it is no certificate.
    """
    if len(text) > LENGTH_MAX:
        raise InvalidInput("the file is too long for a certificate")
    payload, signature = parse_envelope(text)
    public_key = public_keys.get(signature.key_id)
    if public_key is None:
        raise Corruption(f"it is signed by {signature.key_id[:12]}, which is no key of the run", code="unknown_key")
    if signature.payload_type != PAYLOAD_TYPE or not verify(signature, payload, public_key):
        raise Corruption("its signature doesn't hold", code="bad_signature")
    told = read_json(payload.decode())
    if not isinstance(told, dict) or type(told.get("next_offset")) is not int or told["next_offset"] < 0:
        raise InvalidInput("the file holds no certificate of a replay")
    return Certificate(told, signature.key_id)


def differences(told: Mapping[str, Any], run: str, log_root: str, state_digest: str) -> list[str]:
    """What a certificate says otherwise than the log does, a line each.

    Args:
        log_root: of the log up to the certificate's offset.
        state_digest: of its fold up to there.
    """
    is_so = {
        "run": run,
        "log_root": log_root,
        "state_digest": state_digest,
        "fold_version": FOLD_VERSION,
        "schemas_sha256": schemas_sha256(),
        "divergences": 0,
    }
    return [
        f"{name} is {json.dumps(value)}, the certificate says {json.dumps(told.get(name))}"
        for name, value in is_so.items()
        if told.get(name) != value
    ]


def schemas_sha256() -> str:
    """One digest for all built-in schemas."""
    names = sorted(schema.sha256 for schema in by_fingerprint().values())
    return hashlib.sha256("\n".join(names).encode()).hexdigest()
