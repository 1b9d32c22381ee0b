"""The diligence pack with a model and tools that take a moment and note each call in a file: for killed workers.

`DILIGENCE_CALLS` names the file; a line is what was asked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forktrail_behaviors.effects import EffectResult
from forktrail_behaviors.tools import FunctionTool
from forktrail_lab.diligence import PACK as DILIGENCE
from forktrail_lab.diligence.analyst import FixtureAnalyst
from forktrail_schemas.json_text import Json, canonical_json

CALLS_VARIABLE = "DILIGENCE_CALLS"
_CALL_SECONDS = 0.02


@dataclass(frozen=True)
class SlowAnalyst:
    """The fixture analyst, in no hurry."""

    name: str = "analyst"

    def answer(self, request: Mapping[str, Any]) -> EffectResult:
        _note(dict(request))
        return FixtureAnalyst().answer(request)


@dataclass(frozen=True)
class SlowTool(FunctionTool):
    """A tool of the pack, in no hurry."""

    def call(self, arguments: Mapping[str, Any], idempotency_key: str | None) -> Json:
        _note({"tool": self.name, **arguments})
        return super().call(arguments, idempotency_key)


def _note(asked: dict[str, Json]) -> None:
    """Write a line in one piece, so that a kill leaves none behind half."""
    line = canonical_json(asked) + "\n"
    with Path(os.environ[CALLS_VARIABLE]).open("ab", buffering=0) as file:
        file.write(line.encode())
    time.sleep(_CALL_SECONDS)


def _slow(tool: object) -> SlowTool:
    assert isinstance(tool, FunctionTool)
    return SlowTool(tool.name, tool.side_effects, tool.function)


PACK = replace(DILIGENCE, models=[SlowAnalyst()], tools=[_slow(tool) for tool in DILIGENCE.tools])
