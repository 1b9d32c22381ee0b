"""`forktrail tail`, `project` and `query` on a real broker."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.kafka import client_config
from forktrail_projectors.graph.engine import open_database
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic
from support.command_line import CommandLine
from support.staff import GATEWAY, open_run, report


def graph_file(settings: Settings, run: str) -> Path:
    return settings.graphs_dir / f"{run}.ladybug"


def tail(forktrail: CommandLine, run: str, *words: str) -> list[dict[str, object]]:
    out = forktrail.ok("tail", run, "--format", "json", *words).out
    return [json.loads(line) for line in out.splitlines()]


class TestTail:
    def test_prints_each_event_with_its_verdict(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        forktrail.ok("approve", run, case, "--key", "olga")
        assert forktrail("approve", run, case, "--key", "olga").code == 1
        events = tail(forktrail, run)
        assert [event["offset"] for event in events] == list(range(len(events)))
        assert [(event["type"], event["verdict"], event["reason"]) for event in events[-2:]] == [
            ("forktrail.ApprovalDecided", "valid", ""),
            ("forktrail.ApprovalDecided", "void", "already_decided"),
        ]
        assert (events[-1]["actor"], events[-1]["subject"]) == ("olga", case)

    def test_begins_at_an_offset_and_is_empty_past_the_end(self, forktrail: CommandLine, run: str) -> None:
        assert [event["offset"] for event in tail(forktrail, run, "--from", "7")] == [7, 8]
        assert tail(forktrail, run, "--from", "900") == []

    def test_a_table_shortens_digests_and_json_does_not(self, forktrail: CommandLine, run: str) -> None:
        subject = tail(forktrail, run, "--from", "8")[0]["subject"]
        assert isinstance(subject, str)
        assert len(subject) == 64
        assert f" {subject[:12]}… " in forktrail.ok("tail", run, "--from", "8").out

    def test_csv_has_what_json_has(self, forktrail: CommandLine, run: str) -> None:
        rows = list(csv.DictReader(io.StringIO(forktrail.ok("tail", run, "--format", "csv").out, newline="")))
        assert rows == [
            {name: "" if value is None else str(value) for name, value in event.items()}
            for event in tail(forktrail, run)
        ]

    def test_a_record_that_is_no_event_has_its_line(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        producer = KafkaProducer(client_config(settings.bootstrap_servers))
        producer.produce(run_topic(run), b"not avro")
        assert producer.flush(30) == 0
        lines = forktrail.ok("tail", run).out.splitlines()
        assert lines[0].split() == ["offset", "time", "type", "actor", "subject", "verdict", "reason"]
        assert lines[-1].split()[:7] == ["9", "-", "-", "-", "-", "unreadable", "not_avro"]

    def test_follow_waits_for_an_offset_that_is_not_there_yet(self, forktrail: CommandLine, run: str) -> None:
        words = [sys.executable, "-m", "forktrail_lab", "tail", run, "--from", "10", "--follow", "--format", "json"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            assert process.stdout is not None
            try:
                case = report(forktrail, run)
                forktrail.ok("approve", run, case, "--key", "olga")
                assert json.loads(process.stdout.readline())["offset"] == 10
            finally:
                process.terminate()

    def test_follow_prints_what_comes_and_leaves_the_graph_to_others_meanwhile(
        self, forktrail: CommandLine, run: str
    ) -> None:
        words = [sys.executable, "-m", "forktrail_lab", "tail", run, "--from", "8", "--follow", "--format", "json"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
            assert process.stdout is not None
            try:
                assert json.loads(process.stdout.readline())["offset"] == 8
                case = report(forktrail, run)
                assert json.loads(process.stdout.readline())["type"] == "forktrail.ReportFiled"
                forktrail.ok("approve", run, case, "--key", "olga")
                assert json.loads(process.stdout.readline())["subject"] == case
            finally:
                process.terminate()


class TestProject:
    def test_says_where_the_graph_stands(self, forktrail: CommandLine, run: str) -> None:
        facts = forktrail.ok("project", run, "--format", "json").json
        assert (facts["next_offset"], facts["end"], facts["rebuilt"]) == (9, 9, False)
        assert len(facts["state_digest"]) == len(facts["log_root"]) == 64

    def test_a_deleted_and_a_rebuilt_graph_have_the_same_digest(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        report(forktrail, run)
        live = forktrail.ok("project", run, "--format", "json").json
        graph_file(settings, run).unlink()
        deleted = forktrail.ok("project", run, "--format", "json").json
        said = forktrail.ok("project", run, "--rebuild", "--format", "json")
        assert live["state_digest"] == deleted["state_digest"] == said.json["state_digest"]
        assert live["log_root"] == said.json["log_root"]
        assert said.json["rebuilt"] is True
        assert "rebuilt from the log" in said.err

    def test_a_graph_that_does_not_open_is_set_aside_and_rebuilt(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        before = forktrail.ok("project", run, "--format", "json").json["state_digest"]
        graph_file(settings, run).write_bytes(b"no database")
        said = forktrail.ok("project", run, "--format", "json")
        assert said.json["state_digest"] == before
        assert "rebuilt from the log" in said.err
        assert list(settings.graphs_dir.glob(f"{run}.aside-*"))

    def test_a_graph_whose_rows_do_not_match_its_digest_is_rebuilt(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        before = forktrail.ok("project", run, "--format", "json").json["state_digest"]
        database = open_database(graph_file(settings, run))
        session = database.connect()
        session.execute("MATCH (k:Key) WHERE k.holder = 'olga' SET k.roles = ['admin']")
        session.close()
        database.close()
        said = forktrail.ok("project", run, "--format", "json")
        assert (said.json["state_digest"], said.json["rebuilt"]) == (before, True)
        assert "don't match its digest" in said.err
        roles = forktrail.ok("query", run, "MATCH (k:Key) WHERE k.holder = 'olga' RETURN k.roles AS roles", "--json")
        assert roles.json == [{"roles": ["operator"]}]


class TestQuery:
    def test_json_is_a_list_of_objects_and_the_count_goes_to_stderr(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail.ok("query", run, "MATCH (r:Revision) RETURN r.id AS id, r.ordinal AS ordinal", "--json")
        assert said.json == [{"id": "r1", "ordinal": 1}]
        assert said.err.startswith("1 row in ")

    def test_a_table_has_a_line_per_row(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail.ok("query", run, "MATCH (k:Key) RETURN k.holder AS holder, k.roles AS roles ORDER BY holder")
        assert said.out.splitlines() == [
            "holder    roles",
            "admin     admin",
            "olga      operator",
            "ravi      reviewer",
            "runner-1  runner",
        ]

    def test_nodes_are_objects_in_json(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail.ok("query", run, "MATCH (r:Revision) RETURN r", "--json").json
        assert said[0]["r"]["id"] == "r1"

    def test_csv_has_a_header_and_lists_as_json(self, forktrail: CommandLine, run: str) -> None:
        cypher = "MATCH (k:Key) WHERE k.holder <> 'admin' RETURN k.holder AS holder, k.roles AS roles ORDER BY holder"
        said = forktrail.ok("query", run, cypher, "--format", "csv")
        assert said.out == (
            'holder,roles\r\nolga,"[""operator""]"\r\nravi,"[""reviewer""]"\r\nrunner-1,"[""runner""]"\r\n'
        )
        assert forktrail("run", "show", run, "--format", "csv").code == 2  # it prints no rows

    def test_parameters_have_the_type_that_they_look_like(self, forktrail: CommandLine, run: str) -> None:
        cypher = "MATCH (t:TestCase) WHERE t.impact = $impact AND t.asset = $asset RETURN t.id AS id"
        said = forktrail.ok("query", run, cypher, "--param", "impact=70", "--param", "asset=gateway", "--json")
        assert said.json == [{"id": GATEWAY}]

    @pytest.mark.parametrize("value", ["9223372036854775808", "-9223372036854775809", "9" * 5_000])
    def test_a_whole_number_of_more_than_64_bits_is_a_usage_error_in_words_of_ours(
        self, value: str, forktrail: CommandLine, run: str
    ) -> None:
        said = forktrail("query", run, "RETURN $p AS p", "--param", f"p={value}")
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        assert "is no whole number from -9223372036854775808 to 9223372036854775807" in said.err

    def test_a_null_an_empty_text_and_no_number_are_told_apart(self, forktrail: CommandLine, run: str) -> None:
        cypher = "RETURN null AS nothing, '' AS empty, CAST('nan' AS DOUBLE) AS number"
        assert forktrail.ok("query", run, cypher, "--format", "csv").out == 'nothing,empty,number\r\n,"",NaN\r\n'
        assert forktrail.ok("query", run, cypher, "--json").json == [{"nothing": None, "empty": "", "number": "NaN"}]

    @pytest.mark.parametrize(
        "cypher",
        [
            "CREATE (:Asset {id: 'mine'})",
            "MATCH (a:Asset) SET a.id = 'mine'",
            "MATCH (a:Asset) DETACH DELETE a",
            "DROP TABLE Asset",
            "COPY (MATCH (a:Asset) RETURN a.id) TO 'out.csv'",
            "LOAD FROM 'in.csv' RETURN *",
            "CALL threads=1",
            "BEGIN TRANSACTION",
            "COMMIT",
            "RETURN 1; RETURN 2",
            "MATCH (a:Asset",
            "MATCH (n:NoSuchTable) RETURN n",
            "RETURN $missing",
            "",
        ],
    )
    def test_whatever_does_more_than_read_is_a_usage_error(self, cypher: str, forktrail: CommandLine, run: str) -> None:
        said = forktrail("query", run, cypher)
        assert said.code == 2, said
        assert said.out == ""
        first, *pointed = said.err.splitlines()
        assert first.startswith("forktrail query: invalid_input: ")
        assert "show_tables()" not in first
        assert pointed == [] or (len(pointed) == 2 and pointed[1].strip() == "^")

    @pytest.mark.parametrize(
        ("cypher", "told"),
        [
            (
                "MATCH (r:Revision)\nRETRN r.id",
                ["syntax: RETRN isn't expected here", "  line 2: RETRN r.id", "          ^"],
            ),
            (
                "MATCH (r:Revison) RETURN r.id",
                [
                    "there is no label or relation type Revison (did you mean Revision?)",
                    "  MATCH (r:Revison) RETURN r.id",
                    "           ^",
                ],
            ),
            ("RETURN $missing", ["$missing has no value (`--param missing=…` gives it one)"]),
        ],
    )
    def test_a_fault_is_told_as_in_the_shell(
        self, cypher: str, told: list[str], forktrail: CommandLine, run: str
    ) -> None:
        lines = forktrail("query", run, cypher).err.splitlines()
        assert lines == [f"forktrail query: invalid_input: {told[0]}", *told[1:]]

    def test_two_columns_of_one_name_are_refused(self, forktrail: CommandLine, run: str) -> None:
        assert forktrail("query", run, "MATCH (r:Revision) RETURN r.id AS x, r.ordinal AS x").code == 2

    def test_a_statement_that_takes_too_long_is_stopped(self, forktrail: CommandLine, run: str) -> None:
        cypher = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b % 7)"
        said = forktrail("query", run, cypher, "--timeout", "0.3")
        assert said.code == 1, said
        assert said.out == ""

    @pytest.mark.parametrize(
        "words",
        [
            ["--param", "x=1", "--param", "x=2"],
            *(["--timeout", seconds] for seconds in ("0", "-1", "1e-9", "0.0009", "86401", "nan", "inf", "soon")),
        ],
    )
    def test_a_parameter_given_twice_or_an_odd_timeout_is_a_usage_error(
        self, forktrail: CommandLine, run: str, words: list[str]
    ) -> None:
        said = forktrail("query", run, "RETURN 1", *words)
        assert (said.code, said.out) == (2, "")

    def test_without_folding_a_missing_or_late_graph_is_an_error(self, forktrail: CommandLine) -> None:
        run = open_run(forktrail)
        missing = forktrail("query", run, "MATCH (c:`Case`) RETURN c.id", "--no-fold")
        assert missing.code == 1
        assert "graph_unavailable" in missing.err
        forktrail.ok("project", run)
        assert forktrail.ok("query", run, "MATCH (c:`Case`) RETURN c.id", "--no-fold", "--json").json == []

    def test_without_folding_a_graph_that_is_behind_is_an_error(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        forktrail.ok("project", run)
        producer = KafkaProducer(client_config(settings.bootstrap_servers))
        producer.produce(run_topic(run), b"one more")
        assert producer.flush(30) == 0
        said = forktrail("query", run, "MATCH (c:`Case`) RETURN c.id", "--no-fold")
        assert said.code == 1
        assert "graph_behind: synchronization is in progress" in said.err
