"""Where the services under test listen: the targets file, written by the lab or by hand."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal

import httpx
from pydantic import AfterValidator, Field, ValidationError

from forktrail_lab.files import whole_file
from forktrail_lab.registry.model import Id, Model
from forktrail_schemas.errors import InvalidInput, NotFound

TARGETS_FORMAT: Final = "forktrail.targets/1"
TARGETS_FILE = "targets.json"
TARGETS_BYTES_MAX = 1024 * 1024
DEFAULT_PORTS = {"http": 80, "https": 443}
PORT_MAX = 65535


def _checked_origin(text: str) -> str:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ValueError(f"{text!r} is not a URL: {error}") from error
    if url.scheme not in DEFAULT_PORTS or not url.host:
        raise ValueError(f"{text!r} is not an http or https address with a host")
    if url.port is not None and not 0 < url.port <= PORT_MAX:
        raise ValueError(f"{text!r} has a port beyond {PORT_MAX}, or 0")
    if url.userinfo or url.query or url.fragment or url.path not in ("", "/"):
        raise ValueError(f"{text!r} is more than scheme, host and port")
    return text.rstrip("/")


Origin = Annotated[str, AfterValidator(_checked_origin)]


class Targets(Model):
    """The origin (scheme, host and port) of each asset's service, per revision.

    `pid` is the process that serves them and wrote the file; a file written by hand leaves it out.
    """

    format: Literal["forktrail.targets/1"]
    pid: Annotated[int, Field(gt=0)] | None = None
    targets: dict[Id, dict[Id, Origin]]


def load_targets(path: Path) -> Targets:
    """Read a targets file.

    Raises:
        NotFound: there is none.
        InvalidInput: it can't be read, or isn't a targets file; the message names the place in it.
    """
    raw = whole_file(
        path, TARGETS_BYTES_MAX, what="targets file", hint="start `forktrail lab serve`, or write one by hand"
    )
    try:
        return Targets.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f".{part}" for part in first["loc"])
        raise InvalidInput(
            f"{path} is not a targets file: ${place}: {first['msg']}",
            hint="correct it, or start `forktrail lab serve` again",
        ) from error


def save_targets(path: Path, targets: Targets) -> bytes:
    """Write a targets file whole or not at all, and return the bytes written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = targets.model_dump_json(indent=2).encode() + b"\n"
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return data


def origin_of(targets: Targets, revision: str, asset: str) -> str:
    """Return the origin of an asset's service in a revision, such as `http://127.0.0.1:8080`.

    Raises:
        NotFound: the file names no service for that revision or asset.
    """
    if revision not in targets.targets:
        known = ", ".join(sorted(targets.targets)) or "none"
        raise NotFound(f"the targets file has no revision {revision!r}", hint=f"it has: {known}")
    assets = targets.targets[revision]
    if asset not in assets:
        known = ", ".join(sorted(assets)) or "none"
        raise NotFound(f"the targets file has no asset {asset!r} in revision {revision!r}", hint=f"it has: {known}")
    return assets[asset]


def host_and_port(url: httpx.URL) -> str:
    """Return `host:port` of a URL, with the scheme's own port where it names none."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = DEFAULT_PORTS.get(url.scheme, 0) if url.port is None else url.port
    return f"{host}:{port}"
