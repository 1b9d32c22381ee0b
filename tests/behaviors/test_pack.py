"""Loading a pack: what can't be loaded is told in one line, with where it went wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from forktrail_behaviors.pack import Pack
from forktrail_behaviors.packs import load_pack
from forktrail_behaviors.types import relation_type_of
from forktrail_schemas.errors import InvalidInput, NotFound
from support.worked_pack import Company, ask

BROKEN = {
    "raises": ("x = 1\nraise RuntimeError('boom')\n", r"RuntimeError: boom .*raises_pack\.py:2"),
    "syntax": ("def f(:\n", "SyntaxError"),
    "imports": ("import no_such_module_at_all\n", "no_such_module_at_all"),
    "other": ("PACK = 3\n", "int"),
    "clock": (
        "import time\nfrom forktrail_behaviors.behavior import behavior\nfrom forktrail_behaviors.pack import Pack\n"
        "from forktrail_schemas.events import ObjectCreated\n\n@behavior(on=ObjectCreated)\ndef b(ctx, event):\n"
        "    time.time()\n\nPACK = Pack('x', behaviors=[b])\n",
        r"clock_pack\.py:8: time\.time",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_module_that_gives_no_pack_is_told(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, told = BROKEN[fault]
    (tmp_path / f"{fault}_pack.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidInput, match=told):
        load_pack(f"{fault}_pack")


@pytest.mark.parametrize(
    "name", ["no_such_module_at_all", "support.worked_pack:NO_SUCH_PACK", "support.no_such_module"]
)
def test_what_isnt_there_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        load_pack(name)


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two types called 'Company'"):
        Pack("twice", [Company, Company])
    with pytest.raises(InvalidInput, match="two behaviors called 'ask'"):
        Pack("twice", [Company], behaviors=[ask, ask])
    with pytest.raises(InvalidInput, match="no behavior"):
        Pack("none", behaviors=[Company])


@pytest.mark.parametrize("name", ["Finding", "patch", "RESTS_ON"])
def test_a_type_with_a_name_of_the_graphs_own_is_refused(name: str) -> None:
    taken = [relation_type_of(name, ["Company"], ["Company"])] if name.isupper() else []
    objects = [] if taken else [type(name.capitalize(), (BaseModel,), {"__module__": __name__})]
    with pytest.raises(InvalidInput, match="the graph has one"):
        Pack("clash", objects, taken)
