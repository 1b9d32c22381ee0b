"""The real command in a real terminal, on a real broker: what somebody sees who types."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forktrail_lab.registry.file import shipped_registry_path
from forktrail_schemas.settings import Settings
from support.staff import GATEWAY
from support.terminal import Terminal
from support.workbench import Workbench

LONG = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b % 7)"


@pytest.fixture(scope="module")
def bench(shared_settings: Settings) -> Workbench:
    """A run with one case in it."""
    bench = Workbench(shared_settings, shipped_registry_path())
    for name in ("admin", "olga", "ravi", "runner"):
        bench.ok("key", "new", name)
    bench.open_run()
    bench.report(GATEWAY)
    return bench


@pytest.fixture
def terminal(bench: Workbench) -> Iterator[Terminal]:
    """A shell at its first prompt."""
    with tempfile.TemporaryDirectory(prefix="tmux-") as folder:  # a socket's path must be short
        terminal = Terminal(Path(folder) / "socket")
        started(terminal, bench)
        yield terminal
        terminal.close()


def started(terminal: Terminal, bench: Workbench, *words: str) -> None:
    """Start the shell and wait for its prompt and toolbar."""
    environ = {
        "FORKTRAIL_HOME": str(bench.settings.home),
        "FORKTRAIL_BOOTSTRAP_SERVERS": bench.settings.bootstrap_servers,
        "PAGER": "",
    }
    terminal.start([sys.executable, "-m", "forktrail_lab", "shell", bench.run, *words], environ)
    terminal.wait_for(lambda shown: f"{bench.run}>" in shown and " of " in shown)


def left(terminal: Terminal) -> None:
    """Leave the shell with Ctrl-D, once it is at its prompt: the terminal itself would swallow an earlier one."""
    terminal.wait_for(lambda shown: shown.splitlines()[-1].endswith(":help") and bool(re.search(r">\n\n", shown)))
    terminal.keys("C-d")
    terminal.wait_for("ended with 0")
    terminal.close()


def project(bench: Workbench) -> subprocess.Popen[str]:
    """A projector that folds the run live, once it says so."""
    process = bench.start("project", bench.run, "--follow")
    assert process.stdout is not None
    assert "live" in process.stdout.readline()
    return process


def test_a_label_and_a_property_are_completed(terminal: Terminal) -> None:
    terminal.type("MATCH (c:Cas")
    terminal.wait_for("label ·")
    terminal.keys("Tab")
    terminal.type(") RETURN c.sta")
    terminal.wait_for("property · STRING")
    terminal.keys("Tab", "Enter", "Enter")  # the first takes the choice, the second runs it
    shown = terminal.wait_for("(1 row")
    assert "> MATCH (c:`Case`) RETURN c.status" in shown
    assert re.search(r"^c\.status\n─+\nproposed\n\(1 row, \d+ ms\)$", shown, re.M)


def test_a_query_of_several_lines_runs_once_it_is_whole(terminal: Terminal) -> None:
    terminal.enter("MATCH (t:TestCase)")
    terminal.enter("WHERE t.impact > 60")
    assert "row" not in terminal.screen()
    terminal.enter("RETURN t.id AS id, t.impact AS impact ORDER BY impact")
    shown = terminal.wait_for("(3 rows")
    assert re.search(r"^id +│ impact\n", shown, re.M)
    assert re.search(r"^gateway-routing-context │     70\n", shown, re.M)


def test_ten_thousand_rows_are_paged(terminal: Terminal) -> None:
    terminal.enter("UNWIND range(1, 10000) AS i RETURN i")
    shown = terminal.wait_for("of 10,000")
    assert shown.splitlines()[0].strip() == "i"
    assert shown.splitlines()[2].strip() == "1"
    terminal.keys("G")
    shown = terminal.wait_for("-10,000 of 10,000")
    assert shown.splitlines()[0].strip() == "i"  # the column's name stays
    assert shown.splitlines()[-2].strip() == "10000"
    terminal.keys("g")
    terminal.type("/7777")
    terminal.keys("Enter")
    terminal.wait_for("lines 7,777-")
    terminal.keys("q")
    terminal.wait_for("(10,000 rows")


def test_long_answers_go_through_the_users_pager(terminal: Terminal) -> None:
    terminal.enter(":pager less")
    terminal.enter("UNWIND range(1, 1000) AS i RETURN i")
    terminal.wait_for(lambda shown: shown.endswith("\n:"))
    terminal.keys("G")
    terminal.wait_for("1000\n(END)")
    terminal.keys("q")
    terminal.wait_for("(1,000 rows")


def test_a_syntax_error_is_pointed_at_and_the_shell_goes_on(terminal: Terminal) -> None:
    terminal.enter("MATCH (c:Case) RETURN c")
    shown = terminal.wait_for("error:")
    assert "Case is a word of Cypher" in shown
    assert re.search(r"^  MATCH \(c:Case\) RETURN c\n {11}\^$", shown, re.M)
    terminal.enter("RETURN 41 + 1 AS n")
    terminal.wait_for("(1 row")


def test_ctrl_c_ends_a_long_query_within_half_a_second(terminal: Terminal) -> None:
    terminal.enter(LONG)
    time.sleep(1.0)  # well into the query
    assert "row" not in terminal.screen()
    terminal.keys("C-c")
    pressed = time.monotonic()
    terminal.wait_for("cancelled")
    took = time.monotonic() - pressed
    terminal.enter("RETURN 41 + 1 AS n")
    terminal.wait_for("(1 row")
    assert took < 0.5


def test_a_write_is_refused(terminal: Terminal, bench: Workbench) -> None:
    end = bench.end()
    terminal.enter("MATCH (c:`Case`) SET c.status = 'accepted'")
    terminal.wait_for("the shell is read-only")
    terminal.enter("MATCH (c:`Case`) RETURN c.status AS status")
    shown = terminal.wait_for("(1 row")
    assert re.search(r"^status\n─+\nproposed\n", shown, re.M)
    assert bench.end() == end


def test_what_was_typed_is_found_again_in_the_next_session(terminal: Terminal, bench: Workbench) -> None:
    terminal.enter("RETURN 'find me' AS text")
    terminal.wait_for("(1 row")
    terminal.enter("RETURN 2 AS other")
    terminal.wait_for("other\n")
    left(terminal)
    started(terminal, bench)
    terminal.keys("C-r")
    terminal.type("find m")
    terminal.wait_for("'find me' AS text")
    terminal.keys("Enter", "Enter")
    assert re.search(r"^text\n─+\nfind me\n", terminal.wait_for("(1 row"), re.M)


def test_it_survives_a_projector_that_restarts_under_it(terminal: Terminal, bench: Workbench) -> None:
    left(terminal)
    first = project(bench)
    try:
        started(terminal, bench)
        terminal.wait_for(f"folded by process {first.pid}")
        terminal.enter("RETURN 1 AS before")
        terminal.wait_for("(1 row")
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = project(bench)
        try:
            terminal.wait_for(f"folded by process {second.pid}")
            terminal.enter("RETURN 2 AS after")
            terminal.wait_for(f"process {first.pid} let go of the graph; process {second.pid} folds it now")
            terminal.wait_for(lambda shown: shown.count("(1 row") == 2)
            terminal.enter(LONG)
            time.sleep(0.5)
            second.send_signal(signal.SIGKILL)
            second.wait()
            terminal.wait_for(f"process {second.pid} let go of the graph; this shell folds it now")
            terminal.keys("C-c")
            terminal.wait_for("cancelled")
            bench.ok("report", bench.run, GATEWAY, "--summary", "once more", "--as", "rita")
            terminal.enter("MATCH (r:Report) RETURN count(*) AS reports")
            assert re.search(r"reports\n─+\n +2\n\(1 row", terminal.wait_for("reports\n─"))
        finally:
            second.kill()
    finally:
        first.kill()
