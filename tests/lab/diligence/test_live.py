"""The same pack on a provider over HTTP, by a setting: a stand-in that speaks chat completions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forktrail_lab.console.pack_arguments import with_models
from forktrail_lab.diligence import PACK
from forktrail_lab.diligence.analyst import FixtureAnalyst
from support.diligence import counted, played, strictly
from support.model_server import KEY, Asked, Handler, chat, stand_in

COMPANY = "Lumenfeld Energy"


def analyst(handler: Handler, asked: Asked) -> None:
    """Answer as the fixture does, in the protocol's words."""
    schema = asked.body["response_format"]["json_schema"]["schema"]
    answer: Any = FixtureAnalyst().answer({"messages": asked.body["messages"], "schema": schema}).answer
    if "tool_calls" in answer:
        calls = [(call["id"], call["name"], json.dumps(call["arguments"])) for call in answer["tool_calls"]]
        told = chat(None, finish="tool_calls", calls=calls)
    else:
        told = chat(json.dumps(answer))
    handler.send(200, json.dumps(told).encode())


def test_a_provider_that_a_file_names_takes_the_fixtures_place(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    with stand_in(analyst) as server:
        file.write_text(
            f'[models.analyst]\nprovider = "openai"\nbase_url = "{server.address}"\nmodel = "small"\n'
            'key_env = "STAND_IN_KEY"\n[models.analyst.prices]\ninput = 1\noutput = 2\n'
        )
        pack = with_models(PACK, file, tmp_path, {"STAND_IN_KEY": KEY})
        live = played(pack, names=[COMPANY])
    calls = live.calls_of("model")
    assert len(server.asked) == len(calls) == 1 + 8 * 3 + 9 + 1
    assert counted(live) == counted(played(names=[COMPANY]))
    assert {tool["function"]["name"] for asked in server.asked for tool in asked.body.get("tools", ())} == {
        "search_documents",
        "fetch_document",
    }
    # 60 tokens at 1 and 20 at 2 for a million, and 40 from the cache at the price of the others.
    assert {row["cost_micros"] for row in calls} == {100 + 2 * 20}
    assert not any(KEY.encode() in (record.value or b"") for record in live.log.records)
    assert strictly(live)[0].divergences == []
