"""A start is refused on a disk that is as good as full."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from forktrail_lab.broker.room import ROOM_BYTES_MIN, check_room, shortage_of
from forktrail_schemas.errors import BrokerError


def with_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)


def test_the_last_bytes_of_a_disk_are_too_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, ROOM_BYTES_MIN)
    check_room(tmp_path)
    assert shortage_of(tmp_path) == ""
    with_free(monkeypatch, ROOM_BYTES_MIN - 1)
    with pytest.raises(BrokerError, match=rf"the disk of {tmp_path} has 16\.8 MB free") as raised:
        check_room(tmp_path)
    assert raised.value.code == "disk_full"
    assert "make room, 17 MB at least" in raised.value.hint
