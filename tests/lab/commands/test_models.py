"""`forktrail behaviors run --models` against a stand-in of a provider: its answer is used, and its key is nowhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.context import Context
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing import FixtureModel
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.reader import LogReader
from forktrail_schemas.events import GoalSet
from forktrail_schemas.settings import Settings
from forktrail_schemas.wire import build
from support import model_server as server
from support.command_line import CommandLine
from support.model_server import KEY, stand_in


class Done(BaseModel):
    """What came of it."""

    text: str


@behavior(on=GoalSet, emits=["Done"])
async def answer(ctx: Context, event: GoalSet) -> None:
    ctx.create("Done", text=str(await ctx.model("analyst", messages=[{"role": "user", "content": event.text}])))


PACK = Pack("asking", [Done], behaviors=[answer], models=[FixtureModel("analyst", lambda request: "from the fixture")])
NAME = f"{__name__}:PACK"
FILE = '[models.analyst]\nprovider = "openai"\nbase_url = "{address}"\nmodel = "small"\nkey_env = "STANDIN_KEY"\n'


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module under its own name, as a pack's module."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def tell(settings: Settings, run: str, text: str) -> None:
    with Producer(settings.bootstrap_servers) as producer:
        producer.emit(build(GoalSet, {"meta": meta(run, "human", "rita"), "text": text}))


def test_a_configured_model_answers_in_the_fixtures_place_and_its_key_is_nowhere(
    forktrail: CommandLine, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_KEY", KEY)
    run = forktrail.ok("run", "open", "--goal", "ask").out.strip()
    forktrail.ok("behaviors", "run", run, "--pack", NAME, "--until-idle")
    said = []
    ways = [server.status(200, server.chat("from the provider")), server.echo_of_the_request]
    with stand_in(*ways) as told:
        file = tmp_path / "models.toml"
        file.write_text(FILE.format(address=told.address))
        for text in ("first", "second"):
            tell(settings, run, text)
            said.append(forktrail.ok("behaviors", "run", run, "--pack", NAME, "--models", str(file), "--until-idle"))
        assert [one.headers["authorization"] for one in told.asked] == [f"Bearer {KEY}"] * 2
    tell(settings, run, "third")
    said.append(forktrail.ok("behaviors", "run", run, "--pack", NAME, "--until-idle"))
    rows = forktrail.ok("query", run, "MATCH (d:Done) RETURN d.text AS text ORDER BY text", "--format", "json").json
    assert [row["text"] for row in rows] == ["from the fixture", "from the provider"]
    calls = "MATCH (c:`Call`) RETURN c.outcome AS outcome, c.provider AS provider ORDER BY c.created_offset"
    found = forktrail.ok("query", run, calls, "--format", "json").json
    assert [(row["outcome"], row["provider"]) for row in found] == [("ok", "openai"), ("error", "openai"), ("ok", None)]
    assert forktrail.ok("replay", run, "--pack", NAME, "--strict", "--format", "json").json["divergences"] == 0

    shown = [forktrail.ok(*words).out for words in (("tail", run), ("trace", run), ("executions", "list", run))]
    assert not any(KEY in text for text in [*shown, *(one.out + one.err for one in said)])
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    assert any("blobs" in path.parts for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    with LogReader(settings.bootstrap_servers, run) as reader:
        values = [record.value or b"" for batch in reader.read(0, reader.end()) for record in batch]
    assert not any(KEY.encode() in value for value in values)


def test_a_models_file_that_isnt_there_is_told_before_anything_is_written(forktrail: CommandLine, run: str) -> None:
    said = forktrail("behaviors", "run", run, "--pack", NAME, "--models", "no-such.toml")
    assert (said.code, "no-such.toml" in said.err) == (3, True)
