"""`forktrail run`, `key`, `set`, `budget` and `revision` on a real broker."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from forktrail_lab.opening import Opening, open_run
from forktrail_lab.registry.file import load_registry, shipped_registry_path
from forktrail_producers.blobs import BlobStore
from forktrail_producers.directory import Directory
from forktrail_producers.kafka import Topics
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.reader import LogReader
from forktrail_projectors.rules.log import BUDGETS
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import EventVoid
from forktrail_schemas.events import RunOpened, TestRegistered
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.topics import TopicSpec, run_topic_spec
from forktrail_schemas.wire import build
from support.command_line import CommandLine
from support.staff import GATEWAY, report
from support.staff import open_run as opened_run

REGISTRY = str(shipped_registry_path())
GOAL = ("--goal", "see what breaks")


def end_of(settings: Settings, run: str) -> int:
    with LogReader(settings.bootstrap_servers, run) as reader:
        return reader.end()


class KilledBeforeAnnouncing(Exception):
    pass


class TestOpen:
    def test_prints_the_run_id_alone_and_makes_the_admin_key(self, forktrail: CommandLine, settings: Settings) -> None:
        said = forktrail.ok("run", "open", "--registry", REGISTRY, *GOAL)
        run = said.out.strip()
        assert said.out == f"{run}\n"
        assert run.startswith("run-")
        assert "made the signing key 'admin'" in said.err
        assert said.err.index(f"--run {run}") < said.err.index("opened")  # known even if it is killed meanwhile
        assert KeyStore(settings.keys_dir).names() == ["admin"]

    def test_registers_every_test_as_the_registry_defines_it(self, forktrail: CommandLine) -> None:
        run = opened_run(forktrail)
        rows = forktrail.ok(
            "query", run, "MATCH (t:TestCase) RETURN t.id AS id, t.impact AS impact ORDER BY id", "--json"
        )
        assert [(row["id"], row["impact"]) for row in rows.json] == [
            ("audit-trail-read", 50),
            ("export-scope", 60),
            ("gateway-routing-context", 70),
            ("invoice-chain", 100),
            ("invoice-tenant-boundary", 90),
        ]

    def test_stores_the_registry_before_it_names_it(self, forktrail: CommandLine, settings: Settings) -> None:
        opened_run(forktrail)
        digest = load_registry(Path(REGISTRY)).sha256
        assert BlobStore(str(settings.blobs_dir)).get(digest) == Path(REGISTRY).read_bytes()

    def test_again_with_the_same_id_writes_nothing(self, forktrail: CommandLine, settings: Settings) -> None:
        run = opened_run(forktrail)
        end = end_of(settings, run)
        said = forktrail.ok("run", "open", "--run", run, "--registry", REGISTRY, "--goal", "another goal")
        assert said.out.strip() == run
        assert end_of(settings, run) == end
        assert forktrail.ok("run", "show", run, "--format", "json").json["goal"] == "see what breaks"

    def test_is_listed_only_once_it_is_whole_and_again_completes_it(
        self, forktrail: CommandLine, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = new_run_id()

        def killed(*_: object) -> None:
            raise KilledBeforeAnnouncing

        with monkeypatch.context() as patch:
            patch.setattr(Directory, "announce", killed)
            with pytest.raises(KilledBeforeAnnouncing):
                forktrail("run", "open", "--run", run, "--registry", REGISTRY, *GOAL)
        assert run not in [row["run"] for row in forktrail.ok("run", "list", "--format", "json").json]
        forktrail.ok("run", "open", "--run", run, "--registry", REGISTRY, *GOAL)
        assert run in [row["run"] for row in forktrail.ok("run", "list", "--format", "json").json]
        assert end_of(settings, run) == 6

    @pytest.mark.parametrize("tests_written", [0, 1, 4])
    def test_completes_what_a_kill_left_at_any_step(
        self, tests_written: int, forktrail: CommandLine, settings: Settings
    ) -> None:
        source = opened_run(forktrail)
        run = new_run_id()
        self.copy_start(settings, source, run, tests_written)
        forktrail.ok("run", "open", "--run", run, "--registry", REGISTRY, *GOAL)
        shown = forktrail.ok("run", "show", run, "--format", "json").json
        assert (shown["tests"], shown["end"]) == (5, 6)

    def copy_start(self, settings: Settings, source: str, run: str, tests: int) -> None:
        """Write RunOpened and the first tests of `source`, as an opening that was killed after them left them."""
        admin = KeyStore(settings.keys_dir).load("admin")
        registry = load_registry(Path(REGISTRY))
        graph, _ = fold_in_memory(settings, source)
        Topics(settings.bootstrap_servers).make(run_topic_spec(run))
        blob = {"sha256": registry.sha256, "size": 1, "media_type": "application/json"}
        events = [
            build(
                RunOpened,
                {
                    "meta": meta(run, "human", "admin"),
                    "goal": "see what breaks",
                    "revision": "r1",
                    "admin_public_key": admin.public_key,
                    "registry": blob,
                },
            )
        ] + [
            build(
                TestRegistered,
                {
                    "meta": meta(run, "human", "admin"),
                    "test_id": test.id,
                    "title": test.title,
                    "asset_id": test.asset,
                    "requires": list(test.requires),
                    "enables": list(test.enables),
                    "impact": test.impact,
                    "requests_max": 1,
                    "definition_sha256": graph.nodes([NodeKey("TestCase", test.id)])[NodeKey("TestCase", test.id)][
                        "definition_sha256"
                    ],
                },
            )
            for test in registry.registry.tests[:tests]
        ]
        with Producer(settings.bootstrap_servers) as producer:
            producer.emit_all([(event, admin) for event in events])

    def test_refuses_a_run_of_another_registry(self, forktrail: CommandLine, tmp_path: Path) -> None:
        run = opened_run(forktrail)
        other = tmp_path / "other.json"
        other.write_text(Path(REGISTRY).read_text() + "\n")
        said = forktrail("run", "open", "--run", run, "--registry", str(other), *GOAL)
        assert said.code == 2
        assert "another registry" in said.err

    def test_refuses_a_run_of_another_admin(self, forktrail: CommandLine) -> None:
        run = opened_run(forktrail)
        forktrail.ok("key", "new", "mallory")
        said = forktrail("run", "open", "--run", run, "--key", "mallory", "--registry", REGISTRY, *GOAL)
        assert said.code == 2
        assert "another admin" in said.err

    def test_the_later_of_two_openings_is_told(
        self, forktrail: CommandLine, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The rival's RunOpened lands between our look at the log and our own."""
        run = new_run_id()
        registry = load_registry(Path(REGISTRY))
        rival = Opening(run, "mine", "rival", SigningKey.generate(), registry)
        emit = Producer.emit
        raced: list[bool] = []

        def emit_after_the_rival(producer: Producer, event: RunOpened, key: SigningKey | None = None) -> int:
            if not raced:
                raced.append(True)
                open_run(settings, rival)
            return emit(producer, event, key)

        monkeypatch.setattr(Producer, "emit", emit_after_the_rival)
        with pytest.raises(EventVoid) as refused:
            open_run(settings, Opening(run, "mine too", "admin", SigningKey.generate(), registry))
        assert refused.value.code == "run_already_open"

    def test_a_missing_registry_file_is_not_found_and_no_key_is_made(
        self, forktrail: CommandLine, settings: Settings, tmp_path: Path
    ) -> None:
        said = forktrail("run", "open", "--registry", str(tmp_path / "none.json"), *GOAL)
        assert said.code == 3
        assert KeyStore(settings.keys_dir).names() == []

    def test_in_a_shell_the_run_id_can_be_caught(self, forktrail: CommandLine, settings: Settings) -> None:
        command = f'RUN=$({sys.executable} -m forktrail_lab run open --registry {REGISTRY} --goal g) && echo "<$RUN>"'
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=dict(os.environ), check=True)
        run = done.stdout.strip().strip("<>")
        assert forktrail.ok("run", "show", run, "--format", "json").json["status"] == "open"


class TestShowAndClose:
    def test_shows_what_a_run_holds(self, forktrail: CommandLine, run: str) -> None:
        shown = forktrail.ok("run", "show", run, "--format", "json").json
        assert shown["status"] == "open"
        assert shown["active_revision"] == "r1"
        assert (shown["tests"], shown["cases"], shown["findings"], shown["findings_current"]) == (5, 0, 0, 0)
        assert shown["next_offset"] == shown["end"] == 9
        assert [(key["holder"], key["roles"]) for key in shown["keys"]] == [
            ("admin", ["admin"]),
            ("olga", ["operator"]),
            ("ravi", ["reviewer"]),
            ("runner-1", ["runner"]),
        ]
        assert shown["settings"] == [
            {"setting": "same-person-may-review", "value": "false"},
            {"setting": "propose-tests", "value": "when-asked"},
            {"setting": "planner-model", "value": "none"},
        ]
        assert {"budget": "cases", "limit": None, "used": 0} in shown["budgets"]

    def test_shows_it_as_a_table_too(self, forktrail: CommandLine, run: str) -> None:
        out = forktrail.ok("run", "show", run).out
        assert "active_revision   r1" in out
        assert "olga" in out
        assert re.search(
            r"^invoice-chain +invoice-api +100 +cross-tenant-invoice-read, internal-route-access ", out, re.M
        )

    def test_lists_the_tests_as_the_registry_has_them(self, forktrail: CommandLine, run: str) -> None:
        shown = forktrail.ok("run", "show", run, "--format", "json").json["registered_tests"]
        assert [tuple(row.values()) for row in shown] == [
            ("audit-trail-read", "audit", 50, ["internal-route-access"], []),
            ("export-scope", "export", 60, ["internal-route-access"], []),
            ("gateway-routing-context", "gateway", 70, [], ["internal-route-access"]),
            (
                "invoice-chain",
                "invoice-api",
                100,
                ["cross-tenant-invoice-read", "internal-route-access"],
                ["invoice-takeover-path"],
            ),
            ("invoice-tenant-boundary", "invoice-api", 90, ["internal-route-access"], ["cross-tenant-invoice-read"]),
        ]
        assert list(shown[0]) == ["test", "asset", "impact", "requires", "enables"]

    def test_an_unknown_run_is_not_found(self, forktrail: CommandLine) -> None:
        for words in (
            ["run", "show", "run-none"],
            ["run", "close", "run-none", "--reason", "x"],
            ["tail", "run-none"],
            ["project", "run-none"],
            ["query", "run-none", "RETURN 1"],
            ["set", "run-none"],
            ["budget", "run-none"],
            ["key", "list", "run-none"],
            ["revision", "show", "run-none"],
            ["report", "run-none", "a-test", "--summary", "x"],
            ["approve", "run-none", "case-1", "--key", "olga"],
            ["case", "list", "run-none"],
            ["case", "show", "run-none", "case-1"],
            ["evidence", "show", "run-none", "case-1"],
        ):
            said = forktrail(*words)
            assert said.code == 3, (words, said)
            assert said.err.count("\n") == 1

    def test_a_topic_without_a_run_is_not_open_yet(self, forktrail: CommandLine, settings: Settings) -> None:
        run = new_run_id()
        Topics(settings.bootstrap_servers).make(run_topic_spec(run))
        said = forktrail("run", "show", run)
        assert said.code == 3
        assert "not open yet" in said.err

    def test_a_closed_run_says_so_everywhere_and_takes_nothing_more(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("run", "close", run, "--reason", "done")
        assert forktrail.ok("run", "show", run, "--format", "json").json["status"] == "closed"
        listed = {row["run"]: row["status"] for row in forktrail.ok("run", "list", "--format", "json").json}
        assert listed[run] == "closed"
        said = forktrail("report", run, "gateway-routing-context", "--summary", "too late")
        assert said.code == 1
        assert "run_closed" in said.err

    def test_closing_again_completes_the_directory(
        self, forktrail: CommandLine, run: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: object) -> None:
            raise KilledBeforeAnnouncing

        with monkeypatch.context() as patch:
            patch.setattr(Directory, "announce", killed)
            with pytest.raises(KilledBeforeAnnouncing):
                forktrail("run", "close", run, "--reason", "done")
        end = end_of(settings, run)
        forktrail.ok("run", "close", run, "--reason", "done")
        assert end_of(settings, run) == end
        announced = Directory(settings.bootstrap_servers).find(run)
        assert announced is not None
        assert announced.status == "closed"

    def test_a_run_is_not_closed_by_an_operator(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail("run", "close", run, "--reason", "mine now", "--key", "olga")
        assert said.code == 2
        assert "role_missing" in said.err
        assert forktrail.ok("run", "show", run, "--format", "json").json["status"] == "open"


class TestKeys:
    def test_a_new_key_is_readable_by_its_owner_alone(self, forktrail: CommandLine, settings: Settings) -> None:
        said = forktrail.ok("key", "new", "olga")
        path = settings.keys_dir / "olga.pem"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(settings.keys_dir.stat().st_mode) == 0o700
        assert said.out.split() == ["olga", KeyStore(settings.keys_dir).load("olga").key_id]

    def test_no_command_prints_a_private_key(self, forktrail: CommandLine, settings: Settings) -> None:
        said = [forktrail.ok("key", "new", "olga", "--format", "json"), forktrail.ok("key", "list", "--format", "json")]
        secret = KeyStore(settings.keys_dir).load("olga").private_bytes().hex()
        pem_body = (settings.keys_dir / "olga.pem").read_text().splitlines()[1]
        for one in said:
            assert secret not in one.out + one.err
            assert pem_body not in one.out + one.err

    def test_a_taken_name_is_refused(self, forktrail: CommandLine) -> None:
        forktrail.ok("key", "new", "olga")
        assert forktrail("key", "new", "olga").code == 2

    def test_a_key_that_others_may_read_is_refused(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        (settings.keys_dir / "olga.pem").chmod(0o644)
        said = forktrail("revision", "advance", run, "r2", "--key", "olga")
        assert said.code == 2
        assert "chmod 600" in said.err
        listed = forktrail("key", "list", "--format", "json")
        assert listed.code == 1
        assert [row["name"] for row in listed.json if row["problem"]] == ["olga"]

    def test_a_registered_key_speaks_for_its_holder(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("key", "new", "laptop-7")
        forktrail.ok(
            "key", "register", run, "laptop-7", "--role", "operator", "--role", "reviewer", "--holder", "Olga O."
        )
        listed = forktrail.ok("key", "list", run, "--format", "json").json
        assert (listed[-1]["holder"], listed[-1]["roles"]) == ("Olga O.", ["operator", "reviewer"])
        forktrail.ok("revision", "advance", run, "r2", "--key", "laptop-7")

    def test_a_key_kept_elsewhere_is_registered_by_its_public_key(self, forktrail: CommandLine, run: str) -> None:
        elsewhere = SigningKey.generate()
        forktrail.ok("key", "register", run, "remote", "--role", "runner", "--public-key", elsewhere.public_key.upper())
        listed = forktrail.ok("key", "list", run, "--format", "json").json
        assert (listed[-1]["key_id"], listed[-1]["holder"]) == (elsewhere.key_id, "remote")

    def test_a_revoked_key_signs_nothing_more(self, forktrail: CommandLine, run: str, settings: Settings) -> None:
        forktrail.ok("key", "revoke", run, "olga", "--reason", "lost")
        end = end_of(settings, run)
        said = forktrail("revision", "advance", run, "r2", "--key", "olga")
        assert said.code == 2
        assert "key_revoked" in said.err
        assert end_of(settings, run) == end

    @pytest.mark.parametrize("how", ["holder", "id", "start of the id"])
    def test_a_key_whose_file_is_lost_is_revoked_by(
        self, how: str, forktrail: CommandLine, run: str, settings: Settings
    ) -> None:
        id = KeyStore(settings.keys_dir).load("olga").key_id
        (settings.keys_dir / "olga.pem").unlink()
        name = {"holder": "olga", "id": id, "start of the id": id[:10]}[how]
        forktrail.ok("key", "revoke", run, name, "--reason", "lost")
        listed = {key["key_id"]: key["revoked"] for key in forktrail.ok("key", "list", run, "--format", "json").json}
        assert listed[id] is True

    def test_an_unknown_key_is_not_found_and_an_ambiguous_holder_refused(
        self, forktrail: CommandLine, run: str
    ) -> None:
        assert forktrail("key", "revoke", run, "nobody", "--reason", "x").code == 3
        for _ in range(2):
            public_key = SigningKey.generate().public_key
            forktrail.ok("key", "register", run, "twice", "--role", "runner", "--public-key", public_key)
        said = forktrail("key", "revoke", run, "twice", "--reason", "x")
        assert said.code == 2
        assert "several keys" in said.err

    def test_the_admin_cannot_revoke_the_key_it_signs_with(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail("key", "revoke", run, "admin", "--reason", "x")
        assert said.code == 1
        assert "own_key" in said.err


class TestSettingsBudgetsRevisions:
    def test_a_setting_is_changed_and_shown(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("set", run, "same-person-may-review=true")
        assert forktrail.ok("set", run, "--format", "json").json == [
            {"setting": "same-person-may-review", "value": "true"},
            {"setting": "propose-tests", "value": "when-asked"},
            {"setting": "planner-model", "value": "none"},
        ]

    def test_a_setting_is_not_changed_by_a_non_admin(self, forktrail: CommandLine, run: str) -> None:
        said = forktrail("set", run, "same-person-may-review=true", "--key", "olga")
        assert said.code == 2
        assert "role_missing" in said.err
        assert forktrail.ok("set", run, "--format", "json").json[0]["value"] == "false"

    def test_budgets_are_set_lifted_and_shown(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("budget", run, "cases=10", "http-requests=5")
        forktrail.ok("budget", run, "http-requests=none")
        shown = {row["budget"]: row["limit"] for row in forktrail.ok("budget", run, "--format", "json").json}
        unlimited = {*BUDGETS} - {"cases"}
        assert shown == {"cases": 10, **dict.fromkeys(unlimited)}

    def test_what_is_used_of_the_events_is_the_logs_length(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("budget", run, "events=100")
        length = forktrail.ok("run", "show", run, "--format", "json").json["next_offset"]
        rows = {row["budget"]: row for row in forktrail.ok("budget", run, "--format", "json").json}
        assert rows["events"] == {"budget": "events", "limit": 100, "used": length}

    @pytest.mark.parametrize(
        ("pair", "used", "follows"),
        [
            ("events=5", "12 used already, of 5 allowed", "every further event but an admin's is refused"),
            ("cases=0", "1 used already, of 0 allowed", "no further case is opened"),
            ("http-requests=0", "0 used already, of 0 allowed", "no test is started"),
            ("cause-depth=0", "the deepest so far is 1, of 0 allowed", "every event with a longer chain of causes"),
        ],
    )
    def test_a_limit_of_which_nothing_is_left_says_what_is_used_and_what_follows(
        self, pair: str, used: str, follows: str, forktrail: CommandLine, run: str
    ) -> None:
        forktrail.ok("approve", run, report(forktrail, run), "--key", "olga")
        said = forktrail.ok("budget", run, pair)
        name = pair.partition("=")[0]
        assert said.err.startswith(f"{name}: {used}; what stands stays, and {follows}")
        assert said.err.count("\n") == 1

    def test_a_limit_with_something_left_says_no_more_than_that_it_is_set(
        self, forktrail: CommandLine, run: str
    ) -> None:
        for pair in ("events=100", "cases=1", "finding-depth=0", "events=none"):
            assert forktrail.ok("budget", run, pair).err == ""

    def test_what_is_said_of_a_short_log_comes_true(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("budget", run, "events=5")
        said = forktrail("report", run, GATEWAY, "--summary", "seen")
        assert said.code == 1
        assert "budget_exhausted" in said.err
        forktrail.ok("budget", run, "events=none")  # an admin's
        forktrail.ok("report", run, GATEWAY, "--summary", "seen")

    def test_a_revision_is_advanced_once(self, forktrail: CommandLine, run: str) -> None:
        forktrail.ok("revision", "advance", run, "r2", "--key", "olga", "--reason", "deployed")
        said = forktrail("revision", "advance", run, "r2", "--key", "olga")
        assert said.code == 1
        assert "revision_exists" in said.err
        shown = forktrail.ok("revision", "show", run, "--format", "json").json
        assert [(row["revision"], row["active"]) for row in shown] == [("r1", False), ("r2", True)]


@pytest.mark.parametrize("setting", [("cleanup.policy", "compact"), ("retention.ms", "1000"), ("retention.bytes", "1")])
def test_a_topic_that_would_not_keep_a_run_is_no_place_to_open_one(
    forktrail: CommandLine, settings: Settings, setting: tuple[str, str]
) -> None:
    run = new_run_id()
    spec = run_topic_spec(run)
    name, value = setting
    Topics(settings.bootstrap_servers).make(TopicSpec(spec.name, 1, {**spec.config, name: value}))
    said = forktrail("run", "open", "--run", run, "--registry", str(shipped_registry_path()), "--goal", "g")
    assert said.code == 2
    assert f"its {name} is {value}" in said.err
    with LogReader(settings.bootstrap_servers, run) as reader:
        assert reader.end() == 0
