"""Searches a graph for all that a part of a pattern can stand for, given some of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from forktrail_behaviors.pattern.logic import truth
from forktrail_behaviors.pattern.surroundings import Surroundings
from forktrail_behaviors.pattern.tree import Exists, Expression, Part, Step, terms_of, variables_in
from forktrail_projectors.state import EdgeKey, End, NodeKey, Row

Binding = dict[str, NodeKey]
PLANS_CACHED = 1_024


@dataclass(frozen=True)
class _Stage:
    """One step of a search.

    Attributes:
        step: the relation to follow, or to check where both its ends are bound; None at the beginning.
        checks: the conditions that can be judged once it is taken.
    """

    step: Step | None
    checks: tuple[Expression, ...]


class Search:
    """Searches by following relations from what is bound, conditions as early as they can be judged."""

    def __init__(self, around: Surroundings, *, conditions: bool = True) -> None:
        """Search a graph.

        Args:
            conditions: False where only nodes' labels and relations count, and not whether a node is in use.
        """
        self._around = around
        self._conditions = conditions
        self._rows: dict[NodeKey, Row | None] = {}

    def matches(
        self, part: Part, bound: Mapping[str, NodeKey], given: Mapping[str, Row] | None = None
    ) -> Iterator[Binding]:
        """All bindings of a part's nodes that hold and agree with some given ones; one may come several times.

        Args:
            bound: at least one node of the part, and all that its conditions share with the part around it.
            given: rows of the variables of the part around it that it may name, relations among them.
        """
        rows = dict(given or {})
        labels = dict(part.labels)
        for name, key in bound.items():
            if (name in labels and key.table != labels[name]) or not self._take(name, key, rows):
                return
        stages = _plan(part, frozenset(bound).union(rows))
        if self._hold(stages[0].checks, bound, rows):
            yield from self._from(stages, 1, labels, dict(bound), rows)

    def _from(
        self, stages: tuple[_Stage, ...], at: int, labels: Mapping[str, str], bound: Binding, rows: dict[str, Row]
    ) -> Iterator[Binding]:
        if at == len(stages):
            yield dict(bound)
            return
        step, checks = stages[at].step, stages[at].checks
        assert step is not None, "only the first has none"
        for name, key, relation in self._ways(step, labels, bound):
            more_rows = dict(rows)
            if name is not None and not self._take(name, key, more_rows):
                continue
            if step.variable is not None and relation is not None:
                more_rows[step.variable] = relation
            more = bound if name is None else {**bound, name: key}
            if self._hold(checks, more, more_rows):
                yield from self._from(stages, at + 1, labels, more, more_rows)

    def _ways(
        self, step: Step, labels: Mapping[str, str], bound: Binding
    ) -> Iterator[tuple[str | None, NodeKey, Row | None]]:
        """The ways to take a step: the node that it binds, if any, and the relation's row where that has a name."""
        source, target = bound.get(step.source), bound.get(step.target)
        if source is not None and target is not None:
            yield from ((None, target, row) for row in self._between(step, source, target))
            return
        here, name = (target, step.source) if source is None else (source, step.target)
        end: End = "target" if source is None else "source"
        assert here is not None, "a plan takes no step out of nowhere"
        others = (
            set().union(*self._around.reached(step.types, end, here, step.low, step.high))
            if step.is_walk
            else dict.fromkeys(self._around.neighbours(step.types, end, here))
        )
        for other in others:
            if other.table != labels[name]:
                continue
            if step.variable is None:
                yield name, other, None
                continue
            ends = (here, other) if end == "source" else (other, here)
            yield from ((name, other, row) for row in self._between(step, *ends))

    def _between(self, step: Step, source: NodeKey, target: NodeKey) -> Iterator[Row | None]:
        """The relations that join two nodes; of those without a name only whether there is one."""
        if step.is_walk:
            if any(
                target in level for level in self._around.reached(step.types, "source", source, step.low, step.high)
            ):
                yield None
            return
        for table in step.types:
            row = self._around.edge(EdgeKey(table, source, target))
            if row is not None:
                yield row
                if step.variable is None:
                    return

    def _take(self, name: str, key: NodeKey, rows: dict[str, Row]) -> bool:
        """Put the row of a node among those of the variables; False where it can't match."""
        if not self._conditions or name in rows:
            return True
        if key not in self._rows:
            self._rows[key] = self._around.row(key)
        row = self._rows[key]
        if row is None:
            return False
        rows[name] = row
        return True

    def _hold(self, checks: Collection[Expression], bound: Mapping[str, NodeKey], rows: Mapping[str, Row]) -> bool:
        if not self._conditions:
            return True
        return all(truth(check, rows, lambda part: self._there(part, bound, rows)) is True for check in checks)

    def _there(self, part: Part, bound: Mapping[str, NodeKey], rows: Mapping[str, Row]) -> bool:
        nodes = {name: key for name, key in bound.items() if name in part.shared}
        given = {name: row for name, row in rows.items() if name in part.shared}
        return next(self.matches(part, nodes, given), None) is not None


@lru_cache(PLANS_CACHED)
def _plan(part: Part, bound: frozenset[str]) -> tuple[_Stage, ...]:
    """In which order to take a part's steps, from some bound variables: first those that lead nowhere new."""
    known = set(bound)
    steps = list(part.steps)
    # Judging an EXISTS takes a search of its own, so it comes after the plain conditions.
    waiting = sorted(part.conditions, key=lambda one: any(isinstance(term, Exists) for term in terms_of(one)))
    stages: list[_Stage] = []

    def add(step: Step | None) -> None:
        ready = tuple(one for one in waiting if variables_in(one) <= known)
        for one in ready:
            waiting.remove(one)
        stages.append(_Stage(step, ready))

    add(None)
    while steps:
        step = next((one for one in steps if {one.source, one.target} <= known), None)
        if step is None:
            # A single relation leads to fewer nodes than a walk does.
            open_ = [one for one in steps if {one.source, one.target} & known]
            if not open_:
                break  # only where conditions don't count: what is left lies around other nodes of the part around it
            step = min(open_, key=lambda one: one.high)
        steps.remove(step)
        known |= {step.source, step.target} | ({step.variable} if step.variable else set())
        add(step)
    return tuple(stages)
