"""What of a change can stand for which nodes of a pattern."""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_behaviors.pattern.search import Binding
from forktrail_behaviors.pattern.surroundings import Surroundings
from forktrail_behaviors.pattern.tree import Part, Step
from forktrail_projectors.state import NodeKey


def seeds_of(part: Part, around: Surroundings) -> Iterator[Binding]:
    """For each node and relation of a part, each change that can stand for it; without what stands in EXISTS."""
    labels = dict(part.labels)
    changes = around.changes
    for variable, label in part.labels:
        for id in (*changes.created.get(label, ()), *changes.changed.get(label, ())):
            yield {variable: NodeKey(label, id)}
    for step in part.steps:
        for source, target in _changed_relations(step, around):
            for start, stop in _ends(step, source, target, around):
                if (start.table, stop.table) != (labels[step.source], labels[step.target]):
                    continue
                if step.source != step.target:
                    yield {step.source: start, step.target: stop}
                elif start == stop:
                    yield {step.source: start}


def _changed_relations(step: Step, around: Surroundings) -> Iterator[tuple[NodeKey, NodeKey]]:
    """Both ends of each relation of the step's types that was made; or ended, where those count."""
    for changed in (around.changes.joined, around.changes.parted if around.parted else {}):
        for (table, source_table, target_table), rows in changed.items():
            if table in step.types:
                for source_id, target_id in rows:
                    yield NodeKey(source_table, source_id), NodeKey(target_table, target_id)


def _ends(step: Step, source: NodeKey, target: NodeKey, around: Surroundings) -> Iterator[tuple[NodeKey, NodeKey]]:
    """The ends of the walks that pass a relation."""
    if not step.is_walk:
        yield source, target
        return
    before = around.reached(step.types, "target", source, 0, step.high - 1)
    after = around.reached(step.types, "source", target, 0, step.high - 1)
    for first, starts in enumerate(before):
        for second, stops in enumerate(after):
            if step.low <= first + 1 + second <= step.high:
                for start in starts:
                    for stop in stops:
                        yield start, stop
