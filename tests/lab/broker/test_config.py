"""The configuration: paths survive Java's file format, and Docker has the same settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forktrail_lab.broker.config import check_paths, compose_file, config_folder, server_properties
from forktrail_schemas.errors import BrokerError

SHARED_MARK = "# --- the same for Docker from here on ---"


def settings_of(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_template_is_filled_in() -> None:
    template = (config_folder() / "server.properties").read_text()
    settings = settings_of(server_properties(template, port=9092, controller_port=9093, data=Path("/data")))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert settings["log.dirs"] == "/data"


@pytest.mark.parametrize(
    ("path", "written"),
    # By the rules of java.util.Properties: ISO-8859-1, other characters as UTF-16 units, backslashes doubled.
    [("/my home", "/my home"), ("/été", r"/\u00e9t\u00e9"), ("/\U0001f680", r"/\ud83d\ude80"), (r"/a\b", r"/a\\b")],
)
def test_a_path_is_written_as_java_reads_it(path: str, written: str) -> None:
    assert server_properties("${DATA}", port=1, controller_port=2, data=Path(path)) == written


@pytest.mark.parametrize(
    ("data", "libs", "said"),
    [
        ("/a,b/data", "/libs", "path_unusable: the broker can't use a path with a comma: /a,b/data"),
        ("/data", "/a:b/libs", "path_unusable: the broker can't use a path with a colon: /a:b/libs"),
        ("/mon été/a:b", "/mon été/a,b", ""),  # blanks and accents are no hindrance, nor the other's separator
    ],
)
def test_a_path_that_kafka_or_java_would_split_is_refused(data: str, libs: str, said: str) -> None:
    refusal = ""
    try:
        check_paths(Path(data), Path(libs))
    except BrokerError as error:
        refusal = str(error).partition(" (")[0]
    assert refusal == said


def test_docker_has_the_same_settings() -> None:
    shared = settings_of((config_folder() / "server.properties").read_text().split(SHARED_MARK)[1])
    compose = compose_file()
    assert compose
    environment = dict(re.findall(r'^ +(KAFKA_\w+): "(.*)"$', compose.read_text(), re.MULTILINE))
    wanted = {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in shared.items()}
    assert {name: environment.get(name) for name in wanted} == wanted


def test_docker_publishes_on_loopback_and_runs_the_version_of_the_pom() -> None:
    compose = compose_file()
    assert compose
    text = compose.read_text()
    version = re.search(r"<kafka.version>(.*)</kafka.version>", (config_folder() / "pom.xml").read_text())
    assert version
    assert f"image: apache/kafka:{version[1]}\n" in text
    assert '- "127.0.0.1:${FORKTRAIL_BROKER_PORT:-9092}:9092"' in text
