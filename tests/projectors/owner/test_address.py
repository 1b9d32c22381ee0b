"""An owner's socket lies where only its user gets at it, and always under a path that fits."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from forktrail_projectors.owner.address import PATH_BYTES_MAX, listening
from forktrail_projectors.owner.client import dial
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_schemas.errors import GraphError


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="ft-"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def near(temporary: Path) -> Path:
    """A folder whose sockets' paths fit."""
    return temporary / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_socket_takes_connections_and_nobody_else_gets_at_it(near: Path) -> None:
    with listening(near, "run-1.ladybug") as (listener, path):
        assert path == near / "run-1.ladybug.sock"
        assert (mode(near), mode(path)) == (0o700, 0o600)
        with dial(path):
            listener.accept()[0].close()
    assert not path.exists()
    with pytest.raises(OwnerGone):
        dial(path)


def test_a_folder_that_others_could_enter_is_closed_to_them(near: Path) -> None:
    near.mkdir(mode=0o755)
    with listening(near, "run-1"):
        assert mode(near) == 0o700


def test_what_a_killed_owner_left_is_in_nobodys_way(near: Path) -> None:
    near.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(near / "run-1.sock"))
    with pytest.raises(OwnerGone):
        dial(near / "run-1.sock")
    with listening(near, "run-1") as (_, path), dial(path):
        pass


@pytest.mark.parametrize("name", ["n" * 90, "a\nb"], ids=["too long", "with a line's end"])
def test_a_path_that_does_not_fit_is_replaced_by_a_short_private_one(near: Path, temporary: Path, name: str) -> None:
    with listening(near / ("d" * 40), name) as (_, path), dial(path):
        assert path.parent == temporary / f"forktrail-{os.getuid()}"
        assert (mode(path.parent), mode(path)) == (0o700, 0o600)
        assert len(os.fsencode(path)) <= PATH_BYTES_MAX
        with listening(near / ("d" * 40), f"{name}2") as (_, other):
            assert other != path
    assert not path.exists()


def test_a_temporary_folder_that_is_too_deep_itself_is_passed_over(
    near: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / ("t" * 100)))
    with listening(near / ("d" * 100), "run-1") as (_, path):
        assert path.is_relative_to("/tmp")


def test_a_folder_of_somebody_else_is_refused(near: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(GraphError, match="another user's") as raised, listening(near, "run-1"):
        pass
    assert raised.value.code == "no_socket"


def test_a_link_among_temporary_files_is_not_followed(near: Path, temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / f"forktrail-{os.getuid()}").symlink_to(temporary / "elsewhere")
    with listening(near / ("d" * 100), "run-1") as (_, path):
        assert not path.is_relative_to(temporary)
