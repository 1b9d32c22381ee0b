"""A registered test's definition in words: what it sends, within what bounds, and how its answers are judged."""

from __future__ import annotations

from forktrail_lab.console.output import counted
from forktrail_lab.registry.file import requests_max
from forktrail_lab.registry.model import Condition, RegisteredRequest, RegisteredTest, Registry


def request_parts(request: RegisteredRequest, registry: Registry) -> dict[str, object]:
    """A request as the registry has it; of its identity, the names of the headers and no value."""
    identity = request.identity
    return {
        "id": request.id,
        "method": request.method,
        "path": request.path,
        "identity": identity,
        "identity_headers": [] if identity is None else sorted(registry.identities[identity].headers),
        "headers": dict(request.headers),
        "body": request.body,
        "captures": dict(request.capture),
    }


def bounds_in_words(test: RegisteredTest) -> str:
    """The limits that the runner keeps."""
    bounds = test.bounds
    if bounds.redirects_max:
        redirects = f"up to {bounds.redirects_max} redirects followed per request"
    else:
        redirects = "no redirect followed"
    return (
        f"at most {counted(requests_max(test), 'HTTP request')} within {bounds.timeout_seconds:g} s; "
        f"{redirects}; up to {counted(bounds.body_bytes_max, 'byte')} kept of each body"
    )


def rules_in_words(test: RegisteredTest) -> list[dict[str, object]]:
    """How the answers are judged: in the order they are tried, each outcome with all that must hold for it."""
    rules: list[dict[str, object]] = [
        {"outcome": rule.outcome, "when": [_condition(name, condition) for name, condition in rule.when.items()]}
        for rule in test.outcomes
    ]
    return [*rules, {"outcome": "inconclusive", "when": ["nothing before holds, or a request has no complete answer"]}]


def _condition(request: str, condition: Condition) -> str:
    words = f"{request} is answered with {' or '.join(map(str, condition.status))}"
    if condition.body_contains is not None:
        words += f", {condition.body_contains!r} in the body"
    if condition.body_not_contains is not None:
        words += f", no {condition.body_not_contains!r} in the body"
    return words
