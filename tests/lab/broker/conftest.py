"""Stand-ins for the programs that the broker calls, brokers of a test's own, and disks that can be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from support.command_line import CommandLine
from support.local_broker import bare_environment, ignore, new_topic, produce

FakeTool = Callable[[str, str], str]


@pytest.fixture
def fake_tool(tmp_path: Path) -> FakeTool:
    """Makes a shell script of the given name and text; returns the search path that holds nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, script: str) -> str:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(folder)

    return make


@pytest.fixture
def environment(home: Path, kafka_libs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of this process and of commands, with a broker of the test's own in `home`."""
    own = bare_environment(home)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    layout = BrokerLayout.of(home)
    layout.folder.mkdir(parents=True)
    layout.libs.symlink_to(kafka_libs)
    yield {**os.environ, **own}
    control.stop(BrokerLayout.of(home), ignore, grace_s=5.0)


@pytest.fixture
def layout(home: Path, environment: dict[str, str]) -> BrokerLayout:
    """The files of the test's own broker, which is stopped when the test ends."""
    return BrokerLayout.of(home)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Calls mount(8), and undoes it all when the test ends; where this user may not mount, the test is skipped."""
    mounted: list[str] = []

    def call(*words: str) -> None:
        done = subprocess.run(["mount", *words], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        if words[-1] not in mounted:
            mounted.append(words[-1])

    yield call
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def command(environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """`forktrail` in the home of the test's own broker."""
    return CommandLine(capsys)


@pytest.fixture
def used(layout: BrokerLayout) -> str:
    """The name of a topic with one record, in a data folder whose broker has stopped."""
    address = control.start(layout, free_port(), ignore).state.bootstrap_servers
    topic = new_topic(address)
    produce(address, topic, [b"x"])
    control.stop(layout, ignore)
    return topic
