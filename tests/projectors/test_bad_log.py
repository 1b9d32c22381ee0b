"""Bad input on a real log: each record has one verdict, live and rebuilt; what can't be folded stops the run."""

from __future__ import annotations

import dataclasses

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from forktrail_producers.kafka import client_config
from forktrail_producers.producer import Producer
from forktrail_projectors.projection import open_projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas import events, wire
from forktrail_schemas.errors import ForeignTransaction, InvalidEvent
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import RECORD_BYTES_MAX, run_topic
from support.raw import told, transaction, write
from support.story import Story

# As CloudEvents 1.0.2, Kafka binding, 3.2 names them; `ce_source` says what the value doesn't.
HEADERS = ("ce_specversion", "ce_id", "ce_type", "ce_source", "ce_subject", "ce_time", "content-type")


@pytest.fixture
def story(settings: Settings) -> Story:
    """An open run whose records are on its topic."""
    story = told(settings.bootstrap_servers)
    story.open()
    write(settings.bootstrap_servers, story.run, story.records)
    return story


def goal(story: Story, number: int) -> LogRecord:
    """The record of a goal: good, and not written."""
    return story.record(story.event(events.GoalSet, text=f"goal {number}"))


def verdicts(settings: Settings, story: Story, records: list[LogRecord]) -> list[tuple[str, str, str]]:
    """Kind, reason and detail of records appended to the log, which a rebuild must give alike."""
    start = len(story.records)
    write(settings.bootstrap_servers, story.run, [*records, goal(story, -1)])
    found = []
    for rebuild in (False, True):
        with open_projection(settings, story.run, rebuild=rebuild) as projection:
            listed = [projection.verdict(start + place) for place in range(len(records) + 1)]
            found.append((projection.position().state_digest, listed))
    assert found[0] == found[1]
    *judged, last = found[0][1]
    assert last.kind == "valid", "the rest goes on"
    return [(verdict.kind, verdict.reason, verdict.detail) for verdict in judged]


def with_header(record: LogRecord, name: str, value: bytes | None) -> LogRecord:
    """The record with another value for one header, or, with None, without that header."""
    headers = ((key, value if key == name else old) for key, old in record.headers)
    return dataclasses.replace(record, headers=tuple((key, text) for key, text in headers if text is not None))


def test_each_header_that_contradicts_the_value_makes_its_event_void_and_is_named(
    settings: Settings, story: Story
) -> None:
    records = [with_header(goal(story, number), name, b"another") for number, name in enumerate(HEADERS)]
    expected = [("void", "header_mismatch", name) for name in HEADERS]
    expected[HEADERS.index("ce_source")] = ("valid", "", "")
    assert verdicts(settings, story, records) == expected


def test_each_header_may_be_missing_and_so_may_all_of_them(settings: Settings, story: Story) -> None:
    records = [with_header(goal(story, number), name, None) for number, name in enumerate(HEADERS)]
    assert [len(record.headers) for record in records] == [len(HEADERS) - 1] * len(HEADERS)
    records.append(dataclasses.replace(goal(story, 99), headers=()))
    assert verdicts(settings, story, records) == [("valid", "", "")] * len(records)


def test_a_key_may_be_missing_and_decides_nothing(settings: Settings, story: Story) -> None:
    """The key is for Kafka; the value says what the event is about."""
    records = [dataclasses.replace(goal(story, number), key=key) for number, key in enumerate([None, b"", b"\xff"])]
    assert verdicts(settings, story, records) == [("valid", "", "")] * 3


@pytest.mark.parametrize("key", [None, b"a-key"])
def test_a_tombstone_deletes_nothing_and_is_unreadable(settings: Settings, story: Story, key: bytes | None) -> None:
    tombstone = LogRecord(0, 1_700_000_000_000, key, None)
    assert verdicts(settings, story, [tombstone]) == [("unreadable", "no_value", "")]


def test_bytes_left_over_by_each_of_several_schemas_are_unreadable(settings: Settings, story: Story) -> None:
    good = [story.record(story.event(events.GoalSet, text="x")), *story.records]
    records = [dataclasses.replace(record, value=(record.value or b"") + b"\x00") for record in good]
    found = verdicts(settings, story, records)
    assert [(kind, reason) for kind, reason, _ in found] == [("unreadable", "trailing_bytes")] * len(records)
    assert found[0][2] == "forktrail.GoalSet leaves 1 bytes over"


class TestOversized:
    def large(self, story: Story) -> events.GoalSet:
        """An event that keeps to its schema and has more bytes than ours are allowed: 4,000 bound ids of 256 bytes."""
        event = story.event(events.GoalSet, text="x")
        execution = {
            "id": event.meta.event_id,
            "behavior": "ask",
            "version": "1",
            "handler": "run",
            "match": ["m" * 256] * 4_000,
            "path": "0",
        }
        fields = event.model_dump()
        fields["meta"]["execution"] = execution
        return wire.build(events.GoalSet, fields)

    def test_our_own_client_does_not_send_it(self, settings: Settings, story: Story) -> None:
        large = self.large(story)
        with (
            Producer(settings.bootstrap_servers) as producer,
            pytest.raises(InvalidEvent, match="are allowed") as raised,
        ):
            producer.emit(large)
        assert "blob store" in raised.value.hint
        with LogReader(settings.bootstrap_servers, story.run) as reader:
            assert reader.end() == len(story.records)

    def test_one_that_another_client_wrote_has_one_verdict_and_the_rest_goes_on(
        self, settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(wire, "VALUE_BYTES_MAX", RECORD_BYTES_MAX)
            record = story.record(self.large(story))
        assert 1_000_000 < len(record.value or b"") < RECORD_BYTES_MAX
        # The bound is on what we write; what lies on the log is judged by its schema alone.
        assert verdicts(settings, story, [record]) == [("valid", "", "")]

    def test_what_is_larger_than_a_run_topic_takes_is_refused_by_kafka_and_the_log_is_as_it_was(
        self, settings: Settings, story: Story
    ) -> None:
        refused: list[KafkaError | None] = []
        producer = KafkaProducer(
            {"bootstrap.servers": settings.bootstrap_servers, "message.max.bytes": 2 * RECORD_BYTES_MAX}
        )
        producer.produce(
            run_topic(story.run),
            value=bytes(RECORD_BYTES_MAX + 1),
            partition=0,
            on_delivery=lambda error, message: refused.append(error),
        )
        assert producer.flush(30) == 0
        assert [error.code() for error in refused if error] == [KafkaError.MSG_SIZE_TOO_LARGE]
        with LogReader(settings.bootstrap_servers, story.run) as reader:
            assert reader.end() == len(story.records)

    def test_a_clients_own_limit_keeps_it_from_being_sent(self, settings: Settings, story: Story) -> None:
        producer = KafkaProducer(client_config(settings.bootstrap_servers))
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            producer.produce(run_topic(story.run), value=bytes(RECORD_BYTES_MAX + 1), partition=0)

    def test_a_topic_that_takes_less_gives_an_invalid_event_with_what_to_do(self, settings: Settings) -> None:
        """Made by hand, or by its operator: a run's own topic takes four times what an event may have."""
        run = new_run_id()
        admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
        topic = NewTopic(run_topic(run), 1, 1, config={"max.message.bytes": "1000"})
        admin.create_topics([topic])[topic.topic].result(30)
        event = Story(run).event(events.GoalSet, text="x" * 5_000)
        with (
            Producer(settings.bootstrap_servers) as producer,
            pytest.raises(InvalidEvent, match="larger than Kafka") as raised,
        ):
            producer.emit(event)
        assert "blob store" in raised.value.hint
        with LogReader(settings.bootstrap_servers, run) as reader:
            assert reader.end() == 0


class TestTransactions:
    def test_a_committed_one_stops_the_run_and_names_the_last_good_offset(
        self, settings: Settings, story: Story
    ) -> None:
        with transaction(settings.bootstrap_servers, story.run) as producer:
            record = goal(story, 1)
            producer.produce(run_topic(story.run), value=record.value, key=record.key, partition=0)
        # The record itself can't be told from any other; the mark of the commit takes an offset.
        self.stopped(settings, story, last_good=len(story.records))

    @pytest.mark.parametrize("records", [1, 3])
    def test_an_aborted_one_stops_the_run_and_names_the_last_good_offset(
        self, settings: Settings, story: Story, records: int
    ) -> None:
        producer = KafkaProducer({"bootstrap.servers": settings.bootstrap_servers, "transactional.id": story.run})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(records):
            record = goal(story, number)
            producer.produce(run_topic(story.run), value=record.value, key=record.key, partition=0)
        assert producer.flush(30) == 0
        producer.abort_transaction(30)
        # Run topics are read uncommitted: what was aborted is on the log for everyone.
        self.stopped(settings, story, last_good=len(story.records) + records - 1)

    def stopped(self, settings: Settings, story: Story, last_good: int) -> None:
        write(settings.bootstrap_servers, story.run, [goal(story, 99)])
        for rebuild in (False, True):
            with pytest.raises(ForeignTransaction) as raised, open_projection(settings, story.run, rebuild=rebuild):
                pass
            assert raised.value.offset == last_good
            assert f"the last good offset is {last_good}" in raised.value.hint
            assert raised.value.exit_code == 4

    def test_a_graph_folded_before_it_says_so_too(self, settings: Settings, story: Story) -> None:
        with open_projection(settings, story.run) as projection:
            assert projection.position().next_offset == len(story.records)
        with transaction(settings.bootstrap_servers, story.run) as producer:
            producer.produce(run_topic(story.run), value=goal(story, 1).value, partition=0)
        self.stopped(settings, story, last_good=len(story.records))
