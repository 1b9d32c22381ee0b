"""Fresh investigators on a real log: what they say, what stops them, and that of two at once one is told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from forktrail_lab.registry.file import shipped_registry_path
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.lock import owned
from forktrail_schemas.events import GoalSet
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic, run_topic_spec
from forktrail_schemas.wire import build
from support.staff import GATEWAY
from support.workbench import Done, Workbench, wait_until

FIELDS = {
    "process_id",
    "previous_messages",
    "status",
    "provider",
    "considered",
    "candidates",
    "selection",
    "case_id",
    "won_by",
}
CANDIDATES = ["invoice-tenant-boundary", "export-scope", "audit-trail-read"]

JSON = ("--format", "json")


@pytest.fixture(scope="module")
def northwind(shared_settings: Settings) -> Iterator[Workbench]:
    bench = Workbench(shared_settings, shipped_registry_path())
    bench.open()
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def eligible(northwind: Workbench) -> Workbench:
    """A run with one finding and three candidates, for tests that propose nothing."""
    bench = northwind.another()
    bench.settle(bench.report(GATEWAY))
    return bench


@pytest.fixture
def bench(northwind: Workbench) -> Workbench:
    """A run of the test's own with one finding and three candidates."""
    bench = northwind.another()
    bench.settle(bench.report(GATEWAY))
    return bench


@pytest.fixture
def untouched(eligible: Workbench) -> Iterator[Workbench]:
    """The shared run; fails where a test leaves anything new on its log."""
    end = eligible.end()
    yield eligible
    assert eligible.end() == end


def graph_files(bench: Workbench) -> list[Path]:
    return sorted(bench.settings.graphs_dir.glob(f"{bench.run}.ladybug*"))


def stopped(done: Done, exit: int, code: str) -> None:
    """That it ended without an answer, and said why in one line."""
    assert done.exit == exit, done
    assert done.out == ""
    (line,) = (line for line in done.err.splitlines() if line.startswith("forktrail investigate: "))
    assert line.startswith(f"forktrail investigate: {code}:")


def evidence_file(bench: Workbench) -> Path:
    (row,) = bench.query("MATCH (o:Observation) RETURN o.evidence_sha256 AS sha256")
    sha256 = str(row["sha256"])
    return bench.settings.blobs_dir / sha256[:2] / sha256


class TestProposal:
    def test_it_prints_one_object_of_its_own_process(self, bench: Workbench) -> None:
        process = bench.start("investigate", bench.run, *JSON, "--as", "fresh", "--registry", str(bench.registry))
        out, err = process.communicate(timeout=60)
        said: dict[str, Any] = bench_json(out)
        (finding,) = bench.query("MATCH (f:Finding) RETURN f.id AS id")
        assert said == {
            "process_id": process.pid,
            "previous_messages": 0,
            "status": "proposed",
            "provider": "deterministic",
            "considered": 3,
            "candidates": CANDIDATES,
            "selection": {
                "test_id": "invoice-tenant-boundary",
                "asset_id": "invoice-api",
                "finding_ids": [finding["id"]],
            },
            "case_id": said["case_id"],
            "won_by": None,
        }
        assert err == ""
        assert bench.query("MATCH (c:`Case`) WHERE c.status = 'proposed' RETURN c.id AS id, c.proposer AS by") == [
            {"id": said["case_id"], "by": "fresh"}
        ]

    def test_with_nothing_eligible_it_says_so_and_proposes_nothing(self, northwind: Workbench) -> None:
        end = northwind.end()
        said = northwind.ok("investigate", northwind.run, *JSON).json()
        assert said.keys() == FIELDS
        assert (said["status"], said["considered"], said["candidates"]) == ("no_candidates", 0, [])
        assert (said["selection"], said["case_id"], said["won_by"]) == (None, None, None)
        assert northwind.end() == end

    def test_for_people_it_prints_the_cases_id_and_says_the_rest_in_a_line(self, bench: Workbench) -> None:
        done = bench.ok("investigate", bench.run)
        (case,) = bench.query("MATCH (c:`Case`) WHERE c.status = 'proposed' RETURN c.id AS id")
        assert done.out == f"{case['id']}\n"
        told = "invoice-tenant-boundary proposed, of 3 eligible tests; it rests on 1 finding"
        assert done.err == f"{case['id']}: {told}\n"

    def test_for_people_that_nothing_is_eligible_is_a_line_and_no_id(self, northwind: Workbench) -> None:
        done = northwind.ok("investigate", northwind.run)
        assert (done.out, done.err) == ("", "nothing proposed: no test is eligible\n")

    def test_without_a_graph_it_folds_one_by_itself(self, bench: Workbench) -> None:
        for file in graph_files(bench):
            file.unlink()
        assert bench.propose()["candidates"] == CANDIDATES
        assert graph_files(bench)

    def test_of_two_that_start_at_once_one_is_told_that_the_other_won(self, bench: Workbench) -> None:
        """Both wait for the graph before either decides: three times, over the run's three candidates."""
        lock = bench.settings.graphs_dir / f"{bench.run}.lock"
        for considered in (3, 2, 1):
            with owned(lock):
                both = [bench.start("investigate", bench.run, *JSON) for _ in range(2)]
                await_all(both, [lock, lock])
            ended = [(process.communicate(timeout=60), process.returncode) for process in both]
            assert [code for _, code in ended] == [0, 0], ended
            loser, winner = sorted((bench_json(out) for (out, _), _ in ended), key=lambda said: str(said["status"]))
            assert (winner["status"], winner["considered"], winner["won_by"]) == ("proposed", considered, None)
            assert (loser["status"], loser["won_by"]) == ("overtaken", winner["case_id"])
            assert loser["case_id"] is None
        assert bench.propose()["status"] == "no_candidates"

    def test_two_on_two_machines_are_settled_by_the_log(self, bench: Workbench, tmp_path: Path) -> None:
        """Each has a graph of its own, so nothing but the log stands between them."""
        homes = []
        for name in ("one", "two"):
            homes.append(tmp_path / name)
            shutil.copytree(bench.settings.blobs_dir, homes[-1] / "blobs")
        locks = [home / "graphs" / f"{bench.run}.lock" for home in homes]
        with owned(locks[0]), owned(locks[1]):
            both = [bench.start("investigate", bench.run, *JSON, home=home) for home in homes]
            await_all(both, locks)
        said = [bench_json(process.communicate(timeout=60)[0]) for process in both]
        assert sorted(one["status"] for one in said) == ["overtaken", "proposed"]
        lost, won = sorted(said, key=lambda one: str(one["status"]))
        assert lost["won_by"] == won["case_id"]
        assert len(bench.query("MATCH (c:`Case`) WHERE c.status = 'proposed' RETURN c.id AS id")) == 1


class TestGraph:
    def test_without_one_it_stops(self, untouched: Workbench) -> None:
        for file in graph_files(untouched):
            file.unlink()
        stopped(untouched.command("investigate", untouched.run, "--no-fold"), 1, "graph_unavailable")
        untouched.ok("project", untouched.run)

    def test_behind_its_log_it_stops(self, northwind: Workbench) -> None:
        bench = northwind.another()
        bench.ok("project", bench.run)
        with Producer(bench.settings.bootstrap_servers) as producer:
            producer.emit(build(GoalSet, {"meta": meta(bench.run, "human", "rita"), "text": "look elsewhere"}))
        end = bench.end()
        done = bench.command("investigate", bench.run, "--no-fold")
        stopped(done, 1, "graph_behind")
        assert "synchronization is in progress" in done.err
        assert bench.end() == end
        bench.ok("project", bench.run)
        assert bench.ok("investigate", bench.run, "--no-fold", *JSON).json()["status"] == "no_candidates"

    @pytest.mark.parametrize("words", [(), ("--no-fold",)])
    def test_of_another_topic_it_stops(
        self, words: tuple[str, ...], untouched: Workbench, northwind: Workbench
    ) -> None:
        northwind.ok("project", northwind.run)
        untouched.ok("project", untouched.run)
        kept = untouched.settings.home / "kept"
        kept.mkdir()
        for file in graph_files(untouched):
            file.rename(kept / file.name)
        for file in graph_files(northwind):
            shutil.copy(file, file.with_name(file.name.replace(northwind.run, untouched.run)))
        done = untouched.command("investigate", untouched.run, *words)
        for file in graph_files(untouched):
            file.unlink()
        for file in list(kept.iterdir()):
            file.rename(untouched.settings.graphs_dir / file.name)
        kept.rmdir()
        stopped(done, 1, "graph_mismatch")
        assert "--rebuild" in done.err

    def test_of_a_topic_that_was_made_again_it_stops(self, northwind: Workbench) -> None:
        bench = northwind.another()
        bench.ok("project", bench.run)
        topics = Topics(bench.settings.bootstrap_servers)
        remake(topics, bench.run)
        stopped(bench.command("investigate", bench.run, "--no-fold"), 1, "graph_mismatch")
        stopped(bench.command("investigate", bench.run), 1, "graph_mismatch")


class TestChecks:
    def test_another_registry_stops_it(self, untouched: Workbench, tmp_path: Path) -> None:
        other = tmp_path / "registry.json"
        other.write_text(untouched.registry.read_text().replace('"impact": 90', '"impact": 91'))
        done = untouched.command("investigate", untouched.run, "--registry", str(other))
        stopped(done, 1, "graph_catalog_mismatch")
        assert "impact is 90 in the graph and 91 in the registry" in done.err

    def test_a_registry_without_the_test_stops_it(self, untouched: Workbench) -> None:
        harbor = Path(__file__).parent / "registries" / "harbor.json"
        done = untouched.command("investigate", untouched.run, "--registry", str(harbor))
        stopped(done, 1, "graph_catalog_mismatch")

    def test_missing_evidence_stops_it(self, untouched: Workbench) -> None:
        file = evidence_file(untouched)
        data = file.read_bytes()
        file.unlink()
        done = untouched.command("investigate", untouched.run)
        file.write_bytes(data)
        stopped(done, 4, "evidence_missing")
        assert "the evidence of finding-" in done.err

    def test_altered_evidence_stops_it(self, untouched: Workbench) -> None:
        file = evidence_file(untouched)
        data = file.read_bytes()
        file.write_bytes(data[:-1] + b" ")
        done = untouched.command("investigate", untouched.run)
        file.write_bytes(data)
        stopped(done, 4, "corruption")
        assert "the evidence of finding-" in done.err

    @pytest.mark.parametrize("budget", ["cases=1", "finding-depth=0"])
    def test_a_budget_stops_it(self, budget: str, northwind: Workbench, eligible: Workbench) -> None:
        eligible.ok("budget", eligible.run, budget)
        end = eligible.end()
        done = eligible.command("investigate", eligible.run)
        assert eligible.end() == end
        eligible.ok("budget", eligible.run, f"{budget.partition('=')[0]}=none")
        stopped(done, 1, "budget_exhausted")
        assert budget.partition("=")[0] in done.err

    def test_a_closed_run_stops_it(self, northwind: Workbench) -> None:
        bench = northwind.another()
        bench.ok("run", "close", bench.run, "--reason", "done")
        end = bench.end()
        stopped(bench.command("investigate", bench.run), 1, "run_closed")
        assert bench.end() == end

    def test_an_unknown_run_is_not_found(self, northwind: Workbench) -> None:
        stopped(northwind.command("investigate", "no-such-run"), 3, "not_found")


def bench_json(out: str) -> dict[str, Any]:
    """The one object on a process's stdout."""
    said = Done(0, out, "").json()
    assert isinstance(said, dict)
    assert said.keys() == FIELDS
    return said


def await_all(processes: Sequence[subprocess.Popen[str]], locks: Sequence[Path]) -> None:
    """Wait until each process waits for its lock: by then it has read where the log ended."""
    wait_until(lambda: all(has_open(process.pid, lock) for process, lock in zip(processes, locks, strict=True)))


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open, a lock it waits for, say."""
    folder = Path(f"/proc/{pid}/fd")
    if not folder.exists():
        pytest.skip("this system doesn't tell which files a process has open")
    for descriptor in folder.iterdir():
        try:
            if descriptor.samefile(path):
                return True
        except OSError:  # closed meanwhile
            continue
    return False


def remake(topics: Topics, run: str) -> None:
    """Delete a run's topic and make it again under its name."""
    before = topics.id_of(run_topic(run))
    topics._admin.delete_topics([run_topic(run)])[run_topic(run)].result()
    wait_until(lambda: topics.id_of(run_topic(run)) is None)

    def made() -> bool:
        topics.make(run_topic_spec(run))
        return topics.id_of(run_topic(run)) not in (None, before)

    wait_until(made)
