"""The wheel alone: what another service installs lets it write an event, and brings nothing it doesn't need."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from forktrail_projectors.reader import LogReader
from forktrail_schemas.events import ReportFiled
from forktrail_schemas.wire import decode
from support.raw import make_run

ROOT = Path(__file__).parents[1]
SCRIPT = """\
import sys
from forktrail_producers.producer import Producer, meta
from forktrail_schemas.events import ReportFiled
from forktrail_schemas.wire import build

bootstrap_servers, run = sys.argv[1:]
fields = {"meta": meta(run, "service", "scanner-7"), "test_id": "gateway", "summary": "look here"}
with Producer(bootstrap_servers) as producer:
    print(producer.emit(build(ReportFiled, fields)))
"""
UNWANTED = (
    "kuzu",
    "ladybug",
    "faust",
    "faust-streaming",
    "aiokafka",
    "flask",
    "fastapi",
    "starlette",
    "aiohttp",
    "httpx",
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty virtualenv with the wheel in it, and only what the wheel brings."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("forktrail-*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", str(wheel)], check=True)
    return python


@pytest.mark.broker
def test_a_ten_line_script_emits_a_report_with_the_wheel_alone(python: Path, kafka: str, tmp_path: Path) -> None:
    assert len(SCRIPT.splitlines()) <= 10
    run = make_run(kafka)
    done = subprocess.run([python, "-c", SCRIPT, kafka, run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr
    with LogReader(kafka, run) as reader:
        event = decode(reader.record_at(0).value or b"")
    assert isinstance(event, ReportFiled)
    assert event.summary == "look here"


@pytest.mark.broker
def test_the_wheel_brings_no_graph_engine_and_no_web_framework(python: Path) -> None:
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    installed = {line.partition("==")[0].lower() for line in listed.stdout.splitlines()}
    assert "confluent-kafka" in installed
    assert installed.isdisjoint(UNWANTED)


@pytest.mark.broker
def test_the_command_of_a_bare_install_says_which_extra_is_missing(python: Path, tmp_path: Path) -> None:
    command = python.with_name("forktrail")
    helped = subprocess.run([command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    asked = subprocess.run(
        [command, "query", "r", "RETURN 1"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 1
    assert "pip install 'forktrail[all]'" in asked.stderr
    assert "Traceback" not in asked.stderr


@pytest.mark.broker
def test_the_wheel_holds_what_the_local_broker_and_other_languages_need(python: Path) -> None:
    (packages,) = python.parents[1].glob("lib/python3*/site-packages")
    lab, schemas = packages / "forktrail_lab", packages / "forktrail_schemas"
    assert (lab / "broker" / "kafka" / "docker-compose.yml").exists()
    assert (lab / "broker" / "kafka" / "pom.xml").exists()
    assert (lab / "registries" / "northwind.json").exists()
    assert (schemas / "avsc" / "evidence" / "ReportFiled.avsc").exists()
    assert (schemas / "py.typed").exists()
