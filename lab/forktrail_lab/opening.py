"""Opening a run: its topic, RunOpened, the registry's tests, schemas for others, and last its line in the directory.

A run is listed only once all before is durable. Opening again completes what a kill left, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forktrail_lab.registry.file import RegistryFile, definition_sha256, requests_max
from forktrail_lab.registry.model import RegisteredTest
from forktrail_producers.blobs import BlobStore
from forktrail_producers.directory import Directory
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer, meta
from forktrail_producers.schema_topic import SchemaTopic, built_in_schemas
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.projector import verdict_of_row
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rules.context import number, text
from forktrail_projectors.state import NodeKey, Row
from forktrail_projectors.submit import Submission
from forktrail_schemas.errors import GraphCatalogMismatch, InvalidInput
from forktrail_schemas.events import RunAnnounced, RunOpened, TestRegistered
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.topics import TopicSpec, run_topic, run_topic_spec
from forktrail_schemas.wire import build, decode

REGISTRY_MEDIA_TYPE = "application/json"
FIRST_REVISION = "r1"


@dataclass(frozen=True)
class Opening:
    """A run as it should be.

    Attributes:
        holder: actor id that the admin's key speaks for.
        registry: the tests that may be run; None for a run that knows no tests.
    """

    run: str
    goal: str
    holder: str
    admin: SigningKey
    registry: RegistryFile | None

    @property
    def tests(self) -> Sequence[RegisteredTest]:
        """The tests to register."""
        return self.registry.registry.tests if self.registry else ()


@dataclass(frozen=True)
class Opened:
    """What opening did: whether it began the run, and how many tests it registered."""

    began: bool
    registered: int


def open_run(settings: Settings, opening: Opening) -> Opened:
    """Make a run, or complete it.

    Raises:
        InvalidInput: the run is there with another admin or registry, or is closed.
        EventVoid: somebody else opened it at the same time and was first.
        LogUnavailable: Kafka doesn't answer; open again with the same run id.
    """
    _make_topic(Topics(settings.bootstrap_servers), run_topic_spec(opening.run))
    with Producer(settings.bootstrap_servers) as producer:
        opener = _Opener(settings, opening, producer)
        began = opener.begin()
        opener.refuse_another()
        registered = opener.register()
        SchemaTopic(settings.bootstrap_servers).publish(built_in_schemas(), producer)
        opener.announce()
    return Opened(began, registered)


def _make_topic(topics: Topics, spec: TopicSpec) -> None:
    """Make a run's topic; refuse one that stood there before and would not keep a run."""
    if topics.make(spec):
        return
    found = topics.config_of(spec.name)
    for name in ("cleanup.policy", "retention.ms", "retention.bytes"):
        if found.get(name) != spec.config[name]:
            raise InvalidInput(
                f"there is a topic {spec.name} already, and its {name} is {found.get(name)}, not {spec.config[name]}",
                hint="choose another run id",
            )


def announce(
    settings: Settings, run: str, goal: str, opened_at: int, producer: Producer, *, status: str = "open"
) -> None:
    """Put the run's line into the directory; harmless when done again."""
    fields = {"run": run, "topic": run_topic(run), "goal": goal, "status": status, "opened_at": opened_at}
    Directory(settings.bootstrap_servers).announce(build(RunAnnounced, fields), producer)


class _Opener:
    """The steps of opening one run, in their order."""

    def __init__(self, settings: Settings, opening: Opening, producer: Producer) -> None:
        self._settings = settings
        self._opening = opening
        self._producer = producer
        self._graph = self._folded()

    def begin(self) -> bool:
        """Store the registry and write RunOpened, unless the run has begun; returns whether it did."""
        registry = self._store_registry()
        if self._row("Run", "run") is not None:
            return False
        opening = self._opening
        for test in opening.tests:  # what the log would refuse must not leave half a run
            self._registration(test, goal=None)
        event = build(
            RunOpened,
            {
                "meta": self._meta(),
                "goal": opening.goal,
                "revision": opening.registry.registry.first_revision if opening.registry else FIRST_REVISION,
                "admin_public_key": opening.admin.public_key,
                "registry": registry,
            },
        )
        offset = self._producer.emit(event, opening.admin)
        self._graph = self._folded()
        row = self._row("Event", offset)
        assert row is not None, "the log was folded to its end"
        Submission(offset, verdict_of_row(row)).require_valid()
        return True

    def refuse_another(self) -> None:
        """Raise InvalidInput where the run is another one than should be opened."""
        opening, run = self._opening, self._opening.run
        opened = self._opened_event()
        if opened.admin_public_key != opening.admin.public_key:
            raise InvalidInput(f"there is a run {run} already, with another admin key", hint="choose another run id")
        had = opened.registry.sha256 if opened.registry else None
        if had != (opening.registry.sha256 if opening.registry else None):
            raise InvalidInput(
                f"there is a run {run} already, with another registry", hint="give the same file, or another run id"
            )
        if self._existing("Run", "run")["status"] == "closed":
            raise InvalidInput(f"{run} is closed", hint="choose another run id")

    def register(self) -> int:
        """Write TestRegistered for each test that is missing, and check that all are as defined; returns how many."""
        tests = self._opening.tests
        missing = [test for test in tests if self._row("TestCase", test.id) is None]
        goal = text(self._existing("Run", "run"), "goal")
        self._producer.emit_all([(self._registration(test, goal), self._opening.admin) for test in missing])
        if missing:
            self._graph = self._folded()
        for test in tests:
            row = self._row("TestCase", test.id)
            if row is None or row["definition_sha256"] != self._digest(test):
                raise GraphCatalogMismatch(
                    f"{self._opening.run} has {test.id} with another definition than the registry, or not at all",
                    hint=f"forktrail tail {self._opening.run}",
                    run=self._opening.run,
                )
        return len(missing)

    def announce(self) -> None:
        """List the run."""
        run = self._existing("Run", "run")
        goal = text(self._existing("Goal", text(run, "goal")), "text")
        opened_at = number(self._existing("Event", number(run, "created_offset")), "occurred_at")
        announce(self._settings, self._opening.run, goal, opened_at, self._producer)

    def _store_registry(self) -> dict[str, object] | None:
        registry = self._opening.registry
        if registry is None:
            return None
        raw = registry.path.read_bytes()
        digest = BlobStore(str(self._settings.blobs_dir)).put(raw)
        if digest != registry.sha256:
            raise InvalidInput(f"{registry.path} changed while it was read", hint="try again")
        return {"sha256": digest, "size": len(raw), "media_type": REGISTRY_MEDIA_TYPE}

    def _registration(self, test: RegisteredTest, goal: str | None) -> TestRegistered:
        fields = {
            "meta": self._meta(goal=goal),
            "test_id": test.id,
            "title": test.title,
            "asset_id": test.asset,
            "requires": list(test.requires),
            "enables": list(test.enables),
            "impact": test.impact,
            "requests_max": requests_max(test),
            "definition_sha256": self._digest(test),
        }
        return build(TestRegistered, fields)

    def _meta(self, goal: str | None = None) -> dict[str, object]:
        key = self._row("Key", self._opening.admin.key_id)
        holder = self._opening.holder if key is None else text(key, "holder")
        return meta(self._opening.run, "human", holder, goal=goal)

    def _digest(self, test: RegisteredTest) -> str:
        assert self._opening.registry is not None, "the test is of it"
        return definition_sha256(test, self._opening.registry.registry)

    def _opened_event(self) -> RunOpened:
        offset = number(self._existing("Run", "run"), "created_offset")
        with LogReader(self._settings.bootstrap_servers, self._opening.run) as reader:
            event = decode(reader.record_at(offset).value or b"")
        assert isinstance(event, RunOpened), "only a valid RunOpened makes the run's row"
        return event

    def _folded(self) -> MemoryGraph:
        return fold_in_memory(self._settings, self._opening.run)[0]

    def _row(self, table: str, id: str | int) -> Row | None:
        key = NodeKey(table, id)
        return self._graph.nodes([key]).get(key)

    def _existing(self, table: str, id: str | int) -> Row:
        row = self._row(table, id)
        assert row is not None, f"an open run has {table} {id}"
        return row
