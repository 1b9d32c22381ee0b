"""`forktrail handoff`: writes the packet that hands a run on and signs it, or verifies one and its signature."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from forktrail_lab.console.arguments import run_id
from forktrail_lab.console.output import counted, note, print_lines, printable
from forktrail_lab.files import read_file, whole_file
from forktrail_producers.blobs import BlobStore
from forktrail_producers.keys import KeyStore
from forktrail_projectors.handoff.against_log import check_against_log, revoked_by_now
from forktrail_projectors.handoff.check import Checked, check_packet
from forktrail_projectors.handoff.packet import DIGEST_FIELD, build_packet, packet_bytes
from forktrail_projectors.handoff.signature import SIGNATURE_SUFFIX, PacketSigner, check_signature, sign_packet
from forktrail_projectors.projection import open_projection
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import ENVELOPE_LENGTH_MAX

EXAMPLE = """  forktrail handoff $RUN --output packet.json --key olga
  forktrail handoff verify packet.json --signer olga
  forktrail handoff verify packet.json --with-log"""
VERIFY = "verify"
PACKET_BYTES_MAX = 64 * 1024 * 1024


USAGE = """%(prog)s RUN [--output FILE] [--key NAME]
       %(prog)s verify FILE [--signature FILE] [--signer NAME|KEYID] [--with-log]"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = USAGE
    parser.add_argument("run", type=run_id, metavar="RUN", help="run id; or `verify`, to check a packet's file")
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="after `verify`: the packet's file")
    writing = parser.add_argument_group("to write a packet")
    writing.add_argument("--output", type=Path, metavar="FILE", help="write the packet there (default: stdout)")
    writing.add_argument(
        "--key",
        metavar="NAME",
        help=f"sign it with this key, into the output's name with {SIGNATURE_SUFFIX} after it; without a key, a"
        " signature that lies there is deleted, since it is over the packet before",
    )
    verifying = parser.add_argument_group("to verify one")
    verifying.add_argument(
        "--signature",
        type=Path,
        metavar="FILE",
        help=f"the signature to verify (default: the packet's name with {SIGNATURE_SUFFIX} after it, if it is there)",
    )
    verifying.add_argument(
        "--signer", metavar="NAME|KEYID", help="verify that this key's holder has signed, or the key of this id"
    )
    verifying.add_argument("--with-log", action="store_true", help="also check the packet's place in the run's log")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write a packet, or check one.

    Raises:
        NotFound: there is no such file to verify, no such key, or no signature where a signer is asked for.
        InvalidInput: the file is no packet, too large or can't be written, or the words don't fit.
        Corruption: the packet or its signature doesn't hold.
    """
    if arguments.run == VERIFY:
        _insist(arguments.file is not None, "which packet?", "forktrail handoff verify FILE")
        _insist(arguments.key is None, "--key signs a packet that is written", "to ask whose it is, use --signer")
        return _verify(arguments, settings)
    _insist(arguments.file is None, f"{arguments.file} is one word too many", "write the packet with --output FILE")
    _insist(
        not (arguments.signature or arguments.signer),
        "--signature and --signer are for verifying",
        "forktrail handoff verify FILE --signer NAME",
    )
    _insist(
        arguments.key is None or arguments.output is not None, "a signature needs a file to lie by", "--output FILE"
    )
    return _hand_off(arguments, settings)


def _insist(true: bool, message: str, hint: str) -> None:
    if not true:
        raise InvalidInput(message, hint=hint)


def _hand_off(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the packet, and its signature; one whose audit failed is written to be looked at, and not signed."""
    key = KeyStore(settings.keys_dir).load(arguments.key) if arguments.key else None
    with open_projection(settings, arguments.run, say=note) as projection:
        packet = build_packet(projection, BlobStore(str(settings.blobs_dir)))
    data, audit = packet_bytes(packet) + b"\n", packet["audit"]
    envelope = sign_packet(data, packet, key) if key and audit["valid"] else None
    # First, so that none is ever left beside another packet.
    deleted = arguments.output is not None and _remove_signature(arguments.output)
    if arguments.output is None:
        sys.stdout.buffer.write(data)
    else:
        _write(arguments.output, data)
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in packet["summary"].items())
    note(f"packet_sha256 {packet[DIGEST_FIELD]}")
    note(f"{counts}; {_audited(audit)}")
    if envelope is not None:
        _write(signature_file(arguments.output), f"{envelope}\n".encode())
        note(f"signed by key {arguments.key}: {signature_file(arguments.output)}")
    elif key is not None:
        note("not signed: what doesn't hold is not vouched for")
    if deleted and envelope is None:
        note(f"{signature_file(arguments.output)} was over the packet before: deleted")
    return ExitCode.OK if audit["valid"] else ExitCode.CORRUPTION


def _audited(audit: dict[str, Any]) -> str:
    """What was recomputed, and whether it holds; the evidence's bytes are in the store, and not in the packet."""
    names = (("signatures", "signature"), ("receipts", "receipt"), ("evidence_digests", "evidence digest"))
    signatures, receipts, digests = (counted(audit[name]["checked"], one) for name, one in names)
    holds = "all valid" if audit["valid"] else "NOT all valid"
    return f"audit: {signatures}, {receipts} and {digests} recomputed, {holds}"


def signature_file(packet: Path) -> Path:
    """Where the signature of a packet's file lies unless it is told."""
    return packet.with_name(packet.name + SIGNATURE_SUFFIX)


def _remove_signature(packet: Path) -> bool:
    """Delete the signature of the packet that is to be replaced; whether there was one."""
    file = signature_file(packet)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidInput(f"{file} can't be deleted: {error.strerror}", hint="write the packet elsewhere") from error
    return True


def _write(file: Path, data: bytes) -> None:
    try:
        file.write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"{file} can't be written: {error.strerror}") from error


def _verify(arguments: argparse.Namespace, settings: Settings) -> int:
    data = whole_file(arguments.file, PACKET_BYTES_MAX, what="packet")
    checked = check_packet(data)
    signer = _signer(arguments, data, checked)
    place = f"offset {checked.next_offset}, log root {checked.log_root}, state digest {checked.state_digest}"
    signed = "unsigned" if signer is None else f"signed by {printable(str(signer))}"
    if not arguments.with_log:
        place = f"as it says, at {place}; check that, and whether the log went on, with --with-log"
    else:
        since = check_against_log(settings, checked)
        place = f"at {place}: confirmed by the log of {checked.run}; {counted(since, 'record')} came since"
        if signer is not None and since and revoked_by_now(settings, checked.run, signer.key_id):
            signed += ", which was revoked since"
    verified = f"{counted(checked.signatures, 'signature')} and {counted(checked.receipts, 'receipt')}"
    print_lines(
        [
            f"packet_sha256 {checked.packet_sha256}",
            f"holds: {verified} verified from the file alone, which names the evidence and doesn't hold it",
            signed,
            f"trust starts in admin key {checked.admin_key}",
            place,
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in checked.summary.items()),
        ]
    )
    return ExitCode.OK


def _signer(arguments: argparse.Namespace, data: bytes, checked: Checked) -> PacketSigner | None:
    """Whose signature the packet has, which holds; None for a packet without one, where none is asked for."""
    file = arguments.signature or signature_file(arguments.file)
    if not arguments.signature and not file.exists():
        if arguments.signer is None:
            return None
        raise NotFound(
            f"{arguments.file} has no signature: there is no {file}",
            hint=f"whoever hands the run on signs it with `forktrail handoff {checked.run} --output FILE --key NAME`",
        )
    return check_signature(
        data, read_file(file, ENVELOPE_LENGTH_MAX, what="signature"), checked.packet, arguments.signer
    )
