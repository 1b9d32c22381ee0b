"""A tool that writes, whose worker is killed over its call: sent again under its key, or settled by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from forktrail_producers.producer import Producer, meta
from forktrail_schemas.events import GoalSet
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support.command_line import CommandLine
from support.sending_pack import KEYED, SERVER

PACK = "support.sending_pack"
TESTS = Path(__file__).parents[2]


class _Letters(ThreadingHTTPServer):
    """Takes letters: the first is never answered, so that its sender can be killed over it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.keys: list[str] = []
        self.first = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, _Letters)
        server.keys.append(self.headers["Idempotency-Key"])
        if len(server.keys) == 1:
            server.first.set()
            self.connection.settimeout(60)
            self.connection.recv(1_000)
            self.connection.recv(1)  # ends as the sender does
            return
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"sent")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Letters]:
    server = _Letters()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv(SERVER, server.address)
    yield server
    server.shutdown()
    server.server_close()


def killed_over_its_call(forktrail: CommandLine, settings: Settings, letters: _Letters, text: str) -> str:
    """A run whose worker was killed while its tool was writing."""
    run = forktrail.ok("run", "open", "--goal", "send").out.strip()
    forktrail.ok("key", "new", "olga")
    forktrail.ok("key", "register", run, "olga", "--role", "operator")
    forktrail.ok("behaviors", "run", run, "--pack", PACK, "--until-idle")
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit(build(GoalSet, {"meta": meta(run, "human", "rita"), "text": text}))
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    words = [sys.executable, "-m", "forktrail_lab", "behaviors", "run", run, "--pack", PACK]
    worker = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert letters.first.wait(60)
    finally:
        worker.kill()
        worker.wait()
    return run


def done(forktrail: CommandLine, run: str) -> list[str]:
    rows = forktrail.ok("query", run, "MATCH (d:Done) RETURN d.text AS text", "--format", "json").json
    return [row["text"] for row in rows]


def test_a_write_under_a_key_is_sent_again_under_the_same_key(
    forktrail: CommandLine, settings: Settings, letters: _Letters
) -> None:
    run = killed_over_its_call(forktrail, settings, letters, KEYED)
    forktrail.ok("behaviors", "run", run, "--pack", PACK, "--until-idle")
    assert len(letters.keys) == 2
    assert letters.keys[0] == letters.keys[1] != "none"
    assert done(forktrail, run) == ["sent"]
    assert forktrail.ok("replay", run, "--pack", PACK, "--strict", "--format", "json").json["divergences"] == 0


def test_a_write_without_a_key_waits_for_a_person(
    forktrail: CommandLine, settings: Settings, letters: _Letters
) -> None:
    run = killed_over_its_call(forktrail, settings, letters, "once")
    forktrail.ok("behaviors", "run", run, "--pack", PACK, "--until-idle")
    assert letters.keys == ["none"]
    assert done(forktrail, run) == []
    (execution,) = forktrail.ok("executions", "list", run, "--status", "running", "--format", "json").json
    (call,) = forktrail.ok("executions", "show", run, execution["id"], "--format", "json").json["calls"]
    assert (call["status"], call["outcome"]) == ("unknown", "unknown")
    words = ("executions", "resolve", run, call["id"], "ok", "--answer", '"by hand"', "--reason", "it arrived")
    forktrail.ok(*words, "--key", "olga")
    forktrail.ok("behaviors", "run", run, "--pack", PACK, "--until-idle")
    assert letters.keys == ["none"]
    assert done(forktrail, run) == ["by hand"]
    assert forktrail.ok("replay", run, "--pack", PACK, "--strict", "--format", "json").json["divergences"] == 0
