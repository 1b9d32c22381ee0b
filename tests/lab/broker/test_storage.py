"""The data folder is formatted once, healed where that loses nothing, and never touched where it holds topics."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from forktrail_lab.broker.storage import cluster_id_of, ensure_formatted, new_cluster_id
from forktrail_schemas.errors import BrokerError

CLUSTER = "Zm9ya3RyYWlsLWNvbXBvcw"
FORMATTER = """
import pathlib, sys
data = pathlib.Path(sys.argv[2])
(data / "__cluster_metadata-0").mkdir(parents=True)
(data / "meta.properties").write_text("#\\nversion=1\\nnode.id=1\\ncluster.id=" + sys.argv[1] + "\\n")
"""
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
    (data / "__cluster_metadata-0" / "00000000000000000000.log").touch()
    (data / "a-topic-0").mkdir()
    (data / "a-topic-0" / "00000000000000000000.log").write_text("events")
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


def test_a_format_that_fails_leaves_nothing_and_is_done_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with pytest.raises(BrokerError, match="No space left on device") as raised:
        ensure_formatted(data, broken_formatter, CLUSTER)
    assert raised.value.code == "format_failed"
    assert not data.exists()
    assert ensure_formatted(data, formatter, CLUSTER) == CLUSTER
