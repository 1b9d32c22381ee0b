"""What isn't deterministic and hides from the check of the source: the guard stops it, or strict replay finds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import Kit
from forktrail_behaviors.testing.kit import RUN
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events import BehaviorFailed, ObjectCreated
from support import smuggling


class Item(BaseModel):
    """Anything."""

    text: str | None = None


ONE = {"object_id": "item-00000001"}


def played(emitted: str) -> Kit:
    """A run of a behavior that emits what a function of `support.smuggling` gives."""

    @behavior(on=ObjectCreated, where=ONE, emits=["Item"], repeats="one id")
    def smuggle(ctx: Context, event: ObjectCreated) -> None:
        ctx.create("Item", text=str(getattr(smuggling, emitted)()))

    kit = Kit(Pack("test", [Item], behaviors=[smuggle]))
    kit.tell(ObjectCreated, object_type="Item", object_id="item-00000001", data="{}")
    kit.run()
    return kit


@pytest.mark.parametrize("emitted", ["clock", "dice", "environment", "file"])
def test_the_guard_stops_what_a_helper_module_reads(emitted: str) -> None:
    (failed,) = played(emitted).events(BehaviorFailed)
    assert failed.error_type == "NondeterministicCall"
    assert failed.message


@pytest.mark.parametrize("emitted", ["clock_taken_before", "counter"])
def test_what_no_guard_sees_is_found_by_strict_replay_at_its_field(emitted: str) -> None:
    kit = played(emitted)
    assert kit.events(BehaviorFailed) == []
    reactor = kit.reactor()
    replayed = replay(RUN, kit.log, reactor, kit.log.end())
    reactor.close()
    (found,) = replayed.divergences
    assert (found.event, found.field) == ("ObjectCreated", "data.text")
    assert found.expected != found.found


def test_a_pack_whose_behavior_reads_a_clock_is_refused_with_file_and_line() -> None:
    import time

    @behavior(on=ObjectCreated, emits=["Item"], repeats="never")
    def tell_the_time(ctx: Context, event: ObjectCreated) -> None:
        ctx.create("Item", text=str(time.time_ns()))

    with pytest.raises(InvalidInput, match=Path(__file__).name) as refused:
        Pack("test", [Item], behaviors=[tell_the_time])
    assert "time.time_ns" in refused.value.message
    assert "ctx.now" in refused.value.hint
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if "str(time.time_ns())" in text
    )
    assert f":{line}:" in refused.value.message
