"""What can be told of a signature before an event is sent: whether its key may say this, as the run's graph stands.

The log decides all the same: whatever changes in between is settled by its order.
"""

from __future__ import annotations

from forktrail_projectors import authority
from forktrail_projectors.rules.context import Refused
from forktrail_projectors.state import NodeKey, Row
from forktrail_projectors.view import GraphView
from forktrail_schemas.events.base import Event

_KEYS_OF_HOLDER = """
MATCH (k:`Key`) WHERE k.holder = $holder AND k.holder_kind = $kind AND NOT k.revoked
RETURN k.id, k.roles ORDER BY k.created_offset
"""
SERVICE_ROLES = frozenset(("runner", "sealer", "worker"))


def key_fault(graph: GraphView, key_id: str, role: str | None, actor: tuple[str, str]) -> Refused | None:
    """Why the key may not sign this now; None where it may. See `authority.key_fault`."""
    row = _key(graph, key_id)
    return Refused("unknown_key", key_id) if row is None else authority.key_fault(row, role, actor)


def event_fault(graph: GraphView, key_id: str, event: Event) -> Refused | None:
    """Why the key may not sign this event now; None where it may."""
    row = _key(graph, key_id)
    if row is None:
        return Refused("unknown_key", key_id)
    return authority.key_fault(row, event.ROLE, authority.speaker(event, row))


def _key(graph: GraphView, key_id: str) -> Row | None:
    key = NodeKey("Key", key_id)
    return graph.nodes([key]).get(key)


def cure_of_key(graph: GraphView, run: str, role: str | None, actor: tuple[str, str]) -> str:
    """What makes a signature hold for this actor: another key of theirs that is registered, or how to register one."""
    kind, holder = actor
    for id, roles in graph.query(_KEYS_OF_HOLDER, {"holder": holder, "kind": kind}).rows:
        assert isinstance(roles, tuple | list)
        if role is None or role in roles:
            return f"sign it with the key {str(id)[:12]} of {holder}: `forktrail key list` tells its name"
    usual = "service" if role in SERVICE_ROLES else "human"
    more = "" if kind == usual else f" --kind {kind}"
    register = f"forktrail key register {run} NEWKEY --holder {holder} --role {role or 'ROLE'}{more}"
    return f"it takes a key of {holder}'s own: `forktrail key new NEWKEY`, `{register}`"
