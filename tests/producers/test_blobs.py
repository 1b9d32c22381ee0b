"""The blob store: what it returns is what was stored, durably and under one name, or an error that says which."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from forktrail_producers.blobs import BlobStore
from forktrail_schemas.errors import Corruption, EvidenceMissing, ExitCode, ForktrailError, InvalidInput

# SHA-256 of b"abc", from FIPS 180-2, appendix B.1.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture(params=["path", "file URL", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    roots = {
        "path": str(tmp_path / "blobs"),
        "file URL": f"file://{tmp_path}/blobs",
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    return BlobStore(roots[request.param])


def test_bytes_come_back_by_their_sha256(store: BlobStore) -> None:
    assert store.put(b"abc") == ABC
    assert store.get(ABC) == b"abc"
    assert store.has(ABC)


def test_no_bytes_are_bytes_too(store: BlobStore) -> None:
    assert store.get(store.put(b"")) == b""


def test_putting_the_same_bytes_again_changes_nothing(store: BlobStore) -> None:
    assert store.put(b"abc") == store.put(b"abc") == ABC
    assert store.get(ABC) == b"abc"


def test_a_missing_blob_is_evidence_missing_and_never_empty(store: BlobStore) -> None:
    assert not store.has(EMPTY)
    with pytest.raises(EvidenceMissing) as caught:
        store.get(EMPTY)
    assert caught.value.exit_code == ExitCode.CORRUPTION


@pytest.mark.parametrize("name", ["", "abc", ABC.upper(), f"{ABC}\n", f"../{ABC[3:]}", ABC[:-1] + "/"])
def test_a_name_that_is_no_digest_is_refused(store: BlobStore, name: str) -> None:
    for ask in (store.get, store.has):
        with pytest.raises(InvalidInput):
            ask(name)


def test_a_blob_lies_in_the_folder_of_its_first_two_digits_readable_by_its_owner_alone(tmp_path: Path) -> None:
    BlobStore(str(tmp_path)).put(b"abc")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [tmp_path / "ba" / ABC]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("other", [b"", b"ab", b"abd", b"abcd"])
def test_other_bytes_under_a_name_are_corruption_until_they_are_put_again(tmp_path: Path, other: bytes) -> None:
    store = BlobStore(str(tmp_path))
    store.put(b"abc")
    (tmp_path / "ba" / ABC).write_bytes(other)
    with pytest.raises(Corruption) as caught:
        store.get(ABC)
    assert not isinstance(caught.value, EvidenceMissing)
    store.put(b"abc")
    assert store.get(ABC) == b"abc"


def test_file_and_folder_are_synced_before_put_returns_and_the_file_before_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noting_fsync(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noting_replace(path: Path, target: Path) -> Path:
        calls.append("rename")
        return replace(path, target)

    store = BlobStore(str(tmp_path))
    store.put(b"first")
    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(Path, "replace", noting_replace)
    store.put(b"abc")
    assert calls == ["folder", "file", "rename", "folder"]  # its new folder's name is synced first
    store.put(b"abc")
    assert calls[4:] == ["folder"]


def test_a_put_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(28, "No space left on device")

    store = BlobStore(str(tmp_path))
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(ForktrailError, match="blob_store_unavailable"):
        store.put(b"abc")
    assert not store.has(ABC)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_a_killed_writer_leaves_is_never_read(tmp_path: Path) -> None:
    store = BlobStore(str(tmp_path))
    (tmp_path / "ba").mkdir()
    (tmp_path / "ba" / f".{ABC}.0123").write_bytes(b"ab")
    assert not store.has(ABC)
    store.put(b"abc")
    assert store.get(ABC) == b"abc"


def test_threads_that_put_the_same_and_other_bytes_at_once_all_get_theirs(tmp_path: Path) -> None:
    blobs = [bytes([number]) * 50_000 for number in range(4)]
    digests: list[str] = []
    start = threading.Barrier(16)

    def write(data: bytes) -> None:
        start.wait()
        digests.append(BlobStore(str(tmp_path / "blobs")).put(data))

    threads = [threading.Thread(target=write, args=(blobs[number % 4],)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(digests) == sorted(hashlib.sha256(data).hexdigest() for data in blobs * 4)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 4
    assert all(BlobStore(str(tmp_path / "blobs")).get(digest) for digest in digests)


def test_processes_that_put_the_same_bytes_at_once_agree(tmp_path: Path) -> None:
    code = "import sys; from forktrail_producers.blobs import BlobStore; print(BlobStore(sys.argv[1]).put(b'abc'))"
    command = [sys.executable, "-c", code, str(tmp_path / "blobs")]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [writer.communicate(timeout=60)[0].strip() for writer in writers] == [ABC] * 4
    assert BlobStore(str(tmp_path / "blobs")).get(ABC) == b"abc"


def test_an_unknown_kind_of_store_is_refused_and_a_missing_package_is_named() -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        BlobStore("nowhere://bucket/prefix")


def test_naming_a_store_touches_nothing(tmp_path: Path) -> None:
    BlobStore(str(tmp_path / "blobs"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a::b", "memory::b", "file:x", "~", "a:b", "x{0}*?[y]", "a#b%20c"])
def test_a_path_is_taken_literally_whatever_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for root in (tmp_path / "home" / name, Path(name)):
        store = BlobStore(str(root))
        store.put(b"abc")
        assert (store.get(ABC), store.has(ABC)) == (b"abc", True)
        assert [path for path in root.absolute().rglob("*") if path.is_file()] == [root.absolute() / "ba" / ABC]
    assert {path.name for path in tmp_path.iterdir()} == {"home", name}


def test_an_absolute_path_is_never_a_url(tmp_path: Path) -> None:
    BlobStore(f"{tmp_path}/memory://x").put(b"abc")
    assert (tmp_path / "memory:" / "x" / "ba" / ABC).read_bytes() == b"abc"
