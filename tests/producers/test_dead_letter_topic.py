"""The topic of dead letters on a real Kafka: the last of each key counts, and nobody else's records get in the way."""

from __future__ import annotations

from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.dead_letter_topic import DeadLetterTopic
from forktrail_producers.producer import Producer
from forktrail_schemas.events import DeadLetter, DeadLetterAcknowledged
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.topics import DEAD_LETTERS
from forktrail_schemas.wire import build


def letter(run: str, offset: int, reason: str = "not_avro") -> DeadLetter:
    fields = {
        "run": run,
        "offset": offset,
        "verdict": "unreadable",
        "reason": reason,
        "detail": "",
        "type": "",
        "event_id": "",
        "left_out": False,
        "headers": [{"name": "a", "value": None}],
        "value": b"x",
        "value_bytes": 1,
        "value_sha256": "0" * 64,
        "recorded_at": 1,
        "published_at": 1,
    }
    return build(DeadLetter, fields)


def acknowledgement(run: str, offset: int, reason: str) -> DeadLetterAcknowledged:
    fields = {"run": run, "offset": offset, "by": "olga", "reason": reason, "acknowledged_at": 1}
    return build(DeadLetterAcknowledged, fields)


def test_a_run_has_the_last_letter_and_acknowledgement_of_each_offset(kafka: str) -> None:
    topic, run = DeadLetterTopic(kafka), new_run_id()
    with Producer(kafka) as producer:
        topic.publish([letter(run, 1), letter(run, 12), letter(f"{run}-2", 1)], producer)
        topic.acknowledge(acknowledgement(run, 1, "known"), producer)
        topic.acknowledge(acknowledgement(run, 1, "well known"), producer)
        topic.publish([letter(run, 1, "no_value")], producer)
    found = topic.of_run(run)
    assert found.letters == {1: letter(run, 1, "no_value"), 12: letter(run, 12)}
    assert found.acknowledged == {1: acknowledgement(run, 1, "well known")}


def test_what_somebody_else_wrote_there_is_passed_over(kafka: str) -> None:
    topic, run = DeadLetterTopic(kafka), new_run_id()
    with Producer(kafka) as producer:
        topic.publish([letter(run, 1)], producer)
    raw = KafkaProducer({"bootstrap.servers": kafka})
    for key, value in ((f"{run}/2", b"nonsense"), (f"{run}/3", None), (None, b"x"), (b"\xff", b"x")):
        raw.produce(DEAD_LETTERS.name, key=key, value=value)
    assert raw.flush(30) == 0
    assert list(topic.of_run(run).letters) == [1]


def test_a_run_without_letters_has_none(kafka: str) -> None:
    found = DeadLetterTopic(kafka).of_run(new_run_id())
    assert (found.letters, found.acknowledged) == ({}, {})
