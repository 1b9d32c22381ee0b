"""Lets Maven copy the jars of a pom, and tells how far it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from forktrail_lab.broker.lock import Report
from forktrail_schemas.errors import BrokerError

FILES_PER_REPORT = 40
_BOILERPLATE = ("To see the full stack trace", "Re-run Maven", "For more information", "[Help ", "After correcting")


def find_maven(search_path: str | None = None) -> str:
    """The absolute path of `mvn`.

    Raises:
        BrokerError: it is not on PATH (`maven_missing`).
    """
    maven = shutil.which("mvn", path=search_path)
    if maven is None:
        raise BrokerError(
            "Maven is not installed; it is needed once, for Kafka's jars",
            code="maven_missing",
            hint="put `mvn` on PATH, or set FORKTRAIL_BOOTSTRAP_SERVERS to a Kafka that runs",
        )
    return maven


def copy_jars(maven: str, pom: Path, target: Path, log_file: Path, report: Report) -> None:
    """Copy the runtime jars of `pom` and of all they need into `target`.

    Raises:
        BrokerError: Maven failed (`maven_failed`); `log_file` has all it said.
    """
    command = [maven, "-B", "-Dstyle.color=never", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
    lines: list[str] = []
    with (
        log_file.open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        downloaded = 0
        for line in process.stdout or ():
            log.write(line)
            lines.append(line.rstrip())
            if "Downloaded from" in line:
                downloaded += 1
                if downloaded % FILES_PER_REPORT == 0:
                    report(f"  {downloaded} files downloaded")
    if process.returncode != 0:
        raise BrokerError(
            f"Maven failed: {last_error(lines)}", code="maven_failed", hint=f"all it said is in {log_file}"
        )


def last_error(lines: Iterable[str]) -> str:
    """The last line of Maven's output that says what went wrong."""
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    telling = [line for line in errors if line and not line.startswith(_BOILERPLATE)]
    return telling[-1].split(" -> [Help")[0] if telling else "it gave no reason"
