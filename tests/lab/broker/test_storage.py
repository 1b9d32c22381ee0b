"""The data folder is formatted once, healed where that loses nothing, and never touched where it holds topics."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forktrail_lab.broker.data_check import check_undamaged
from forktrail_lab.broker.storage import cluster_id_of, ensure_formatted, new_cluster_id
from forktrail_schemas.errors import BrokerError

CLUSTER = "Zm9ya3RyYWlsLWNvbXBvcw"
FORMATTER = """
import pathlib, sys
data = pathlib.Path(sys.argv[2])
(data / "__cluster_metadata-0").mkdir(parents=True)
lines = ["#", "version=1", "node.id=1", "directory.id=DXalVro8UNMIiqcTPDVZxg", "cluster.id=" + sys.argv[1], ""]
(data / "meta.properties").write_text("\\n".join(lines))
"""
# What Kafka 4.4.0 wrote when it was given the topics a-topic and b-topic, and the id of the first.
METADATA_LOG = Path(__file__).with_name("metadata-4.4.0.log").read_bytes()
DIRECTORY = "DXalVro8UNMIiqcTPDVZxg"
A_TOPIC = "version: 0\ntopic_id: cIcDVyC2RI6UVAdNwoz_3g"
BROKEN_FORMATTER = """
import pathlib, sys
pathlib.Path(sys.argv[2]).mkdir()
sys.exit("No space left on device")
"""


def formatter(cluster_id: str, data: Path) -> list[str]:
    return [sys.executable, "-c", FORMATTER, cluster_id, str(data)]


def broken_formatter(cluster_id: str, data: Path) -> list[str]:
    return [sys.executable, "-c", BROKEN_FORMATTER, cluster_id, str(data)]


def never(cluster_id: str, data: Path) -> list[str]:
    raise AssertionError("the folder must not be formatted")


def used_data(folder: Path) -> Path:
    """A data folder that a broker has used, with one topic."""
    data = folder / "data"
    ensure_formatted(data, formatter, CLUSTER)
    (data / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(METADATA_LOG)
    (data / "a-topic-0").mkdir()
    (data / "a-topic-0" / "00000000000000000000.log").write_text("events")
    (data / "a-topic-0" / "partition.metadata").write_text(A_TOPIC)
    return data


def test_a_cluster_id_is_sixteen_bytes_in_base64url() -> None:
    identities = {new_cluster_id() for _ in range(500)}
    assert len(identities) == 500
    assert {len(identity) for identity in identities} == {22}
    assert {len(base64.urlsafe_b64decode(identity + "==")) for identity in identities} == {16}
    assert not [identity for identity in identities if identity.startswith("-")]


def test_a_new_folder_is_formatted_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert cluster_id_of(data) is None
    assert ensure_formatted(data, formatter, CLUSTER) == CLUSTER
    assert cluster_id_of(data) == CLUSTER
    assert ensure_formatted(data, never, "another") == CLUSTER


def test_a_used_folder_keeps_its_identity_and_its_topics(tmp_path: Path) -> None:
    data = used_data(tmp_path)
    assert ensure_formatted(data, never, "another") == CLUSTER
    assert (data / "a-topic-0" / "00000000000000000000.log").read_text() == "events"


@pytest.mark.parametrize("left", ["nothing", "checkpoint", "metadata log", "empty identity"])
def test_a_half_formatted_folder_without_topics_is_healed(tmp_path: Path, left: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    match left:
        case "checkpoint":
            (data / "bootstrap.checkpoint").touch()
        case "metadata log":
            (data / "__cluster_metadata-0").mkdir()
            (data / "__cluster_metadata-0" / "00000000000000000000.log").touch()
        case "empty identity":
            (data / "meta.properties").touch()
    assert ensure_formatted(data, formatter, CLUSTER) == CLUSTER
    assert not (data / "bootstrap.checkpoint").exists()


@pytest.mark.parametrize("lost", ["meta.properties", "metadata log", "whole metadata folder", "cluster.id"])
def test_topics_without_their_identity_or_metadata_are_refused_and_stay(tmp_path: Path, lost: str) -> None:
    data = used_data(tmp_path)
    match lost:
        case "meta.properties":
            (data / "meta.properties").unlink()
        case "metadata log":
            (data / "__cluster_metadata-0" / "00000000000000000000.log").unlink()
        case "whole metadata folder":
            (data / "__cluster_metadata-0").rename(tmp_path / "elsewhere")
        case _:
            (data / "meta.properties").write_text("version=1\n")
    with pytest.raises(BrokerError, match="a-topic-0") as raised:
        ensure_formatted(data, never, "another")
    assert raised.value.code == "data_damaged"
    assert (data / "a-topic-0" / "00000000000000000000.log").read_text() == "events"


def in_file(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Damage by other words in a file of the data folder."""

    def damage(data: Path) -> None:
        text = (data / name).read_text()
        assert old in text
        (data / name).write_text(text.replace(old, new))

    return damage


def cut(name: str, length: int) -> Callable[[Path], object]:
    """Damage by cutting a file of the data folder."""
    return lambda data: (data / name).write_bytes((data / name).read_bytes()[:length])


IDENTITY, METADATA = "meta.properties", "__cluster_metadata-0/00000000000000000000.log"
# Kafka 4.4.0 starts on each of these but the first, and then shows none of the events.
OUT_OF_SIGHT: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "another node": (in_file(IDENTITY, "node.id=1", "node.id=7"), "is that of node 7", f"directory.id={DIRECTORY}"),
    "another folder": (
        in_file(IDENTITY, DIRECTORY, "Zm9ya3RyYWlsLWNvbXBvcw"),
        "is that of another data folder",
        f"directory.id={DIRECTORY}",
    ),
    "no folder": (in_file(IDENTITY, f"directory.id={DIRECTORY}", ""), "its directory.id is none", "back from a copy"),
    "metadata emptied": (cut(METADATA, 0), "holds events of a topic", "of the same time"),
    "metadata cut": (cut(METADATA, 1_000), "holds events of a topic", "of the same time"),
    "topic of another time": (
        in_file("a-topic-0/partition.metadata", "cIcD", "dIcD"),
        "holds events of a topic dIcD",
        "of the same time",
    ),
    "topic without its id": (
        lambda data: (data / "a-topic-0" / "partition.metadata").unlink(),
        "no whole partition.metadata",
        "that file back",
    ),
    "topic with half its id": (cut("a-topic-0/partition.metadata", 12), "no whole partition.metadata", "that file"),
}


@pytest.mark.parametrize("name", OUT_OF_SIGHT)
def test_damage_that_would_put_events_out_of_sight_is_refused_and_told(tmp_path: Path, name: str) -> None:
    data = used_data(tmp_path)
    check_undamaged(data)
    damage, told, hint = OUT_OF_SIGHT[name]
    damage(data)
    with pytest.raises(BrokerError, match=told) as raised:
        ensure_formatted(data, never, "another")
    assert raised.value.code == "data_damaged"
    assert hint in raised.value.hint
    assert (data / "a-topic-0" / "00000000000000000000.log").read_text() == "events"


@pytest.mark.parametrize("left", ["of no topic", "being deleted", "set aside"])
def test_folders_without_events_or_that_kafka_has_done_with_are_no_hindrance(tmp_path: Path, left: str) -> None:
    data = used_data(tmp_path)
    name = {"of no topic": "new-0", "being deleted": f"x-0.{'0' * 32}-delete", "set aside": f"x-0.{'0' * 32}-stray"}[
        left
    ]
    (data / name).mkdir()
    (data / name / "00000000000000000000.log").write_text("" if left == "of no topic" else "events")
    assert ensure_formatted(data, never, "another") == CLUSTER


def test_events_that_kafka_set_aside_are_not_formatted_away(tmp_path: Path) -> None:
    aside = tmp_path / "data" / f"x-0.{'0' * 32}-stray"
    aside.mkdir(parents=True)
    with pytest.raises(BrokerError, match=r"no whole meta\.properties"):
        ensure_formatted(tmp_path / "data", never, "another")
    assert aside.is_dir()


def test_an_identity_of_zeros_is_none(tmp_path: Path) -> None:
    """As a file may be after a loss of power."""
    data = used_data(tmp_path)
    (data / "meta.properties").write_bytes(bytes(122) + b"\xff\xfe")
    assert cluster_id_of(data) is None
    with pytest.raises(BrokerError, match=r"no whole meta\.properties") as raised:
        ensure_formatted(data, never, "another")
    assert f"directory.id={DIRECTORY}" in raised.value.hint


def test_a_formatter_left_by_a_killed_start_does_not_get_in_the_way(tmp_path: Path) -> None:
    """It goes on writing into the folder that it was given, while the next start formats in one of its own."""
    given: list[Path] = []

    def killed(cluster_id: str, data: Path) -> list[str]:
        given.append(data)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_formatted(tmp_path / "data", killed, "of the killed start")

    def while_it_goes_on(cluster_id: str, data: Path) -> list[str]:
        given.append(data)
        given[0].mkdir(exist_ok=True)
        (given[0] / "meta.properties").write_text("cluster.id=of the killed start\n")
        return formatter(cluster_id, data)

    assert ensure_formatted(tmp_path / "data", while_it_goes_on, CLUSTER) == CLUSTER
    assert given[0] != given[1]
    given[0].mkdir(exist_ok=True)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    ensure_formatted(tmp_path / "data", formatter, CLUSTER)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_format_that_fails_leaves_nothing_and_is_done_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(BrokerError, match="No space left on device") as raised:
        ensure_formatted(data, broken_formatter, CLUSTER)
    assert raised.value.code == "format_failed"
    assert "make room" in raised.value.hint
    assert not data.exists()
    assert ensure_formatted(data, formatter, CLUSTER) == CLUSTER
