"""The directory of runs on a real Kafka."""

from __future__ import annotations

from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.directory import Directory
from forktrail_producers.producer import Producer
from forktrail_schemas.events import RunAnnounced
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import DIRECTORY, run_topic
from forktrail_schemas.wire import build


def announcement(run: str, status: str = "open", opened_at: int = 1) -> RunAnnounced:
    return build(
        RunAnnounced,
        {"run": run, "topic": run_topic(run), "goal": "look", "status": status, "opened_at": opened_at},
    )


def test_a_run_is_listed_once_it_is_announced_and_the_last_announcement_counts(kafka: str) -> None:
    directory, run = Directory(kafka), new_run_id()
    assert directory.find(run) is None
    with Producer(kafka) as producer:
        directory.announce(announcement(run), producer)
        directory.announce(announcement(run), producer)
        assert directory.find(run) == announcement(run)
        directory.announce(announcement(run, "closed"), producer)
    assert directory.find(run) == announcement(run, "closed")
    assert [found.run for found in directory.list().runs].count(run) == 1


def test_runs_are_listed_oldest_first(kafka: str) -> None:
    directory, runs = Directory(kafka), [new_run_id() for _ in range(5)]
    with Producer(kafka) as producer:
        for age, run in enumerate(runs):
            directory.announce(announcement(run, opened_at=100 - age), producer)
    found = [listed.run for listed in directory.list().runs if listed.run in runs]
    assert found == runs[::-1]


def test_records_that_are_no_announcements_are_counted_and_passed_over(kafka: str) -> None:
    directory, run = Directory(kafka), new_run_id()
    with Producer(kafka) as producer:
        directory.announce(announcement(run), producer)
    before = directory.list()
    raw = KafkaProducer({"bootstrap.servers": kafka})
    raw.produce(DIRECTORY.name, key=b"x", value=b"nonsense")
    raw.produce(DIRECTORY.name, key=b"y", value=None)
    assert raw.flush(10) == 0
    after = directory.list()
    assert after.runs == before.runs
    assert after.unreadable == before.unreadable + 2
