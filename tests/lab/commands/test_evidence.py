"""`forktrail report`, `approve`, `deny`, `review`, `withdraw` and `retry` on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.reader import LogReader
from forktrail_schemas.events import ReportFiled, ReviewDecided
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.command_line import CommandLine, Said
from support.staff import GATEWAY, INVOICE, observe, report


def end_of(settings: Settings, run: str) -> int:
    with LogReader(settings.bootstrap_servers, run) as reader:
        return reader.end()


def causes_of(forktrail: CommandLine, run: str, offset: int) -> list[str]:
    cypher = "MATCH (c:Event)-[:CAUSED]->(e:Event) WHERE e.offset = $offset RETURN c.id AS id"
    return [row["id"] for row in forktrail.ok("query", run, cypher, "--param", f"offset={offset}", "--json").json]


def approved(forktrail: CommandLine, run: str, test: str = GATEWAY) -> str:
    case = report(forktrail, run, test)
    forktrail.ok("approve", run, case, "--key", "olga")
    return case


def finding_of(forktrail: CommandLine, run: str, settings: Settings, test: str) -> str:
    """A finding of a test, reported, approved, observed as reproduced, and accepted."""
    case = approved(forktrail, run, test)
    observe(settings, run, case, "reproduced")
    return forktrail.ok("review", run, case, "accept", "--key", "ravi").out.strip()


class TestReport:
    def test_opens_a_case_in_the_reporters_name(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail.ok("report", run, GATEWAY, "--as", "rita", "--summary", "look here", "--format", "json").json
        assert (said["verdict"], said["outcome"]) == ("valid", "case_opened")
        rows = forktrail.ok("query", run, "MATCH (c:`Case`) RETURN c.id AS id, c.proposer AS proposer", "--json").json
        assert rows == [{"id": said["case_id"], "proposer": "rita"}]

    def test_of_a_tested_test_is_kept_and_names_the_case(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        again = forktrail.ok("report", run, GATEWAY, "--summary", "again", "--format", "json").json
        assert (again["outcome"], again["case_id"]) == ("case_exists", case)

    def test_without_support_is_kept_and_says_where_to_look(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail.ok("report", run, INVOICE, "--summary", "too early")
        assert said.out == ""
        assert said.err.startswith("support_missing: kept as a report; no case was opened, because ")
        assert "why-not" in said.err

    def test_past_the_case_budget_is_kept(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("budget", run, "cases=0")
        said = forktrail.ok("report", run, GATEWAY, "--summary", "x", "--format", "json").json
        assert (said["outcome"], said["case_id"]) == ("budget_exhausted", None)

    def test_prints_the_case_alone_whether_it_opens_it_or_finds_it(self, forktrail: CommandLine, run: str) -> None:
        first = forktrail.ok("report", run, GATEWAY, "--summary", "look here")
        again = forktrail.ok("report", run, GATEWAY, "--summary", "once more")
        case = forktrail.ok("case", "list", run, "--format", "json").json[0]["case_id"]
        assert first.out == again.out == f"{case}\n"
        assert first.err.startswith(f"case_opened: {case} waits for approval")
        assert again.err.startswith(f"case_exists: kept as a report; {case} stands")

    def test_of_an_unknown_test_is_not_found_and_not_sent(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        end = end_of(settings, run)
        assert forktrail("report", run, "no-such-test", "--summary", "x").code == 3
        assert end_of(settings, run) == end

    def test_serves_the_runs_goal(self, forktrail: CommandLine, run: str) -> None:
        report(forktrail, run)
        cypher = "MATCH (r:Run), (e:Event) WHERE e.goal = r.goal AND e.type = $type RETURN e.offset"
        assert len(forktrail.ok("query", run, cypher, "--param", "type=forktrail.ReportFiled", "--json").json) == 1


class TestDecisions:
    def test_an_approval_says_who_and_is_caused_by_the_case(self, forktrail: CommandLine, run: str) -> None:
        opened = forktrail.ok("report", run, GATEWAY, "--summary", "x", "--format", "json").json
        said = forktrail.ok("approve", run, opened["case_id"], "--key", "olga", "--format", "json").json
        assert (said["decision"], said["approver"], said["test_id"]) == ("approve", "olga", GATEWAY)
        assert causes_of(forktrail, run, said["offset"]) == [opened["event_id"]]

    def test_a_second_approval_is_void_in_one_line(self, forktrail: CommandLine, run: str) -> None:
        case = approved(forktrail, run)
        said = forktrail("approve", run, case, "--key", "olga")
        assert said.code == 1
        assert said.out == ""
        assert said.err.startswith("forktrail approve: already_decided:")
        assert said.err.count("\n") == 1

    def test_a_denied_case_can_not_be_approved(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        assert "denied by olga" in forktrail.ok("deny", run, case, "--key", "olga", "--reason", "out of scope").out
        assert forktrail("approve", run, case, "--key", "olga").code == 1

    def test_of_two_processes_approving_at_once_one_is_told(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        words = [sys.executable, "-m", "forktrail_lab", "approve", run, case, "--key", "olga"]
        both = [
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
            for _ in range(2)
        ]
        said = [process.communicate(timeout=60) for process in both]
        assert sorted(process.returncode for process in both) == [0, 1]
        assert sum("already_decided" in err for _, err in said) == 1

    def test_a_key_without_the_role_is_refused_with_a_hint_and_nothing_is_sent(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = report(forktrail, run)
        end = end_of(settings, run)
        said = forktrail("approve", run, case, "--key", "ravi")
        assert said.code == 2
        assert said.err.startswith("forktrail approve: role_missing:")
        assert f"`forktrail key list {run}`" in said.err
        assert end_of(settings, run) == end

    def test_a_key_that_is_not_registered_is_refused_and_nothing_is_sent(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = report(forktrail, run)
        forktrail.ok("key", "new", "mallory")
        end = end_of(settings, run)
        said = forktrail("approve", run, case, "--key", "mallory")
        assert said.code == 2
        assert "unknown_key" in said.err
        assert f"forktrail key register {run} NAME --role operator" in said.err
        assert end_of(settings, run) == end

    def test_a_key_that_is_not_there_is_not_found(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        assert forktrail("approve", run, case, "--key", "nobody").code == 3


class TestNamingACase:
    def test_the_first_characters_are_enough(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        said = forktrail.ok("approve", run, case[:9], "--key", "olga", "--format", "json").json
        assert said["case_id"] == case

    def test_case_may_be_left_out(self, forktrail: CommandLine, run: str) -> None:
        case = report(forktrail, run)
        digits = case.removeprefix("case-")[:4]
        assert forktrail.ok("approve", run, digits, "--key", "olga", "--format", "json").json["case_id"] == case

    def test_an_unknown_one_is_not_found_and_nothing_is_sent(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        report(forktrail, run)
        end = end_of(settings, run)
        for name in ("case-zz", "nothing", "case-" + "0" * 20, "%", "case-_"):
            assert forktrail("approve", run, name, "--key", "olga").code == 3
        assert end_of(settings, run) == end

    def test_an_ambiguous_one_is_refused_with_a_list(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        first = report(forktrail, run)
        forktrail.ok("revision", "advance", run, "r2", "--key", "olga")
        digit = first[: len("case-") + 1]
        second = self.report_under(settings, run, digit)
        said = forktrail("approve", run, digit, "--key", "olga")
        assert said.code == 2
        assert first in said.err
        assert second in said.err

    def report_under(self, settings: Settings, run: str, start: str) -> str:
        """A report whose event id is such that its case's id begins with `start`."""
        head = meta(run, "human", "rita")
        while not derived_id("case", str(head["event_id"])).startswith(start):
            head = meta(run, "human", "rita")
        with Producer(settings.bootstrap_servers) as producer:
            producer.emit(build(ReportFiled, {"meta": head, "test_id": GATEWAY, "summary": "again"}))
        return derived_id("case", str(head["event_id"]))

    @pytest.mark.parametrize("name", ["", "case-"])
    def test_no_characters_are_no_name(self, name: str, forktrail: CommandLine, run: str) -> None:
        report(forktrail, run)
        assert forktrail("approve", run, name, "--key", "olga").code == 2


class TestNamingAFinding:
    @pytest.fixture
    def finding(self, forktrail: CommandLine, run: str, settings: Settings) -> str:
        return finding_of(forktrail, run, settings, GATEWAY)

    def lost(self, forktrail: CommandLine, run: str, name: str) -> Said:
        return forktrail("withdraw", run, name, "--dry-run", "--format", "json")

    def test_the_first_characters_are_enough_and_finding_may_be_left_out(
        self, forktrail: CommandLine, run: str, finding: str
    ) -> None:
        for name in (finding, finding[:12], finding.removeprefix("finding-")[:4]):
            assert self.lost(forktrail, run, name).json["finding_id"] == finding

    @pytest.mark.parametrize("name", ["", "finding-"])
    def test_no_characters_are_no_name(self, name: str, forktrail: CommandLine, run: str, finding: str) -> None:
        said = self.lost(forktrail, run, name)
        assert said.code == 2
        assert finding not in said.out

    @pytest.mark.parametrize("name", ["finding-zz", "%", "finding-_", "case-1"])
    def test_an_unknown_one_is_not_found(self, name: str, forktrail: CommandLine, run: str, finding: str) -> None:
        said = self.lost(forktrail, run, name)
        assert said.code == 3
        assert finding not in said.out

    def test_an_ambiguous_one_is_refused_with_a_list(
        self, forktrail: CommandLine, run: str, settings: Settings, finding: str
    ) -> None:
        digit = finding[: len("finding-") + 1]
        second = self.finding_under(forktrail, run, settings, digit)
        said = self.lost(forktrail, run, digit)
        assert said.code == 2
        assert f"{finding} ({GATEWAY})" in said.err
        assert f"{second} ({INVOICE})" in said.err

    def finding_under(self, forktrail: CommandLine, run: str, settings: Settings, start: str) -> str:
        """A finding of the invoice test, by a review whose event id is such that its own id begins with `start`."""
        case = approved(forktrail, run, INVOICE)
        observed = observe(settings, run, case, "reproduced")
        head = meta(run, "human", "ravi")
        while not derived_id("finding", str(head["event_id"])).startswith(start):
            head = meta(run, "human", "ravi")
        review = {
            "meta": head,
            "case_id": case,
            "observation_id": derived_id("observation", observed),
            "decision": "accept",
            "note": "",
        }
        with Producer(settings.bootstrap_servers) as producer:
            producer.emit(build(ReviewDecided, review), KeyStore(settings.keys_dir).load("ravi"))
        return derived_id("finding", str(head["event_id"]))


class TestWithdraw:
    def test_for_real_somebody_has_to_sign_and_nothing_is_sent_before(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        finding = finding_of(forktrail, run, settings, GATEWAY)
        end = end_of(settings, run)
        said = forktrail("withdraw", run, finding)
        assert said.code == 2
        assert "--key NAME" in said.err
        assert end_of(settings, run) == end
        forktrail.ok("withdraw", run, finding, "--dry-run")
        assert end_of(settings, run) == end

    def test_one_test_is_counted_as_one(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        finding_of(forktrail, run, settings, GATEWAY)
        finding = finding_of(forktrail, run, settings, INVOICE)
        assert "takes support from 1 test:" in forktrail.ok("withdraw", run, finding, "--dry-run").out
        assert "1 test lost support" in forktrail.ok("withdraw", run, finding, "--key", "olga").out


class TestReview:
    def test_accepting_a_reproduced_observation_makes_a_finding(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = approved(forktrail, run)
        observed = observe(settings, run, case, "reproduced")
        said = forktrail.ok("review", run, case, "accept", "--key", "ravi", "--format", "json").json
        rows = forktrail.ok(
            "query", run, "MATCH (f:Finding)-[:ENABLES]->(c:Capability) RETURN f.id AS id, c.id AS capability", "--json"
        ).json
        assert rows == [{"id": said["finding_id"], "capability": "internal-route-access"}]
        assert causes_of(forktrail, run, said["offset"]) == [observed]
        assert forktrail.ok("run", "show", run, "--format", "json").json["findings_current"] == 1

    def test_prints_the_finding_alone_or_nothing(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        case = approved(forktrail, run)
        observe(settings, run, case, "reproduced")
        said = forktrail.ok("review", run, case, "accept", "--key", "ravi")
        (row,) = forktrail.ok("query", run, "MATCH (f:Finding) RETURN f.id AS id", "--json").json
        assert said.out == f"{row['id']}\n"
        assert said.err.startswith(f"{case} ({GATEWAY}, reproduced) accepted by ravi: {row['id']} ")
        second = approved(forktrail, run, INVOICE)
        observe(settings, run, second, "not_reproduced")
        said = forktrail.ok("review", run, second, "accept", "--key", "ravi")
        assert (said.out, "no finding" in said.err) == ("", True)

    @pytest.mark.parametrize(("outcome", "decision"), [("not_reproduced", "accept"), ("reproduced", "reject")])
    def test_no_finding_comes_of(
        self, outcome: str, decision: str, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = approved(forktrail, run)
        observe(settings, run, case, outcome)
        said = forktrail.ok("review", run, case, decision, "--key", "ravi", "--format", "json").json
        assert said["finding_id"] is None
        assert forktrail.ok("run", "show", run, "--format", "json").json["findings"] == 0

    def test_a_second_review_is_void(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        case = approved(forktrail, run)
        observe(settings, run, case, "reproduced")
        forktrail.ok("review", run, case, "reject", "--key", "ravi")
        said = forktrail("review", run, case, "accept", "--key", "ravi")
        assert said.code == 1
        assert "already_reviewed" in said.err

    def test_before_an_observation_nothing_is_sent(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        case = approved(forktrail, run)
        end = end_of(settings, run)
        said = forktrail("review", run, case, "accept", "--key", "ravi")
        assert said.code == 2
        assert "no_observation" in said.err
        assert end_of(settings, run) == end

    def test_the_approver_may_not_review_unless_the_run_lets_one_person_do_both(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        forktrail.ok("key", "new", "olga-2")
        forktrail.ok("key", "register", run, "olga-2", "--role", "reviewer", "--holder", "olga")
        case = approved(forktrail, run)
        observe(settings, run, case, "reproduced")
        said = forktrail("review", run, case, "accept", "--key", "olga-2")
        assert said.code == 1
        assert "same_person" in said.err
        assert f"`forktrail set {run} same-person-may-review=true`" in said.err
        forktrail.ok("set", run, "same-person-may-review=true")
        forktrail.ok("review", run, case, "accept", "--key", "olga-2")


class TestRetry:
    def test_an_inconclusive_test_may_be_reported_again(
        self, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        case = approved(forktrail, run)
        observe(settings, run, case, "inconclusive")
        assert forktrail.ok("report", run, GATEWAY, "--summary", "x").err.startswith("case_exists")
        forktrail.ok("retry", run, case, "--key", "olga", "--reason", "it was down")
        assert report(forktrail, run) != case

    def test_another_outcome_is_not_retried(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        case = approved(forktrail, run)
        observe(settings, run, case, "not_reproduced")
        said = forktrail("retry", run, case, "--key", "olga")
        assert said.code == 1
        assert "not_inconclusive" in said.err
