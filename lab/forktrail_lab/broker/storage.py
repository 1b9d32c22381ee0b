"""Formats the broker's data folder, once."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from forktrail_lab.broker.failure import failure_reason
from forktrail_schemas.errors import BrokerError

METADATA_FILE = "meta.properties"
METADATA_LOG = "__cluster_metadata-0"


def new_cluster_id() -> str:
    """A random cluster id: 16 bytes in base64url, without padding, as Kafka writes a UUID.

    Kafka reserves two UUIDs, both all zeros but for the last bits, and can't pass an id that begins with a dash
    on a command line; so can't we.
    """
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith(("-", "AAAA")):
            return text


def cluster_id_of(data: Path) -> str | None:
    """The cluster id that a data folder was formatted with; None if it isn't formatted."""
    try:
        lines = (data / METADATA_FILE).read_text().splitlines()
    except FileNotFoundError:
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None) or None


def ensure_formatted(data: Path, format_command: Callable[[str, Path], list[str]], cluster_id: str) -> str:
    """Format the data folder unless it is formatted; returns its cluster id.

    Kafka formats a folder beside `data`, which takes its name when it is complete, so a format that was killed
    leaves nothing. A folder that holds topics is never touched; and it is refused without its metadata log, for
    Kafka would start on it, find no topic in the new metadata log and move every topic's folder aside.

    Args:
        data: the data folder.
        format_command: the command that formats the folder it is given with the cluster id it is given.
        cluster_id: the id that a folder gets that isn't formatted yet.

    Raises:
        BrokerError: the folder holds topics, but lacks its identity or metadata log (`data_damaged`), or Kafka's
            formatter failed (`format_failed`).
    """
    data = data.resolve()
    present = cluster_id_of(data)
    missing = METADATA_FILE if present is None else METADATA_LOG
    if present and any((data / METADATA_LOG).glob("*.log")):
        return present
    if topics := _topic_folders(data):
        raise BrokerError(
            f"{data} holds topics ({topics[0]}, {len(topics)} partitions in all) but no whole {missing}",
            code="data_damaged",
            hint=f"put {missing} back from a copy, or move the folder away to begin anew",
        )
    if present:
        return present
    partial = data.with_name(data.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    answer = subprocess.run(format_command(cluster_id, partial), capture_output=True, text=True, errors="replace")
    if answer.returncode != 0 or cluster_id_of(partial) != cluster_id:
        raise BrokerError(
            f"Kafka can't format {data}: {failure_reason(answer.stdout + answer.stderr)}", code="format_failed"
        )
    shutil.rmtree(data, ignore_errors=True)
    partial.rename(data)
    return cluster_id


def _topic_folders(data: Path) -> list[str]:
    if not data.is_dir():
        return []
    return sorted(path.name for path in data.iterdir() if path.is_dir() and path.name != METADATA_LOG)
