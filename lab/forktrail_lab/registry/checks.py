"""What the parts of a registry must say of each other, beyond the shape of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from forktrail_lab.registry.model import PLACEHOLDER_PATTERN, RegisteredRequest, RegisteredTest, Registry

TRANSPORT_HEADERS = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive",
    "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a registry, by its JSON path, with what to do about it."""

    path: str
    message: str
    hint: str


def problems(registry: Registry) -> Iterator[Problem]:
    """Yield every contradiction inside a registry, in the order of the file."""
    yield from _header_problems(registry)
    for index, test in enumerate(registry.tests):
        yield from _reference_problems(registry, test, f"$.tests[{index}]")
        yield from _request_problems(registry, test, f"$.tests[{index}]")
        yield from _rule_problems(test, f"$.tests[{index}]")
    yield from _reachability_problems(registry)
    yield from _service_problems(registry)


def _duplicates(path: str, ids: Iterable[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, name in enumerate(ids):
        if name in seen:
            yield Problem(f"{path}[{index}]", f"{name!r} stands there twice", "give each an id of its own")
        seen.add(name)


def _unknown(path: str, kind: str, name: str, known: Iterable[str]) -> Iterator[Problem]:
    names = sorted(known)
    if name not in names:
        yield Problem(path, f"there is no {kind} {name!r}", f"declare it, or use one of: {', '.join(names)}")


def _header_problems(registry: Registry) -> Iterator[Problem]:
    yield from _duplicates("$.revisions", registry.revisions)
    yield from _unknown("$.first_revision", "revision", registry.first_revision, registry.revisions)
    yield from _duplicates("$.assets", (asset.id for asset in registry.assets))
    yield from _duplicates("$.capabilities", (capability.id for capability in registry.capabilities))
    yield from _duplicates("$.tests", (test.id for test in registry.tests))
    for name, identity in registry.identities.items():
        yield from _header_name_problems(f"$.identities.{name}.headers", identity.headers)


def _header_name_problems(path: str, names: Iterable[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for name in names:
        if name.lower() in TRANSPORT_HEADERS:
            yield Problem(f"{path}.{name}", "the runner sets this header itself", "leave it out")
        if name.lower() in seen:
            yield Problem(f"{path}.{name}", "this header stands there twice", "keep one of the two spellings")
        seen.add(name.lower())


def _reference_problems(registry: Registry, test: RegisteredTest, path: str) -> Iterator[Problem]:
    capabilities = [capability.id for capability in registry.capabilities]
    yield from _unknown(f"{path}.asset", "asset", test.asset, (asset.id for asset in registry.assets))
    for field, names in (("requires", test.requires), ("enables", test.enables)):
        yield from _duplicates(f"{path}.{field}", names)
        for index, name in enumerate(names):
            yield from _unknown(f"{path}.{field}[{index}]", "capability", name, capabilities)


def _request_problems(registry: Registry, test: RegisteredTest, path: str) -> Iterator[Problem]:
    yield from _duplicates(f"{path}.requests", (request.id for request in test.requests))
    captured: set[str] = set()
    for index, request in enumerate(test.requests):
        place = f"{path}.requests[{index}]"
        names = list(request.headers)
        if request.identity is not None:
            yield from _unknown(f"{place}.identity", "identity", request.identity, registry.identities)
            if request.identity in registry.identities:
                names = [*registry.identities[request.identity].headers, *names]
        yield from _header_name_problems(f"{place}.headers", names)
        yield from _placeholder_problems(request, place, captured)
        for name in request.capture:
            if name in captured:
                yield Problem(f"{place}.capture.{name}", "captured before", "give it another name")
        captured |= set(request.capture)


def _placeholder_problems(request: RegisteredRequest, place: str, captured: set[str]) -> Iterator[Problem]:
    for field, text in (("path", request.path), ("body", request.body or "")):
        for name in re.findall(PLACEHOLDER_PATTERN, text):
            if name not in captured:
                yield Problem(
                    f"{place}.{field}", f"no earlier request captures {name!r}", "add it to a `capture` before"
                )
    rest = re.sub(PLACEHOLDER_PATTERN, "", request.path)
    if "{" in rest or "}" in rest:
        yield Problem(f"{place}.path", "a brace that is no {name}", "write it as %7B or %7D")
    if any(segment in (".", "..") for segment in request.path.partition("?")[0].split("/")):
        yield Problem(f"{place}.path", "a segment '.' or '..' is not sent as written", "write the path out")


def _rule_problems(test: RegisteredTest, path: str) -> Iterator[Problem]:
    requests = [request.id for request in test.requests]
    for index, rule in enumerate(test.outcomes):
        place = f"{path}.outcomes[{index}].when"
        for name in rule.when:
            yield from _unknown(f"{place}.{name}", "request", name, requests)
        for name in requests:
            if name not in rule.when:
                yield Problem(place, f"says nothing of request {name!r}", "each rule names every request")
    if not any(rule.outcome == "reproduced" for rule in test.outcomes):
        yield Problem(f"{path}.outcomes", "no rule can reproduce this test", "add one, or drop the test")


def _reachability_problems(registry: Registry) -> Iterator[Problem]:
    """Refuse tests that can never be eligible, be it for a missing enabler or a circle of them."""
    enabled_by_any = {name for test in registry.tests for name in test.enables}
    reachable: set[str] = set()
    while (
        new := {name for test in registry.tests if reachable.issuperset(test.requires) for name in test.enables}
        - reachable
    ):
        reachable |= new
    for index, test in enumerate(registry.tests):
        for position, name in enumerate(test.requires):
            place = f"$.tests[{index}].requires[{position}]"
            if name not in enabled_by_any:
                yield Problem(place, f"no test enables {name!r}", "add one that does, or drop the requirement")
            elif name not in reachable:
                yield Problem(place, f"{name!r} is enabled only by tests that need it first", "break the circle")


def _service_problems(registry: Registry) -> Iterator[Problem]:
    for asset, revisions in registry.services.items():
        yield from _unknown(f"$.services.{asset}", "asset", asset, (known.id for known in registry.assets))
        for revision, answers in revisions.items():
            place = f"$.services.{asset}.{revision}"
            yield from _unknown(place, "revision", revision, registry.revisions)
            for index, answer in enumerate(answers):
                headers = f"{place}[{index}].respond.headers"
                yield from _header_name_problems(headers, answer.respond.headers)
