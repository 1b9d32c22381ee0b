"""Which matches of a pattern come to hold by a change: found from what changed, along relations, without a scan.

What changed is a seed: it stands for a node of the pattern, or for both ends of a relation, and the rest is searched
from there. A change inside EXISTS may make a match without touching it. So from there the nodes that it shares with the
pattern are looked for first, over relations that are there and those that just ended, whatever the conditions say.
"""

from __future__ import annotations

from collections.abc import Iterator

from forktrail_behaviors.pattern.search import Binding, Search
from forktrail_behaviors.pattern.seeds import seeds_of
from forktrail_behaviors.pattern.surroundings import PatternGraph, Surroundings
from forktrail_behaviors.pattern.tree import Part, Pattern, inner_parts
from forktrail_projectors.state import Changes, NodeId, NodeKey

__all__ = ["PatternGraph", "matches_born"]


def matches_born(pattern: Pattern, graph: PatternGraph, changes: Changes) -> list[tuple[NodeKey, ...]]:
    """The matches that hold now and touch what changed, each once, sorted.

    All that hold now and didn't before are among them; so are those that held before and touch what changed.

    Args:
        graph: after the changes.

    Returns:
        For each match the node of each of the pattern's variables, in their order.
    """
    around = Surroundings(graph, changes)
    search = Search(around)
    names = [name for name, _ in pattern.variables]
    found: set[tuple[NodeKey, ...]] = set()
    for seed in _distinct(_seeds(pattern.part, around)):
        for binding in search.matches(pattern.part, seed):
            found.add(tuple(binding[name] for name in names))
    return sorted(found, key=lambda match: [(key.table, _sortable(key.id)) for key in match])


def _seeds(part: Part, around: Surroundings) -> Iterator[Binding]:
    """Bindings of some nodes of a part, one of which is in every match that a change could make or end."""
    yield from seeds_of(part, around)
    for inner in inner_parts(part):
        loose = Search(around.with_parted(), conditions=False)
        for seed in _distinct(_seeds(inner, around.with_parted())):
            if seed.keys() <= inner.shared:
                yield seed
                continue
            for binding in loose.matches(
                inner, {name: key for name, key in seed.items() if name in dict(inner.labels)}
            ):
                yield {name: key for name, key in (seed | binding).items() if name in inner.shared}


def _distinct(bindings: Iterator[Binding]) -> Iterator[Binding]:
    seen: set[frozenset[tuple[str, NodeKey]]] = set()
    for binding in bindings:
        key = frozenset(binding.items())
        if key not in seen:
            seen.add(key)
            yield binding


def _sortable(id: NodeId) -> str:
    return f"{id:020d}" if isinstance(id, int) else id
