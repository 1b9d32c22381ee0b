"""kill -9 of a worker at random points, on a real Kafka: what it comes to is what an undisturbed run comes to.

FORKTRAIL_TEST_KILLS sets how many kills (6), FORKTRAIL_TEST_SEED the dice.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from forktrail_behaviors.log import KafkaLog
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.registering import to_declare
from forktrail_behaviors.replay import replay
from forktrail_producers.blobs import BlobStore
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projection import fold_in_memory
from forktrail_schemas.events import KeyRegistered, ObjectCreated, RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import run_topic_spec
from forktrail_schemas.wire import build
from support.counted_pack import WORKER_KEY, counted_pack, work
from support.rows import SEED
from support.story import ADMIN

KILLS = int(os.environ.get("FORKTRAIL_TEST_KILLS", "6"))
JOBS = max(6, KILLS)


class _Counter(ThreadingHTTPServer):
    """Counts the requests for each path, and takes a moment for each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.seen: Counter[str] = Counter()
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _Counter)
        self.server.seen[self.path] += 1
        time.sleep(0.03)
        body = f"did {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Counter]:
    server = _Counter()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def opened(settings: Settings, server: _Counter) -> str:
    """A run with the pack's types and behaviors and the worker's key."""
    run = new_run_id()
    Topics(settings.bootstrap_servers).make(run_topic_spec(run))
    with Producer(settings.bootstrap_servers) as producer:

        def tell(cls: type[Event], fields: dict[str, object]) -> None:
            producer.emit(build(cls, {"meta": meta(run, "human", "ada"), **fields}), ADMIN)

        tell(RunOpened, {"goal": "count", "revision": "r1", "admin_public_key": ADMIN.public_key})
        key = {"key_id": WORKER_KEY.key_id, "public_key": WORKER_KEY.public_key, "roles": ["worker"]}
        tell(KeyRegistered, {**key, "holder": "worker", "holder_kind": "service"})
        for cls, fields in to_declare(counted_pack(server.address), MemoryGraph()):
            tell(cls, fields)
    return run


def job(run: str, number: int) -> Event:
    id = f"job-{number:08x}"
    head = {**meta(run, "service", "jobs"), "event_id": f"01900000-0000-7000-8000-{number:012x}"}
    return build(ObjectCreated, {"meta": head, "object_type": "Job", "object_id": id, "data": f'{{"name":"{id}"}}'})


def content(settings: Settings, run: str) -> str:
    graph, _ = fold_in_memory(settings, run)
    return content_digest(graph.rows(), graph.tables)


class _Process:
    """A worker as a process of its own."""

    def __init__(self, settings: Settings, run: str, server: _Counter) -> None:
        arguments = [run, settings.bootstrap_servers, str(settings.home), server.address]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.counted_pack", *arguments],
            cwd=Path(__file__).parents[1],
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def test_a_run_with_a_worker_killed_again_and_again_comes_to_what_an_undisturbed_one_does(
    settings: Settings, server: _Counter
) -> None:
    calm = opened(settings, server)
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit_all([(job(calm, number), None) for number in range(JOBS)])
        work(calm, settings.bootstrap_servers, settings.home, server.address, until_idle=True)
        assert set(server.seen.values()) == {1}
        assert len(server.seen) == 3 * JOBS
        server.seen.clear()

        dice = random.Random(SEED)
        run = opened(settings, server)
        for number in range(JOBS):
            producer.emit(job(run, number))
            if number < KILLS:
                worker = _Process(settings, run, server)
                time.sleep(dice.uniform(0.5, 2.5))
                worker.kill()
    work(run, settings.bootstrap_servers, settings.home, server.address, until_idle=True)

    assert content(settings, run) == content(settings, calm), f"seed {SEED}"
    assert len(server.seen) == 3 * JOBS, f"seed {SEED}"
    # A kill can cut off what is in flight: no more than that many are asked a second time, in all.
    again = sum(server.seen.values()) - 3 * JOBS
    print(f"{KILLS} kills, seed {SEED}: {3 * JOBS} requests, {again} of them asked again")
    assert max(server.seen.values()) <= 1 + KILLS
    assert again <= 8 * KILLS  # the tools that one worker calls at once
    _replays(settings, run, server)


def _replays(settings: Settings, run: str, server: _Counter) -> None:
    """Strict replay of the whole finds no difference, and asks nobody."""
    asked = sum(server.seen.values())
    log = KafkaLog(settings, run, WORKER_KEY)
    blobs = BlobStore(str(settings.blobs_dir))
    reactor = Reactor(MirroredGraph(), log.topic_id, counted_pack(server.address), blobs, log.record_at)
    replayed = replay(run, log, reactor, log.end())
    reactor.close()
    log.close()
    assert replayed.divergences == []
    assert replayed.unwritten == 0
    assert replayed.executions == 4 * JOBS
    assert sum(server.seen.values()) == asked
