"""The digest of a behavior's code changes with all code of its package that it is made of, and with nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

import pytest

from forktrail_behaviors.determinism import code
from forktrail_behaviors.determinism.code import code_sha256
from forktrail_schemas.errors import InvalidInput

FILES = {
    "packed/__init__.py": "",
    "packed/reactions.py": "from packed.words import greet\n\ndef react(ctx):\n    return greet()\n",
    "packed/words.py": "from .deep import tone\n\ndef greet():\n    return tone.TONE\n",
    "packed/deep/__init__.py": "",
    "packed/deep/tone.py": "import packed.reactions  # a circle\nTONE = 'mild'\n",
    "packed/unused.py": "X = 1\n",
    "elsewhere.py": "X = 1\n",
}

Digest = Callable[[dict[str, str]], str]


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Digest]:
    """Write a package into a folder of its own, import it, and take the digest of its behavior."""
    count = 0

    def take(files: dict[str, str], module: str = "packed.reactions") -> str:
        nonlocal count
        count += 1
        root = tmp_path / f"copy-{count}"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        forget()
        with monkeypatch.context() as patch:
            patch.syspath_prepend(root)
            importlib.invalidate_caches()
            react = importlib.import_module(module).react
        return code_sha256(react)

    yield take
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("packed", "alone", "beside", "wrapping")]:
        del sys.modules[name]


def test_it_is_the_same_wherever_the_files_lie_and_however_their_lines_end(digest: Digest) -> None:
    first = digest(FILES)
    assert digest(FILES) == first
    assert digest({name: text.replace("\n", "\r\n") for name, text in FILES.items()}) == first


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("packed/unused.py", "elsewhere.py")])
def test_each_module_that_is_imported_counts(digest: Digest, name: str) -> None:
    assert digest(FILES) != digest({**FILES, name: FILES[name] + "Y = 2\n"})


@pytest.mark.parametrize("name", ["packed/unused.py", "elsewhere.py"])
def test_what_isn_t_imported_or_lies_elsewhere_doesn_t_count(digest: Digest, name: str) -> None:
    assert digest(FILES) == digest({**FILES, name: FILES[name] + "Y = 2\n"})


def test_code_that_moves_to_another_module_counts(digest: Digest) -> None:
    moved = {**FILES, "packed/sounds.py": FILES["packed/words.py"]}
    moved["packed/reactions.py"] = FILES["packed/reactions.py"].replace("words", "sounds")
    assert digest(FILES) != digest(moved)


def test_a_decorator_of_another_package_hides_nothing(digest: Digest) -> None:
    files = {
        **FILES,
        "wrapping.py": "import functools\n\ndef wrap(f):\n    return functools.wraps(f)(lambda ctx: f(ctx))\n",
        "packed/reactions.py": "import wrapping\nfrom packed.words import greet\n\n@wrapping.wrap\n"
        "def react(ctx):\n    return greet()\n",
    }
    first = digest(files)
    for name in ("packed/reactions.py", "packed/words.py"):
        assert digest({**files, name: files[name] + "Y = 2\n"}) != first


def test_a_package_that_is_a_link_counts_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digest: Digest) -> None:
    expected = digest(FILES)
    forget()
    for name, text in FILES.items():
        path = tmp_path / "elsewhere" / name.replace("packed/", "stored/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "packed").symlink_to(tmp_path / "elsewhere" / "stored")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert code_sha256(importlib.import_module("packed.reactions").react) == expected


def test_a_lone_file_counts_with_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alone.py").write_text("import beside\nimport json\n\ndef react(ctx):\n    return beside.X\n")
    (tmp_path / "beside.py").write_text("X = 1\n")
    (tmp_path / "other.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    react = importlib.import_module("alone").react
    first = code_sha256(react)
    (tmp_path / "other.py").write_text("X = 22\n")
    assert code_sha256(react) == first
    (tmp_path / "beside.py").write_text("X = 22\n")
    assert code_sha256(react) != first
    forget()


def test_a_file_is_read_once_for_all_behaviors_of_a_pack(digest: Digest) -> None:
    code._read_at.cache_clear()
    digest(FILES)
    read = code._read_at.cache_info().misses
    react = sys.modules["packed.reactions"].react
    for _ in range(10):
        code_sha256(react)
    assert code._read_at.cache_info().misses == read == 5


def test_code_without_a_file_is_refused() -> None:
    space: dict[str, FunctionType] = {"__name__": "nowhere"}  # type: ignore[dict-item]  # as exec takes it
    exec("def made(ctx): pass", space)
    with pytest.raises(InvalidInput, match="the source of made can't be read"):
        code_sha256(space["made"])
