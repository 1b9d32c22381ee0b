"""Formats the broker's data folder, once."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from forktrail_lab.broker.data_check import (
    METADATA_FILE,
    check_undamaged,
    check_writable,
    properties_of,
    restoring_hint,
    topic_folders,
)
from forktrail_lab.broker.ended import explained
from forktrail_lab.broker.metadata_log import METADATA_FOLDER
from forktrail_schemas.errors import BrokerError


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
    return properties_of(data).get("cluster.id")


def ensure_formatted(data: Path, format_command: Callable[[str, Path], list[str]], cluster_id: str) -> str:
    """Format the data folder unless it is formatted; returns its cluster id.

    Kafka formats a folder beside `data`, which takes its name when it is complete, so a format that was killed
    leaves nothing. Each attempt has a folder of its own, for the formatter of a start that was killed may still be at
    work. A folder that holds topics is never touched, and it is refused where Kafka would hide their events.

    Args:
        data: the data folder.
        format_command: the command that formats the folder it is given with the cluster id it is given; what it needs
            lies beside that folder, under names that begin with the folder's.
        cluster_id: the id that a folder gets that isn't formatted yet.

    Raises:
        BrokerError: the folder holds topics, but lacks its identity or metadata log or has another's
            (`data_damaged`), it can't be written (`files_unusable`), or Kafka's formatter failed (`format_failed`).
    """
    data = data.resolve()
    check_writable(data)
    present = cluster_id_of(data)
    has_metadata = any((data / METADATA_FOLDER).glob("*.log"))
    topics = topic_folders(data)
    if topics and not (present and has_metadata):
        raise BrokerError(
            f"{data} holds topics ({topics[0].name}, {len(topics)} partitions in all) but no whole "
            f"{METADATA_FOLDER if present else METADATA_FILE}",
            code="data_damaged",
            hint=f"put {METADATA_FOLDER} back from a copy, or move the folder away to begin anew"
            if present
            else restoring_hint(data),
        )
    if present:
        check_undamaged(data)
        return present
    _format(data, format_command, cluster_id)
    return cluster_id


def _format(data: Path, format_command: Callable[[str, Path], list[str]], cluster_id: str) -> None:
    _remove_partial(data)
    partial = data.with_name(f"{data.name}.partial-{cluster_id}")
    answer = subprocess.run(format_command(cluster_id, partial), capture_output=True, text=True, errors="replace")
    if answer.returncode != 0 or cluster_id_of(partial) != cluster_id:
        why = explained(answer.stdout + answer.stderr, data.parent)
        raise BrokerError(f"Kafka can't format {data}: {why.reason}", code="format_failed", hint=why.remedy)
    shutil.rmtree(data, ignore_errors=True)
    partial.rename(data)
    _remove_partial(data)


def _remove_partial(data: Path) -> None:
    """Remove what attempts left: each one's folder, and its configuration beside it."""
    for left in data.parent.glob(f"{data.name}.partial*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
