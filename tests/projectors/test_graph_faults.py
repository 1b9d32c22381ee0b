"""A graph's files damaged, restored or ahead of their log: rebuilt or caught up by itself, to the right digest."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_producers.kafka import Topics
from forktrail_projectors.graph import engine
from forktrail_projectors.graph.cypher import CypherGraph
from forktrail_projectors.graph.engine import database_files
from forktrail_projectors.owner.live import own
from forktrail_projectors.projection import graph_file, open_projection
from forktrail_schemas import events
from forktrail_schemas.errors import GraphBehind, GraphDiskFull, GraphMismatch, GraphUnavailable
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic, run_topic_spec
from support.local_broker import ignore
from support.raw import make_run, told, write
from support.story import Story


def opened(settings: Settings, story: Story) -> Story:
    """The story with its first events, on its topic."""
    story.open()
    story.register("root", enables=["a"])
    story.report("root")
    write(settings.bootstrap_servers, story.run, story.records)
    return story


@pytest.fixture
def story(settings: Settings) -> Story:
    return opened(settings, told(settings.bootstrap_servers))


def more(settings: Settings, story: Story, count: int, words: str = "goal") -> None:
    """Tell more events, and write them to the topic."""
    first = len(story.records)
    for number in range(count):
        story.tell(story.event(events.GoalSet, text=f"{words} {number}"))
    write(settings.bootstrap_servers, story.run, story.records[first:])


def folded(settings: Settings, story: Story) -> list[str]:
    """Fold to the log's end, which must give the state of the story; returns what was said."""
    said: list[str] = []
    with open_projection(settings, story.run, say=said.append) as projection:
        position = projection.position()
        assert position.next_offset == position.end == len(story.records)
        assert position.state_digest == story.projector.state_digest
        ((count,),) = projection.graph.query("MATCH (e:Event) RETURN count(*)").rows
        assert count == len(story.records)
    return said


def copied(settings: Settings, story: Story, folder: Path) -> list[Path]:
    """Copies of the graph's files, whose owner has closed it."""
    folder.mkdir()
    files = database_files(graph_file(settings, story.run))
    return [Path(shutil.copy2(file, folder / file.name)) for file in files]


def restored(settings: Settings, story: Story, copies: list[Path]) -> None:
    """Put copies in the place of the graph's files."""
    for file in database_files(graph_file(settings, story.run)):
        file.unlink()
    for file in copies:
        shutil.copy2(file, graph_file(settings, story.run).with_name(file.name))


def checkpointed(settings: Settings, story: Story) -> bytes:
    """The graph's file once it is whole without its journal."""
    path = graph_file(settings, story.run)
    graph = CypherGraph.open(path, settings.graph_engine)
    graph.checkpoint()
    graph.close()
    assert database_files(path) == (path,)
    return path.read_bytes()


def aside(settings: Settings, story: Story) -> list[str]:
    return sorted(path.name for path in settings.graphs_dir.glob(f"{story.run}.aside-*"))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut in its first page": lambda data: data[:100],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "zeroed": lambda data: bytes(len(data)),
    "its first page zeroed": lambda data: bytes(4096) + data[4096:],
    "another file": lambda data: b"SQLite format 3\x00" + data[16:],
}


class TestDamagedFile:
    @pytest.mark.parametrize("name", DAMAGE)
    def test_it_is_rebuilt_with_a_line_and_kept_aside(self, settings: Settings, story: Story, name: str) -> None:
        folded(settings, story)
        path = graph_file(settings, story.run)
        path.write_bytes(DAMAGE[name](path.read_bytes()))
        with pytest.raises(GraphUnavailable), open_projection(settings, story.run, fold=False):
            pass
        (line,) = folded(settings, story)
        assert line.startswith(f"the graph of {story.run} was rebuilt from the log: it doesn't open (")
        (kept, *_) = aside(settings, story)
        assert f"the old one is kept as {kept}" in line
        assert folded(settings, story) == [], "and once is enough"

    def test_cut_to_nothing_it_is_no_graph_and_never_an_empty_answer(self, settings: Settings, story: Story) -> None:
        folded(settings, story)
        graph_file(settings, story.run).write_bytes(b"")
        with pytest.raises(GraphBehind), open_projection(settings, story.run, fold=False):
            pass
        assert folded(settings, story) == []

    def test_without_its_last_byte_it_answers_right_or_is_rebuilt(self, settings: Settings, story: Story) -> None:
        folded(settings, story)
        path = graph_file(settings, story.run)
        path.write_bytes(path.read_bytes()[:-1])
        folded(settings, story)
        with open_projection(settings, story.run) as projection:
            assert projection.sound()


class TestOlderCopy:
    def test_a_whole_one_is_caught_up(self, settings: Settings, story: Story, tmp_path: Path) -> None:
        """It is a graph that is behind, as any is whose log went on."""
        folded(settings, story)
        old = copied(settings, story, tmp_path / "old")
        more(settings, story, 50)
        folded(settings, story)
        restored(settings, story, old)
        assert folded(settings, story) == []
        assert aside(settings, story) == []

    def test_its_journal_beside_a_newer_file_is_not_taken_for_news(
        self, settings: Settings, story: Story, tmp_path: Path
    ) -> None:
        folded(settings, story)
        more(settings, story, 5)
        folded(settings, story)
        journal = tmp_path / "journal"
        journal.write_bytes(self.journal_of(settings, story).read_bytes())
        checkpointed(settings, story)
        shutil.copy2(journal, self.journal_of(settings, story))
        (line,) = folded(settings, story)
        assert "was rebuilt from the log" in line

    def test_its_file_beside_a_newer_journal_never_answers_without_the_events_between(
        self, settings: Settings, story: Story
    ) -> None:
        """The engine opens the two as one, and its cursor is right; the events between them are missing."""
        folded(settings, story)
        old = checkpointed(settings, story)
        more(settings, story, 5)
        folded(settings, story)
        checkpointed(settings, story)
        more(settings, story, 5)
        folded(settings, story)
        assert self.journal_of(settings, story).exists()
        graph_file(settings, story.run).write_bytes(old)
        (line,) = folded(settings, story)
        assert "was rebuilt from the log" in line

    def journal_of(self, settings: Settings, story: Story) -> Path:
        path = graph_file(settings, story.run)
        return path.with_name(path.name + ".wal")


@pytest.mark.parametrize("rebuild_first", [False, True])
def test_a_topic_made_again_under_its_name_is_a_mismatch_until_a_rebuild_is_asked_for(
    settings: Settings, story: Story, rebuild_first: bool
) -> None:
    folded(settings, story)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    topics = Topics(settings.bootstrap_servers)
    topic = run_topic(story.run)
    first = topics.id_of(topic)
    admin.delete_topics([topic])[topic].result(30)
    while topics.id_of(topic) is not None:
        pass
    assert topics.make(run_topic_spec(story.run))
    assert topics.id_of(topic) != first
    # The very same records: only the topic's id tells.
    write(settings.bootstrap_servers, story.run, story.records)
    if not rebuild_first:
        for fold in (True, False):
            with (
                pytest.raises(GraphMismatch, match="another topic of that name") as raised,
                open_projection(settings, story.run, fold=fold),
            ):
                pass
            assert raised.value.hint == f"forktrail project {story.run} --rebuild"
        assert aside(settings, story) == []
    with open_projection(settings, story.run, rebuild=True) as projection:
        assert projection.position().state_digest == story.projector.state_digest
    assert len({name.split(".")[1] for name in aside(settings, story)}) == 1
    assert folded(settings, story) == []


class TestLogRestored:
    """The broker's data put back from an older copy: the log lost its end, and may have gone on otherwise since."""

    @pytest.fixture
    def broker(self, home: Path, kafka_libs: Path) -> Iterator[BrokerLayout]:
        layout = BrokerLayout.of(home, kafka_libs)
        yield layout
        control.stop(layout, ignore, grace_s=5.0)

    def settings_of(self, layout: BrokerLayout) -> Settings:
        """Settings once the broker is started."""
        address = control.start(layout, free_port(), ignore).state.bootstrap_servers
        return Settings(home=layout.home, bootstrap_servers=address, external_kafka=False, graph_engine="ladybug")

    @pytest.mark.parametrize("went_on", [0, 2, 9])
    def test_a_graph_that_saw_more_is_set_aside_and_rebuilt_with_a_line(
        self, broker: BrokerLayout, went_on: int
    ) -> None:
        settings = self.settings_of(broker)
        run = make_run(settings.bootstrap_servers)
        story = opened(settings, Story(run))
        control.stop(broker, ignore)
        copy = broker.folder / "data-of-yesterday"
        shutil.copytree(broker.data, copy)

        settings = self.settings_of(broker)
        more(settings, story, 5, "lost")
        folded(settings, story)
        control.stop(broker, ignore)
        shutil.rmtree(broker.data)
        copy.rename(broker.data)

        settings = self.settings_of(broker)
        again = Story(run)
        again.open()
        again.register("root", enables=["a"])
        again.report("root")
        more(settings, again, went_on, "instead")
        (line,) = folded(settings, again)
        ahead = f"ahead of its log, which ends at {len(again.records)}"
        other = f"the log holds another record at offset {len(story.records) - 1}"
        assert (ahead if went_on < 5 else other) in line
        assert "the old one is kept as" in line
        assert aside(settings, again)


def test_a_full_disk_is_said_before_the_engine_meets_it_and_costs_nothing(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_projection(settings, story.run) as view:
        before = view.position()
    late = story.record(story.event(events.GoalSet, text="late"))
    write(settings.bootstrap_servers, story.run, [late])
    said: list[str] = []
    with monkeypatch.context() as full:
        full.setattr(engine, "ROOM_BYTES_MIN", 1 << 60)
        with pytest.raises(GraphDiskFull, match="MB left"), open_projection(settings, story.run, say=said.append):
            pass
        with pytest.raises(GraphDiskFull), own(settings, story.run, say=said.append) as owner:
            owner.wait()
    with open_projection(settings, story.run, say=said.append) as view:
        assert view.position().next_offset == before.next_offset + 1
        assert view.sound()
    assert said == []
