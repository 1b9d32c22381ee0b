"""A class archive is used only as it was sealed: Java crashes on a truncated one."""

from __future__ import annotations

from pathlib import Path

from forktrail_lab.broker.class_archive import ClassArchive
from forktrail_lab.broker.java import Java


def test_only_a_sealed_archive_of_the_sealed_size_is_used(tmp_path: Path) -> None:
    archive = ClassArchive.of(tmp_path, Java("/java", "17.0.15"))
    archive.seal()
    assert archive.use_flags() == []
    archive.path.write_bytes(b"classes")
    assert archive.use_flags() == [], "whoever wrote it may be at it still"
    archive.seal()
    assert archive.use_flags() == [f"-XX:SharedArchiveFile={archive.path}"]
    archive.path.write_bytes(b"class")
    assert archive.use_flags() == []


def test_each_java_version_has_its_own_archive(tmp_path: Path) -> None:
    older, newer = (ClassArchive.of(tmp_path, Java("/java", version)) for version in ("17.0.15", "17.0.16"))
    older.path.write_bytes(b"classes")
    older.seal()
    assert older.use_flags()
    assert newer.use_flags() == []
    assert older.seal_file != newer.seal_file
