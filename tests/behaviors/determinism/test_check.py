"""The check names what isn't deterministic, line by line, and lets pass what is."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from forktrail_behaviors.determinism.check import Fault, check
from forktrail_schemas.errors import InvalidInput
from support import dishonest_behaviors, honest_behaviors

DISHONEST = (
    "clocks chance outside addresses waiting state Keeper follows holds aliases orders more_orders".split()  # noqa: SIM905
)
_REFUSED = re.compile(r"# refused: ([^#\n]*)")


def expected() -> Iterator[tuple[int, str]]:
    """Lines of the dishonest behaviors, and the words that stand there."""
    for number, line in enumerate(Path(str(dishonest_behaviors.__file__)).read_text().splitlines(), start=1):
        yield from ((number, words.strip()) for words in _REFUSED.findall(line))


def test_each_line_that_isn_t_deterministic_is_named_and_no_other() -> None:
    found = {fault for name in DISHONEST for fault in check(getattr(dishonest_behaviors, name))}
    wanted = list(expected())
    assert len(wanted) > 120
    missed = [(line, words) for line, words in wanted if not any(_names(fault, line, words) for fault in found)]
    false = [fault for fault in sorted(found) if not any(_names(fault, line, words) for line, words in wanted)]
    assert missed == []
    assert false == []


def _names(fault: Fault, line: int, words: str) -> bool:
    return fault.line == line and (words in fault.what or (words == "set" and "order of a set" in fault.what))


@pytest.mark.parametrize("source", honest_behaviors.HONEST)
def test_what_is_deterministic_passes(source: FunctionType | type) -> None:
    assert check(source) == []


def test_a_fault_says_where_and_what_to_do() -> None:
    fault = check(dishonest_behaviors.clocks)[0]
    assert Path(fault.file).name == "dishonest_behaviors.py"
    assert (fault.what, fault.instead) == ("time.time", "use ctx.now, or ctx.sleep(…) to wait")


def test_what_a_function_closes_over_is_seen() -> None:
    seen: list[str] = []
    kinds = {"a", "b"}

    def remember(ctx: list[str]) -> None:
        seen.append("x")
        ctx.extend(kinds)

    assert [fault.what for fault in check(remember)] == [
        "a change of seen, which outlives the execution",
        "the order of a set, kinds",
    ]


def test_a_function_inside_another_is_read_with_its_lines() -> None:
    def inner(ctx: list[str]) -> None:
        ctx.append("""
no indent here
""")
        id(ctx)

    (fault,) = check(inner)
    assert fault.line == inner.__code__.co_firstlineno + 4


def test_code_without_text_is_refused() -> None:
    space: dict[str, FunctionType] = {}
    exec("def made(ctx): pass", space)
    with pytest.raises(InvalidInput, match="the source of made can't be read"):
        check(space["made"])


def test_a_lambda_is_refused() -> None:
    with pytest.raises(InvalidInput, match="isn't written as a function"):
        check(lambda ctx: ctx)


def test_names_are_looked_up_where_a_decorated_function_was_written_and_not_its_decorator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrapper_of_check_test.py").write_text(
        "import functools\n\n"
        "def wrap(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n    return inner\n"
    )
    (tmp_path / "wrapped_of_check_test.py").write_text(
        "from time import time_ns as t\nfrom wrapper_of_check_test import wrap\n\n"
        "@wrap\ndef react(ctx):\n    return t()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    react = importlib.import_module("wrapped_of_check_test").react
    (fault,) = check(react)
    assert (Path(fault.file).name, fault.line, fault.what) == ("wrapped_of_check_test.py", 6, "time.time_ns")
