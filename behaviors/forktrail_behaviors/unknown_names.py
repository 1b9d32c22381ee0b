"""Finds names that a pack uses and nothing declares: labels, relations, what is referred to and what is emitted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from forktrail_behaviors.pack import Pack
from forktrail_behaviors.pattern.tree import parts_of
from forktrail_behaviors.subscription import OnPattern, OnRelation, Subscription
from forktrail_behaviors.types import references_of, relations_implied
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_schemas import events
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.base import Event


def check_names(pack: Pack) -> None:
    """Refuse a name that neither the pack nor the built-in graph knows: what waits for it never fires.

    A pack that leans on another's types is checked together with it.

    Raises:
        InvalidInput: naming who uses it, and the nearest name that there is.
    """
    objects = {model.__name__ for model in pack.objects}
    relations = {one.name for one in pack.relations}.union(*map(relations_implied, pack.objects))
    for model in pack.objects:
        for name in references_of(model).values():
            _check(model.__name__, "object type", name, objects)
    for relation in pack.relations:
        for name in (*relation.sources, *relation.targets):
            _check(relation.name, "object type", name, objects)
    labels = objects | set(BUILT_IN.nodes)
    edges = relations | {edge.name for edge in BUILT_IN.edges.values()}
    emitted = objects | relations | {name for name, one in vars(events).items() if _is_event(one)}
    for behavior in pack.reactions:
        for handler in behavior.handlers:
            for name in _labels(handler.subscription):
                _check(behavior.name, "label", name, labels)
            for name in _relations(handler.subscription):
                _check(behavior.name, "relation", name, edges)
        for name in behavior.emits:
            _check(behavior.name, "type or event", name, emitted)


def _is_event(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Event) and value is not Event


def _labels(subscription: Subscription) -> Iterator[str]:
    if isinstance(subscription, OnPattern):
        yield from (label for part in parts_of(subscription.pattern.part) for _, label in part.labels)


def _relations(subscription: Subscription) -> Iterator[str]:
    if isinstance(subscription, OnRelation):
        yield subscription.relation
    if isinstance(subscription, OnPattern):
        yield from subscription.pattern.relations


def _check(user: str, kind: str, name: str, known: Collection[str]) -> None:
    if name in known:
        return
    close = get_close_matches(name, known, 1)
    hint = f"is it {close[0]}?" if close else f"there are: {', '.join(sorted(known))}"
    raise InvalidInput(f"{user}: there is no {kind} {name}", hint=hint)
