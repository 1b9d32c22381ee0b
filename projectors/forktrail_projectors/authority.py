"""Who may say what: an event's signature against the keys that the run registered. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from forktrail_projectors.record import LogRecord
from forktrail_projectors.rules.context import WORKER, Refused, Signer, number, text
from forktrail_projectors.rules.executions import BEHAVIOR
from forktrail_projectors.rules.log import WORKER_ROLE
from forktrail_projectors.state import Key, NodeKey, Overlay, Row
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import signature_header
from forktrail_schemas.signatures import (
    EVENT_PAYLOAD_TYPE,
    Signature,
    key_id,
    parse_signature,
    verify,
)


def keys(record: LogRecord) -> Iterable[Key]:
    """The key that a record's signature names."""
    header = signature_header(record.headers)
    if header is not None:
        try:
            yield NodeKey("Key", parse_signature(header).key_id)
        except InvalidInput:
            return


def check_signature(event: Event, record: LogRecord, overlay: Overlay) -> Signer | None:
    """The signer of an event, or None where it needs none and has none.

    What a worker writes (its own events, and those of executions) needs a worker's signature as soon as the run has a
    worker's key.

    Raises:
        Refused: unsigned, bad_signature, unknown_key, key_revoked, role_missing or actor_mismatch; none takes the id.
    """
    header = signature_header(record.headers)
    working = event.meta.execution is not None or event.ROLE == WORKER_ROLE
    if header is None:
        if event.ROLE is not None and event.ROLE != WORKER_ROLE:
            raise _refused("unsigned", event.ROLE)
        if working and _worker_must_sign(overlay):
            raise _refused("unsigned", WORKER_ROLE)
        return None
    try:
        signature = parse_signature(header)
    except InvalidInput as error:
        raise _refused("bad_signature", error.message) from error
    if isinstance(event, RunOpened):
        return _check_opening(event, signature, record)
    row = overlay.node("Key", signature.key_id)
    if row is None:
        raise _refused("unknown_key", signature.key_id)
    public_key = str(row["public_key"])
    _check_bytes(signature, record, public_key)
    actor = speaker(event, row)
    must_be_worker = working and event.ROLE != WORKER_ROLE and _worker_must_sign(overlay)
    fault = key_fault(row, event.ROLE, actor) or (key_fault(row, WORKER_ROLE, actor) if must_be_worker else None)
    if fault is not None:
        raise fault
    return Signer(signature.key_id, public_key)


def speaker(event: Event, row: Row) -> tuple[str, str] | None:
    """For whom the key in a row must speak to sign an event; None where it signs as a worker what a behavior says.

    A behavior holds no key. Nobody else's name is lent so, or an execution would make one person two.
    """
    actor = event.meta.actor
    roles = row["roles"]
    working = event.meta.execution is not None and actor.kind == BEHAVIOR
    return None if working and isinstance(roles, tuple) and WORKER_ROLE in roles else (actor.kind, actor.id)


def _worker_must_sign(overlay: Overlay) -> bool:
    worker = overlay.node(*WORKER)
    return worker is not None and number(worker, "keys") > 0


def key_fault(row: Row, role: str | None, actor: tuple[str, str] | None) -> Refused | None:
    """Why a registered key may not sign such an event; None where it may.

    Args:
        row: of the key.
        role: that the event's type asks for, if it asks for any.
        actor: kind and id of the one in whose name the event is written; None where that is no holder of a key.
    """
    if row["revoked"]:
        return _refused("key_revoked", text(row, "id"))
    roles = row["roles"]
    assert isinstance(roles, tuple)
    if role is not None and role not in roles:
        return _refused("role_missing", f"{role}; the key has: {', '.join(roles)}")
    holder = text(row, "holder_kind"), text(row, "holder")
    return None if actor in (None, holder) else _refused("actor_mismatch", f"the key speaks for {' '.join(holder)}")


def _check_opening(event: RunOpened, signature: Signature, record: LogRecord) -> Signer:
    """Trust starts here: the event carries the key that must have signed it."""
    if signature.key_id != key_id(event.admin_public_key):
        raise _refused("unknown_key", signature.key_id)
    _check_bytes(signature, record, event.admin_public_key)
    return Signer(signature.key_id, event.admin_public_key)


def _check_bytes(signature: Signature, record: LogRecord, public_key: str) -> None:
    if signature.payload_type != EVENT_PAYLOAD_TYPE:
        raise _refused("bad_signature", f"its payload type is not {EVENT_PAYLOAD_TYPE}")
    if not verify(signature, record.value or b"", public_key):
        raise _refused("bad_signature", "it is not the key's over these bytes")


def _refused(reason: str, detail: str) -> Refused:
    return Refused(reason, detail, takes_id=False)
