"""What of an event, and of the changes it made, fires a handler."""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pattern.match import matches_born
from forktrail_behaviors.subscription import Match, OnEvent, OnRelation, Subscription
from forktrail_projectors.state import NodeKey
from forktrail_schemas.events import ObjectCreated, ObjectPatched, ObjectRetired, RelationCreated, RelationRetired
from forktrail_schemas.events.base import Event

_CHANGES = (ObjectCreated, ObjectPatched, ObjectRetired, RelationCreated, RelationRetired)


def matches_of(subscription: Subscription, event: Event, graph: MirroredGraph) -> Iterator[Match]:
    """All that a valid event fires by a subscription, in a fixed order; a pattern's may have fired before.

    Args:
        graph: as of the event, which is the last it has folded.
    """
    if isinstance(subscription, OnEvent):
        if subscription.takes(event) and not _held(event):
            yield Match()
    elif isinstance(subscription, OnRelation):
        yield from _relations(subscription.relation, graph)
    else:
        pattern = subscription.pattern
        for bound in matches_born(pattern, graph, graph.changes):
            nodes = tuple((name, key) for (name, _), key in zip(pattern.variables, bound, strict=True))
            yield Match(tuple(str(key.id) for key in bound), nodes)


def _held(event: Event) -> bool:
    """Whether it is a change in a frame: nothing has happened outside yet."""
    return event.meta.frame is not None and isinstance(event, _CHANGES)


def _relations(relation: str, graph: MirroredGraph) -> Iterator[Match]:
    for (table, source_table, target_table), rows in sorted(graph.changes.joined.items()):
        if table == relation:
            for source, target in sorted(rows, key=str):
                ends = (("source", NodeKey(source_table, source)), ("target", NodeKey(target_table, target)))
                yield Match((), ends)
