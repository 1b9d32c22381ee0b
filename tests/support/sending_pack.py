"""A pack whose one tool writes to a server: `FORKTRAIL_TEST_SERVER` says where."""

from __future__ import annotations

import os
import urllib.request

from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.tools import tool
from forktrail_schemas.events import GoalSet

SERVER = "FORKTRAIL_TEST_SERVER"
KEYED = "keyed"


class Done(BaseModel):
    """What came of it."""

    text: str


@tool(side_effects="write")
def send(text: str, idempotency_key: str | None = None) -> str:
    """Send it."""
    request = urllib.request.Request(os.environ[SERVER], text.encode(), {"Idempotency-Key": idempotency_key or "none"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


@behavior(on=GoalSet, emits=["Done"])
async def send_goal(ctx: Context, event: GoalSet) -> None:
    """Send a goal, under a key where it says so."""
    key = ctx.new_id("letter") if event.text == KEYED else None
    ctx.create("Done", text=str(await ctx.tool("send", idempotency_key=key, text=event.text)))


PACK = Pack("sending", [Done], behaviors=[send_goal], tools=[send])
