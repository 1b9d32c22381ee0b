"""The graph that a behavior worker folds into: in Python's memory, and in an engine's file once Cypher is asked.

Patterns are matched on the memory, record by record. The file follows only when a query needs it, with all that changed
since the last one in one commit, and dies with its process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from forktrail_projectors.graph.bulk import build_graph, events_to_copy
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.declared_tables import Tables
from forktrail_projectors.graph.engine import DEFAULT_ENGINE
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Cursor, Table
from forktrail_projectors.state import Changes, EdgeKey, EdgesKey, End, NodeId, NodeKey, Row, Value

FILE = "graph"


class MirroredGraph:
    """Implements `Graph`, answers Cypher, and tells what the last commit changed.

    Attributes:
        changes: of the last commit.
    """

    prefetch_pays: ClassVar = False

    def __init__(self, engine: str = DEFAULT_ENGINE) -> None:
        self.changes = Changes()
        self._engine = engine
        self._memory = MemoryGraph()
        self._pending = Changes()
        self._mirror: CypherGraph | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def tables(self) -> Tables:
        """The tables it has now."""
        return self._memory.tables

    def cursor(self) -> Cursor | None:
        """Where it stands."""
        return self._memory.cursor()

    def node(self, table: str, id: NodeId) -> Row | None:
        """The whole row of a node, a copy, or None where there is none."""
        return self._memory.node(table, id)

    def nodes(self, keys: Collection[NodeKey]) -> dict[NodeKey, Row]:
        """Whole rows of the nodes that exist."""
        return self._memory.nodes(keys)

    def edge(self, key: EdgeKey) -> Row | None:
        """The row of a relation, or None where there is none."""
        return self._memory.edge(key)

    def edges(self, keys: Collection[EdgesKey]) -> dict[EdgesKey, tuple[EdgeKey, ...]]:
        """The relations at each node's given end, sorted."""
        return self._memory.edges(keys)

    def neighbours(self, table: str, end: End, node: NodeKey) -> Collection[NodeKey]:
        """The nodes at the other end of a node's relations, in no order."""
        return self._memory.neighbours(table, end, node)

    def commit(self, changes: Changes, cursor: Cursor) -> None:
        """Apply the changes; the file learns of them when it is next asked."""
        self._memory.commit(changes, cursor)
        self.changes = changes
        if self._mirror is not None:
            self._pending.add(changes)

    def rows(self) -> Iterator[tuple[NodeKey | EdgeKey, Row]]:
        """Every node and relation with its whole row."""
        return self._memory.rows()

    def query(self, cypher: str, parameters: Mapping[str, Value] | None = None) -> Table:
        """Run one read-only statement on the graph as it stands.

        Raises:
            InvalidInput, GraphError: as `CypherGraph.query`.
        """
        return self._followed().query(cypher, parameters)

    def close(self) -> None:
        """Forget everything."""
        self._memory.close()
        if self._mirror is not None:
            self._mirror.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _followed(self) -> CypherGraph:
        """The graph in the engine, as of the last commit."""
        cursor = self._memory.cursor()
        if self._mirror is None:
            self._folder = tempfile.TemporaryDirectory(prefix="forktrail-worker-")
            path = Path(self._folder.name) / FILE
            self._mirror = self._made(path, cursor)
        elif self._pending:
            assert cursor is not None, "there is a commit"
            pending, self._pending = self._pending, Changes()
            self._mirror.commit(pending, cursor)
        return self._mirror

    def _made(self, path: Path, cursor: Cursor | None) -> CypherGraph:
        """The file, with all that the memory holds."""
        if cursor is not None and cursor.next_offset >= events_to_copy(self._engine):
            build_graph(path, self._engine, self._memory)
            return CypherGraph.open(path, self._engine)
        graph = CypherGraph.open(path, self._engine)
        if cursor is not None:
            whole = Changes()
            for key, row in self._memory.rows():
                if isinstance(key, EdgeKey):
                    whole.put_edge(*key, row)
                else:
                    whole.put_node(key, None, row)
            graph.commit(whole, cursor)
        return graph
