"""Finds behaviors that trigger each other in a circle, from what they listen to and what they say that they emit.

A circle isn't wrong by itself, but somebody has to say why it ends: one of its behaviors, by `repeats=`. What it says
isn't checked; the budget `cause_depth` is the last line.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.subscription import OnEvent, OnPattern, OnRelation, Subscription
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import (
    EVENT_TYPES,
    BehaviorCompleted,
    BehaviorFailed,
    BehaviorStarted,
    GoalSet,
    ObjectCreated,
    ObjectPatched,
    ObjectRetired,
    RelationCreated,
    RelationRetired,
    ReportFiled,
    TestProposed,
)

_EVENT_NAMES = frozenset(event.__name__ for event in EVENT_TYPES)
_OF_OBJECTS = (ObjectCreated, ObjectPatched, ObjectRetired)
_OF_RELATIONS = (RelationCreated, RelationRetired)
_OF_DECLARED_TYPES = frozenset(event.__name__ for event in (*_OF_OBJECTS, *_OF_RELATIONS))
# What every execution writes, whatever its behavior says.
_ALWAYS = tuple(event.__name__ for event in (BehaviorStarted, BehaviorCompleted, BehaviorFailed))
# The built-in tables whose rows an event makes or changes, beside those of every event; of others, any.
_OF_EVERY_EVENT = frozenset({"Event", "Identity"})
_CHANGED_BY = {
    **dict.fromkeys(_ALWAYS, frozenset({"Execution"})),
    GoalSet.__name__: frozenset({"Goal", "Run"}),
    TestProposed.__name__: frozenset({"Case"}),
    ReportFiled.__name__: frozenset({"Report", "Case"}),
    **dict.fromkeys(_OF_DECLARED_TYPES, frozenset[str]()),
}
_EMITTER = "meta.execution.behavior"
_RELATION_NAME = re.compile("[A-Z][A-Z0-9_]*")

References = Mapping[str, Collection[str]]


def check_cycles(behaviors: Sequence[Behavior], references: References | None = None) -> None:
    """Refuse behaviors that could trigger each other for ever.

    Args:
        references: by object type, the relation types that its references make.

    Raises:
        InvalidInput: naming a shortest circle in which no behavior says why it ends.
    """
    open_ = [one for one in behaviors if not one.repeats]
    follows = {one.name: _followed_by(one, open_, references or {}) for one in open_}
    circles = [circle for one in open_ if (circle := _circle(one.name, follows)) is not None]
    if not circles:
        return
    circle = min(circles, key=len)
    listens = [follows[before][name] for before, name in zip([circle[-1], *circle], circle, strict=False)]
    shown = " → ".join(f"{name} ({_shown(how)})" for name, how in zip(circle, listens, strict=True))
    raise InvalidInput(
        f"behaviors could trigger each other for ever: {shown} → {circle[0]}",
        hint='narrow what one of them listens to, or let one say why it ends: repeats="…"',
    )


def _followed_by(behavior: Behavior, others: Sequence[Behavior], references: References) -> dict[str, Subscription]:
    """The behaviors that one may trigger, each with what of it listens."""
    found: dict[str, Subscription] = {}
    for other in others:
        for handler in other.handlers:
            entries = (*behavior.emits, *_ALWAYS)
            if any(_triggers(behavior.name, entry, handler.subscription, references) for entry in entries):
                found.setdefault(other.name, handler.subscription)
    return found


def _triggers(emitter: str, entry: str, subscription: Subscription, references: References) -> bool:
    """Whether what a behavior says that it emits may fire a subscription."""
    if isinstance(subscription, OnEvent):
        return _event_triggers(emitter, entry, subscription)
    if entry in _EVENT_NAMES:
        return _event_changes(entry, subscription)
    made = {entry} if _RELATION_NAME.fullmatch(entry) else set()
    made |= set(references.get(entry, ()))
    if isinstance(subscription, OnRelation):
        return subscription.relation in made
    pattern = subscription.pattern
    return entry in pattern.labels or not made.isdisjoint(pattern.relations)


def _event_triggers(emitter: str, entry: str, subscription: OnEvent) -> bool:
    where, event = subscription.where, subscription.event
    if where.get(_EMITTER, emitter) != emitter:
        return False
    if entry in _EVENT_NAMES:
        return event.__name__ == entry
    if event in _OF_OBJECTS:
        return where.get("object_type", entry) == entry
    return event in _OF_RELATIONS and where.get("relation_type", entry) == entry


def _event_changes(entry: str, subscription: OnRelation | OnPattern) -> bool:
    """Whether an event of a type may make what a subscription listens to."""
    changed = _CHANGED_BY.get(entry, frozenset(BUILT_IN.nodes)) | _OF_EVERY_EVENT
    if isinstance(subscription, OnRelation):
        built_in = BUILT_IN.edges.get(subscription.relation)
        if built_in is None:
            return entry in _OF_DECLARED_TYPES
        return any(source in changed for source, _ in built_in.pairs)
    labels = subscription.pattern.labels
    return not labels.isdisjoint(changed) or (entry in _OF_DECLARED_TYPES and not labels <= BUILT_IN.nodes.keys())


def _circle(start: str, follows: Mapping[str, Mapping[str, Subscription]]) -> list[str] | None:
    """A shortest way from a behavior back to itself; None where there is none."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there in follows[here]:
            if there == start:
                way = [here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    return None


def _shown(subscription: Subscription) -> str:
    if isinstance(subscription, OnEvent):
        filters = [str(value) for value in subscription.where.values()]
        return " ".join([subscription.event.__name__, *filters])
    if isinstance(subscription, OnRelation):
        return subscription.relation
    return " ".join(subscription.text.split())
