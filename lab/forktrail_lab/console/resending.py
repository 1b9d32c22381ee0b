"""Whether a dead letter is worth sending again, and with which headers."""

from __future__ import annotations

from forktrail_lab.console.reading import event_of
from forktrail_lab.console.signing import cure_of_key, event_fault
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import RawHeaders
from forktrail_projectors.dead_letters import Cure, cure_of
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.view import GraphView
from forktrail_schemas.errors import EventUnreadable, InvalidEvent, InvalidInput
from forktrail_schemas.events import RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import SIGNATURE, signature_header
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import parse_signature


def check_worth(graph: GraphView, record: LogRecord, verdict: Verdict, *, signed_anew: bool) -> None:
    """Refuse what would only make another dead letter.

    Args:
        verdict: on the record as it lies on the log.
        signed_anew: whether it is sent under another signature.

    Raises:
        InvalidInput: it would (code `would_be_refused`).
    """
    cure = cure_of(verdict.reason)
    if cure is Cure.LATER or (cure is Cure.SIGNATURE and signed_anew):
        return
    if cure is Cure.SCHEMA and _schema_known(graph, record):
        return
    hints = {
        Cure.SIGNATURE: "--key NAME signs it anew",
        Cure.SCHEMA: "declare its schema first: `forktrail schema declare`",
    }
    raise InvalidInput(
        f"sent again it would be refused again: {in_words(verdict.reason, verdict.detail)}",
        code="would_be_refused",
        hint=f"{hints.get(cure, 'its sender has to write it anew')}; --force sends it all the same",
    )


def check_signer(graph: GraphView, record: LogRecord, run: str, settings: Settings, name: str | None) -> None:
    """Refuse what the run's keys would have refused again: the key that signs may not say this, as the graph stands.

    Args:
        name: the local key that signs it anew; None where the signature stays that it has.

    Raises:
        InvalidInput: it would (code `would_be_refused`).
        NotFound: there is no key of that name.
    """
    try:
        event = event_of(graph, record.value or b"")
        header = None if record.headers == UNREADABLE_HEADERS else signature_header(record.headers)
        signed_by = None if header is None else parse_signature(header).key_id
    except (EventUnreadable, InvalidEvent, InvalidInput):
        return
    signer = KeyStore(settings.keys_dir).load(name).key_id if name is not None else signed_by
    if not isinstance(event, Event) or isinstance(event, RunOpened) or signer is None:
        return
    actor = event.meta.actor.kind, event.meta.actor.id
    fault = event_fault(graph, signer, event)
    if fault is not None:
        raise InvalidInput(
            f"sent again it would be refused again: {in_words(fault.reason, fault.detail)}",
            code="would_be_refused",
            hint=f"{cure_of_key(graph, run, event.ROLE, actor)}; --force sends it all the same",
        )


def headers_to_resend(record: LogRecord) -> RawHeaders:
    """The headers that a record has.

    Raises:
        InvalidInput: they can't be read.
    """
    if record.headers == UNREADABLE_HEADERS:
        raise InvalidInput(
            f"the headers at offset {record.offset} can't be read, so they can't be sent again",
            hint="--key NAME sends the bytes with a signature and no other header",
        )
    return record.headers


def signed_headers(graph: GraphView, record: LogRecord, settings: Settings, name: str) -> RawHeaders:
    """The record's headers with a signature by a local key in place of the one they have.

    Raises:
        InvalidInput: it can't be read, or needs no signature.
        NotFound: there is no key of that name.
    """
    value = record.value or b""
    headers = () if record.headers == UNREADABLE_HEADERS else record.headers
    try:
        event = event_of(graph, value)
    except (EventUnreadable, InvalidEvent) as error:
        raise InvalidInput(
            f"what can't be read can't be signed: {error.message}", hint="without --key it is sent as it is"
        ) from error
    if not isinstance(event, Event) or (event.ROLE is None and signature_header(headers) is None):
        named = event.TYPE if isinstance(event, Event) else "what no rule handles"
        raise InvalidInput(f"{named} needs no signature", hint="send it without --key")
    signature = KeyStore(settings.keys_dir).load(name).sign(value)
    kept = [(header, content) for header, content in headers if header != SIGNATURE]
    return [*kept, (SIGNATURE, signature.to_json().encode())]


def _schema_known(graph: GraphView, record: LogRecord) -> bool:
    """Whether a record can be read now, its schema having been declared since."""
    try:
        event_of(graph, record.value or b"")
    except (EventUnreadable, InvalidEvent):
        return False
    return True
