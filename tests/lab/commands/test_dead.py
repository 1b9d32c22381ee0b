"""`forktrail dead` on a real broker: what was refused for what it is, and what becomes of it."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer as KafkaProducer

from forktrail_lab.console.dead_letter import BYTES_SHOWN
from forktrail_producers.dead_letter_topic import DeadLetterTopic
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import meta
from forktrail_projectors.owner.live import own
from forktrail_projectors.reader import LogReader
from forktrail_schemas.events import GoalSet, RevisionAdvanced
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic
from forktrail_schemas.wire import build, encode
from support.command_line import CommandLine
from support.raw import produce_with_header_name
from support.workbench import wait_until

Headers = list[tuple[str, bytes | str | None]]

FIRST = 9  # the offset after what opening the run wrote


def produce(settings: Settings, run: str, value: bytes | None, headers: Headers) -> None:
    producer = KafkaProducer({"bootstrap.servers": settings.bootstrap_servers})
    producer.produce(run_topic(run), value=value, key=b"a key", headers=headers, partition=0)
    assert producer.flush(30) == 0


def advanced(run: str, by: str = "olga") -> RevisionAdvanced:
    head = meta(run, "human", by)
    return build(RevisionAdvanced, {"meta": head, "from_revision": "r1", "to_revision": "r2", "reason": "shipped"})


def signed_by(settings: Settings, event: Event, key: str) -> Headers:
    return [*headers_of(event, KeyStore(settings.keys_dir).load(key).sign(encode(event)))]


@pytest.fixture
def garbage(forktrail: CommandLine, run: str, settings: Settings) -> int:
    """A record that is no event; returns its offset."""
    produce(settings, run, b"not \x00 avro\xff", [("from", b"scanner"), ("odd", b"\xff"), ("none", None)])
    return FIRST


@pytest.fixture
def unsigned(forktrail: CommandLine, run: str, settings: Settings) -> int:
    """An event of olga's under ravi's signature; returns its offset."""
    event = advanced(run)
    produce(settings, run, encode(event), signed_by(settings, event, "ravi"))
    return FIRST


class TestList:
    def test_lists_what_was_refused_for_what_it_is_without_any_topic_of_letters(
        self, forktrail: CommandLine, run: str, garbage: int
    ) -> None:
        said = forktrail.ok("dead", "list", run)
        assert said.out.splitlines()[1].split()[:4] == [str(garbage), "-", "unreadable", "not_avro"]
        assert said.err == "1 dead letter, 0 acknowledged\n"
        assert forktrail.ok("dead", "list", run, "--format", "csv").out.startswith(
            "offset,type,verdict,reason,detail\r\n"
        )

    def test_is_empty_where_nothing_was(self, forktrail: CommandLine, run: str) -> None:
        assert forktrail.ok("dead", "list", run, "--format", "json").json == []

    def test_leaves_out_what_is_acknowledged_but_for_all(self, forktrail: CommandLine, run: str, garbage: int) -> None:
        forktrail.ok("dead", "ack", run, str(garbage), "--reason", "an old scanner", "--as", "olga")
        assert forktrail.ok("dead", "list", run, "--format", "json").json == []
        (row,) = forktrail.ok("dead", "list", run, "--all", "--format", "json").json
        assert (row["offset"], row["acknowledged"]["by"], row["acknowledged"]["reason"]) == (
            garbage,
            "olga",
            "an old scanner",
        )
        assert forktrail.ok("dead", "list", run, "--all").out.splitlines()[1].split()[-1] == "olga"

    def test_is_right_beside_an_owner_and_after_its_letters_are_published_again(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        forktrail.ok("dead", "ack", run, str(garbage), "--reason", "known")
        topic = DeadLetterTopic(settings.bootstrap_servers)
        with own(settings, run):
            wait_until(lambda: garbage in topic.of_run(run).letters)
            assert forktrail.ok("dead", "list", run, "--format", "json").json == []


class TestShow:
    def test_shows_all_that_there_is(self, forktrail: CommandLine, run: str, settings: Settings, garbage: int) -> None:
        facts = forktrail.ok("dead", "show", run, str(garbage), "--format", "json").json
        assert (facts["verdict"], facts["reason"], facts["fields"]) == ("unreadable", "not_avro", None)
        assert bytes.fromhex(facts["value"]) == b"not \x00 avro\xff"
        assert facts["headers"] == [["from", "scanner"], ["odd", "\\xff"], ["none", None]]
        assert (facts["key"], facts["published_at"], facts["acknowledged"]) == ("a key", None, None)
        text = forktrail.ok("dead", "show", run, str(garbage)).out
        assert "\x00" not in text
        assert "  6e6f742000206176726fff" in text.splitlines()
        with own(settings, run):
            wait_until(lambda: garbage in DeadLetterTopic(settings.bootstrap_servers).of_run(run).letters)
        assert forktrail.ok("dead", "show", run, str(garbage), "--format", "json").json["published_at"] is not None

    def test_shows_the_fields_of_what_can_be_read(self, forktrail: CommandLine, run: str, unsigned: int) -> None:
        facts = forktrail.ok("dead", "show", run, str(unsigned), "--format", "json").json
        assert (facts["reason"], facts["fields"]["to_revision"]) == ("role_missing", "r2")
        assert facts["fields"]["meta"]["actor"] == {"kind": "human", "id": "olga"}

    def test_of_a_long_value_the_beginning_is_shown_and_json_has_all(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        produce(settings, run, b"\xc7" * (BYTES_SHOWN + 1), [])
        text = forktrail.ok("dead", "show", run, str(FIRST)).out
        assert text.count("c7") == BYTES_SHOWN
        assert "--format json prints all" in text
        facts = forktrail.ok("dead", "show", run, str(FIRST), "--format", "json").json
        assert len(facts["value"]) == 2 * (BYTES_SHOWN + 1)

    @pytest.mark.parametrize("offset", ["0", "900"])
    @pytest.mark.parametrize("action", [("show",), ("resend",), ("ack", "--reason", "none")])
    def test_what_is_no_dead_letter_is_not_found(
        self, forktrail: CommandLine, run: str, offset: str, action: tuple[str, ...]
    ) -> None:
        said = forktrail("dead", action[0], run, offset, *action[1:])
        assert (said.code, said.out) == (3, "")


class TestResend:
    def test_appends_the_same_bytes_and_the_old_verdict_stands(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        said = forktrail("dead", "resend", run, str(garbage), "--format", "json")
        assert (said.code, said.json["resent"], said.json["offset"]) == (1, garbage, garbage + 1)
        assert (said.json["verdict"], said.json["reason"]) == ("unreadable", "not_avro")
        with LogReader(settings.bootstrap_servers, run) as reader:
            old, new = reader.record_at(garbage), reader.record_at(garbage + 1)
        assert (new.key, new.value, new.headers) == (old.key, old.value, old.headers)
        rows = forktrail.ok("dead", "list", run, "--format", "json").json
        assert [row["offset"] for row in rows] == [garbage, garbage + 1]

    def test_an_event_that_only_came_too_early_counts_once_it_is_sent_again(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        KeyStore(settings.keys_dir).new("otto")
        event = advanced(run, by="otto")
        produce(settings, run, encode(event), signed_by(settings, event, "otto"))
        (row,) = forktrail.ok("dead", "list", run, "--format", "json").json
        assert (row["offset"], row["reason"]) == (FIRST, "unknown_key")
        forktrail.ok("key", "register", run, "otto", "--role", "operator")
        said = forktrail.ok("dead", "resend", run, str(FIRST))
        assert said.out == f"offset {FIRST} of {run} was sent again as offset {FIRST + 2}, which is valid\n"
        assert forktrail.ok("run", "show", run, "--format", "json").json["active_revision"] == "r2"

    def test_signs_anew_what_needs_a_signature(
        self, forktrail: CommandLine, run: str, settings: Settings, unsigned: int
    ) -> None:
        assert forktrail("dead", "resend", run, str(unsigned)).code == 1
        said = forktrail.ok("dead", "resend", run, str(unsigned), "--key", "olga", "--format", "json").json
        assert (said["offset"], said["verdict"]) == (unsigned + 2, "valid")
        with LogReader(settings.bootstrap_servers, run) as reader:
            old, new = reader.record_at(unsigned), reader.record_at(unsigned + 2)
        assert new.value == old.value
        assert [name for name, _ in new.headers] == [name for name, _ in old.headers]

    def test_signs_nothing_that_needs_no_signature_or_cannot_be_read(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        assert forktrail("dead", "resend", run, str(garbage), "--key", "olga").code == 2
        goal = build(GoalSet, {"meta": meta("another-run", "human", "rita"), "text": "astray"})
        produce(settings, run, encode(goal), [])
        said = forktrail("dead", "resend", run, str(garbage + 1), "--key", "olga")
        assert (said.code, "needs no signature" in said.err) == (2, True)
        assert len(forktrail.ok("dead", "list", run, "--format", "json").json) == 2

    def test_headers_that_cannot_be_read_are_not_sent_again(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        value = encode(build(GoalSet, {"meta": meta(run, "human", "rita"), "text": "under a strange header"}))
        produce_with_header_name(settings.bootstrap_servers, run_topic(run), value, b"\xff\xfe")
        facts = forktrail.ok("dead", "show", run, str(FIRST), "--format", "json").json
        assert (facts["reason"], facts["headers"]) == ("headers_unreadable", None)
        assert "can't be read" in forktrail.ok("dead", "show", run, str(FIRST)).out
        assert forktrail("dead", "resend", run, str(FIRST)).code == 2

    def test_goes_through_an_owner(self, forktrail: CommandLine, run: str, settings: Settings, unsigned: int) -> None:
        with own(settings, run):
            assert (
                forktrail.ok("dead", "resend", run, str(unsigned), "--key", "olga", "--format", "json").json["verdict"]
                == "valid"
            )
