"""Checks a packet against the run's own log: where it stands, and that it left nothing out, no file alone can tell."""

from __future__ import annotations

from forktrail_projectors import merkle
from forktrail_projectors.handoff.check import Checked, compare
from forktrail_projectors.handoff.recomputed import recomputed_from
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.reader import LogReader
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import Corruption
from forktrail_schemas.settings import Settings


def check_against_log(settings: Settings, checked: Checked) -> int:
    """Fold the run's log up to where the packet says it stands, and compare; returns how many records came since.

    Raises:
        Corruption: the log is shorter, gives another root or state digest there, or amounts to something else than
            the packet says (`code` packet_invalid).
        NotFound: there is no such run.
        LogUnavailable: Kafka doesn't answer.
    """
    with LogReader(settings.bootstrap_servers, checked.run) as reader:
        end = reader.end()
    if end < checked.next_offset:
        raise _broken(f"it stands at offset {checked.next_offset}, and the log of {checked.run} ends at {end}")
    graph, projector = fold_in_memory(settings, checked.run, checked.next_offset)
    root = merkle.root(projector.cursor.frontier)
    if root != checked.log_root:
        raise _broken(f"the log's root at offset {checked.next_offset} is {root}")
    if projector.state_digest != checked.state_digest:
        raise _broken(f"the state digest at offset {checked.next_offset} is {projector.state_digest}")
    signed = sum(record["signature"] is not None for record in checked.packet["records"])
    try:
        compare(checked.packet, recomputed_from(graph, signed))
    except Corruption as error:
        raise _broken(f"it leaves records out: {error.message}") from error
    return end - checked.next_offset


def revoked_by_now(settings: Settings, run: str, key_id: str) -> bool:
    """Whether a key that the run has registered is revoked at the log's end.

    Raises:
        NotFound: there is no such run.
        LogUnavailable: Kafka doesn't answer.
    """
    graph, _ = fold_in_memory(settings, run)
    key = NodeKey("Key", key_id)
    return bool(graph.nodes([key])[key]["revoked"])


def _broken(what: str) -> Corruption:
    return Corruption(f"the packet is not of this log: {what}", code="packet_invalid", hint="ask for it again")
