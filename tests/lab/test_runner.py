"""The runner on a real log, against real services: only what is approved, once, and never a pass by accident."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forktrail_lab.broker.probe import free_port
from forktrail_lab.registry.file import shipped_registry_path
from forktrail_lab.runner import Journal
from forktrail_schemas.settings import Settings
from support.staff import GATEWAY
from support.workbench import Workbench, wait_until

EXIT_SECONDS = 60


@pytest.fixture(scope="module")
def northwind(shared_settings: Settings) -> Iterator[Workbench]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    yield bench
    bench.close()


@pytest.fixture
def bench(northwind: Workbench) -> Workbench:
    """A run of the test's own, in the module's home and lab."""
    return northwind.another()


def targets_at(path: Path, origin: str) -> Path:
    """A targets file that has every service of r1 at one origin."""
    assets = ("gateway", "invoice-api", "export", "audit")
    targets = {"format": "forktrail.targets/1", "targets": {"r1": dict.fromkeys(assets, origin)}}
    path.write_text(json.dumps(targets))
    return path


class Tarpit:
    """A service that takes connections and never answers."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        try:
            while True:
                self.taken.append(self._listening.accept()[0])
        except OSError:  # closed
            return

    def close(self) -> None:
        for connection in (*self.taken, self._listening):
            connection.close()


@contextmanager
def started(bench: Workbench, *words: str) -> Iterator[Any]:
    """A command as a process, killed at the end where it still runs."""
    process = bench.start(*words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def elsewhere(bench: Workbench, home: Path) -> Workbench:
    """The same run, keys and lab from another home."""
    other = replace(bench, settings=replace(bench.settings, home=home))
    shutil.copytree(bench.settings.keys_dir, other.settings.keys_dir)
    return other


class TestApproval:
    def test_what_is_only_proposed_is_not_run(self, bench: Workbench) -> None:
        case = bench.report(GATEWAY)
        asked, end = bench.asked(), bench.end()
        done = bench.command("runner", bench.run, "--once")
        assert done.exit == 7
        assert f"forktrail approve {bench.run} {case} --key NAME" in done.err
        assert done.err.startswith("forktrail runner: approval_required:")
        assert case in done.err
        assert (bench.asked(), bench.end()) == (asked, end)

    def test_what_is_denied_is_not_run(self, bench: Workbench) -> None:
        case = bench.report(GATEWAY)
        bench.ok("deny", bench.run, case, "--key", "olga")
        asked, end = bench.asked(), bench.end()
        assert "nothing is approved and nothing waits" in bench.ok("runner", bench.run, "--once").out
        assert (bench.asked(), bench.end()) == (asked, end)

    def test_an_approval_is_good_for_one_run(self, bench: Workbench) -> None:
        case = bench.approved()
        asked = bench.asked()
        assert f"{case} {GATEWAY}: 401/200 -> reproduced" in bench.ok("runner", bench.run, "--once").out
        assert bench.asked() == asked + 2
        end = bench.end()
        bench.ok("runner", bench.run, "--once")
        assert (bench.asked(), bench.end()) == (asked + 2, end)
        assert bench.types()[-2:] == ["TestStarted", "ObservationRecorded"]

    def test_the_case_approved_first_is_run_first(self, bench: Workbench) -> None:
        bench.settle(bench.report(GATEWAY))
        cases = []
        for test in ("export-scope", "audit-trail-read"):
            cases.append(bench.report(test))
        for case in reversed(cases):
            bench.ok("approve", bench.run, case, "--key", "olga")
        assert [bench.ok("runner", bench.run, "--once").out.split()[0] for _ in cases] == cases[::-1]

    def test_two_runners_with_a_key_each_run_a_case_once(self, bench: Workbench) -> None:
        bench.ok("key", "new", "runner-2")
        bench.ok("key", "register", bench.run, "runner-2", "--role", "runner")
        bench.approved()
        asked = bench.asked()
        both = [bench.start("runner", bench.run, "--once", "--key", key) for key in ("runner", "runner-2")]
        said = [process.communicate(timeout=EXIT_SECONDS) for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        assert bench.types().count("ObservationRecorded") == 1
        assert bench.asked() == asked + 2
        assert sum("reproduced" in out for out, _ in said) == 1


class TestRefusal:
    def test_a_revision_that_is_over_is_not_run(self, bench: Workbench) -> None:
        bench.approved()
        bench.ok("revision", "advance", bench.run, "r2", "--key", "olga")
        asked, end = bench.asked(), bench.end()
        bench.ok("runner", bench.run, "--once")
        assert (bench.asked(), bench.end()) == (asked, end)

    def test_a_case_whose_support_was_withdrawn_is_passed_over(self, bench: Workbench) -> None:
        gateway = bench.report(GATEWAY)
        finding = bench.settle(gateway)
        assert finding
        case = bench.approved("export-scope")
        stuck = f"{case} (export-scope) is approved, and can't be run without it"
        planned = bench.ok("withdraw", bench.run, finding, "--dry-run").out.splitlines()
        assert f"  {stuck}" in planned
        assert planned[-1].startswith(f"  {GATEWAY} itself can be tested again only in the next revision")
        said = bench.ok("withdraw", bench.run, finding, "--key", "olga").err.splitlines()
        assert said[0] == stuck
        assert said[1].startswith(f"{GATEWAY} itself can be tested again only in the next revision")
        asked = bench.asked()
        done = bench.ok("runner", bench.run, "--once")
        assert f"{case} is passed over: support_missing" in done.err
        assert "no approved case may be run now" in done.out
        assert (bench.asked(), bench.types().count("TestStarted")) == (asked, 1)
        remarks = {
            row["case_id"]: row["remark"] for row in bench.ok("case", "list", bench.run, "--format", "json").json()
        }
        assert remarks == {
            gateway: "finding withdrawn by olga",
            case: "support gone (internal-route-access): can't run now",
        }
        assert bench.types().count("ObservationRecorded") == 1

    def test_a_case_past_the_request_budget_is_passed_over(self, bench: Workbench) -> None:
        bench.ok("budget", bench.run, "http-requests=1")
        case = bench.approved()
        asked = bench.asked()
        done = bench.ok("runner", bench.run, "--once")
        assert f"{case} is passed over: budget_exhausted: it would pass a budget: http-requests: 2 of 1" in done.err
        assert (bench.asked(), bench.types().count("TestStarted")) == (asked, 0)
        assert bench.status(case) == "approved"
        bench.ok("budget", bench.run, "http-requests=2")
        assert "reproduced" in bench.ok("runner", bench.run, "--once").out

    def test_a_case_that_can_not_be_run_does_not_hold_up_the_next(self, northwind: Workbench, tmp_path: Path) -> None:
        registry = json.loads(northwind.registry.read_text())
        registry["tests"][3]["requires"] = []
        path = tmp_path / "registry.json"
        path.write_text(json.dumps(registry))
        bench = northwind.another(path)
        bench.ok("budget", bench.run, "http-requests=1")
        gateway = bench.approved()
        export = bench.approved("export-scope")
        done = bench.ok("runner", bench.run, "--once")
        assert f"{gateway} is passed over: budget_exhausted" in done.err
        assert f"{export} export-scope: 403 -> not_reproduced" in done.out

    def test_a_key_that_is_not_registered_is_not_found(self, bench: Workbench) -> None:
        bench.ok("key", "new", "mallory")
        bench.approved()
        end = bench.end()
        done = bench.command("runner", bench.run, "--once", "--key", "mallory")
        assert done.exit == 3
        assert "is not registered" in done.err
        assert bench.end() == end

    def test_a_key_without_the_role_is_told_so_once(self, bench: Workbench) -> None:
        case = bench.approved()
        asked, end = bench.asked(), bench.end()
        done = bench.command("runner", bench.run, "--once", "--key", "olga")
        assert done.exit == 2
        assert done.err.startswith("forktrail runner: role_missing:")
        assert done.err.count("\n") == 1
        assert (bench.asked(), bench.end()) == (asked, end)
        assert bench.status(case) == "approved"
        assert "reproduced" in bench.ok("runner", bench.run, "--once").out

    def test_the_role_is_looked_at_first_so_that_nothing_approved_hides_that_it_lacks(self, bench: Workbench) -> None:
        done = bench.command("runner", bench.run, "--once", "--key", "olga")
        assert done.exit == 2
        assert done.err.startswith("forktrail runner: role_missing:")

    def test_a_revoked_key_is_told_so(self, bench: Workbench) -> None:
        bench.ok("key", "revoke", bench.run, "runner", "--reason", "lost")
        bench.approved()
        asked = bench.asked()
        done = bench.command("runner", bench.run, "--once")
        assert done.exit == 2
        assert "key_revoked" in done.err
        assert bench.asked() == asked

    def test_an_unknown_run_is_not_found(self, northwind: Workbench) -> None:
        assert northwind.command("runner", "no-such-run", "--once").exit == 3

    def test_another_definition_than_the_registered_one_is_not_run(self, bench: Workbench, tmp_path: Path) -> None:
        text = bench.registry.read_text()
        other = tmp_path / "registry.json"
        other.write_text(text.replace('"x-route-context": "internal-mesh"', '"x-route-context": "internal-mesg"', 1))
        case = bench.approved()
        asked, end = bench.asked(), bench.end()
        done = bench.command("runner", bench.run, "--once", "--registry", str(other))
        assert done.exit == 1
        assert "graph_catalog_mismatch" in done.err
        assert "definition_sha256" in done.err
        assert (bench.asked(), bench.end()) == (asked, end)
        assert bench.status(case) == "approved"

    def test_the_services_answers_are_not_part_of_the_definition(self, bench: Workbench, tmp_path: Path) -> None:
        registry = json.loads(bench.registry.read_text())
        registry["services"] = {}
        other = tmp_path / "registry.json"
        other.write_text(json.dumps(registry))
        bench.approved()
        assert "reproduced" in bench.ok("runner", bench.run, "--once", "--registry", str(other)).out

    def test_without_a_targets_file_nothing_is_started(self, bench: Workbench, tmp_path: Path) -> None:
        case = bench.approved()
        end = bench.end()
        done = bench.command("runner", bench.run, "--once", "--targets", str(tmp_path / "none.json"))
        assert done.exit == 3
        assert bench.end() == end
        assert bench.status(case) == "approved"


class TestNeverAPass:
    def test_an_unreachable_service_is_inconclusive(self, bench: Workbench, tmp_path: Path) -> None:
        bench.approved()
        targets = targets_at(tmp_path / "targets.json", f"http://127.0.0.1:{free_port()}")
        done = bench.ok("runner", bench.run, "--once", "--targets", str(targets))
        assert f"{GATEWAY}: no answer -> inconclusive (unreachable: no-credentials:" in done.out
        bench.ok("evidence", "verify", bench.run)

    def test_a_redirect_to_another_host_is_not_followed(self, northwind: Workbench, tmp_path: Path) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as elsewhere:
            elsewhere.settimeout(0.2)
            registry = json.loads(northwind.registry.read_text())
            registry["tests"][0]["bounds"]["redirects_max"] = 1
            location = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/internal/routes"
            redirect = {"status": 302, "headers": {"location": location}}
            for answer in registry["services"]["gateway"]["r1"]:
                answer["respond"] = redirect
            path = tmp_path / "redirecting.json"
            path.write_text(json.dumps(registry))
            bench = northwind.another(path)
            bench.serve(tmp_path / "targets.json")
            bench.approved()
            done = bench.ok("runner", bench.run, "--once", "--targets", str(tmp_path / "targets.json"))
            assert "-> inconclusive (host_refused: no-credentials:" in done.out
            assert bench.asked() == 1
            bench.close()
            with pytest.raises(TimeoutError):
                elsewhere.accept()

    def test_killed_inside_a_test_it_is_interrupted_and_nothing_is_sent_again(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        case = bench.approved()
        tarpit = Tarpit()
        targets = targets_at(tmp_path / "targets.json", tarpit.origin)
        words = ("runner", bench.run, "--once", "--targets", str(targets))
        with closing(tarpit), started(bench, *words) as process:
            wait_until(lambda: bool(tarpit.taken))
            process.send_signal(signal.SIGKILL)
            assert process.wait(EXIT_SECONDS) == -signal.SIGKILL
            assert bench.types()[-1] == "TestStarted"
            asked = bench.asked()
            done = bench.ok("runner", bench.run, "--once")
            assert f"{case} {GATEWAY}: no answer -> inconclusive (interrupted)" in done.out
            assert bench.asked() == asked
            assert len(tarpit.taken) == 1
        assert bench.types()[-1] == "ObservationRecorded"
        assert "holds" in bench.ok("evidence", "verify", bench.run).out
        bench.ok("review", bench.run, case, "accept", "--key", "ravi")
        bench.ok("retry", bench.run, case, "--key", "olga")
        assert bench.settle(bench.report(GATEWAY))

    def test_killed_right_after_it_started_it_is_interrupted(self, bench: Workbench, tmp_path: Path) -> None:
        """Here the kill comes as soon as the log holds TestStarted, whether or not a request went out."""
        bench.approved()
        tarpit = Tarpit()
        targets = targets_at(tmp_path / "targets.json", tarpit.origin)
        with closing(tarpit), started(bench, "runner", bench.run, "--once", "--targets", str(targets)) as process:
            wait_until(lambda: bench.types()[-1] == "TestStarted")
            process.send_signal(signal.SIGKILL)
            process.wait(EXIT_SECONDS)
            bench.ok("revision", "advance", bench.run, "r2", "--key", "olga")
            assert "(interrupted)" in bench.ok("runner", bench.run, "--once").out
        bench.ok("evidence", "verify", bench.run)


class TestAnotherHome:
    """A second home with the same key, as where a person copies it to another machine."""

    def test_a_live_case_of_another_home_is_left_and_said_and_taken_over_on_demand(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        case = bench.approved()
        other = elsewhere(bench, tmp_path / "other")
        tarpit = Tarpit()
        targets = targets_at(tmp_path / "targets.json", tarpit.origin)
        with closing(tarpit), started(bench, "runner", bench.run, "--once", "--targets", str(targets)) as process:
            wait_until(lambda: bench.types()[-1] == "TestStarted")
            end = bench.end()
            done = other.ok("runner", bench.run, "--once")
            assert f"{case} is left: another home's runner has it under this key" in done.err
            assert "--take-over" in done.err
            assert (bench.end(), bench.status(case), process.poll()) == (end, "running", None)
            process.send_signal(signal.SIGKILL)
            process.wait(EXIT_SECONDS)
            assert "is left" in other.ok("runner", bench.run, "--once").err
            done = other.ok("runner", bench.run, "--once", "--take-over")
            assert f"{case} {GATEWAY}: no answer -> inconclusive (interrupted)" in done.out
        assert bench.types().count("ObservationRecorded") == 1
        assert "is left" not in bench.ok("runner", bench.run, "--once").err

    def test_a_case_that_was_lost_to_another_home_is_not_taken_for_ones_own(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        """Both wrote TestStarted and the other's was first: the case stands in both journals, each with its event."""
        case = bench.approved()
        tarpit = Tarpit()
        targets = targets_at(tmp_path / "targets.json", tarpit.origin)
        other = elsewhere(bench, tmp_path / "other")
        with closing(tarpit), started(bench, "runner", bench.run, "--once", "--targets", str(targets)):
            wait_until(lambda: bench.types()[-1] == "TestStarted")
            (journal,) = (bench.settings.home / "runners").glob(f"{bench.run}-*.cases")
            lost = other.settings.home / "runners" / journal.name
            lost.parent.mkdir(parents=True)
            lost.write_text(f"\n{case} event-refused\n")
            assert f"{case} is left" in other.ok("runner", bench.run, "--once").err
        assert bench.status(case) == "running"

    def test_a_torn_line_of_the_journal_spoils_no_other(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path / "run.cases")
        assert journal.started() == frozenset()
        journal.path.write_bytes(b"\ncase-1 event-1\n\ncase-2 ev")
        journal.add("case-3", "event-3")
        assert {("case-1", "event-1"), ("case-3", "event-3")} <= journal.started()
        assert ("case-2", "event-2") not in journal.started()


class TestLongRunning:
    def test_it_runs_what_is_approved_later_alone_on_its_key_and_ends_on_sigterm(self, bench: Workbench) -> None:
        with started(bench, "runner", bench.run) as process:
            assert process.stderr.readline().startswith("runner: waiting for approved cases")
            busy = bench.command("runner", bench.run, "--once")
            assert busy.exit == 1
            assert busy.err.startswith("forktrail runner: runner_busy:")
            asked = bench.asked()
            case = bench.approved()
            assert process.stdout.readline().startswith(f"{case} {GATEWAY}: 401/200 -> reproduced")
            assert bench.asked() == asked + 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(EXIT_SECONDS) == 0
        assert bench.types().count("ObservationRecorded") == 1

    def test_it_ends_on_sigterm_while_it_waits(self, bench: Workbench) -> None:
        with started(bench, "runner", bench.run) as process:
            assert process.stderr.readline().startswith("runner: waiting for approved cases")
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=EXIT_SECONDS)
            assert (process.returncode, out, err) == (0, "", "")
