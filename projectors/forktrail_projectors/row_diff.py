"""Which rows two graphs differ in, whatever versions made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from forktrail_projectors.state import EdgeKey, NodeKey, Row, Value

Kind = Literal["added", "removed", "changed"]
EXAMPLES_MAX = 3


@dataclass(frozen=True)
class RowDifference:
    """A row that one graph has and another lacks or has otherwise.

    Attributes:
        key: of the node or relation.
        kind: added: only the second has it; removed: only the first has it; changed: both have it.
        columns: those that differ, sorted; a column that one table lacks differs where the other's isn't null. Empty
            unless the row is changed.
        before: the first graph's row, None where it has none.
        after: the second graph's row, None where it has none.
    """

    key: NodeKey | EdgeKey
    kind: Kind
    columns: tuple[str, ...]
    before: Row | None
    after: Row | None

    @property
    def name(self) -> str:
        """The key in words: a node's id, a relation's two."""
        if isinstance(self.key, NodeKey):
            return str(self.key.id)
        return f"{self.key.source.id} -> {self.key.target.id}"


@dataclass(frozen=True)
class DifferenceGroup:
    """Differences of one kind, in one table and the same columns.

    Attributes:
        examples: the first few keys in words.
    """

    table: str
    kind: Kind
    columns: tuple[str, ...]
    count: int
    examples: tuple[str, ...]


def row_differences(
    before: Iterable[tuple[NodeKey | EdgeKey, Row]], after: Iterable[tuple[NodeKey | EdgeKey, Row]]
) -> Iterator[RowDifference]:
    """How the rows of `after` differ from those of `before`: what is new or other, in their order, then what is gone.

    Holds `before` in memory, about 1 KB a row.
    """
    rows = dict(before)
    for key, row in after:
        earlier = rows.pop(key, None)
        if earlier is None:
            yield RowDifference(key, "added", (), None, row)
        elif columns := _differing(earlier, row):
            yield RowDifference(key, "changed", columns, earlier, row)
    for key, row in rows.items():
        yield RowDifference(key, "removed", (), row, None)


def grouped(differences: Iterable[RowDifference]) -> list[DifferenceGroup]:
    """Differences counted by table, kind and columns, sorted by those."""
    groups: dict[tuple[str, Kind, tuple[str, ...]], list[str]] = {}
    for difference in differences:
        groups.setdefault((difference.key.table, difference.kind, difference.columns), []).append(difference.name)
    return [
        DifferenceGroup(table, kind, columns, len(names), _first(names))
        for (table, kind, columns), names in sorted(groups.items())
    ]


def _differing(before: Row, after: Row) -> tuple[str, ...]:
    return tuple(sorted(name for name in before.keys() | after.keys() if _other(before.get(name), after.get(name))))


def _other(one: Value, another: Value) -> bool:
    # In Python True is 1; in a graph it isn't.
    return one != another or type(one) is not type(another)


def _first(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names[:EXAMPLES_MAX])
