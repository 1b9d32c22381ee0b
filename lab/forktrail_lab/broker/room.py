"""Whether the disk has room for a broker to start."""

from __future__ import annotations

import shutil
from pathlib import Path

from forktrail_schemas.errors import BrokerError

# A first start takes 0.1 MB, the directory of runs 1 MB. A broker that finds no room when it appends ends at once.
ROOM_BYTES_MIN = 16 * 1024 * 1024
_MEGABYTE = 1_000_000
MAKE_ROOM = (
    f"make room, {ROOM_BYTES_MIN / _MEGABYTE:.0f} MB at least, and start it again: every acknowledged event is there"
)


def check_room(folder: Path) -> None:
    """Refuse a start on a disk that is as good as full; Kafka's own error would find no room in its log either.

    Args:
        folder: a folder on that disk, which exists.

    Raises:
        BrokerError: too few bytes are free (`disk_full`).
    """
    if shortage := shortage_of(folder):
        raise BrokerError(shortage, code="disk_full", hint=MAKE_ROOM)


def shortage_of(folder: Path) -> str:
    """How much is free where that is too little, in words; empty where there is room."""
    free = shutil.disk_usage(folder).free
    return "" if free >= ROOM_BYTES_MIN else f"the disk of {folder} has {free / _MEGABYTE:.1f} MB free"
