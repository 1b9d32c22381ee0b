"""Kafka's jars are resolved once, whole or not at all, whatever happens to Maven on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from forktrail_lab.broker.jars import ensure_jars, kafka_version, resolved_jars
from forktrail_lab.broker.maven import last_error
from forktrail_schemas.errors import BrokerError

# Finds the folder in -DoutputDirectory=…, notes the call, and writes two jars.
GOOD_MAVEN = """
echo called >>"$(dirname "$0")/calls"
for word in "$@"; do case "$word" in -DoutputDirectory=*) target=${word#*=};; esac; done
echo jar >"$target/kafka-clients-4.4.0.jar"; echo jar >"$target/other-1.jar"
""".replace('$(dirname "$0")', "${0%/*}")
KILLED_MAVEN = """
for word in "$@"; do case "$word" in -DoutputDirectory=*) target=${word#*=};; esac; done
echo jar >"$target/kafka-clients-4.4.0.jar"; kill -9 $$
"""


@dataclass
class Bench:
    """A pom, a folder for its jars and a Maven to fake."""

    root: Path
    fake_tool: Callable[[str, str], str]

    @property
    def libs(self) -> Path:
        return self.root / "libs"

    @property
    def pom(self) -> Path:
        return self.root / "pom.xml"

    def resolve(self, maven: str = GOOD_MAVEN) -> list[str]:
        folder = self.fake_tool("mvn", maven)
        jars = ensure_jars(self.libs, self.pom, self.root / "maven.log", self.lines.append, folder)
        assert all(jar.is_file() for jar in jars)
        return [jar.name for jar in jars]

    def calls(self) -> int:
        return len((self.root / "bin" / "calls").read_text().splitlines())

    def __post_init__(self) -> None:
        self.lines: list[str] = []
        self.pom.write_text("<project/>")


BOTH = ["kafka-clients-4.4.0.jar", "other-1.jar"]


@pytest.fixture
def bench(tmp_path: Path, fake_tool: Callable[[str, str], str]) -> Bench:
    return Bench(tmp_path, fake_tool)


def test_maven_is_asked_once_and_says_when_it_begins_and_ends(bench: Bench) -> None:
    assert bench.resolve() == bench.resolve() == BOTH
    assert bench.calls() == 1
    assert len(bench.lines) == 2
    assert "2 jars resolved in" in bench.lines[1]


def test_a_killed_maven_leaves_nothing_that_passes_for_whole(bench: Bench) -> None:
    with pytest.raises(BrokerError) as raised:
        bench.resolve(KILLED_MAVEN)
    assert raised.value.code == "maven_failed"
    assert not bench.libs.exists()
    assert bench.resolve() == BOTH


def test_a_killed_resolve_leaves_nothing_that_passes_for_whole(bench: Bench) -> None:
    partial = bench.root / "libs.partial"
    partial.mkdir()
    (partial / "of-a-former-pom-0.jar").write_text("jar")
    assert bench.resolve() == BOTH
    assert sorted(jar.name for jar in bench.libs.glob("*.jar")) == BOTH


def test_a_changed_pom_is_resolved_again(bench: Bench) -> None:
    bench.resolve()
    bench.pom.write_text("<project>newer</project>")
    assert bench.resolve() == BOTH
    assert bench.calls() == 2


@pytest.mark.parametrize("damage", ["lost jar", "cut jar", "cut stamp", "foreign stamp"])
def test_damaged_jars_are_resolved_again(bench: Bench, damage: str) -> None:
    bench.resolve()
    match damage:
        case "lost jar":
            (bench.libs / BOTH[1]).unlink()
        case "cut jar":
            (bench.libs / BOTH[1]).write_text("")
        case "cut stamp":
            (bench.libs / "resolved.json").write_text('{"pom_sha256": "')
        case _:
            (bench.libs / "resolved.json").write_text("[]")
    assert bench.resolve() == BOTH
    assert bench.calls() == 2


def test_two_at_once_resolve_once(bench: Bench) -> None:
    folder = bench.fake_tool("mvn", GOOD_MAVEN)

    def resolve(_: int) -> int:
        return len(ensure_jars(bench.libs, bench.pom, bench.root / "maven.log", bench.lines.append, folder))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(resolve, range(4))) == [2, 2, 2, 2]
    assert bench.calls() == 1


def test_resolved_jars_need_no_maven(bench: Bench, tmp_path: Path) -> None:
    bench.resolve()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert len(ensure_jars(bench.libs, bench.pom, tmp_path / "log", bench.lines.append, str(empty))) == 2


def test_an_empty_path_has_no_maven(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(BrokerError) as raised:
        ensure_jars(bench.libs, bench.pom, tmp_path / "log", bench.lines.append, str(tmp_path))
    assert raised.value.code == "maven_missing"


def test_a_maven_that_fails_is_quoted_and_its_output_is_kept(bench: Bench) -> None:
    with pytest.raises(BrokerError, match="Could not resolve org:thing:1") as raised:
        bench.resolve("echo '[INFO] Scanning'; echo '[ERROR] Could not resolve org:thing:1 -> [Help 1]'; exit 1")
    assert raised.value.code == "maven_failed"
    assert "Scanning" in (bench.root / "maven.log").read_text()


def test_a_maven_that_copies_nothing_is_an_error(bench: Bench) -> None:
    with pytest.raises(BrokerError, match="no jars"):
        bench.resolve("exit 0")


def test_the_last_telling_line_of_maven_is_taken() -> None:
    # As Maven 3.8 prints it.
    output = [
        "[INFO] BUILD FAILURE",
        "[ERROR] Failed to execute goal on project local-broker: Could not resolve dependencies -> [Help 1]",
        "[ERROR] ",
        "[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.",
        "[ERROR] Re-run Maven using the -X switch to enable full debug logging.",
        "[ERROR] ",
        "[ERROR] For more information about the errors and possible solutions, please read the following articles:",
        "[ERROR] [Help 1] https://example.org/DependencyResolutionException",
    ]
    assert last_error(output) == ("Failed to execute goal on project local-broker: Could not resolve dependencies")
    assert last_error(["Killed"]) == "it gave no reason"


def test_kafkas_version_comes_from_its_jar(bench: Bench) -> None:
    bench.resolve()
    jars = resolved_jars(bench.libs, hashlib.sha256(bench.pom.read_bytes()).hexdigest())
    assert kafka_version(jars) == "4.4.0"
    assert kafka_version(()) == "unknown"
