"""`forktrail handoff`: writes the packet that hands a run on, or verifies one."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from pathlib import Path

from forktrail_lab.console.arguments import run_id
from forktrail_lab.console.output import counted, note, print_lines
from forktrail_producers.blobs import BlobStore
from forktrail_projectors.handoff.against_log import check_against_log
from forktrail_projectors.handoff.check import check_packet
from forktrail_projectors.handoff.packet import DIGEST_FIELD, build_packet, packet_bytes
from forktrail_projectors.projection import open_projection
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound
from forktrail_schemas.settings import Settings

EXAMPLE = """  forktrail handoff $RUN --output packet.json
  forktrail handoff verify packet.json
  forktrail handoff verify packet.json --with-log"""
VERIFY = "verify"
PACKET_BYTES_MAX = 64 * 1024 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", type=run_id, metavar="RUN", help="run id; or `verify`, to check a packet's file")
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="the packet to verify")
    parser.add_argument("--with-log", action="store_true", help="also check the packet's place in the run's log")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the packet there (default: stdout)")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write a packet, or check one.

    Raises:
        NotFound: there is no such file to verify.
        InvalidInput: the file is no packet, too large or can't be written, or the words don't fit.
        Corruption: the packet doesn't hold.
    """
    if arguments.run == VERIFY:
        if arguments.file is None:
            raise InvalidInput("which packet?", hint="forktrail handoff verify FILE")
        return _verify(arguments.file, settings if arguments.with_log else None)
    if arguments.file is not None:
        raise InvalidInput(f"{arguments.file} is one word too many", hint="write the packet with --output FILE")
    with open_projection(settings, arguments.run, say=note) as projection:
        packet = build_packet(projection, BlobStore(str(settings.blobs_dir)))
    data = packet_bytes(packet)
    if arguments.output is None:
        sys.stdout.buffer.write(data + b"\n")
    else:
        _write(arguments.output, data + b"\n")
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in packet["summary"].items())
    audit = packet["audit"]
    note(f"packet_sha256 {packet[DIGEST_FIELD]}")
    note(f"{counts}; audit: {audit['checked']} checked, {'all valid' if audit['valid'] else 'NOT all valid'}")
    return ExitCode.OK if audit["valid"] else ExitCode.CORRUPTION


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"{file} can't be written: {error.strerror}") from error


def _read(file: Path) -> bytes:
    """Read a packet's file, never waiting for a writer nor reading without end."""
    try:
        # Without O_NONBLOCK, opening a FIFO waits until somebody writes to it.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise InvalidInput(f"{file} is not a regular file", hint="give the file that holds the packet")
            data = opened.read(PACKET_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}") from error
    except OSError as error:
        raise InvalidInput(f"{file} can't be read: {error.strerror}") from error
    if len(data) > PACKET_BYTES_MAX:
        raise InvalidInput(f"{file} is larger than {PACKET_BYTES_MAX} bytes", hint="no packet is so large")
    return data


def _verify(file: Path, settings: Settings | None) -> int:
    checked = check_packet(_read(file))
    place = f"offset {checked.next_offset}, log root {checked.log_root}, state digest {checked.state_digest}"
    if settings is None:
        place = f"as it says, at {place}; check that, and whether the log went on, with --with-log"
    else:
        since = check_against_log(settings, checked)
        place = f"at {place}: confirmed by the log of {checked.run}; {counted(since, 'record')} came since"
    verified = f"{counted(checked.signatures, 'signature')} and {counted(checked.receipts, 'receipt')}"
    print_lines(
        [
            f"packet_sha256 {checked.packet_sha256}",
            f"holds: {verified} verified from the file alone",
            f"trust starts in admin key {checked.admin_key}",
            place,
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in checked.summary.items()),
        ]
    )
    return ExitCode.OK
