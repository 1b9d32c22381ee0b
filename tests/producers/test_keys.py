"""Key files: made once, readable by their owner alone, refused otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from forktrail_producers.keys import KeyStore
from forktrail_schemas.errors import InvalidInput, NotFound


def test_a_key_comes_back_as_it_was_made(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys")
    made = store.new("olga")
    assert store.load("olga").key_id == made.key_id
    assert store.names() == ["olga"]


def test_the_file_and_folder_are_their_owners_alone(tmp_path: Path) -> None:
    KeyStore(tmp_path / "keys").new("olga")
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys" / "olga.pem").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
def test_a_key_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    store = KeyStore(tmp_path)
    store.new("olga")
    (tmp_path / "olga.pem").chmod(mode)
    with pytest.raises(InvalidInput, match="chmod 600"):
        store.load("olga")


def test_a_taken_name_is_refused_and_the_key_kept(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    first = store.new("olga")
    with pytest.raises(InvalidInput, match="use it, or choose another name"):
        store.new("olga")
    assert store.load("olga").key_id == first.key_id
    assert [path.name for path in tmp_path.iterdir()] == ["olga.pem"]


def test_a_key_that_can_not_be_written_leaves_no_file_and_its_name_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    store = KeyStore(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.new("olga")
    assert list(tmp_path.iterdir()) == []
    made = store.new("olga")
    assert store.load("olga").key_id == made.key_id


def test_what_a_killed_writer_leaves_is_no_key_and_does_not_hold_its_name(tmp_path: Path) -> None:
    (tmp_path / ".olga.0123").write_bytes(b"-----BEGIN")
    store = KeyStore(tmp_path)
    assert store.names() == []
    made = store.new("olga")
    assert store.load("olga").key_id == made.key_id


def test_a_key_has_its_name_only_once_it_is_whole_and_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, link = os.fsync, os.link

    def noting_fsync(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noting_link(source: Path, target: Path) -> None:
        calls.append("name")
        link(source, target)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "link", noting_link)
    KeyStore(tmp_path).new("olga")
    assert calls == ["file", "name", "folder"]
    assert [path.name for path in tmp_path.iterdir()] == ["olga.pem"]


@pytest.mark.parametrize("name", ["", "..", "../olga", "a/b", "Olga", "a b", ".hidden", "x" * 64])
def test_a_name_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        KeyStore(tmp_path).new(name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_key_says_where_it_was_looked_for_and_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="forktrail key new olga") as raised:
        KeyStore(tmp_path).load("olga")
    assert f"in {tmp_path}" in raised.value.message


def test_a_file_that_is_no_ed25519_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "olga.pem"
    path.write_text("SECRET-LOOKING TEXT")
    path.chmod(0o600)
    with pytest.raises(InvalidInput) as raised:
        KeyStore(tmp_path).load("olga")
    assert "SECRET" not in str(raised.value)


def test_a_signing_key_does_not_show_its_private_bytes(tmp_path: Path) -> None:
    key = KeyStore(tmp_path).new("olga")
    assert key.private_bytes().hex() not in repr(key) + str(vars(key))
