"""A pack whose tool calls a server that counts, and what drives a worker of it as a process of its own.

python -m support.counted_pack RUN BOOTSTRAP HOME SERVER
"""

from __future__ import annotations

import sys
import threading
import urllib.request
from pathlib import Path

from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.clerk import Clerk
from forktrail_behaviors.context import Context
from forktrail_behaviors.desk import ThreadedDesk
from forktrail_behaviors.determinism import guard
from forktrail_behaviors.given import Node, Object
from forktrail_behaviors.log import KafkaLog
from forktrail_behaviors.mirrored_graph import MirroredGraph
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.position import PositionFile
from forktrail_behaviors.reactor import Reactor
from forktrail_behaviors.tools import FunctionTool
from forktrail_behaviors.types import Ref
from forktrail_behaviors.worker import Worker
from forktrail_producers.blobs import BlobStore
from forktrail_schemas.events import ObjectCreated
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey

WORKER_KEY = SigningKey.from_private_bytes(b"\x07" * 32)
TIMEOUT_SECONDS = 30


class Job(BaseModel):
    """Something to be done in parts."""

    name: str
    done: bool = False


class Part(BaseModel):
    """What one call came to."""

    text: str
    of: Ref[Job]


@behavior(on=ObjectCreated, where={"object_type": "Job"}, emits=["Job", "Part"], repeats="it makes no job")
async def work_off(ctx: Context, event: ObjectCreated) -> None:
    """Do three parts side by side, wait, and say that it is done."""
    job = Object("Job", event.object_id)

    async def part(number: int) -> None:
        said = await ctx.tool("count", key=f"{job.id}/{number}")
        await ctx.sleep(0.05)
        ctx.create("Part", text=f"{number}: {said}", of=job)

    await ctx.gather(part(1), part(2), part(3))
    ctx.patch(job, done=True)


@behavior(when="MATCH (p:Part)-[:OF]->(j:Job) WHERE j.done = true", emits=["Part"], repeats="a part fires it once")
def check_off(ctx: Context, p: Node, j: Node) -> None:
    """Note each part of what is done."""
    ctx.patch(p.object, text=f"{p.text} of {j.name}")


def counted_pack(server: str) -> Pack:
    """The pack, its tool calling a server at an address."""

    def count(key: str) -> str:
        with urllib.request.urlopen(f"{server}/{key}", timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())

    return Pack("counted", [Job, Part], behaviors=[work_off, check_off], tools=[FunctionTool("count", "read", count)])


def work(run: str, bootstrap_servers: str, home: Path, server: str, *, until_idle: bool) -> None:
    """React to a run in this process."""
    settings = Settings(home=home, bootstrap_servers=bootstrap_servers, external_kafka=False, graph_engine="ladybug")
    guard.install()
    pack = counted_pack(server)
    log = KafkaLog(settings, run, WORKER_KEY)
    blobs = BlobStore(str(settings.blobs_dir))
    reactor = Reactor(MirroredGraph(), log.topic_id, pack, blobs, log.record_at)
    clerk = Clerk(run, "worker", blobs)
    position = PositionFile(settings.home / "workers" / f"{run}.json", log.topic_id)
    Worker(clerk, log, reactor, ThreadedDesk(clerk, log, pack), position).work(threading.Event(), until_idle=until_idle)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], until_idle=False)
