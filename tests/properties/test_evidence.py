"""The invariants of the evidence rules, held against another telling of them (support/ledger.py)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from forktrail_projectors.discovery import all_eligible_tests, eligible_tests
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.record import LogRecord, Verdict
from forktrail_projectors.state import Changes, EdgeKey, NodeChange, NodeKey, Row
from forktrail_projectors.why_not import why_not
from forktrail_schemas import events
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from support.ledger import Ledger, event_of
from support.moves import Move, on_streams, streams
from support.rows import ENGINE, cursor, node
from support.tale import Tale

Rows = dict[NodeKey | EdgeKey, Row]
# An example of many tales, in a graph that answers Cypher.
with_cypher = settings(max_examples=max(3, settings().max_examples // 8))
TALES, SCENES = 6, 4
# What seldom comes by chance: a follow-up ends inconclusive and is retried; then the first finding falls.
ENDINGS = (
    [Move("propose"), Move("go_on"), Move("go_on"), Move("go_on", b=6), Move("retry")],
    [Move("withdraw", a=0)],
)
DISCOVERED = ("TestCase", "Capability", "Finding", "Case", "REQUIRES", "ENABLES", "ATTEMPTS")


def nodes(rows: Rows, table: str) -> dict[str, Row]:
    """The nodes of a table by id."""
    return {str(key.id): row for key, row in rows.items() if isinstance(key, NodeKey) and key.table == table}


def joined(rows: Rows, table: str) -> dict[str, set[str]]:
    """What each node leads to by the relations of a table."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for key in rows:
        if isinstance(key, EdgeKey) and key.table == table:
            found[str(key.source.id)].add(str(key.target.id))
    return found


def kept(tale: Tale) -> Iterator[tuple[Ledger, LogRecord, Verdict]]:
    """Each record in turn, in front of the ledger of all before it."""
    ledger = Ledger()
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        yield ledger, record, verdict
        ledger.add(record, verdict)


def ledger_of(tale: Tale) -> Ledger:
    """The ledger of a whole tale."""
    ledger = Ledger()
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        ledger.add(record, verdict)
    return ledger


@on_streams
def test_no_event_asserts_a_finding(moves: list[Move]) -> None:
    """Each follows from an accepted review of a reproduced observation of an approved case, by somebody else."""
    tale = Tale(moves)
    ledger, rows = ledger_of(tale), tale.rows()
    told = {id: (row["test"], row["revision"], row["withdrawn"]) for id, row in nodes(rows, "Finding").items()}
    assert told == {id: (f.test, f.revision, f.withdrawn) for id, f in ledger.findings.items()}
    established = joined(rows, "FOUND_IN")
    for id in told:
        (case_id,) = established[id]
        case = ledger.cases[case_id]
        assert case.decision is not None
        assert case.decision.decision == "approve"
        assert case.started is not None
        assert case.started.approval_id == derived_id("approval", case.decision.meta.event_id)
        assert case.observed is not None
        assert case.observed.outcome == "reproduced"
        assert case.reviewed is not None
        assert case.reviewed.decision == "accept"
        assert case.decision.meta.actor.kind == case.reviewed.meta.actor.kind == "human"
        assert case.decision.meta.actor.id != case.reviewed.meta.actor.id or case.one_person_may


@on_streams
def test_a_case_holds_what_its_events_say(moves: list[Move]) -> None:
    tale = Tale(moves)
    told = {
        id: (row["test"], row["revision"], row["retried"], row["approver"], row["outcome"], row["reviewer"])
        for id, row in nodes(tale.rows(), "Case").items()
    }
    assert told == {
        id: (
            case.test,
            case.revision,
            case.retried,
            case.decision and case.decision.meta.actor.id,
            case.observed and case.observed.outcome,
            case.reviewed and case.reviewed.meta.actor.id,
        )
        for id, case in ledger_of(tale).cases.items()
    }


def amounts_of(event: Event, ledger: Ledger) -> dict[str, int]:
    """What an event would bring the budgets of the evidence rules to."""
    if isinstance(event, events.TestProposed):
        return ledger.with_case(frozenset(event.finding_ids))
    if isinstance(event, events.TestStarted):
        return ledger.with_start(event.case_id)
    if isinstance(event, events.ModelRequested | events.ToolRequested):
        return ledger.with_call(event)
    return {}


def cause_depths(tale: Tale) -> dict[int, int]:
    """How deep each record that holds an event stands among its causes, by offset: one deeper than the deepest."""
    by_offset: dict[int, int] = {}
    taken = {id: row["offset"] for id, row in nodes(tale.rows(), "Identity").items()}
    for record, verdict in zip(tale.records, tale.verdicts, strict=True):
        if verdict.kind in ("valid", "void") and verdict.event_id:
            causes = event_of(record).meta.causes
            known = [by_offset[offset] for id in causes if (offset := int(str(taken.get(id, -1)))) in by_offset]
            by_offset[record.offset] = 1 + max(known) if known else 0
    return by_offset


@on_streams
def test_budgets_hold_exactly(moves: list[Move]) -> None:
    """What fits is let through; what would pass a limit is refused, with what it would come to; an admin may go on."""
    tale = Tale(moves)
    depths = cause_depths(tale)
    for ledger, record, verdict in kept(tale):
        over = verdict.kind == "void" and verdict.reason == "budget_exhausted"
        if verdict.kind != "valid" and not over:
            continue
        event = event_of(record)
        amounts = {} if event.ROLE == "admin" else {"events": record.offset + 1, "cause-depth": depths[record.offset]}
        if over:
            name, _, told = verdict.detail.partition(": ")
            if name in ledger.spent(event):
                assert told == f"{ledger.spent(event)[name]} of {ledger.limits[name]}"
                assert not ledger.fits({name: ledger.spent(event)[name] + 1})
                continue
            if name not in amounts:  # a proposal over the log's budgets may name findings that there aren't
                amounts |= amounts_of(event, ledger)
            assert told == f"{amounts[name]} of {ledger.limits[name]}"
            assert not ledger.fits({name: amounts[name]})
        else:
            left = {name: used + 1 for name, used in ledger.spent(event).items()}
            assert ledger.fits(amounts | left | amounts_of(event, ledger)), verdict


@on_streams
def test_what_is_used_of_a_budget_is_what_was_done(moves: list[Move]) -> None:
    tale = Tale(moves)
    ledger, depths = ledger_of(tale), cause_depths(tale)
    budgets = nodes(tale.rows(), "Budget")
    counted = [
        depths[verdict.offset]
        for record, verdict in zip(tale.records, tale.verdicts, strict=True)
        if verdict.kind == "valid" and event_of(record).ROLE != "admin"
    ]
    if budgets:
        used = {
            "cases": len(ledger.cases),
            "http-requests": ledger.requests(),
            "finding-depth": max((case.depth for case in ledger.cases.values()), default=0),
            "cause-depth": max(counted, default=0),
            "events": None,  # the log's length says it
        }
        for name in ("tokens", "cost-micros"):
            if ledger.calls[name] or name in ledger.limits:
                used[name] = ledger.calls[name]
        if ledger.calls["micros"] or "seconds" in ledger.limits:
            used["seconds"] = ledger.calls["micros"] // 1_000_000
        for name, cls in (("model-calls", events.ModelRequested), ("tool-calls", events.ToolRequested)):
            asked = sum(verdict.kind == "valid" and verdict.type == cls.TYPE for verdict in tale.verdicts)
            if asked or name in ledger.limits:
                used[name] = asked
        assert {name: row["used"] for name, row in budgets.items()} == used
        assert {name: row["limit"] for name, row in budgets.items()} == {name: ledger.limits.get(name) for name in used}


@on_streams
def test_a_test_has_at_most_one_standing_case_and_one_finding_in_a_revision(moves: list[Move]) -> None:
    tale = Tale(moves)
    for ledger, _, _ in kept(tale):
        standing = Counter((case.test, case.revision) for case in ledger.cases.values() if not case.retried)
        assert max(standing.values(), default=0) <= 1
    rows = tale.rows()
    attempts = Counter((row["test"], row["revision"]) for row in nodes(rows, "Case").values() if not row["retried"])
    found = Counter((row["test"], row["revision"]) for row in nodes(rows, "Finding").values())
    assert {*attempts.values(), *found.values()} <= {1}


@on_streams
def test_a_report_opens_a_case_just_where_its_test_is_eligible(moves: list[Move]) -> None:
    tale = Tale(moves)
    rows = tale.rows()
    for ledger, record, verdict in kept(tale):
        if verdict.kind == "valid" and verdict.type.endswith(".ReportFiled"):
            event = event_of(record)
            assert isinstance(event, events.ReportFiled)
            outcome = nodes(rows, "Report")[derived_id("report", event.meta.event_id)]["outcome"]
            assert (outcome == "case_opened") is ledger.opens(event.test_id), verdict


@on_streams
def test_a_finding_is_one_deeper_than_the_deepest_it_rests_on(moves: list[Move]) -> None:
    tale = Tale(moves)
    rows = tale.rows()
    findings, rests_on, found_in = nodes(rows, "Finding"), joined(rows, "RESTS_ON"), joined(rows, "FOUND_IN")
    for id, row in findings.items():
        (case_id,) = found_in[id]
        beneath = [int(str(findings[other]["depth"])) for other in rests_on[case_id]]
        assert row["depth"] == (1 + max(beneath) if beneath else 0)
    cases = ledger_of(tale).cases
    assert {id: row["depth"] for id, row in nodes(rows, "Case").items()} == {id: c.depth for id, c in cases.items()}
    assert {id: rests_on[id] for id in cases} == {id: set(case.rests_on) for id, case in cases.items()}


@on_streams
def test_a_case_rests_on_just_what_was_current_and_provides_what_its_test_requires(moves: list[Move]) -> None:
    for ledger, record, verdict in kept(Tale(moves)):
        if verdict.kind == "valid" and verdict.type.endswith(".TestProposed"):
            event = event_of(record)
            assert isinstance(event, events.TestProposed)
            named = set(event.finding_ids)
            required = set(ledger.tests[event.test_id].requires)
            assert event.revision == ledger.revision
            assert named <= ledger.support(event.test_id)
            assert required <= {name for id in named for name in ledger.tests[ledger.findings[id].test].enables}
            assert not ledger.standing(event.test_id)


@on_streams
def test_a_proposal_is_overtaken_by_a_case_that_was_opened_since_it_was_decided_on(moves: list[Move]) -> None:
    for ledger, record, verdict in kept(Tale(moves)):
        overtaken = verdict.kind == "void" and verdict.reason == "overtaken"
        if verdict.type.endswith(".TestProposed") and (verdict.kind == "valid" or overtaken):
            event = event_of(record)
            assert isinstance(event, events.TestProposed)
            since = event.as_of is not None and ledger.last_opened >= event.as_of
            assert since is overtaken, verdict


def eligible(rows: Rows, revision: str) -> dict[str, set[tuple[str, str]]]:
    """By going through every row: the eligible tests, each with the (finding, capability) pairs that support it."""
    current = {id for id, f in nodes(rows, "Finding").items() if f["revision"] == revision and not f["withdrawn"]}
    enables, requires = joined(rows, "ENABLES"), joined(rows, "REQUIRES")
    standing = {c["test"] for c in nodes(rows, "Case").values() if c["revision"] == revision and not c["retried"]}
    found = {}
    for test in nodes(rows, "TestCase"):
        pairs = {(id, capability) for id in current for capability in enables[id] & requires[test]}
        met = {capability for _, capability in pairs}
        if requires[test] and met == requires[test] and test not in standing:
            found[test] = pairs
    return found


@dataclass(frozen=True)
class Scene:
    """What a tale had come to at some moment: all that discovery looks at, under names of its own."""

    revision: str
    rows: Rows


def scenes(number: int, moves: list[Move]) -> Iterator[Scene]:
    """A tale at some moments."""
    tale = Tale()
    step = max(1, len(moves) // SCENES)
    acts = [moves[start : start + step] for start in range(0, len(moves), step)]
    for act, played in enumerate([*acts, *ENDINGS]):
        for move in played:
            tale.take(move)
        rows = tale.rows()
        if NodeKey("Run", "run") in rows:
            mark = f"{number}-{act}/"
            revision = f"{mark}{rows[NodeKey('Run', 'run')]['active_revision']}"
            yield Scene(revision, dict(_marked(mark, key, row) for key, row in rows.items() if key.table in DISCOVERED))


def _marked(mark: str, key: NodeKey | EdgeKey, row: Row) -> tuple[NodeKey | EdgeKey, Row]:
    if isinstance(key, EdgeKey):
        ends = [NodeKey(end.table, f"{mark}{end.id}") for end in (key.source, key.target)]
        return EdgeKey(key.table, *ends), row
    named = {name: f"{mark}{row[name]}" for name in ("id", "test", "revision") if row.get(name) is not None}
    return NodeKey(key.table, f"{mark}{key.id}"), {**row, **named}


@with_cypher
@given(st.lists(streams(), min_size=TALES, max_size=TALES))
def test_discovery_returns_just_the_tests_that_are_eligible(tales: list[list[Move]]) -> None:
    """In its order, with their support; and why-not says of each test whether it is among them.

    Many scenes lie in one graph, since making one takes longer than asking it; each is of a revision of its own.
    """
    told = [scene for number, moves in enumerate(tales) for scene in scenes(number, moves)]
    graph = CypherGraph.in_memory(ENGINE)
    try:
        run, row = node("Run", "run", status="open", goal="goal-1", last_case_offset=-1)
        made = Changes.of({run: NodeChange(None, row)}, {})
        for scene in told:
            for key, content in scene.rows.items():
                if isinstance(key, NodeKey):
                    made.put_node(key, None, content)
                else:
                    made.put_edge(*key, content)
        graph.commit(made, cursor(1))
        for at, scene in enumerate(told, 2):
            now: Row = {**row, "active_revision": scene.revision}
            graph.commit(Changes.of({run: NodeChange(row, now)}, {}), cursor(at))
            row = now
            compare_discovery(graph, scene)
    finally:
        graph.close()


def compare_discovery(graph: CypherGraph, scene: Scene) -> None:
    """Discovery in one revision against every row of it."""
    tests, expected = nodes(scene.rows, "TestCase"), eligible(scene.rows, scene.revision)
    found = all_eligible_tests(graph, scene.revision)
    assert {c.test_id: {(pair.finding_id, pair.capability) for pair in c.support} for c in found} == expected
    assert [c.test_id for c in found] == sorted(expected, key=lambda test: (-int(str(tests[test]["impact"])), test))
    page = eligible_tests(graph, scene.revision, skip=1, limit=2)
    assert (page.total, list(page.candidates)) == (len(expected), found[1:3])
    for candidate in found:
        depths = [int(str(scene.rows[NodeKey("Finding", id)]["depth"])) for id in candidate.finding_ids]
        assert candidate.depth == 1 + max(depths)
    assert {test for test in tests if why_not(graph, test).eligible} == expected.keys()
