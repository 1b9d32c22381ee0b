"""Finds a Java that can run Kafka."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from forktrail_lab.broker.failure import failure_reason, remedy
from forktrail_schemas.errors import BrokerError

JAVA_MAJOR_MIN = 17
# By itself it would reserve a quarter of the machine's memory, which a limit may forbid though Kafka would fit.
_SMALL = ("-Xmx16m",)
_VERSION = re.compile(r'version "([^"]+)"')
_HINT = f"put Java {JAVA_MAJOR_MIN} or newer on PATH, or set FORKTRAIL_BOOTSTRAP_SERVERS to a Kafka that runs"


@dataclass(frozen=True)
class Java:
    """A Java runtime.

    Attributes:
        executable: absolute path of `java`.
        version: its full version, such as "17.0.15".
    """

    executable: str
    version: str


def find_java(search_path: str | None = None) -> Java:
    """The `java` on PATH.

    Args:
        search_path: folders to look in, joined as in PATH; None is PATH itself.

    Raises:
        BrokerError: there is none or it doesn't run (`java_missing`), it is older than 17 (`java_too_old`), or it gets
            no memory (`java_failed`).
    """
    executable = shutil.which("java", path=search_path)
    if executable is None:
        raise BrokerError("Java is not installed", code="java_missing", hint=_HINT)
    # macOS has a `java` that only says that there is no Java.
    try:
        answer = subprocess.run([executable, *_SMALL, "-version"], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise BrokerError(f"{executable} doesn't run: {error.strerror}", code="java_missing", hint=_HINT) from error
    said = answer.stderr + answer.stdout
    version = _VERSION.search(said)
    if answer.returncode != 0 or version is None:
        reason = failure_reason(said)
        if hint := remedy(reason):
            raise BrokerError(f"{executable} can't start: {reason}", code="java_failed", hint=hint)
        raise BrokerError(f"{executable} doesn't run: {reason}", code="java_missing", hint=_HINT)
    if major_version(version[1]) < JAVA_MAJOR_MIN:
        raise BrokerError(
            f"Java {version[1]} is older than {JAVA_MAJOR_MIN}, which Kafka needs", code="java_too_old", hint=_HINT
        )
    return Java(executable, version[1])


def major_version(version: str) -> int:
    """The feature release of a Java version: 17 of "17.0.15", 8 of "1.8.0_392"; 0 if it can't be told."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if numbers[:1] == [1] and len(numbers) > 1:
        return numbers[1]
    return numbers[0] if numbers else 0
