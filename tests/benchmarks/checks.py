"""Checks of a folded graph against what its stream says it must hold; for use outside the timed parts."""

from __future__ import annotations

from collections import Counter

from benchmarks.logs import StoredLog
from benchmarks.stage import Stage
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.graph.protocol import Queryable
from forktrail_projectors.projector import Projector


def check_digest(stage: Stage, log: StoredLog, next_offset: int, state_digest: str) -> None:
    """The whole log is folded, to the same digest in every repeat and benchmark that does so."""
    stage.expect("next_offset", next_offset, log.events)
    stage.expect_same(f"state digest of {log.run} at {log.events}", state_digest)


def check_rows(stage: Stage, projector: Projector) -> None:
    """The digest that the fold kept is the digest of the rows."""
    stage.expect("the digest made anew", projector.recomputed_digest(), projector.state_digest)


def check_memory(stage: Stage, log: StoredLog, graph: MemoryGraph) -> None:
    """The rows of a graph in memory are as many as the stream says, and its reports came to what it says."""
    tables: Counter[str] = Counter()
    reports: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for key, row in graph.rows():
        tables[key.table] += 1
        if key.table == "Report":
            reports[str(row["outcome"])] += 1
        elif key.table == "Event":
            verdicts[str(row["verdict"])] += 1
    stage.expect("the count of verdicts", dict(verdicts), {"valid": log.events})
    stage.expect("the count of CAUSED", tables["CAUSED"], log.causes)
    stage.expect("the count of rows", {table: tables[table] for table in log.rows}, log.rows)
    stage.expect("the count of reports", dict(reports), log.reports)


def check_cypher(stage: Stage, log: StoredLog, graph: Queryable) -> None:
    """The same of a graph on disk, asked in Cypher; lineage included."""
    verdicts = graph.query("MATCH (e:Event) RETURN e.verdict, count(*)").rows
    stage.expect("the count of verdicts", list(verdicts), [("valid", log.events)])
    stage.expect("the count of CAUSED", _count(graph, "MATCH (:Event)-[:CAUSED]->(:Event)"), log.causes)
    for table, expected in log.rows.items():
        stage.expect(f"the count of {table}", _count(graph, f"MATCH (:`{table}`)"), expected)
        produced = _count(graph, f"MATCH (:Event)-[:PRODUCED]->(:`{table}`)")
        stage.expect(f"the count of PRODUCED to {table}", produced, expected)
    reports = graph.query("MATCH (r:Report) RETURN r.outcome, count(*)").rows
    stage.expect("the count of reports", {str(outcome): count for outcome, count in reports}, log.reports)


def _count(graph: Queryable, pattern: str) -> object:
    return graph.query(f"{pattern} RETURN count(*)").rows[0][0]
