"""The commands to the shell itself. No broker."""

from __future__ import annotations

import csv
import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from forktrail_lab.console.event_lines import COLUMNS
from forktrail_lab.shell import events
from forktrail_lab.shell.actions import ACTIONS, Leave
from forktrail_lab.shell.asking import Question
from forktrail_lab.shell.dispatch import execute, is_finished
from forktrail_lab.shell.meta import COMMANDS, next_word, parsed, split_words
from forktrail_lab.shell.named import BUILT_IN, NamedQueries
from forktrail_lab.shell.source import UNOWNED
from forktrail_lab.shell.watch import watch
from forktrail_projectors.discovery import eligible_tests
from forktrail_projectors.why_not import why_not
from forktrail_schemas.errors import GraphBusy, GraphError, InvalidInput, NotFound
from support.shell import Shell
from support.story import ADMIN, RUNNER, STRANGER


def lines(shell: Shell) -> list[str]:
    """The lines of the last page."""
    return shell.face.pages[-1].lines


def failed(shell: Shell, text: str) -> str:
    """The one line that is said of a command that fails."""
    assert not execute(shell.session, text)
    (line,) = shell.face.failed[-1]
    return line


class TestWords:
    def test_every_command_does_something_and_has_help(self) -> None:
        assert ACTIONS.keys() == COMMANDS.keys()
        for name, command in COMMANDS.items():
            assert command.usage.startswith(f":{name}")

    def test_one_may_be_cut_short_as_long_as_it_is_clear(self) -> None:
        assert parsed(":sch Finding")[0].name == "schema"
        assert parsed(": help")[0].name == "help"
        with pytest.raises(InvalidInput, match="timeout, :timing"):
            parsed(":ti on")
        with pytest.raises(InvalidInput, match="no command :nonsense"):
            parsed(":nonsense")
        assert parsed(":name x RETURN 1")[0].name == "name"  # though :named begins so too

    @pytest.mark.parametrize(
        ("name", "rest", "words", "query"),
        [
            ("watch", "", [], ""),
            ("watch", "5", ["5"], ""),
            ("watch", "0.5 RETURN 1", ["0.5"], "RETURN 1"),
            ("watch", "RETURN 1", [], "RETURN 1"),
            ("export", "a.csv", ["a.csv"], ""),
            ("export", "--replace a.csv RETURN 1", ["--replace", "a.csv"], "RETURN 1"),
            ("export", "'my file.csv' RETURN 'x y'", ["my file.csv"], "RETURN 'x y'"),
            ("name", "mine MATCH (n)\nRETURN n", ["mine"], "MATCH (n)\nRETURN n"),
        ],
    )
    def test_words_and_query_are_told_apart(self, name: str, rest: str, words: list[str], query: str) -> None:
        assert split_words(COMMANDS[name], rest) == (words, query)

    def test_an_open_quote_is_a_part_of_the_word(self) -> None:
        assert next_word("'open word") == ("'open", " word")

    @pytest.mark.parametrize(
        "text",
        [
            ":nonsense",
            ":limit 0",
            ":limit 1.5",
            ":limit ten",
            ":limit 99999999999",
            ":timeout 0",
            ":timeout -1",
            ":timeout nan",
            ":expand sometimes",
            ":timing maybe",
            ":keys nano",
            ":events -3",
            ":events soon",
            ":param",
            ":param =1",
            ":param two words=1",
            ":params x",
            ":name mine",
            ":name 9lives RETURN 1",
            ":unname nobody",
            ":run nobody",
            ":run 'open",
            ":run causes",
            ":run causes 1 2",
            ":run",
            ":schema Nothing",
            ":watch",
            ":watch 0.001 RETURN 1",
            ":export",
            ":export a.csv",
            ":export a.txt RETURN 1",
            ":export --force a.csv RETURN 1",
            ":export nowhere/a.csv RETURN 1",
            ":help nonsense",
            ":quit now",
        ],
    )
    def test_wrong_words_are_told_in_one_line_and_change_nothing(
        self, text: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        before = repr(shell.session.preferences)
        assert failed(shell, text).startswith("error: ")
        assert (repr(shell.session.preferences), shell.session.parameters) == (before, {})
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (":run", "name a query (`:named` lists them)"),
            (":run ''", "no query is named '' (`:named` lists them)"),
            (":unname", "name a query of yours (`:named` lists them)"),
            (":param", "a name and a value have to be given (:param NAME=VALUE; `:params` lists them)"),
            (
                ":run causes",
                "$offset has no value (`:run causes OFFSET` gives it one, so does `:param offset=…`)",
            ),
            (":run causes 1 2", "there is no parameter for '2' (the query takes offset)"),
            (":run findings 1", "there is no parameter for '1' (the query takes no values)"),
        ],
    )
    def test_what_is_missing_or_too_much_is_named_and_what_helps(self, text: str, told: str, shell: Shell) -> None:
        assert failed(shell, text) == f"error: {told}"

    def test_none_alone_fails_otherwise_than_by_a_message(self, shell: Shell) -> None:
        for name in COMMANDS.keys() - {"quit"}:
            for rest in ("", " ", " ''", " '", " = =", " -1", " --x", " $", " ;", " a b c"):
                shell.face.interactive = False
                before = len(shell.face.failed)
                if not execute(shell.session, f":{name}{rest}"):
                    assert "expected" not in shell.face.failed[before][0]


class TestSettings:
    def test_each_is_set_and_said(self, shell: Shell) -> None:
        for text in (":limit 1,000", ":timeout 2.5", ":expand on", ":timing off", ":pager less -R", ":keys vi"):
            assert execute(shell.session, text)
        chosen = shell.session.preferences
        assert (chosen.rows_max, chosen.timeout_ms, chosen.expand) == (1_000, 2_500, "on")
        assert (chosen.timing, chosen.pager, chosen.vi) == (False, "less -R", True)
        for text in (":limit off", ":timeout off", ":timing", ":keys emacs", ":limit"):
            assert execute(shell.session, text)
        assert (chosen.rows_max, chosen.timeout_ms, chosen.timing, chosen.vi) == (None, None, True, False)
        assert shell.face.said[-1] == "no limit"

    def test_a_query_ends_at_the_timeout(self, shell: Shell) -> None:
        execute(shell.session, ":timeout 0.2")
        cypher = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b % 7)"
        assert "out of time" in failed(shell, cypher)

    def test_leaving(self, shell: Shell) -> None:
        for text in (":quit", "quit", "exit", "EXIT;", " quit ;\n"):
            assert is_finished(text)
            with pytest.raises(Leave):
                execute(shell.session, text)
        assert execute(shell.session, "RETURN 1 AS exit")


class TestParameters:
    @pytest.mark.parametrize(
        ("typed", "value"),
        [
            ("12", 12),
            ("true", True),
            ("null", None),
            ('"12"', "12"),
            ("'12'", "12"),
            ("plain text", "plain text"),
            ('["a", "b"]', ["a", "b"]),
            ("a=b", "a=b"),
            ("9223372036854775807", 2**63 - 1),
            ("-9223372036854775808", -(2**63)),
            ("007", "007"),
            ("1.5", "1.5"),
            ('"9223372036854775808"', "9223372036854775808"),
            ("[" * 100_000, "[" * 100_000),
        ],
    )
    def test_values_have_the_type_that_they_look_like(self, typed: str, value: object, shell: Shell) -> None:
        assert execute(shell.session, f":param x = {typed}")
        assert execute(shell.session, "RETURN $x AS x")
        assert shell.face.rows == [(value,)]

    @pytest.mark.parametrize("typed", ["9223372036854775808", "-9223372036854775809", "1" * 5_000, "-" + "9" * 5_000])
    def test_a_whole_number_of_more_than_64_bits_is_refused(self, typed: str, shell: Shell) -> None:
        assert "is no whole number from -9223372036854775808 to 9223372036854775807" in failed(
            shell, f":param x={typed}"
        )
        assert shell.session.parameters == {}

    def test_only_those_that_a_statement_names_are_sent(self, shell: Shell) -> None:
        execute(shell.session, ":param unused=1")
        assert execute(shell.session, "RETURN 1")

    def test_one_without_a_value_is_asked_for(self, shell: Shell) -> None:
        assert failed(shell, "RETURN $missing") == "error: $missing has no value (`:param missing=…` gives it one)"

    def test_they_are_listed_and_taken_away(self, shell: Shell) -> None:
        execute(shell.session, ":params")
        assert lines(shell) == ["none"]
        execute(shell.session, ":param x=1")
        execute(shell.session, ":params")
        assert lines(shell)[-1].split() == ["x", "│", "1"]
        execute(shell.session, ":param x=")
        assert shell.session.parameters == {}


class TestSchema:
    def test_it_names_every_label_and_what_relations_join(self, shell: Shell) -> None:
        assert execute(shell.session, ":schema")
        text = "\n".join(lines(shell))
        assert "`Case`" in text
        assert "Finding → Capability" in text
        assert "Event → any" in text

    def test_one_label_has_types_and_its_relations(self, shell: Shell) -> None:
        assert execute(shell.session, ":schema budget")
        assert "limit          │ INT64" in lines(shell)
        assert execute(shell.session, ":schema `Case`")
        assert "(:Report)-[:OPENED]->(:`Case`)" in lines(shell)
        assert execute(shell.session, ":schema ENABLES")
        assert lines(shell)[-1] == "(:Finding)-[:ENABLES]->(:Capability)"


class TestEvents:
    def test_the_last_ones_come_with_their_verdicts(self, shell: Shell) -> None:
        shell.story.decide("case-" + "0" * 20)
        shell.face.interactive = False
        assert execute(shell.session, ":events 2")
        assert shell.face.answers[-1].table.columns == COLUMNS
        (*_, verdict, reason) = shell.face.rows[-1]
        assert [row[0] for row in shell.face.rows] == [3, 4]
        assert (verdict, str(reason).split()[0]) == ("void", "unknown_case")

    @pytest.mark.parametrize("screen", [80, 110])
    def test_on_a_screen_they_fit_with_short_digests_and_in_a_script_they_are_whole(
        self, screen: int, shell: Shell
    ) -> None:
        shell.face.screen = (screen, 30)
        assert execute(shell.session, ":events")
        head, day, *rest = lines(shell)
        assert head.split() == ["offset", "time", "type", "actor", "subject", "verdict"]
        assert re.fullmatch(r" {8}\d{4}-\d\d-\d\d \(UTC\)", day)
        short = [line.split() for line in rest]
        assert all(re.fullmatch(r"\d\d:\d\d:\d\d", words[1]) for words in short)
        assert max(map(len, lines(shell))) <= screen
        assert shell.face.said[-1] == "(4 rows)"
        shell.face.interactive = False
        execute(shell.session, ":events")
        whole = [str(row[4]) for row in shell.face.rows[1:]]
        assert {len(digest) for digest in whole} == {64}
        assert [words[4] for words in short[1:]] == [f"{digest[:12]}…" for digest in whole]
        assert f"{ADMIN.key_id[:12]}…" not in short[0]

    def test_where_values_are_wanted_a_line_each_they_come_so(self, shell: Shell) -> None:
        execute(shell.session, ":expand on")
        execute(shell.session, ":events 1")
        assert [row[0] for row in shell.face.rows] == [3]

    def test_following_shows_each_event_once_until_ctrl_c(self, shell: Shell) -> None:
        steps: list[Callable[[], object]] = [
            lambda: None,
            lambda: [shell.story.set("same-person-may-review", "true"), shell.story.set("x", "y")],
            lambda: shell.story.add_key(STRANGER, "runner"),
        ]

        def sleep(seconds: float) -> None:
            if not steps:
                raise KeyboardInterrupt
            steps.pop(0)()

        events.follow(shell.session, sleep)
        offsets = [line[:6].strip() for line in shell.face.shown]
        assert [offset for offset in offsets if offset] == ["offset", *map(str, range(7))]


class TestNamed:
    def test_a_query_is_kept_for_later_sessions_and_readable_by_its_owner_alone(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        assert execute(shell.session, ":name keys_of MATCH (k:Key)\nWHERE k.holder = $holder RETURN k.roles AS roles;")
        assert stat.S_IMODE((tmp_path / "queries.json").stat().st_mode) == 0o600
        later = NamedQueries(tmp_path / "queries.json")
        assert later.get("keys_of").cypher == "MATCH (k:Key)\nWHERE k.holder = $holder RETURN k.roles AS roles"
        for words in ("olga", "holder=olga", "'olga'"):
            assert execute(shell.session, f":run keys_of {words}")
            assert shell.face.rows == [(["operator"],)]
        execute(shell.session, ":param holder=ravi")
        assert execute(shell.session, ":run keys_of")
        assert shell.face.rows == [(["reviewer"],)]
        assert execute(shell.session, ":run keys_of olga")
        assert shell.face.rows == [(["operator"],)]

    def test_one_can_be_replaced_and_forgotten_and_a_name_of_the_shells_comes_back(self, shell: Shell) -> None:
        execute(shell.session, ":name findings RETURN 1 AS mine")
        execute(shell.session, ":run findings")
        assert shell.face.rows == [(1,)]
        execute(shell.session, ":unname findings")
        execute(shell.session, ":run findings")
        assert shell.face.rows == []
        assert failed(shell, ":unname findings").startswith("error: no query of yours")

    def test_a_broken_file_is_named_and_left_alone(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "queries.json").write_text("{not json")
        assert "can't be read" in failed(shell, ":name mine RETURN 1")
        assert "can't be read" in failed(shell, ":run findings")
        assert (tmp_path / "queries.json").read_text() == "{not json"
        assert shell.session.vocabulary().named == {}

    def test_all_are_listed_with_what_they_take(self, shell: Shell) -> None:
        execute(shell.session, ":name mine MATCH (k:Key {holder: $who}) RETURN k")
        execute(shell.session, ":named")
        text = "\n".join(lines(shell))
        assert all(name in text for name in BUILT_IN)
        assert "$who" in text


class TestBuiltIn:
    """The shell's own queries against the library, which answers the same by other means."""

    @pytest.fixture
    def told(self, shell: Shell) -> Shell:
        story = shell.story
        story.register("root", enables=["one"], impact=10)
        story.register("next", requires=["one"], enables=["two"], impact=60)
        story.register("other", requires=["one"], impact=70)
        story.register("far", requires=["one", "two"], impact=90)
        story.settle(story.report("root"))
        return shell

    def test_eligible_and_blocked_are_what_discovery_says(self, told: Shell) -> None:
        story, root = told.story, str(finding_of(told, "root"))
        other, _ = story.propose("other", [root])
        steps: list[Callable[[], object]] = [
            lambda: None,
            lambda: [
                story.decide(other),
                story.start(other),
                story.tell(story.observation(other, "inconclusive"), RUNNER),
            ],
            lambda: story.retry(other),
            lambda: story.propose("next", [root]),
            lambda: story.withdraw(root),
            lambda: story.advance("r2"),
        ]
        eligible = []
        for step in steps:
            step()
            revision = str(told.story.row("Run", "run")["active_revision"])
            page = eligible_tests(told.source.graph, revision)
            execute(told.session, ":run eligible")
            assert [row[0] for row in told.face.rows] == [candidate.test_id for candidate in page.candidates]
            eligible.append(len(told.face.rows))
            execute(told.session, ":run blocked")
            found = {row[0]: sorted(row[2]) for row in told.face.rows if isinstance(row[2], list)}
            reasons = {test: why_not(told.source.graph, test) for test in ("root", "next", "other", "far")}
            gaps = {test: [gap.capability for gap in reason.gaps] for test, reason in reasons.items() if reason.gaps}
            assert found == gaps
        assert eligible == [1, 1, 2, 1, 0, 0]

    def test_findings_cases_and_verdicts(self, told: Shell) -> None:
        finding = finding_of(told, "root")
        execute(told.session, ":run findings")
        assert [(row[0], row[1], row[-1]) for row in told.face.rows] == [(finding, "root", True)]
        execute(told.session, ":run cases")
        assert [(row[1], row[3], row[5]) for row in told.face.rows] == [("root", "accepted", finding)]
        told.story.withdraw(str(finding))
        execute(told.session, ":run findings")
        assert told.face.rows[0][-1] is False
        execute(told.session, ":run verdicts")
        assert told.face.rows == []
        told.story.decide("case-" + "0" * 20)
        execute(told.session, ":run verdicts")
        assert [row[3:5] for row in told.face.rows] == [("void", "unknown_case")]

    def test_causes_are_all_that_led_to_an_event(self, told: Shell) -> None:
        first = told.story.row("Event", 0)["id"]
        from forktrail_schemas import events as types

        second = told.story.event(types.GoalSet, causes=[str(first)], text="go on")
        told.story.tell(second)
        told.story.tell(told.story.event(types.GoalSet, causes=[second.meta.event_id], text="and on"))
        last = len(told.story.records) - 1
        execute(told.session, f":run causes {last}")
        assert [row[0] for row in told.face.rows] == [0, last - 1]


def finding_of(shell: Shell, test: str) -> object:
    """The finding of a test."""
    rows = shell.source.graph.query("MATCH (f:Finding) WHERE f.test = $test RETURN f.id", {"test": test}).rows
    return rows[0][0]


class TestExport:
    def test_csv_is_what_a_spreadsheet_reads(self, shell: Shell, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        cypher = (
            "RETURN 'a, \"b\"\nc' AS text, 1 AS n, true AS yes, null AS nothing, ['x', 'y'] AS list, '世界' AS wide"
        )
        assert execute(shell.session, f":export {path} {cypher}")
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == [
                ["text", "n", "yes", "nothing", "list", "wide"],
                ['a, "b"\nc', "1", "true", "", '["x", "y"]', "世界"],
            ]
        assert shell.face.said[-1] == f"1 row written to {path}"

    def test_json_is_a_list_of_objects(self, shell: Shell, tmp_path: Path) -> None:
        path = tmp_path / "out.json"
        assert execute(shell.session, f":export {path} UNWIND [1, 2] AS n RETURN n, null AS x")
        assert json.loads(path.read_text()) == [{"n": 1, "x": None}, {"n": 2, "x": None}]

    def test_the_last_query_is_written_with_all_its_rows(self, shell: Shell, tmp_path: Path) -> None:
        execute(shell.session, ":limit 3")
        execute(shell.session, ":param top=5")
        execute(shell.session, "UNWIND range(1, $top) AS n RETURN n")
        assert len(shell.face.rows) == 3
        execute(shell.session, ":param top=9")
        assert execute(shell.session, f":export '{tmp_path}/my rows.csv'")
        assert (tmp_path / "my rows.csv").read_text().split() == ["n", "1", "2", "3", "4", "5"]
        assert shell.session.last is not None  # still the bounded one
        assert shell.session.last.rows_max == 3

    def test_a_file_that_is_there_is_kept_unless_it_is_to_be_replaced(self, shell: Shell, tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        path.write_text("mine")
        assert "is there already" in failed(shell, f":export {path} RETURN 1 AS n")
        assert path.read_text() == "mine"
        assert execute(shell.session, f":export --replace {path} RETURN 1 AS n")
        assert path.read_text().split() == ["n", "1"]

    def test_one_that_fails_leaves_no_file(self, shell: Shell, tmp_path: Path) -> None:
        assert "same name" in failed(shell, f":export {tmp_path}/out.json RETURN 1 AS x, 2 AS x")
        failed_lines = execute(shell.session, f":export {tmp_path}/out.csv RETURN 1 AS x, y")
        assert not failed_lines
        assert list(tmp_path.iterdir()) == []


class TestWatch:
    def sleeper(self, *steps: Callable[[], object]) -> Callable[[float], None]:
        left = list(steps)

        def sleep(seconds: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        return sleep

    def test_each_answer_is_as_of_then(self, shell: Shell) -> None:
        question = Question("MATCH (k:Key) RETURN count(*) AS keys", {})
        add = self.sleeper(lambda: shell.story.add_key(STRANGER, "runner"))
        watch(shell.session, question, 2, add)
        assert [page.body for page, _ in shell.face.redraws] == [["   4"], ["   5"]]
        assert [footer.partition(" at ")[2] for _, footer in shell.face.redraws] == [
            "offset 4 of 4, every 2 s; Ctrl-C ends",
            "offset 5 of 5, every 2 s; Ctrl-C ends",
        ]

    def test_a_graph_that_is_busy_is_waited_for_and_one_that_is_broken_is_not(self, shell: Shell) -> None:
        question = Question("RETURN 1", {})
        shell.source.fails = [GraphBusy("somebody holds it")]
        watch(shell.session, question, 2, self.sleeper(lambda: None))
        assert shell.face.said == ["somebody holds it; trying again in 2 s"]
        assert len(shell.face.redraws) == 1
        shell.source.fails = [GraphError("it broke")]
        with pytest.raises(GraphError):
            watch(shell.session, question, 2, self.sleeper())

    def test_without_a_terminal_it_is_refused(self, shell: Shell) -> None:
        shell.face.interactive = False
        assert "no terminal" in failed(shell, ":watch RETURN 1")


def test_the_position_says_who_holds_the_graph_and_how_far_it_is(shell: Shell) -> None:
    execute(shell.session, ":position")
    assert lines(shell) == ["story at offset 4 of 4, up to date; nobody"]
    shell.source.behind = 2
    execute(shell.session, ":position")
    assert lines(shell) == ["story at offset 4 of 6, 2 events behind; nobody"]


def test_help_fits_the_screen_and_names_every_command(shell: Shell) -> None:
    for screen in (60, 80, 200):
        shell.face.screen = (screen, 30)
        execute(shell.session, ":help")
        assert max(map(len, lines(shell))) <= screen
        assert all(command.usage in "\n".join(lines(shell)) for command in COMMANDS.values())
    execute(shell.session, ":help")
    assert f"`{UNOWNED}`" in " ".join(lines(shell))  # what the toolbar says
    execute(shell.session, ":help :limit")
    assert lines(shell)[0] == ":limit N|off"


def test_an_unknown_query_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        NamedQueries(tmp_path / "none.json").get("nobody")
