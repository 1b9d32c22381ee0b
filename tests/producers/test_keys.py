"""Key files: made once, readable by their owner alone, refused otherwise."""

from __future__ import annotations

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
