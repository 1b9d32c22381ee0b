"""Which Java is taken, and what is said when none fits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from forktrail_lab.broker.java import find_java, major_version
from forktrail_schemas.errors import BrokerError


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("1.8.0_392", 8), ("11.0.2+9", 11), ("1", 1), ("unknown", 0)],
)
def test_the_feature_release_of_a_java_version(version: str, major: int) -> None:
    assert major_version(version) == major


def test_a_java_that_is_new_enough_is_found(fake_tool: Callable[[str, str], str]) -> None:
    folder = fake_tool("java", """echo 'openjdk version "21.0.4" 2024-07-16' >&2""")
    java = find_java(folder)
    assert (java.executable, java.version) == (f"{folder}/java", "21.0.4")


def test_an_empty_path_has_no_java(tmp_path: Path) -> None:
    with pytest.raises(BrokerError) as raised:
        find_java(str(tmp_path))
    assert raised.value.code == "java_missing"
    assert "FORKTRAIL_BOOTSTRAP_SERVERS" in raised.value.hint


def test_an_old_java_is_named_with_its_version(fake_tool: Callable[[str, str], str]) -> None:
    with pytest.raises(BrokerError, match=r"11\.0\.2 is older than 17") as raised:
        find_java(fake_tool("java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2"""))
    assert raised.value.code == "java_too_old"


def test_a_java_of_another_machine_counts_as_missing(fake_tool: Callable[[str, str], str]) -> None:
    folder = fake_tool("java", "")
    (Path(folder) / "java").write_bytes(b"\x7fELF, but not for this machine")
    with pytest.raises(BrokerError, match="Exec format error") as raised:
        find_java(folder)
    assert raised.value.code == "java_missing"


@pytest.mark.parametrize("script", ["echo 'Unable to locate a Java Runtime.' >&2; exit 1", "echo something", "exit 3"])
def test_a_java_that_does_not_run_counts_as_missing(fake_tool: Callable[[str, str], str], script: str) -> None:
    with pytest.raises(BrokerError) as raised:
        find_java(fake_tool("java", script))
    assert raised.value.code == "java_missing"


def test_what_java_says_is_told(fake_tool: Callable[[str, str], str]) -> None:
    with pytest.raises(BrokerError, match="Unable to locate a Java Runtime"):
        find_java(fake_tool("java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1"))


def test_a_java_that_gets_no_memory_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("java") is None:
        pytest.skip("there is no Java here")
    monkeypatch.setenv("_JAVA_OPTIONS", "-Xmx99999999g")
    with pytest.raises(BrokerError) as raised:
        find_java()
    assert raised.value.code == "java_failed"
    assert "heap" in raised.value.message
    assert "_JAVA_OPTIONS" in raised.value.hint
