"""`forktrail dead` on a real broker: what was refused for what it is, and what becomes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer as KafkaProducer

from forktrail_lab.console.dead_letter import BYTES_SHOWN
from forktrail_producers.compacted import records_of
from forktrail_producers.dead_letter_topic import DeadLetterTopic
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import meta
from forktrail_projectors.owner.live import own
from forktrail_projectors.reader import LogReader
from forktrail_schemas.catalog import schema_of
from forktrail_schemas.events import GoalSet, RevisionAdvanced, RunAnnounced
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import DEAD_LETTERS, run_topic
from forktrail_schemas.wire import build, encode
from support.command_line import CommandLine
from support.foreign import ForeignSchema, later_goal, other_type
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


def declare(forktrail: CommandLine, run: str, folder: Path, schema: ForeignSchema) -> int:
    """Declare a schema in the run; returns the offset."""
    file = folder / "declared.avsc"
    file.write_text(schema.text)
    offset = forktrail.ok("schema", "declare", run, str(file), "--format", "json").json["offset"]
    assert isinstance(offset, int)
    return offset


def later_version(cls: type[Event]) -> ForeignSchema:
    """A later version of an event type, with a `ticket` more."""
    schema = json.loads(schema_of(cls).text)
    schema["fields"].append({"name": "ticket", "type": "string", "default": ""})
    return ForeignSchema(json.dumps(schema))


def schemaless(event: Event) -> dict[str, Any]:
    """An event's fields as fastavro takes them."""
    return event.model_dump()


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
            "offset,type,verdict,reason,detail,valid_at_offset\r\n"
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
        assert f"  why           {facts['detail']}" in text.splitlines()
        assert text.count("single-object encoding") == 1
        assert "  can't be shown  for the reason above" in text.splitlines()
        with own(settings, run):
            wait_until(lambda: garbage in DeadLetterTopic(settings.bootstrap_servers).of_run(run).letters)
        assert forktrail.ok("dead", "show", run, str(garbage), "--format", "json").json["published_at"] is not None

    def test_shows_the_fields_of_what_can_be_read(self, forktrail: CommandLine, run: str, unsigned: int) -> None:
        facts = forktrail.ok("dead", "show", run, str(unsigned), "--format", "json").json
        assert (facts["reason"], facts["fields"]["to_revision"]) == ("role_missing", "r2")
        assert facts["fields"]["meta"]["actor"] == {"kind": "human", "id": "olga"}
        micros = facts["fields"]["meta"]["occurred_at"]
        moment = datetime.fromtimestamp(micros // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        text = forktrail.ok("dead", "show", run, str(unsigned)).out
        assert f'"occurred_at": "{moment}' in text
        assert f"({micros} microseconds)" in text
        assert "sent again    no: the same bytes lie nowhere further on" in text

    def test_what_was_written_under_a_declared_schema_is_shown_as_that_has_it(
        self, forktrail: CommandLine, run: str, settings: Settings, tmp_path: Path
    ) -> None:
        foreign = other_type("Scanned")
        offset = declare(forktrail, run, tmp_path, foreign) + 1
        produce(settings, run, foreign.value({"percent": 40}), [])
        facts = forktrail.ok("dead", "show", run, str(offset), "--format", "json").json
        assert (facts["verdict"], facts["reason"], facts["fields"]) == ("unhandled", "no_rule", {"percent": 40})
        assert "  percent  40" in forktrail.ok("dead", "show", run, str(offset)).out.splitlines()

    def test_fields_that_cannot_be_read_are_left_out_with_the_reason_and_the_bytes_are_shown(
        self, forktrail: CommandLine, run: str, settings: Settings, tmp_path: Path
    ) -> None:
        foreign, unknown = other_type("Scanned"), other_type("NeverDeclared")
        first = declare(forktrail, run, tmp_path, foreign) + 1
        goal = encode(build(GoalSet, {"meta": meta(run, "human", "rita"), "text": "cut short"}))
        broken = {
            goal[:-3]: "ends or breaks inside",
            goal + b"more": "leaves 4 bytes over",
            foreign.value({"percent": 40})[:-1]: "acme.Scanned ends or breaks inside",
            foreign.value({"percent": 40}) + b"x": "acme.Scanned leaves 1 bytes over",
            unknown.value({"percent": 40}): f"no schema with fingerprint {unknown.fingerprint} is known",
            b"": "not in Avro single-object encoding",
            None: "the record has no value",
        }
        for offset, (value, why) in enumerate(broken.items(), first):
            produce(settings, run, value, [])
            facts = forktrail.ok("dead", "show", run, str(offset), "--format", "json").json
            assert (facts["fields"], why in facts["fields_fault"]) == (None, True)
            assert facts["value"] == (None if value is None else value.hex())
            assert facts["value_bytes"] == (None if value is None else len(value))
            text = forktrail.ok("dead", "show", run, str(offset)).out
            assert why in text
            assert f"value, {len(value or b'')} bytes" in text

    def test_no_name_or_value_of_a_header_reaches_the_terminal_raw(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        produce(settings, run, b"x", [("\x1b[31mred\x9b2J", b"\x1b[0m"), ("line\nforged", None)])
        text = forktrail.ok("dead", "show", run, str(FIRST)).out
        assert all(line.isprintable() for line in text.splitlines())
        assert r"\x1b[31mred\x9b2J" in text
        facts = forktrail.ok("dead", "show", run, str(FIRST), "--format", "json").json
        assert facts["headers"][0] == ["\x1b[31mred\x9b2J", "\x1b[0m"]

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
        said = forktrail("dead", "resend", run, str(garbage), "--force", "--format", "json")
        assert (said.code, said.json["resent"], said.json["offset"]) == (1, garbage, garbage + 1)
        assert (said.json["verdict"], said.json["reason"]) == ("unreadable", "not_avro")
        with LogReader(settings.bootstrap_servers, run) as reader:
            old, new = reader.record_at(garbage), reader.record_at(garbage + 1)
        assert (new.key, new.value, new.headers) == (old.key, old.value, old.headers)
        rows = forktrail.ok("dead", "list", run, "--format", "json").json
        assert [row["offset"] for row in rows] == [garbage, garbage + 1]
        facts = forktrail.ok("dead", "show", run, str(garbage), "--format", "json").json
        assert facts["again"] == [{"offset": garbage + 1, "verdict": "unreadable"}]
        assert f"at offset {garbage + 1} (unreadable)" in forktrail.ok("dead", "show", run, str(garbage)).out
        assert forktrail.ok("dead", "show", run, str(garbage + 1), "--format", "json").json["again"] == []

    def test_what_would_be_refused_again_is_not_sent_without_force(
        self, forktrail: CommandLine, run: str, settings: Settings, unsigned: int
    ) -> None:
        goal = build(GoalSet, {"meta": meta(run, "human", "rita"), "text": "cut short"})
        astray = build(GoalSet, {"meta": meta("another-run", "human", "rita"), "text": "astray"})
        announced = build(RunAnnounced, {"run": run, "topic": "t", "goal": "g", "status": "open", "opened_at": 1})
        unknown = other_type("NeverDeclared").value({"percent": 1})
        for value in (
            b"garbage",
            None,
            encode(goal)[:-1],
            encode(goal) + b"x",
            encode(astray),
            encode(announced),
            unknown,
        ):
            produce(settings, run, value, [])
        produce(settings, run, encode(goal), [("ce_id", b"another")])
        rows = forktrail.ok("dead", "list", run, "--format", "json").json
        assert [row["reason"] for row in rows] == [
            "role_missing",
            "not_avro",
            "no_value",
            "truncated",
            "trailing_bytes",
            "wrong_run",
            "no_rule",
            "unknown_schema",
            "header_mismatch",
        ]
        for row in rows:
            said = forktrail("dead", "resend", run, str(row["offset"]))
            assert (said.code, said.out, "--force" in said.err) == (2, "", True)
            assert "would_be_refused" in said.err
        assert len(forktrail.ok("dead", "list", run, "--format", "json").json) == len(rows)
        null = rows[2]["offset"]
        said = forktrail("dead", "resend", run, str(null), "--force")
        assert (said.code, f"was sent again as offset {unsigned + len(rows)}, which is unreadable" in said.out) == (
            1,
            True,
        )

    def test_what_only_lacked_its_schema_counts_once_that_is_declared(
        self, forktrail: CommandLine, run: str, settings: Settings, tmp_path: Path
    ) -> None:
        later = later_goal()
        goal = build(GoalSet, {"meta": meta(run, "human", "rita"), "text": "from the future"})
        fields = {**schemaless(goal), "links": ["https://example.org"]}
        produce(settings, run, later.value(fields), [])
        said = forktrail("dead", "resend", run, str(FIRST))
        assert (said.code, "schema declare" in said.err) == (2, True)
        declare(forktrail, run, tmp_path, later)
        said = forktrail.ok("dead", "resend", run, str(FIRST))
        assert said.out == f"offset {FIRST} of {run} was sent again as offset {FIRST + 2}, which is valid\n"

    def test_signs_anew_what_was_written_under_a_declared_version(
        self, forktrail: CommandLine, run: str, settings: Settings, tmp_path: Path
    ) -> None:
        event = advanced(run)
        later = later_version(RevisionAdvanced)
        offset = declare(forktrail, run, tmp_path, later) + 1
        produce(settings, run, later.value({**schemaless(event), "ticket": "T-1"}), [])
        (row,) = forktrail.ok("dead", "list", run, "--format", "json").json
        assert (row["offset"], row["reason"]) == (offset, "unsigned")
        assert forktrail("dead", "resend", run, str(offset)).code == 2
        said = forktrail.ok("dead", "resend", run, str(offset), "--key", "olga", "--format", "json").json
        assert (said["offset"], said["verdict"]) == (offset + 1, "valid")

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
        assert forktrail("dead", "resend", run, str(unsigned), "--force").code == 1
        said = forktrail.ok("dead", "resend", run, str(unsigned), "--key", "olga", "--format", "json").json
        assert (said["offset"], said["verdict"]) == (unsigned + 2, "valid")
        with LogReader(settings.bootstrap_servers, run) as reader:
            old, new = reader.record_at(unsigned), reader.record_at(unsigned + 2)
        assert new.value == old.value
        assert [name for name, _ in new.headers] == [name for name, _ in old.headers]

    @pytest.mark.parametrize(
        ("roles", "why"),
        [
            ((), "the key is not registered in this run"),
            (("reviewer",), "its key lacks the role: operator; the key has: reviewer"),
            (("operator",), "its key was revoked"),
        ],
    )
    def test_is_not_signed_with_a_key_that_the_graph_tells_would_not_do(
        self, forktrail: CommandLine, run: str, unsigned: int, roles: tuple[str, ...], why: str
    ) -> None:
        forktrail.ok("key", "new", "olga-2")
        for role in roles:
            forktrail.ok("key", "register", run, "olga-2", "--holder", "olga", "--role", role)
        if why == "its key was revoked":
            forktrail.ok("key", "revoke", run, "olga-2", "--reason", "lost")
        said = forktrail("dead", "resend", run, str(unsigned), "--key", "olga-2")
        assert (said.code, said.out) == (2, "")
        assert f"would_be_refused: sent again it would be refused again: {why}" in said.err
        end = forktrail.ok("run", "show", run, "--format", "json").json["next_offset"]
        forced = forktrail("dead", "resend", run, str(unsigned), "--key", "olga-2", "--force", "--format", "json").json
        assert (forced["offset"], forced["verdict"]) == (end, "void")

    def test_of_a_key_of_another_it_names_the_cure_and_that_is_one(
        self, forktrail: CommandLine, run: str, unsigned: int
    ) -> None:
        forktrail.ok("key", "new", "otto")
        forktrail.ok("key", "register", run, "otto", "--role", "operator")
        said = forktrail("dead", "resend", run, str(unsigned), "--key", "otto")
        assert (said.code, "the key speaks for human otto" in said.err) == (2, True)
        assert "of olga: `forktrail key list` tells its name" in said.err
        forktrail.ok("key", "revoke", run, "olga", "--reason", "lost")
        said = forktrail("dead", "resend", run, str(unsigned), "--key", "otto")
        cure = f"forktrail key register {run} NEWKEY --holder olga --role operator"
        assert cure in said.err
        forktrail.ok("key", "new", "olga-2")
        forktrail.ok(*cure.replace("NEWKEY", "olga-2").split()[1:])
        forktrail.ok("dead", "resend", run, str(unsigned), "--key", "olga-2")

    def test_a_signature_whose_key_is_still_unknown_is_not_sent_again(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        KeyStore(settings.keys_dir).new("otto")
        event = advanced(run, by="otto")
        produce(settings, run, encode(event), signed_by(settings, event, "otto"))
        said = forktrail("dead", "resend", run, str(FIRST))
        assert (said.code, "the key is not registered in this run" in said.err) == (2, True)
        assert f"forktrail key register {run} NEWKEY --holder otto --role operator" in said.err

    def test_once_its_bytes_are_valid_the_list_says_where_and_how_to_be_done_with_it(
        self, forktrail: CommandLine, run: str, unsigned: int, settings: Settings
    ) -> None:
        produce(settings, run, b"still no event", [])
        made = unsigned + 2
        said = forktrail.ok("dead", "resend", run, str(unsigned), "--key", "olga")
        assert f"`forktrail dead ack {run} {unsigned} --reason …`" in said.err
        rows = forktrail.ok("dead", "list", run, "--format", "json").json
        assert [(row["offset"], row["valid_at_offset"]) for row in rows] == [(unsigned, made), (unsigned + 1, None)]
        assert "the bytes of 1 letter became valid" in forktrail.ok("dead", "list", run).err
        forktrail.ok("dead", "ack", run, str(unsigned), "--reason", "sent again")
        assert "became valid" not in forktrail.ok("dead", "list", run).err

    def test_signs_nothing_that_needs_no_signature_or_cannot_be_read(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        assert forktrail("dead", "resend", run, str(garbage), "--key", "olga").code == 2
        goal = build(GoalSet, {"meta": meta("another-run", "human", "rita"), "text": "astray"})
        produce(settings, run, encode(goal), [])
        said = forktrail("dead", "resend", run, str(garbage + 1), "--key", "olga", "--force")
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


class TestAck:
    def test_the_same_again_is_said_and_not_sent(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        first = forktrail.ok("dead", "ack", run, str(garbage), "--reason", "an old scanner", "--as", "olga")
        assert first.out == f"offset {garbage} of {run} is acknowledged by olga\n"
        before = acknowledgements(settings)
        said = forktrail.ok("dead", "ack", run, str(garbage), "--reason", "an old scanner", "--as", "ravi")
        assert said.out.startswith(f"offset {garbage} of {run} is already acknowledged by olga at 20")
        assert said.out.endswith("Z: an old scanner\n")
        assert acknowledgements(settings) == before

    def test_another_reason_takes_the_place_of_the_first_and_both_are_told(
        self, forktrail: CommandLine, run: str, settings: Settings, garbage: int
    ) -> None:
        forktrail.ok("dead", "ack", run, str(garbage), "--reason", "an old scanner", "--as", "olga")
        said = forktrail.ok("dead", "ack", run, str(garbage), "--reason", "a test", "--as", "ravi", "--format", "json")
        assert (said.json["before"]["by"], said.json["before"]["reason"]) == ("olga", "an old scanner")
        assert (said.json["acknowledged"]["by"], said.json["acknowledged"]["reason"]) == ("ravi", "a test")
        again = forktrail.ok("dead", "ack", run, str(garbage), "--reason", "no test", "--as", "ravi")
        assert "; before, it was by ravi at " in again.out
        (row,) = forktrail.ok("dead", "list", run, "--all", "--format", "json").json
        assert (row["acknowledged"]["by"], row["acknowledged"]["reason"]) == ("ravi", "no test")

    @pytest.mark.parametrize("reason", ["", "  "])
    def test_a_reason_says_something(self, forktrail: CommandLine, run: str, garbage: int, reason: str) -> None:
        said = forktrail("dead", "ack", run, str(garbage), "--reason", reason)
        assert (said.code, "it is blank" in said.err) == (2, True)
        assert len(forktrail.ok("dead", "list", run, "--format", "json").json) == 1


def acknowledgements(settings: Settings) -> int:
    """How many records the topic of letters has."""
    return len(list(records_of(settings.bootstrap_servers, DEAD_LETTERS.name)))
