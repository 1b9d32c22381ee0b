from __future__ import annotations

import os
from pathlib import Path

import pytest

from forktrail_lab.commands import schema
from forktrail_lab.exchange.targets import load_targets
from forktrail_lab.files import read_file, whole_file
from forktrail_lab.registry.file import load_registry
from forktrail_schemas.errors import InvalidInput, NotFound


def test_a_file_is_read_up_to_a_byte_more_than_it_may_have(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for size, read in ((0, 0), (9, 9), (10, 10), (11, 11), (1_000, 11)):
        file.write_bytes(b"a" * size)
        assert len(read_file(file, 10)) == read


def test_a_larger_file_is_refused_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * 10)
    assert whole_file(file, 10) == b"a" * 10
    file.write_bytes(b"a" * 11)
    with pytest.raises(InvalidInput, match="larger than 10 bytes"):
        whole_file(file, 10)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path, Path("/dev/zero")):
        for read in (load_registry, load_targets, schema._read):
            with pytest.raises(InvalidInput):
                read(path)


def test_a_missing_file_is_named() -> None:
    for read in (load_registry, load_targets, schema._read):
        with pytest.raises(NotFound, match="no/where"):
            read(Path("no/where"))
