"""The order of a set, smuggled through a helper module: another process has another, and strict replay finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PLAY = """
import pickle, sys
from pydantic import BaseModel
from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.replay import replay
from forktrail_behaviors.testing import Kit
from forktrail_schemas.events import ObjectCreated
from support import smuggling

class Item(BaseModel):
    text: str | None = None

@behavior(on=ObjectCreated, where={"object_id": "item-00000001"}, emits=["Item"], repeats="one id", version="1")
def smuggle(ctx: Context, event: ObjectCreated) -> None:
    ctx.create("Item", text=smuggling.order_of_a_set())

kit = Kit(Pack("test", [Item], behaviors=[smuggle]))
if sys.argv[1] == "play":
    kit.tell(ObjectCreated, object_type="Item", object_id="item-00000001", data="{}")
    kit.run()
    pickle.dump(kit.log.records, open(sys.argv[2], "wb"))
else:
    kit.log.records = pickle.load(open(sys.argv[2], "rb"))
    for one in replay("test-run", kit.log, kit.reactor(), kit.log.end()).divergences:
        print(one.event, one.field)
"""


def in_a_process(folder: Path, hash_seed: int, *words: str) -> str:
    (folder / "play.py").write_text(PLAY)
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, str(folder / "play.py"), *words]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_order_of_a_set_is_found_at_its_field(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    in_a_process(tmp_path, 1, "play", log)
    assert in_a_process(tmp_path, 1, "replay", log) == ""
    assert in_a_process(tmp_path, 2, "replay", log) == "ObjectCreated data.text\n"
