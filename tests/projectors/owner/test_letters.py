"""An owner publishes every dead letter of its run, also those that an owner before it was killed over."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from forktrail_producers.dead_letter_topic import DeadLetterTopic, RunLetters
from forktrail_producers.producer import Producer
from forktrail_projectors.owner import letters
from forktrail_projectors.owner.letters import Place
from forktrail_projectors.owner.live import LETTERS_SUFFIX, own
from forktrail_projectors.projection import graph_file, open_projection
from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.errors import LogUnavailable
from forktrail_schemas.events import DeadLetter, DeadLetterAcknowledged
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.raw import told, write
from support.story import Story
from support.workbench import wait_until


@pytest.fixture
def story(settings: Settings) -> Story:
    """A run whose log holds three dead letters among other events."""
    story = told(settings.bootstrap_servers)
    story.open()
    for value in (b"one", None, b"three"):
        story.append(LogRecord(len(story.records), 5, b"key", value, (("name", b"header"),)))
        story.tell(story.event(events.GoalSet, text="and on"))
    write(settings.bootstrap_servers, story.run, story.records)
    return story


def dead(story: Story) -> list[int]:
    return [record.offset for record in story.records if record.key == b"key"]


def on_topic(settings: Settings, story: Story) -> RunLetters:
    return DeadLetterTopic(settings.bootstrap_servers).of_run(story.run)


def published(settings: Settings, story: Story) -> list[int]:
    return sorted(on_topic(settings, story).letters)


def place_file(settings: Settings, story: Story) -> Path:
    return graph_file(settings, story.run).with_suffix(LETTERS_SUFFIX)


def publish_all(settings: Settings, story: Story) -> None:
    """Own the run until its letters are out."""
    with own(settings, story.run):
        wait_until(lambda: _next_offset(settings, story) == len(story.records))


def _next_offset(settings: Settings, story: Story) -> int | None:
    place = Place.read(place_file(settings, story))
    return None if place is None else place.next_offset


def test_what_was_folded_by_a_process_that_published_nothing_is_published_by_the_next_owner(
    settings: Settings, story: Story
) -> None:
    with open_projection(settings, story.run):  # as an owner that is killed between commit and publishing leaves it
        pass
    assert published(settings, story) == []
    publish_all(settings, story)
    assert published(settings, story) == dead(story)
    letter = on_topic(settings, story).letters[dead(story)[0]]
    assert (letter.value, letter.key, letter.verdict, letter.reason) == (b"one", b"key", "unreadable", "not_avro")
    assert [(header.name, header.value) for header in letter.headers] == [("name", b"header")]


def test_a_letter_that_comes_while_it_is_owned_is_published_at_once(settings: Settings, story: Story) -> None:
    with own(settings, story.run):
        wait_until(lambda: published(settings, story) == dead(story))
        story.append(LogRecord(len(story.records), 5, b"key", b"four"))
        write(settings.bootstrap_servers, story.run, story.records[-1:])
        wait_until(lambda: published(settings, story) == dead(story))
    assert len(dead(story)) == 4


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets of the letters that are published, each time they are."""
    offsets: list[int] = []
    publish = DeadLetterTopic.publish

    def noted(self: DeadLetterTopic, found: Iterable[DeadLetter], producer: Producer) -> None:
        listed = list(found)
        offsets.extend(letter.offset for letter in listed)
        publish(self, listed, producer)

    monkeypatch.setattr(DeadLetterTopic, "publish", noted)
    return offsets


def test_what_is_published_is_not_published_again_unless_its_place_is_lost(
    settings: Settings, story: Story, sent: list[int]
) -> None:
    publish_all(settings, story)
    publish_all(settings, story)
    assert sent == dead(story)
    place_file(settings, story).unlink()
    publish_all(settings, story)
    assert sent == dead(story) * 2
    assert published(settings, story) == dead(story)


@pytest.mark.parametrize(
    "place",
    [
        {"topic_id": "another topic"},
        {"record_hash": "0" * 64},
        {"next_offset": 10_000},
        {"next_offset": "x"},
        "no place",
        "{}",
    ],
    ids=["of another topic", "of another record", "ahead of the log", "no number", "torn", "empty"],
)
def test_a_place_that_is_not_of_this_log_is_not_trusted(
    settings: Settings, story: Story, sent: list[int], place: dict[str, object] | str
) -> None:
    publish_all(settings, story)
    file = place_file(settings, story)
    good = json.loads(file.read_text())
    file.write_text(json.dumps(good | place) if isinstance(place, dict) else place)
    before = list(sent)
    story.append(LogRecord(len(story.records), 5, b"key", b"four"))
    write(settings.bootstrap_servers, story.run, story.records[-1:])
    publish_all(settings, story)
    assert sent == before + dead(story)
    assert published(settings, story) == dead(story)


def test_an_acknowledgement_outlives_a_letter_that_is_published_again(settings: Settings, story: Story) -> None:
    publish_all(settings, story)
    offset = dead(story)[0]
    fields = {"run": story.run, "offset": offset, "by": "olga", "reason": "known", "acknowledged_at": 1}
    with Producer(settings.bootstrap_servers) as producer:
        topic = DeadLetterTopic(settings.bootstrap_servers)
        topic.acknowledge(build(DeadLetterAcknowledged, fields), producer)
    place_file(settings, story).unlink()
    publish_all(settings, story)
    found = on_topic(settings, story)
    assert list(found.acknowledged) == [offset]
    assert sorted(found.letters) == dead(story)


def test_a_kafka_that_takes_no_letters_is_said_once_stops_no_fold_and_loses_none(
    settings: Settings, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "AGAIN_SECONDS", 0.05)
    publish = DeadLetterTopic.publish
    tries: list[int] = []

    def refused(self: DeadLetterTopic, found: list[DeadLetter], producer: Producer) -> None:
        tries.append(len(tries))
        if len(tries) < 4:
            raise LogUnavailable("Kafka refused: Topic authorization failed")
        publish(self, found, producer)

    monkeypatch.setattr(DeadLetterTopic, "publish", refused)
    said: list[str] = []
    with own(settings, story.run, say=said.append) as owner:
        wait_until(lambda: owner.position().next_offset == len(story.records))
        wait_until(lambda: published(settings, story) == dead(story))
    assert len(said) == 1
    assert "authorization failed" in said[0]
    assert len(tries) >= 4
