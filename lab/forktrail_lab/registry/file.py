"""Loading a test registry, naming what it holds, and the digests that pin it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import rfc8785
from pydantic import ValidationError

from forktrail_lab.files import whole_file
from forktrail_lab.registry.checks import problems
from forktrail_lab.registry.model import RegisteredTest, Registry
from forktrail_schemas.errors import InvalidInput, NotFound

DEFINITION_FORMAT = "forktrail.definition/1"
REGISTRY_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True)
class RegistryFile:
    """A registry as loaded.

    Attributes:
        path: the file it came from.
        sha256: hex digest of the file's raw bytes.
        registry: what it says.
    """

    path: Path
    sha256: str
    registry: Registry


def shipped_registry_path() -> Path:
    """The registry that comes with Forktrail: five tests on a fictitious invoicing company."""
    return Path(__file__).parents[1] / "registries" / "northwind.json"


def load_registry(path: Path) -> RegistryFile:
    """Read and check a registry file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it can't be read, or breaks a rule; the message names file and JSON path.
    """
    raw = whole_file(path, REGISTRY_BYTES_MAX, what="registry file", hint="give a readable JSON file")
    return RegistryFile(path, hashlib.sha256(raw).hexdigest(), parse_registry(raw, source=str(path)))


def parse_registry(raw: bytes, *, source: str) -> Registry:
    """Read and check a registry's bytes.

    Args:
        raw: the JSON text, UTF-8.
        source: what error messages call it.

    Raises:
        InvalidInput: not JSON, a key given twice, a value of the wrong shape, or parts that contradict each other.
    """
    try:
        document = json.loads(raw, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is not a JSON registry: {error}", hint="correct the file") from error
    try:
        registry = Registry.model_validate_json(raw)
    except ValidationError as error:
        _refuse_shape(source, document, error)
    found = list(problems(registry))
    if found:
        first, more = found[0], len(found) - 1
        raise InvalidInput(
            f"{source}: {first.path}: {first.message}" + (f"; {more} more after it" if more else ""),
            hint=first.hint,
        )
    return registry


def find_test(registry: Registry, test_id: str) -> RegisteredTest:
    """Return the test of that id.

    Raises:
        NotFound: the registry has none.
    """
    for test in registry.tests:
        if test.id == test_id:
            return test
    known = ", ".join(test.id for test in registry.tests)
    raise NotFound(f"registry {registry.name!r} has no test {test_id!r}", hint=f"it has: {known}")


def requests_max(test: RegisteredTest) -> int:
    """The most HTTP requests that running the test can send, redirects included."""
    return len(test.requests) * (1 + test.bounds.redirects_max)


def identity_ids(test: RegisteredTest) -> tuple[str, ...]:
    """Ids of the identities that the test speaks as, sorted."""
    return tuple(sorted({request.identity for request in test.requests if request.identity is not None}))


def definition_sha256(test: RegisteredTest, registry: Registry) -> str:
    """Digest of all that decides what the test sends and how it is judged.

    It covers the test and the identities it uses, as written (a reference to the environment, not its value),
    with defaults filled in and nulls left out, in canonical JSON (RFC 8785). Spacing, the order of keys, the
    services' answers and the other tests don't change it.

    Returns:
        SHA-256 in hex.
    """
    document: dict[str, Any] = {
        "format": DEFINITION_FORMAT,
        "test": test.model_dump(mode="json", exclude_none=True),
        "identities": {
            name: registry.identities[name].model_dump(mode="json", exclude_none=True) for name in identity_ids(test)
        },
    }
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} stands twice in one object")
        result[key] = value
    return result


def _refuse_shape(source: str, document: object, error: ValidationError) -> NoReturn:
    """Tell the first fault, and of a union's several complaints about one value the one that goes deepest."""
    faults = [
        (_json_path(document, detail["loc"], missing=detail["type"] == "missing"), detail["msg"])
        for detail in error.errors(include_url=False)
    ]
    path, message = max(
        (fault for fault in faults if fault[0].startswith(faults[0][0])), key=lambda fault: len(fault[0])
    )
    more = len(faults) - 1
    raise InvalidInput(
        f"{source}: {path}: {message}" + (f"; {more} more after it" if more else ""),
        hint="correct the value there",
    ) from error


def _json_path(document: object, location: tuple[int | str, ...], *, missing: bool) -> str:
    """Write a location of pydantic's as a JSON path, without the names it adds for members of a union.

    Args:
        document: the JSON values that were refused.
        location: pydantic's.
        missing: whether the last part names a key that isn't there.
    """
    path, here = "$", document
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(here, list) and isinstance(part, int) and part < len(here):
            path, here = f"{path}[{part}]", here[part]
        elif isinstance(here, dict) and (part in here or (last and missing)):
            path, here = f"{path}.{part}", here.get(part)
    return path
