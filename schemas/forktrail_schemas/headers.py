"""Record headers: CloudEvents 1.0 Kafka protocol binding (binary mode), and the signature.

The value is the truth. Headers may be absent; one that contradicts the value makes the event void.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from forktrail_schemas.events.base import Event
from forktrail_schemas.signatures import Signature

SIGNATURE = "forktrail-signature"
CONTENT_TYPE = "content-type"
AVRO = "application/avro"
SPEC_VERSION = "1.0"

Headers = list[tuple[str, bytes]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What Python takes for a time differs between its versions; what a fold takes for one must not.
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def headers_of(event: Event, signature: Signature | None = None) -> Headers:
    """The headers to send an event with."""
    headers = [(name, text.encode()) for name, text in _cloud_event(event).items()]
    if signature is not None:
        headers.append((SIGNATURE, signature.to_json().encode()))
    return headers


def contradiction(event: Event, headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """The name of the first header that says otherwise than the value, or None."""
    expected = _cloud_event(event)
    del expected["ce_source"]  # the value doesn't say where another service writes from
    for name, value in headers:
        if name in expected and not _agrees(name, value, expected[name]):
            return name
    return None


def signature_header(headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """The bytes of the signature header; the last, where there are several."""
    found = None
    for name, value in headers:
        if name == SIGNATURE:
            found = value
    return found


def _cloud_event(event: Event) -> dict[str, str]:
    actor = event.meta.actor
    return {
        "ce_specversion": SPEC_VERSION,
        "ce_id": event.meta.event_id,
        "ce_type": event.TYPE,
        "ce_source": f"/forktrail/{actor.kind}/{quote(actor.id, safe='')}",
        "ce_subject": event.subject_id,
        "ce_time": _rfc3339(event.meta.occurred_at),
        CONTENT_TYPE: AVRO,
    }


def _agrees(name: str, value: bytes | None, expected: str) -> bool:
    try:
        text = (value or b"").decode()
        if name == "ce_time" and _RFC3339.fullmatch(text.upper()):
            return datetime.fromisoformat(text.upper()) == datetime.fromisoformat(expected)
    except ValueError:  # not text, or a day or zone that there isn't
        return False
    return text == expected


def _rfc3339(micros: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # past the year 9999, which RFC 3339 can't write
        return "9999-12-31T23:59:59.999999Z"
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
