from __future__ import annotations

from pathlib import Path

import pytest

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.settings import Settings, broker_state_file


def settings(home: Path, **environ: str) -> Settings:
    return Settings.from_environment({"FORKTRAIL_HOME": str(home), **environ})


def test_an_empty_environment_means_the_local_broker_ladybug_and_a_folder_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment({}) == Settings(tmp_path / ".forktrail", "127.0.0.1:9092", False, "ladybug", 9092)


def test_empty_variables_count_as_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("FORKTRAIL_HOME", "FORKTRAIL_BOOTSTRAP_SERVERS", "FORKTRAIL_GRAPH_ENGINE", "FORKTRAIL_BROKER_PORT")
    assert Settings.from_environment(dict.fromkeys(names, "")) == Settings.from_environment({})


def test_a_kafka_that_is_named_is_external(tmp_path: Path) -> None:
    found = settings(tmp_path, FORKTRAIL_BOOTSTRAP_SERVERS=" kafka-1:9092,kafka-2:9092 ")
    assert (found.bootstrap_servers, found.external_kafka) == ("kafka-1:9092,kafka-2:9092", True)


def test_the_running_local_broker_is_found_by_its_state_file(tmp_path: Path) -> None:
    path = broker_state_file(tmp_path)
    path.parent.mkdir()
    path.write_text('{"pid": 1, "bootstrap_servers": "127.0.0.1:19092"}')
    found = settings(tmp_path, FORKTRAIL_BROKER_PORT="29092")
    assert (found.bootstrap_servers, found.external_kafka, found.broker_port) == ("127.0.0.1:19092", False, 29092)


def test_without_a_state_file_the_local_broker_is_on_its_port(tmp_path: Path) -> None:
    assert settings(tmp_path, FORKTRAIL_BROKER_PORT="29092").bootstrap_servers == "127.0.0.1:29092"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "7", "null"])
def test_a_broken_state_file_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    path = broker_state_file(tmp_path)
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(InvalidInput, match="delete it") as caught:
        settings(tmp_path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    "port", ["0", "65536", "-1", "x", "1.5", " 9092", "٩٠٩٢", "9" * 5_000], ids=lambda port: ascii(port)[:9]
)
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 65535"):
        settings(tmp_path, FORKTRAIL_BROKER_PORT=port)


def test_the_engine_is_one_of_two(tmp_path: Path) -> None:
    assert settings(tmp_path, FORKTRAIL_GRAPH_ENGINE="kuzu").graph_engine == "kuzu"
    with pytest.raises(InvalidInput, match="ladybug, kuzu"):
        settings(tmp_path, FORKTRAIL_GRAPH_ENGINE="neo4j")


def test_everything_local_lies_in_the_home(tmp_path: Path) -> None:
    found = settings(tmp_path)
    folders = (found.keys_dir, found.graphs_dir, found.blobs_dir, found.kafka_dir, found.lab_dir)
    assert {folder.parent for folder in folders} == {tmp_path}
    assert len(set(folders)) == 5
