"""Record headers: CloudEvents 1.0 Kafka protocol binding (binary mode), and the signature.

The value is the truth. Headers may be absent; one that contradicts the value makes the event void.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import quote

from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import Signature

SIGNATURE = "forktrail-signature"
CONTENT_TYPE = "content-type"
AVRO = "application/avro"
SPEC_VERSION = "1.0"
_AVRO = AVRO.encode()
_SPEC_VERSION = SPEC_VERSION.encode()
_TIME = "ce_time"

Headers = list[tuple[str, bytes]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What Python takes for a time differs between its versions; what a fold takes for one must not.
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def headers_of(event: Event, signature: Signature | None = None) -> Headers:
    """The headers to send an event with."""
    actor = event.meta.actor
    headers = [*_said(event).items(), ("ce_source", _source(actor.kind, actor.id))]
    if signature is not None:
        headers.append((SIGNATURE, signature.to_json().encode()))
    return headers


def contradiction(event: Event, headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """The name of the first header that says otherwise than the value, or None.

    `ce_source` may say anything, since the value doesn't tell where another service writes from.
    """
    said = _said(event)
    for name, value in headers:
        expected = said.get(name)
        if expected is not None and value != expected and not (name == _TIME and _same_time(value or b"", expected)):
            return name
    return None


def signature_header(headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """The bytes of the signature header; the last, where there are several."""
    found = None
    for name, value in headers:
        if name == SIGNATURE:
            found = value
    return found


@lru_cache(maxsize=1_024)  # one service writes many events
def _source(kind: str, id: str) -> bytes:
    return f"/forktrail/{kind}/{quote(id, safe='')}".encode()


def _said(event: Event) -> dict[str, bytes]:
    """What each header must say where it is there, by name."""
    meta = event.meta
    return {
        "ce_specversion": _SPEC_VERSION,
        "ce_id": meta.event_id.encode(),
        "ce_type": event.TYPE.encode(),
        "ce_subject": event.subject_id.encode(),
        _TIME: _rfc3339(meta.occurred_at).encode(),
        CONTENT_TYPE: _AVRO,
    }


def _same_time(value: bytes, expected: bytes) -> bool:
    """Whether a header says the same time in other words."""
    try:
        text = value.decode().upper()
        return bool(_RFC3339.fullmatch(text)) and datetime.fromisoformat(text) == datetime.fromisoformat(
            expected.decode()
        )
    except ValueError:  # not text, or a day or zone that there isn't
        return False


def _rfc3339(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    try:
        return f"{_second(seconds)}.{fraction:06d}Z"
    except OverflowError:  # past the year 9999, which RFC 3339 can't write
        return "9999-12-31T23:59:59.999999Z"


@lru_cache(maxsize=1_024)  # many events share their second
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
