"""A pack that does a bit of everything, on the testing kit: it runs, and strict replay gives the same, to the field."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import Replayed, replay
from forktrail_behaviors.testing import Kit
from forktrail_projectors.fold import event_of
from forktrail_schemas.events import ObjectCreated, ToolRequested
from forktrail_schemas.headers import headers_of
from forktrail_schemas.wire import encode
from support.worked_pack import worked_pack

COMPANY = "company-00000001"


def scenario(kit: Kit) -> None:
    """A company; then a person agrees to all that is put to them."""
    kit.tell(ObjectCreated, object_type="Company", object_id=COMPANY, data='{"name":"Acme"}')
    kit.run()
    for call in kit.calls_of("approval"):
        if call["status"] == "pending":
            kit.decide(str(call["id"]))
    kit.run()


@pytest.fixture(scope="module")
def played() -> Kit:
    kit = Kit(worked_pack())
    scenario(kit)
    return kit


def strictly(kit: Kit, pack: Pack | None = None, *, start: int = 0, strict: bool = True) -> Replayed:
    """A strict replay of a kit's log, with no desk that could ask anything."""
    reactor = kit.under(pack or kit.pack).reactor()
    try:
        return replay("test-run", kit.log, reactor, kit.log.end(), start=start, strict=strict)
    finally:
        reactor.close()


def test_it_comes_to_what_it_is_made_for(played: Kit) -> None:
    assert [verdict for verdict in played.void() if verdict.kind != "valid"] == []
    (company,) = played.objects("Company")
    assert company["sector"] == f"sector of {COMPANY}"
    asked = [(row["text"], row["open"]) for row in played.objects("Question")]
    assert sorted(asked) == [
        ("is anything to be asked?", False),
        ("what does it sell?", False),
        ("who owns it?", False),
    ]
    texts = sorted(str(row["text"]) for row in played.objects("Answer"))
    assert texts == ["Acme what does it sell? olga", "Acme who owns it? olga"]
    assert {row["status"] for kind in ("model", "tool", "timer", "approval") for row in played.calls_of(kind)} == {
        "answered"
    }
    assert Counter(row["kind"] for kind in ("model", "tool", "timer", "approval") for row in played.calls_of(kind)) == {
        "model": 1,
        "tool": 3,  # one of the sector, two of the graph
        "timer": 2,
        "approval": 2,
    }
    assert sorted(played.calls.values()) == [1, 1]


def test_strict_replay_compares_every_event_that_an_execution_made(played: Kit) -> None:
    replayed = strictly(played)
    graph, verdicts = played.folded()
    made = [
        event
        for record, verdict in zip(played.log.records, verdicts, strict=True)
        if verdict.kind in ("valid", "void")
        and (event := event_of(record, graph)) is not None
        and event.meta.execution is not None
    ]
    print(f"{replayed.events} events of {replayed.executions} executions compared, {replayed.queries} queries")
    assert replayed.divergences == []
    assert replayed.events == len(made) > 20
    assert replayed.executions == len({event.meta.execution.id for event in made if event.meta.execution})
    assert (replayed.queries, replayed.unwritten, replayed.changed) == (2, 0, {})


@pytest.mark.parametrize("start", range(0, 60, 7))
def test_replay_from_any_offset_finds_no_difference(played: Kit, start: int) -> None:
    replayed = strictly(played, start=min(start, played.log.end()))
    assert replayed.divergences == []
    assert replayed.next_offset == played.log.end()


def test_a_log_cut_anywhere_replays_with_the_rest_unwritten(played: Kit) -> None:
    for end in range(8, played.log.end(), 5):
        kit = Kit(worked_pack(), register=False)
        kit.log.records, kit.blobs = played.log.records[:end], played.blobs
        assert strictly(kit).divergences == [], end


@pytest.mark.parametrize(
    ("event_type", "field", "value"),
    [
        ("ObjectCreated", "data", '{"about":"company-00000001","open":true,"text":"something else?"}'),
        ("ObjectPatched", "expected_version", 1),
        ("ApprovalRequested", "title", "answer what, exactly?"),
        ("TimerSet", "due_at", 1),
        ("ToolRequested", "idempotency_key", "made-up"),
    ],
)
def test_an_altered_event_is_told_with_its_offset_and_field(
    played: Kit, event_type: str, field: str, value: object
) -> None:
    kit = Kit(worked_pack(), register=False)
    kit.log.records, kit.blobs = list(played.log.records), played.blobs
    offset = _alter(kit, event_type, field, value)
    (found,) = strictly(kit).divergences[:1]
    assert (found.offset, found.event) == (offset, event_type)
    assert found.field == (f"{field}.text" if field == "data" else field)
    if field == "data":
        assert found.found == '"something else?"'
        assert found.expected in ('"what does it sell?"', '"who owns it?"', '"is anything to be asked?"')


def _alter(kit: Kit, event_type: str, field: str, value: object) -> int:
    """Write another value into the first such event that an execution made; returns its offset."""
    graph, _ = kit.folded()
    for offset, record in enumerate(kit.log.records):
        event = event_of(record, graph)
        if event is None or event.meta.execution is None or not event.TYPE.endswith(f".{event_type}"):
            continue
        if event_type == "ObjectCreated" and getattr(event, "object_type", "") != "Question":
            continue
        altered = type(event).model_validate({**event.model_dump(), field: value})
        kit.log.records[offset] = replace(record, value=encode(altered), headers=tuple(headers_of(altered, None)))
        return offset
    raise AssertionError(event_type)


def test_an_event_that_no_execution_makes_is_told(played: Kit) -> None:
    kit = Kit(worked_pack(), register=False)
    kit.log.records, kit.blobs = list(played.log.records), played.blobs
    graph, _ = kit.folded()
    made = [event for record in kit.log.records if isinstance(event := event_of(record, graph), ToolRequested)]
    execution = made[0].meta.execution
    assert execution is not None
    invented = made[0].model_copy(
        update={
            "meta": made[0].meta.model_copy(
                update={
                    "event_id": "00000000-0000-8000-8000-00000000000f",
                    "execution": execution.model_copy(update={"path": "99"}),
                }
            )
        }
    )
    at = next(record.offset for record in kit.log.records if event_of(record, graph) == made[0])
    kit.log.records.insert(at + 1, replace(kit.log.records[at], value=encode(invented), headers=()))
    kit.log.records = [replace(record, offset=offset) for offset, record in enumerate(kit.log.records)]
    (found,) = strictly(kit).divergences
    assert (found.offset, found.field, found.expected) == (at + 1, "event", "nothing")


def test_an_event_missing_from_the_midst_is_told(played: Kit) -> None:
    kit = Kit(worked_pack(), register=False)
    graph, _ = played.folded()
    events = [event_of(record, graph) for record in played.log.records]
    gone = next(
        offset
        for offset, event in enumerate(events)
        if isinstance(event, ObjectCreated) and event.meta.execution and event.object_type == "Answer"
    )
    kept = [record for record in played.log.records if record.offset != gone]
    kit.log.records = [replace(record, offset=offset) for offset, record in enumerate(kept)]
    kit.blobs = played.blobs
    found = strictly(kit, strict=False).divergences
    missing = [one for one in found if one.event_id == events[gone].meta.event_id]  # type: ignore[union-attr]  # it is one
    assert [(one.field, one.found) for one in missing] == [("event", "nothing")]
