"""Runs with behaviors for benchmarks: opened on Kafka, told objects, and reacted to by a worker in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.logs import make_topic
from benchmarks.stage import Stage
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.desk import ThreadedDesk
from forktrail_behaviors.log import KafkaLog
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.position import PositionFile
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.registering import to_declare
from forktrail_behaviors.worker import Worker
from forktrail_producers.blobs import BlobStore
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_schemas.events import KeyRegistered, ObjectCreated, RelationCreated, RunOpened
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import new_run_id
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import build

ADMIN, WORKER = (SigningKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
NAME = "worker"


@dataclass(frozen=True)
class Reacting:
    """A run and the worker that reacts to it."""

    run: str
    producer: Producer
    worker: Worker
    reactor: Reactor

    def steps(self) -> Iterator[bool]:
        """React, batch by batch; see `Worker.steps`."""
        return self.worker.steps(threading.Event())

    def tell(self, events: Iterable[Event]) -> None:
        """Write events."""
        self.producer.emit_all((event, None) for event in events)


@contextmanager
def reacting(stage: Stage, pack: Pack) -> Iterator[Reacting]:
    """A new run with a pack's types and behaviors, its worker's events signed, as `forktrail behaviors run` has it."""
    run = new_run_id()
    make_topic(stage.bootstrap_servers, run)
    with Producer(stage.bootstrap_servers) as producer:
        opening: list[tuple[type[Event], dict[str, object]]] = [
            (RunOpened, {"goal": "measure", "revision": "r1", "admin_public_key": ADMIN.public_key}),
            (KeyRegistered, _key()),
            *to_declare(pack, MemoryGraph()),
        ]
        producer.emit_all((build(cls, {"meta": meta(run, "human", "ada"), **told}), ADMIN) for cls, told in opening)
        log = KafkaLog(stage.settings, run, WORKER)
        blobs = BlobStore(str(stage.settings.blobs_dir))
        reactor = Reactor(MirroredGraph(stage.graph_engine), log.topic_id, pack, blobs, log.record_at)
        clerk = Clerk(run, NAME, blobs)
        position = PositionFile(stage.settings.home / "workers" / f"{run}.json", log.topic_id)
        worker = Worker(clerk, log, reactor, ThreadedDesk(clerk, log, pack), position)
        yield Reacting(run, producer, worker, reactor)
        reactor.close()
        log.close()


def created(run: str, object_type: str, number: int, **data: object) -> Event:
    """ObjectCreated; its id follows from the number."""
    id = object_id(object_type, number)
    told = {"object_type": object_type, "object_id": id, "data": json.dumps(data)}
    return build(ObjectCreated, {"meta": meta(run, "service", "bench"), **told})


def related(run: str, relation: str, source: tuple[str, int], target: tuple[str, int]) -> Event:
    """RelationCreated between two numbered objects."""
    ends = {
        "source_type": source[0],
        "source_id": object_id(*source),
        "target_type": target[0],
        "target_id": object_id(*target),
    }
    head = {"meta": meta(run, "service", "bench")}
    return build(RelationCreated, {**head, "relation_type": relation, "data": "{}", **ends})


def object_id(object_type: str, number: int) -> str:
    """The id of a numbered object."""
    return f"{object_type.lower()}-{number:08x}"


def _key() -> dict[str, object]:
    key = {"key_id": WORKER.key_id, "public_key": WORKER.public_key, "roles": ["worker"]}
    return {**key, "holder": NAME, "holder_kind": "service"}
