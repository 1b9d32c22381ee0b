"""Ids: of events, and of what an event makes, which is derived from the event's own."""

from __future__ import annotations

import hashlib
import secrets
import time

DERIVED_HEX_DIGITS = 20


def now_micros() -> int:
    """The wall clock, microseconds since 1970 UTC."""
    return time.time_ns() // 1_000


def new_event_id() -> str:
    """A fresh UUIDv7 (RFC 9562, section 5.7): 48 bits of milliseconds, then random."""
    return uuid7(time.time_ns() // 1_000_000, secrets.token_bytes(10))


def uuid7(milliseconds: int, random: bytes) -> str:
    """The UUIDv7 of a time and 10 random bytes; pure."""
    octets = bytearray(milliseconds.to_bytes(6, "big") + random[:10])
    octets[6] = 0x70 | octets[6] & 0x0F
    octets[8] = 0x80 | octets[8] & 0x3F
    digits = octets.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_run_id() -> str:
    """A fresh run id, short enough to type."""
    return f"run-{secrets.token_hex(6)}"


def derived_id(kind: str, event_id: str) -> str:
    """The id of what an event makes, e.g. `case-…` from the event that opened it; the same in every fold."""
    digest = hashlib.sha256(f"forktrail/{kind}/{event_id}".encode()).hexdigest()
    return f"{kind}-{digest[:DERIVED_HEX_DIGITS]}"
