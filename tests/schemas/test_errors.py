from __future__ import annotations

import re

import pytest

from forktrail_schemas import errors
from forktrail_schemas.errors import ExitCode, Fate, ForktrailError

# A line of the tree: its lines and branches four columns a level, a class, perhaps an exit code.
LINE = re.compile(r"^    (?P<indent>[│├└── ]*)(?P<name>[A-Z]\w+)(?: +exit (?P<exit>\d+))?", re.MULTILINE)
TREE = [match for match in LINE.finditer(errors.__doc__ or "") if match["name"] in vars(errors)]
DEFINED = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, ForktrailError)]


def drawn() -> dict[str, tuple[str | None, int | None]]:
    """Each class in the docstring's tree, with its parent and the exit code written beside it."""
    parents: list[str] = []
    found: dict[str, tuple[str | None, int | None]] = {}
    for match in TREE:
        level = len(match["indent"]) // 4
        del parents[level:]
        found[match["name"]] = (parents[-1] if parents else None, int(match["exit"]) if match["exit"] else None)
        parents.append(match["name"])
    return found


def test_the_tree_in_the_docstring_names_every_class_and_no_other() -> None:
    assert sorted(drawn()) == sorted(cls.__name__ for cls in DEFINED)


@pytest.mark.parametrize("name", drawn())
def test_a_class_has_the_parent_and_the_exit_code_that_the_tree_says(name: str) -> None:
    parent, exit_code = drawn()[name]
    cls = vars(errors)[name]
    assert cls.__base__.__name__ == (parent or "Exception")
    while exit_code is None:  # one that isn't written is the parent's
        assert parent is not None
        parent, exit_code = drawn()[parent]
    assert cls.exit_code == exit_code


def test_exit_codes_are_those_of_the_style_guide() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "ERROR": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "CORRUPTION": 4,
        "DIVERGENCE": 5,
        "DIFFERENCE": 6,
        "APPROVAL_REQUIRED": 7,
    }


def test_every_class_has_a_reason_code_of_its_own_and_a_fate() -> None:
    codes = [cls.code for cls in DEFINED]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)
    assert all(isinstance(cls.fate, Fate) for cls in DEFINED)


def test_the_fates_are_what_a_catcher_would_do() -> None:
    by_fate = {fate: {cls.__name__ for cls in DEFINED if cls.fate == fate} for fate in Fate}
    assert by_fate[Fate.RETRY] == {"LogUnavailable", "GraphBehind", "GraphBusy", "GraphDiskFull"}
    assert by_fate[Fate.DEAD_LETTER] == {"EventUnreadable"}


def test_an_error_carries_where_and_what_to_do() -> None:
    error = errors.EventVoid("refused", hint="look", code="case_exists", run="r", offset=7, event_id="e")
    assert (error.code, error.run, error.offset, error.event_id) == ("case_exists", "r", 7, "e")
    assert str(error) == "case_exists: refused (look)"
    assert str(errors.NotFound("no run r")) == "not_found: no run r"
    assert errors.EventVoid.code == "void"
