"""`forktrail handoff` with a signature: written beside the packet, checked with it, missed where it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forktrail_producers.blobs import BlobStore
from forktrail_producers.keys import KeyStore
from forktrail_schemas.settings import Settings
from support.command_line import CommandLine
from support.staff import observe, report

UNSIGNED, SIGNED_BY = "\nunsigned\n", "\nsigned by "


@pytest.fixture
def packet(tmp_path: Path) -> Path:
    return tmp_path / "packet.json"


@pytest.fixture
def signature(packet: Path) -> Path:
    return packet.with_name("packet.json.sig")


def olgas(settings: Settings) -> str:
    return KeyStore(settings.keys_dir).load("olga").key_id


def test_a_packet_is_signed_beside_it_and_both_verify(
    forktrail: CommandLine, run: str, settings: Settings, packet: Path, signature: Path, tmp_path: Path
) -> None:
    said = forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    assert f"signed by key olga: {signature}" in said.err
    line = f"{SIGNED_BY}olga (operator), key {olgas(settings)}\n"
    assert line in forktrail.ok("handoff", "verify", str(packet)).out
    assert line in forktrail.ok("handoff", "verify", str(packet), "--with-log").out
    for signer in ("olga", olgas(settings)):
        assert line in forktrail.ok("handoff", "verify", str(packet), "--signer", signer).out
    elsewhere = tmp_path / "elsewhere"
    signature.rename(elsewhere)
    assert line in forktrail.ok("handoff", "verify", str(packet), "--signature", str(elsewhere)).out


def test_a_packet_without_a_signature_verifies_and_says_so_unless_one_is_asked_for(
    forktrail: CommandLine, run: str, packet: Path, signature: Path
) -> None:
    forktrail.ok("handoff", run, "--output", str(packet))
    assert not signature.exists()
    assert UNSIGNED in forktrail.ok("handoff", "verify", str(packet)).out
    missing = {
        "--signer": f"{packet} has no signature: there is no {signature}",
        "--signature": "there is no signature",
    }
    for option, value in (("--signer", "olga"), ("--signature", str(signature))):
        said = forktrail("handoff", "verify", str(packet), option, value)
        assert (said.code, said.out, said.err.count("\n")) == (3, "", 1)
        assert missing[option] in said.err


def test_a_packet_that_was_written_anew_is_not_covered_by_the_old_signature(
    forktrail: CommandLine, run: str, packet: Path
) -> None:
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    report(forktrail, run)
    packet.write_text(forktrail.ok("handoff", run).out)
    said = forktrail("handoff", "verify", str(packet))
    assert (said.code, said.out, said.err.count("\n")) == (4, "", 1)
    assert said.err.startswith("forktrail handoff: signature_invalid: ")
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "ravi")
    assert f"{SIGNED_BY}ravi (reviewer)" in forktrail.ok("handoff", "verify", str(packet)).out
    assert forktrail("handoff", "verify", str(packet), "--signer", "olga").code == 4


def test_an_unsigned_packet_over_a_signed_one_takes_its_signature_away_and_says_so(
    forktrail: CommandLine, run: str, packet: Path, signature: Path
) -> None:
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    report(forktrail, run)
    said = forktrail.ok("handoff", run, "--output", str(packet))
    assert f"{signature} was over the packet before: deleted" in said.err
    assert not signature.exists()
    assert UNSIGNED in forktrail.ok("handoff", "verify", str(packet)).out
    assert "deleted" not in forktrail.ok("handoff", run, "--output", str(packet)).err
    assert "deleted" not in forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga").err


def test_where_the_old_signature_cannot_be_taken_away_no_packet_is_written(
    forktrail: CommandLine, run: str, packet: Path, signature: Path
) -> None:
    signature.mkdir()
    said = forktrail("handoff", run, "--output", str(packet))
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"{signature} can't be deleted" in said.err
    assert not packet.exists()


def test_a_changed_packet_is_refused_whatever_its_signature_says(
    forktrail: CommandLine, run: str, packet: Path
) -> None:
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    packet.write_bytes(packet.read_bytes().replace(b'"r1"', b'"r2"'))
    said = forktrail("handoff", "verify", str(packet))
    assert (said.code, said.out) == (4, "")
    assert "packet_invalid" in said.err


def test_a_key_that_is_revoked_later_is_told_with_the_log(forktrail: CommandLine, run: str, packet: Path) -> None:
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    forktrail.ok("key", "revoke", run, "olga", "--reason", "lost")
    assert "revoked" not in forktrail.ok("handoff", "verify", str(packet)).out
    assert ", which was revoked since\n" in forktrail.ok("handoff", "verify", str(packet), "--with-log").out
    said = forktrail("handoff", run, "--output", str(packet.with_name("later.json")), "--key", "olga")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert f"was revoked in {run}" in said.err
    assert not packet.with_name("later.json").exists()


@pytest.mark.parametrize("name", ["stranger", "nobody"])
def test_a_key_that_is_not_the_runs_signs_and_writes_nothing(
    forktrail: CommandLine, run: str, packet: Path, name: str
) -> None:
    forktrail.ok("key", "new", "stranger")
    said = forktrail("handoff", run, "--output", str(packet), "--key", name)
    assert said.code == {"stranger": 2, "nobody": 3}[name]
    assert not list(packet.parent.glob("packet*"))


def test_a_packet_whose_audit_failed_is_written_and_not_signed(
    forktrail: CommandLine, run: str, settings: Settings, packet: Path, signature: Path
) -> None:
    case = report(forktrail, run)
    forktrail.ok("approve", run, case, "--key", "olga")
    observe(settings, run, case, "inconclusive")
    forktrail.ok("handoff", run, "--output", str(packet), "--key", "olga")
    signature.unlink()
    (row,) = json.loads(packet.read_bytes())["inconclusive_observations"]
    blob = settings.blobs_dir / row["evidence"]["sha256"][:2] / row["evidence"]["sha256"]
    assert BlobStore(str(settings.blobs_dir)).has(blob.name)
    blob.unlink()
    said = forktrail("handoff", run, "--output", str(packet), "--key", "olga")
    assert said.code == 4
    assert "not signed" in said.err
    assert packet.exists()
    assert not signature.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run-1", "--key", "olga"),
        ("run-1", "--signer", "olga"),
        ("run-1", "--signature", "x.sig"),
        ("verify", "packet.json", "--key", "olga"),
        ("verify",),
    ],
)
def test_words_that_do_not_fit_are_a_usage_error_before_anything_is_asked(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORKTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("FORKTRAIL_BOOTSTRAP_SERVERS", "127.0.0.1:1")  # where nothing answers
    said = CommandLine(capsys)("handoff", *words)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said


@pytest.mark.parametrize("file", ["a folder", "a large file"])
def test_a_signature_that_is_no_small_file_is_refused_and_not_read_on(
    forktrail: CommandLine, run: str, packet: Path, signature: Path, file: str
) -> None:
    forktrail.ok("handoff", run, "--output", str(packet))
    if file == "a folder":
        signature.mkdir()
    else:
        with signature.open("wb") as sparse:
            sparse.truncate(1 << 30)
    said = forktrail("handoff", "verify", str(packet))
    code = {"a folder": 2, "a large file": 4}[file]  # what is read and is no signature doesn't hold
    assert (said.code, said.out, said.err.count("\n")) == (code, "", 1)
