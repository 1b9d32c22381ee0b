"""Kafka's jars: resolved once, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

from forktrail_lab.broker import maven
from forktrail_lab.broker.lock import Report, exclusive
from forktrail_schemas.errors import BrokerError

STAMP = "resolved.json"


def ensure_jars(
    libs: Path, pom: Path, log_file: Path, report: Report, search_path: str | None = None
) -> tuple[Path, ...]:
    """The jars of `pom` in `libs`, resolved by Maven if they are not there yet, sorted by name.

    Maven writes into a folder beside `libs` that takes its name when it is complete, so a resolve that was
    killed leaves nothing that passes for whole. Jars are resolved again when the pom has changed, or when a
    jar is missing or of another size. Processes that share `libs` wait for each other.

    Raises:
        BrokerError: Maven is missing (`maven_missing`) or failed (`maven_failed`).
    """
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if jars := resolved_jars(libs, digest):
        return jars
    executable = maven.find_maven(search_path)
    with exclusive(libs.with_name(libs.name + ".lock"), "resolving Kafka's jars", report):
        return resolved_jars(libs, digest) or _resolve(executable, libs, pom, digest, log_file, report)


def resolved_jars(libs: Path, pom_digest: str) -> tuple[Path, ...]:
    """The jars in `libs`; empty unless they are whole and of the pom with this digest."""
    try:
        stamp = json.loads((libs / STAMP).read_text())
        if stamp["pom_sha256"] != pom_digest:
            return ()
        jars = tuple(libs / name for name in sorted(stamp["jars"]))
        return jars if all(jar.stat().st_size == stamp["jars"][jar.name] for jar in jars) else ()
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def kafka_version(jars: tuple[Path, ...]) -> str:
    """Kafka's version, as its jar's name gives it."""
    names = [jar.stem for jar in jars if jar.name.startswith("kafka-clients-")]
    return names[0].removeprefix("kafka-clients-") if names else "unknown"


def _resolve(executable: str, libs: Path, pom: Path, digest: str, log_file: Path, report: Report) -> tuple[Path, ...]:
    partial = libs.with_name(libs.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    report("resolving Kafka's jars with Maven, which is done once (about 45 MB)")
    started = time.monotonic()
    maven.copy_jars(executable, pom, partial, log_file, report)
    sizes = {jar.name: jar.stat().st_size for jar in sorted(partial.glob("*.jar"))}
    if not sizes:
        raise BrokerError("Maven copied no jars", code="maven_failed", hint=f"see {log_file}")
    (partial / STAMP).write_text(json.dumps({"pom_sha256": digest, "jars": sizes}, indent=1))
    if libs.exists():
        shutil.rmtree(libs)
    partial.rename(libs)
    report(f"{len(sizes)} jars resolved in {time.monotonic() - started:.1f} s")
    return resolved_jars(libs, digest)
