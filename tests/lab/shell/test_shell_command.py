"""`forktrail shell` without a terminal, on a real broker."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from forktrail_lab.shell import graph_source
from forktrail_lab.shell.graph_source import GraphSource
from forktrail_lab.shell.source import UNOWNED
from forktrail_projectors.owner.live import own
from forktrail_schemas.errors import GraphError, NotFound
from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.staff import GATEWAY, report

CASES = "MATCH (c:`Case`) RETURN c.test AS test, c.status AS status"


def piped(run: str, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as a process, with a script on its stdin."""
    command = [sys.executable, "-m", "forktrail_lab", "shell", run, *words]
    return subprocess.run(command, input=script, capture_output=True, text=True, env=dict(os.environ), timeout=60)


class TestPiped:
    def test_statements_from_stdin_print_plain_tables(self, forktrail: CommandLine, run: str) -> None:
        report(forktrail, run)
        done = piped(run, f"{CASES};\nMATCH (r:Revision) RETURN r.id AS revision;\n")
        assert done.stdout.splitlines() == [
            "test                     status",
            "gateway-routing-context  proposed",
            "revision",
            "r1",
        ]
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
    def test_bytes_that_are_no_utf8_fail_their_statement_whatever_the_locale(
        self, locale: str, forktrail: CommandLine, run: str
    ) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "forktrail_lab", "shell", run],
            input="RETURN 'é' AS a;\n".encode() + b"RETURN '\xff' AS b;\nRETURN 2 AS c;\n",
            capture_output=True,
            env=dict(os.environ) | {"LC_ALL": locale, "PYTHONIOENCODING": "utf-8:strict"},
            timeout=60,
        )
        assert done.stdout.decode().split() == ["a", "é", "c", "2"]
        told = b"error: the query isn't UTF-8: byte 0xff after 8 characters (write it in UTF-8)\n"
        assert (done.returncode, done.stderr) == (1, told)

    def test_one_that_fails_makes_the_exit_code_1_and_the_rest_runs(self, forktrail: CommandLine, run: str) -> None:
        done = piped(run, "RETURN 1 +;\nRETURN 2 AS two;\nCREATE (:Asset {id: 'x'});")
        assert done.returncode == 1
        assert done.stdout.split() == ["two", "2"]
        assert "error: the shell is read-only" in done.stderr

    def test_commands_on_the_command_line(self, forktrail: CommandLine, run: str) -> None:
        report(forktrail, run)
        words = ("-c", CASES, "-c", ":position", "-c", "RETURN $n + 1 AS n", "--param", "n=1")
        said = forktrail.ok("shell", run, *words)
        assert said.out.splitlines()[1:] == [
            "gateway-routing-context  proposed",
            f"{run} at offset 10 of 10, up to date; {UNOWNED}",
            "n",
            "2",
        ]
        assert forktrail.ok("shell", run, "-c", CASES, "--format", "json").json == [
            {"test": GATEWAY, "status": "proposed"}
        ]
        assert forktrail.ok("shell", run, "-c", CASES, "--format", "csv").out.splitlines()[1] == f"{GATEWAY},proposed"
        assert forktrail("shell", run, "-c", "RETURN nothing").code == 1

    def test_a_reader_that_leaves_early_is_no_failure(self, forktrail: CommandLine, run: str) -> None:
        line = f"{sys.executable} -m forktrail_lab shell {run} -c 'UNWIND range(1, 200000) AS n RETURN n' | head -1"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, env=dict(os.environ), timeout=60)
        assert (done.stdout.strip(), done.stderr) == ("n", "")

    def test_an_unknown_run_is_not_found(self, forktrail: CommandLine) -> None:
        said = forktrail("shell", "run-000000000000", "-c", "RETURN 1")
        assert said.code == 3
        assert said.err.count("\n") == 1

    def test_it_starts_with_less_than_a_second_and_a_half_of_work(self, forktrail: CommandLine, run: str) -> None:
        """By processor time, since the machine may be busy with other tests."""
        forktrail.ok("project", run)
        took = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert piped(run, "RETURN 1;").returncode == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert min(took) < 1.5


class TestSource:
    """Who folds the run, and what becomes of a question when that one ends."""

    def source(self, settings: Settings, run: str) -> tuple[GraphSource, list[str]]:
        said: list[str] = []
        return GraphSource(settings, run, said.append), said

    def test_alone_it_folds_while_it_is_asked_and_then_lets_go(
        self, forktrail: CommandLine, run: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, said = self.source(settings, run)
        assert source.standing().owner == UNOWNED
        assert source.query("MATCH (e:Event) RETURN count(*)", {}, None).rows == [(9,)]
        report(forktrail, run)  # beside it
        assert source.query("MATCH (e:Event) RETURN count(*)", {}, None).rows == [(10,)]
        monkeypatch.setattr(graph_source, "LINGER_SECONDS", 0.0)
        assert source.standing().owner == UNOWNED
        with own(settings, run):  # a projector may start now
            pass
        forktrail.ok("set", run, "same-person-may-review=true")
        standing = source.standing()
        assert (standing.next_offset, standing.end, standing.behind) == (10, 11, 1)
        assert source.query("MATCH (e:Event) RETURN count(*)", {}, None).rows == [(11,)]
        assert said == []
        source.close()

    def test_a_cancelled_question_ends_and_the_next_is_answered(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        source, _ = self.source(settings, run)
        source.standing()
        cancel = threading.Timer(0.5, source.cancel)
        cancel.start()
        with pytest.raises(GraphError) as caught:
            source.query("UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b)", {}, 20_000)
        assert caught.value.code == "query_cancelled"
        assert source.query("RETURN 1", {}, None).rows == [(1,)]
        source.close()

    def test_it_waits_for_another_projector_before_it_folds_itself(
        self, forktrail: CommandLine, run: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source, said = self.source(settings, run)
        words = [sys.executable, "-m", "forktrail_lab", "project", run, "--follow"]
        processes: list[int] = []
        for _ in range(2):
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
                assert process.stdout is not None
                process.stdout.readline()
                processes.append(process.pid)
                assert source.query("RETURN 1", {}, None).rows == [(1,)]
                assert source.standing().owner == f"folded by process {process.pid}"
                process.kill()
        assert source.standing().owner == UNOWNED
        assert said == [f"process {processes[0]} let go of the graph; process {processes[1]} folds it now"]
        monkeypatch.setattr(graph_source, "GRACE_SECONDS", 0.0)
        assert source.query("RETURN 1", {}, None).rows == [(1,)]
        assert said[1:] == [f"process {processes[1]} let go of the graph; this shell folds it now"]
        source.close()

    def test_no_such_run(self, settings: Settings) -> None:
        source, _ = self.source(settings, "run-000000000000")
        with pytest.raises(NotFound):
            source.standing()
        source.close()
        assert not Path(settings.graphs_dir).exists()
