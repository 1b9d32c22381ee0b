"""A run owned for long, on a real log: folded as events come, asked by others, and handed on when its owner ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.protocol import Cursor
from forktrail_projectors.lock import holder
from forktrail_projectors.owner import follower
from forktrail_projectors.owner.live import own
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.projection import graph_file, lock_file, open_projection
from forktrail_projectors.state import Changes
from forktrail_projectors.submit import submit
from forktrail_schemas import events
from forktrail_schemas.errors import Corruption, ForktrailError, GraphBusy, GraphError, GraphMismatch, NotFound
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic, run_topic_spec
from support.raw import reported, write
from support.story import Story
from support.workbench import wait_until

WAIT_S = 30.0
COUNT = "MATCH (e:Event) RETURN count(*)"
# Owns a run until it is killed; says when it serves.
OWNER = """
import sys, time
from pathlib import Path
from forktrail_projectors.owner.live import own
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_schemas.settings import Settings
home, servers, run = sys.argv[1:]
with own(Settings(Path(home), servers, False, "ladybug"), run) as owner:
    print(owner.address, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def story(settings: Settings) -> Story:
    """A run whose log holds a told story."""
    return reported(settings.bootstrap_servers)


def fail_commits(monkeypatch: pytest.MonkeyPatch, times: int) -> list[GraphError]:
    """Let the engine fail that often; returns the failures that are left."""
    failures = [GraphError("out of order") for _ in range(times)]
    commit = CypherGraph.commit

    def failing(graph: CypherGraph, changes: Changes, cursor: Cursor) -> None:
        if failures:
            raise failures.pop()
        commit(graph, changes, cursor)

    monkeypatch.setattr(CypherGraph, "commit", failing)
    return failures


def emit(settings: Settings, story: Story, text: str = "more") -> int:
    """Write one more event; returns its offset."""
    with Producer(settings.bootstrap_servers) as producer:
        return producer.emit(story.event(events.GoalSet, text=text))


@contextmanager
def owner_process(settings: Settings, run: str) -> Iterator[subprocess.Popen[str]]:
    """A process that owns the run's graph and serves it; killed at the latest when the block ends."""
    words = [sys.executable, "-c", OWNER, str(settings.home), settings.bootstrap_servers, run]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("/")
            yield process
        finally:
            process.kill()


def test_commands_beside_an_owner_see_what_it_would_see_itself(settings: Settings, story: Story) -> None:
    with owner_process(settings, story.run) as process:
        offset = emit(settings, story)
        with open_projection(settings, story.run) as view:
            assert view.owner == f"process {process.pid}"
            assert view.next_offset == offset + 1
            assert view.verdict(offset).valid
            assert view.graph.query(COUNT).rows == [(offset + 1,)]
            assert view.sound()
            assert view.reader.record_at(0).value == story.records[0].value
            there = view.position()
    with open_projection(settings, story.run) as view:
        assert view.owner == "this process"
        assert view.position() == there


def test_submit_goes_through_the_owner(settings: Settings, story: Story) -> None:
    with owner_process(settings, story.run):
        submission = submit(settings, story.event(events.GoalSet, text="more"))
        assert (submission.offset, submission.verdict.kind) == (len(story.records), "valid")
        again = submit(settings, story.event(events.GoalSet, event_id=submission.verdict.event_id, text="other"))
        assert again.verdict.reason == "id_reused"


def test_without_folding_an_owner_that_has_it_all_answers(settings: Settings, story: Story) -> None:
    with owner_process(settings, story.run) as process:
        with open_projection(settings, story.run) as view:
            view.catch_up()
        with open_projection(settings, story.run, fold=False) as view:
            assert view.owner == f"process {process.pid}"
            assert view.graph.query(COUNT).rows == [(len(story.records),)]


def test_an_event_is_folded_within_a_moment(settings: Settings, story: Story) -> None:
    with own(settings, story.run) as owner, Producer(settings.bootstrap_servers) as producer:
        view = owner.view()
        view.catch_up()
        seconds = []
        for number in range(15):
            offset = producer.emit(story.event(events.GoalSet, text=f"goal {number}"))
            began = time.monotonic()
            assert view.verdict(offset).valid
            seconds.append(time.monotonic() - began)
        view.close()
    assert sorted(seconds)[7] < 0.1


def test_a_killed_owner_is_followed_by_whoever_asks_next_in_the_midst_of_a_view(
    settings: Settings, story: Story
) -> None:
    with owner_process(settings, story.run) as process, open_projection(settings, story.run) as view:
        before = view.graph.query(COUNT).rows
        process.kill()
        process.wait()
        assert view.graph.query(COUNT).rows == before
        assert view.owner == "this process"
        offset = emit(settings, story)
        view.catch_up(offset + 1)
        assert view.verdict(offset).valid


def test_a_socket_that_a_killed_owner_left_is_in_nobodys_way(settings: Settings, story: Story) -> None:
    with owner_process(settings, story.run) as process:
        process.kill()
        process.wait()
    found = holder(lock_file(settings, story.run))
    assert found is not None
    assert found.socket is not None
    assert found.socket.exists()
    with own(settings, story.run) as owner:
        assert owner.address == found.socket
        with open_projection(settings, story.run) as view:
            assert view.next_offset == len(story.records)
    assert not found.socket.exists()


def test_of_two_owners_one_wins_and_the_other_is_told_who(settings: Settings, story: Story) -> None:
    with owner_process(settings, story.run) as process:
        began = time.monotonic()
        with (
            pytest.raises(GraphBusy, match=f"process {process.pid} owns") as raised,
            own(settings, story.run, wait_seconds=WAIT_S),
        ):
            pass
        assert raised.value.code == "graph_owned"
        assert time.monotonic() - began < WAIT_S / 2


def test_an_owner_that_does_not_stay_is_waited_for(settings: Settings, story: Story) -> None:
    def second() -> int:
        with own(settings, story.run, wait_seconds=WAIT_S) as owner:
            return owner.position().end

    with ExitStack() as first, ThreadPoolExecutor(1) as pool:
        first.enter_context(own(settings, story.run, stays=False))
        waiting = pool.submit(second)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        first.close()
        assert waiting.result(WAIT_S) == len(story.records)


def test_of_many_that_begin_at_once_one_owns_at_a_time_and_all_see_the_same(settings: Settings, story: Story) -> None:
    barrier = threading.Barrier(6)

    def look(number: int) -> object:
        barrier.wait(WAIT_S)
        if number:
            with open_projection(settings, story.run) as view:
                return view.graph.query(COUNT).rows
        with own(settings, story.run, wait_seconds=WAIT_S) as owner:
            own_view = owner.view()
            own_view.catch_up()
            rows = own_view.query(COUNT).rows
            own_view.close()
            return rows

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(look, range(6))) == [[(len(story.records),)]] * 6


def test_a_rebuild_is_done_by_the_owner_and_it_goes_on(settings: Settings, story: Story) -> None:
    said: list[str] = []
    with own(settings, story.run, say=said.append), open_projection(settings, story.run, rebuild=True) as view:
        assert view.sound()
        assert view.next_offset == len(story.records)
        assert [line for line in said if "rebuilt from the log: asked for" in line]
        assert list(settings.graphs_dir.glob(f"{story.run}.aside-*"))
        offset = emit(settings, story)
        view.catch_up(offset + 1)
        assert view.verdict(offset).valid


def test_an_owner_can_begin_with_a_rebuild(settings: Settings, story: Story) -> None:
    with open_projection(settings, story.run):
        pass
    said: list[str] = []
    with own(settings, story.run, rebuild=True, say=said.append) as owner:
        wait_until(lambda: owner.position().next_offset == len(story.records))
    assert len(said) == 1


def test_a_damaged_graph_is_rebuilt_by_its_new_owner(settings: Settings, story: Story) -> None:
    with open_projection(settings, story.run):
        pass
    graph_file(settings, story.run).write_bytes(b"no database")
    said: list[str] = []
    with own(settings, story.run, say=said.append) as owner:
        wait_until(lambda: owner.position().next_offset == len(story.records))
        assert "doesn't open" in said[0]


@pytest.mark.parametrize(
    ("failures", "lines"), [(1, ["opening the graph"]), (2, ["opening the graph", "can't be folded on"])]
)
def test_an_engine_that_fails_is_met_by_opening_anew_and_then_by_a_rebuild(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch, failures: int, lines: list[str]
) -> None:
    left = fail_commits(monkeypatch, failures)
    said: list[str] = []
    with own(settings, story.run, say=said.append):
        wait_until(lambda: not left)
        with open_projection(settings, story.run) as view:
            assert view.position().state_digest == story.projector.state_digest
    assert [line in heard for line, heard in zip(lines, said, strict=True)] == [True] * failures


def test_an_engine_that_fails_over_the_rebuilt_graph_too_ends_the_owner(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_projection(settings, story.run):
        pass
    fail_commits(monkeypatch, 1_000)
    emit(settings, story)
    said: list[str] = []
    with own(settings, story.run, say=said.append) as owner:
        wait_until(lambda: len(said) == 2)
        assert "can't be folded on" in said[1]
        emit(settings, story)
        with pytest.raises(GraphError, match="out of order"):
            owner.wait()


def test_a_closed_run_is_said_and_followed_on(settings: Settings, story: Story) -> None:
    said: list[str] = []
    with own(settings, story.run, say=said.append) as owner:
        assert story.close().valid
        write(settings.bootstrap_servers, story.run, story.records[-1:])
        late = emit(settings, story)
        view = owner.view()
        assert view.verdict(late).reason == "run_closed"
        view.close()
    assert said == [f"{story.run} was closed at offset {late - 1}; it is followed on, a seal may come"]


def ended(settings: Settings, run: str, damage: object) -> ForktrailError:
    """Own a run, do something to its log, and wait for the owner to end of itself; returns why it did."""
    assert callable(damage)
    with own(settings, run) as owner:
        wait_until(lambda: owner.position().next_offset == owner.position().end)
        damage()
        with pytest.raises(ForktrailError) as raised:
            owner.wait()
        with pytest.raises(type(raised.value)):  # and whoever asks is told the same
            owner.view().catch_up(0)
    return raised.value


def test_a_topic_that_is_deleted_and_made_again_is_a_mismatch(settings: Settings, story: Story) -> None:
    def make_anew() -> None:
        admin, topic = AdminClient({"bootstrap.servers": settings.bootstrap_servers}), run_topic(story.run)
        admin.delete_topics([topic])[topic].result()
        topics = Topics(settings.bootstrap_servers)
        wait_until(lambda: topics.id_of(topic) is None)
        topics.make(run_topic_spec(story.run))

    assert isinstance(ended(settings, story.run, make_anew), GraphMismatch)
    with pytest.raises(GraphMismatch), open_projection(settings, story.run):
        pass


def test_a_topic_that_is_gone_for_good_ends_the_owner(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "GONE_SECONDS", 1.0)

    def delete() -> None:
        admin, topic = AdminClient({"bootstrap.servers": settings.bootstrap_servers}), run_topic(story.run)
        admin.delete_topics([topic])[topic].result()

    assert isinstance(ended(settings, story.run, delete), NotFound)


def test_records_deleted_at_the_start_of_the_log_end_the_owner(settings: Settings, story: Story) -> None:
    def cut() -> None:
        admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
        for done in admin.delete_records([TopicPartition(run_topic(story.run), 0, 2)]).values():
            done.result()

    error = ended(settings, story.run, cut)
    assert isinstance(error, Corruption)
    assert error.code == "log_truncated"


def test_a_run_that_is_not_there_leaves_no_lock_file(settings: Settings) -> None:
    with pytest.raises(NotFound), own(settings, "run-that-never-was"):
        pass
    assert not lock_file(settings, "run-that-never-was").exists()


def test_a_home_whose_path_is_too_long_for_a_socket_is_served_all_the_same(settings: Settings, story: Story) -> None:
    deep = Settings(
        settings.home / ("deep" * 30), settings.bootstrap_servers, external_kafka=False, graph_engine="ladybug"
    )
    with own(deep, story.run) as owner, open_projection(deep, story.run) as view:
        assert owner.address is not None
        assert not owner.address.is_relative_to(deep.home)
        assert len(os.fsencode(owner.address)) < 104
        assert view.next_offset == len(story.records)


def test_one_that_does_not_stay_lets_go_at_once_where_another_wants_to_stay(settings: Settings, story: Story) -> None:
    said: list[str] = []
    with own(settings, story.run, stays=False, say=said.append) as passing:
        view = passing.view()
        stop = threading.Event()

        def watch() -> None:
            """Ask again and again, as the shell's `:watch` does."""
            while not stop.is_set():
                view.query(COUNT)

        with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
            stack.callback(stop.set)
            watching = pool.submit(watch)
            began = time.monotonic()
            staying = stack.enter_context(own(settings, story.run, wait_seconds=WAIT_S))
            assert time.monotonic() - began < 5
            assert staying.position().next_offset == len(story.records)
            assert isinstance(watching.exception(WAIT_S), OwnerGone)
    assert said == []


def test_one_that_does_not_stay_waits_for_another_that_does_not(settings: Settings, story: Story) -> None:
    with own(settings, story.run, stays=False) as first:
        with pytest.raises(GraphBusy), own(settings, story.run, stays=False, wait_seconds=0.3):
            pass
        assert first.view().query(COUNT).rows == [(len(story.records),)]


def test_a_long_log_goes_into_the_file_once_nothing_comes(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(follower, "IDLE_SECONDS", 0.3)
    file = graph_file(settings, story.run)
    log = file.with_name(f"{file.name}.wal")
    with own(settings, story.run) as owner:
        view = owner.view()
        view.catch_up()
        size = log.stat().st_size
        time.sleep(1)
        assert log.stat().st_size == size  # it is worth nothing yet
        monkeypatch.setattr(follower, "LOG_BYTES_REPLAYED_MAX", size - 1)
        wait_until(lambda: not log.exists() or log.stat().st_size < size)
        emit(settings, story)
        view.catch_up()
        assert view.query(COUNT).rows == [(len(story.records) + 1,)]
        assert view.sound()
