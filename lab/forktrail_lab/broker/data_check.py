"""Looks for damage in a data folder that Kafka would start on all the same, and put events out of sight.

Kafka 4.4 renames the folder of a topic that its metadata log doesn't know, or that lost the file with its id, to
`…-stray`, and begins the topic anew, empty. On the identity of another data folder it starts and serves no partition.
None of this ends the start, so it is refused beforehand, before anything is touched.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from forktrail_lab.broker.metadata_log import METADATA_FOLDER, KnownTopics, known_topics
from forktrail_schemas.errors import BrokerError

METADATA_FILE = "meta.properties"
PARTITION_FILE = "partition.metadata"
NODE_ID = "1"
# A folder that Kafka is about to delete, or has set aside, has a suffix after the number.
_PARTITION_FOLDER = re.compile(r".+-\d+")
_TOPIC_ID = re.compile(r"^topic_id: (\S+)$", re.MULTILINE)
_BEGIN_ANEW = "or move the folder away to begin anew"


def properties_of(data: Path) -> dict[str, str]:
    """The lines `name=value` of a data folder's identity; none where there is no such file."""
    try:
        lines = (data / METADATA_FILE).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    return {name: value for name, _, value in (line.partition("=") for line in lines) if name and value}


def topic_folders(data: Path) -> list[Path]:
    """Every folder in a data folder but that of the metadata log, sorted: partitions, and such as Kafka set aside."""
    if not data.is_dir():
        return []
    return sorted(path for path in data.iterdir() if path.is_dir() and path.name != METADATA_FOLDER)


def check_writable(data: Path) -> None:
    """Refuse a data folder that this user can't write.

    Raises:
        BrokerError: it, or something in it, belongs to another, or is on a disk mounted read-only (`files_unusable`).
    """
    for path in (data, *sorted(data.iterdir())) if data.is_dir() else ():
        if not os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)):
            raise BrokerError(
                f"{path} can't be written by whoever starts the broker",
                code="files_unusable",
                hint="start it as the user it belongs to, or `chown -R` the folder; and is its disk writable?",
            )


def check_undamaged(data: Path) -> None:
    """Refuse a data folder whose events Kafka would put out of sight.

    To be called on a formatted folder.

    Raises:
        BrokerError: its identity is another's, or its metadata log doesn't know a topic that has events
            (`data_damaged`); the message says which, and nothing was touched.
    """
    known = known_topics(data / METADATA_FOLDER)
    _check_identity(data, known)
    for folder in topic_folders(data):
        if _PARTITION_FOLDER.fullmatch(folder.name) and _holds_events(folder):
            _check_known(folder, known)


def restoring_hint(data: Path) -> str:
    """What a lost identity has to say, as far as the metadata log tells: any cluster id will do, the folder's not."""
    directories = known_topics(data / METADATA_FOLDER).directories
    anew = (
        f", or write it anew with the four lines version=1, node.id={NODE_ID}, directory.id={next(iter(directories))} "
        "and cluster.id= with any id of Kafka's"
        if len(directories) == 1
        else ""
    )
    return f"put {METADATA_FILE} back from a copy{anew}, {_BEGIN_ANEW}"


def _check_identity(data: Path, known: KnownTopics) -> None:
    properties = properties_of(data)
    if (node := properties.get("node.id")) != NODE_ID:
        raise _damaged(
            f"{data / METADATA_FILE} is that of node {node or 'none'}, and this broker is node {NODE_ID}",
            restoring_hint(data),
        )
    directory = properties.get("directory.id")
    if known.directories and directory not in known.directories:
        raise _damaged(
            f"{data / METADATA_FILE} is that of another data folder: its directory.id is {directory or 'none'}",
            restoring_hint(data),
        )


def _check_known(folder: Path, known: KnownTopics) -> None:
    topic = _topic_id(folder)
    if topic is None:
        raise _damaged(
            f"{folder} holds events but no whole {PARTITION_FILE}, without which Kafka would set them aside",
            f"put that file back from a copy, {_BEGIN_ANEW}",
        )
    if topic not in known.ids:
        raise _damaged(
            f"{folder} holds events of a topic {topic} that {METADATA_FOLDER} doesn't know, being cut short or older; "
            "Kafka would set them aside",
            f"put {METADATA_FOLDER} back from a copy of the same time, {_BEGIN_ANEW}",
        )


def _holds_events(folder: Path) -> bool:
    return any(path.stat().st_size > 0 for path in folder.glob("*.log"))


def _topic_id(folder: Path) -> str | None:
    try:
        found = _TOPIC_ID.search((folder / PARTITION_FILE).read_text(errors="replace"))
    except FileNotFoundError:
        return None
    return found[1] if found else None


def _damaged(what: str, hint: str) -> BrokerError:
    return BrokerError(what, code="data_damaged", hint=hint)
