"""The registry file: what it accepts, what it refuses and where it says the fault is, and what its digests cover."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forktrail_lab.exchange.identities import resolve_identities
from forktrail_lab.registry.file import (
    definition_sha256,
    find_test,
    load_registry,
    parse_registry,
    requests_max,
    shipped_registry_path,
)
from forktrail_lab.registry.model import Registry
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound

Change = Callable[[dict[str, Any]], object]
HARBOR = Path(__file__).parents[1] / "registries" / "harbor.json"

# The table of the issue: test, asset, requires, enables, impact.
ISSUE_TABLE = [
    ("gateway-routing-context", "gateway", set(), {"internal-route-access"}, 70),
    ("invoice-tenant-boundary", "invoice-api", {"internal-route-access"}, {"cross-tenant-invoice-read"}, 90),
    (
        "invoice-chain",
        "invoice-api",
        {"internal-route-access", "cross-tenant-invoice-read"},
        {"invoice-takeover-path"},
        100,
    ),
    ("export-scope", "export", {"internal-route-access"}, set(), 60),
    ("audit-trail-read", "audit", {"internal-route-access"}, set(), 50),
]


def small_document() -> dict[str, Any]:
    """A registry of one test with two requests, as plain JSON values."""
    return {
        "format": "forktrail.registry/1",
        "name": "small",
        "first_revision": "r1",
        "revisions": ["r1", "r2"],
        "assets": [{"id": "door", "title": "Door"}],
        "capabilities": [{"id": "inside", "title": "Be inside"}],
        "identities": {"guest": {"headers": {"x-key": {"env": "GUEST_KEY"}}}},
        "tests": [
            {
                "id": "open-door",
                "title": "The door opens",
                "description": "It should not.",
                "asset": "door",
                "requires": [],
                "enables": ["inside"],
                "impact": 10,
                "requests": [
                    {"id": "ring", "method": "GET", "path": "/bell", "capture": {"code": "/code"}},
                    {"id": "enter", "method": "POST", "path": "/door/{code}", "identity": "guest"},
                ],
                "bounds": {"timeout_seconds": 2.5, "redirects_max": 1, "body_bytes_max": 100},
                "outcomes": [
                    {"outcome": "reproduced", "when": {"ring": {"status": [200]}, "enter": {"status": [200]}}}
                ],
            }
        ],
    }


def parse(document: object) -> Registry:
    return parse_registry(json.dumps(document).encode(), source="small.json")


def changed(change: Change) -> dict[str, Any]:
    document = copy.deepcopy(small_document())
    change(document)
    return document


def digest(document: object) -> str:
    registry = parse(document)
    return definition_sha256(registry.tests[0], registry)


def test_the_shipped_registry_is_the_table_of_the_issue() -> None:
    registry = load_registry(shipped_registry_path()).registry
    assert [
        (test.id, test.asset, set(test.requires), set(test.enables), test.impact) for test in registry.tests
    ] == ISSUE_TABLE
    assert (registry.first_revision, registry.revisions) == ("r1", ("r1", "r2"))


def test_a_chain_is_three_requests_of_one_identity() -> None:
    chain = find_test(load_registry(shipped_registry_path()).registry, "invoice-chain")
    assert [request.id for request in chain.requests] == ["list-shared-invoices", "read-invoice", "change-payout"]
    assert {request.identity for request in chain.requests} == {"tenant-alpha-clerk"}


def test_the_second_registry_has_seven_tests_one_of_three_prerequisites_and_a_capability_of_two_enablers() -> None:
    registry = load_registry(HARBOR).registry
    assert len(registry.tests) == 7
    assert sorted(len(test.requires) for test in registry.tests) == [0, 0, 1, 1, 1, 2, 3]
    assert [test.id for test in registry.tests if "portal-session" in test.enables] == [
        "berth-debug-token",
        "pilot-guest-session",
    ]


def test_requests_max_counts_each_request_and_each_redirect_it_may_follow() -> None:
    assert requests_max(parse(small_document()).tests[0]) == 4


def test_the_registry_digest_is_that_of_the_raw_bytes(tmp_path: Path) -> None:
    raw = json.dumps(small_document(), indent=3).encode()
    path = tmp_path / "small.json"
    path.write_bytes(raw)
    assert load_registry(path).sha256 == hashlib.sha256(raw).hexdigest()


def test_the_definition_digest_is_that_of_the_canonical_json_written_by_hand() -> None:
    canonical = (
        '{"format":"forktrail.definition/1","identities":{"guest":{"headers":{"x-key":{"env":"GUEST_KEY"}}}},'
        '"test":{"asset":"door","bounds":{"body_bytes_max":100,"redirects_max":1,"timeout_seconds":2.5},'
        '"description":"It should not.","enables":["inside"],"id":"open-door","impact":10,'
        '"outcomes":[{"outcome":"reproduced","when":{"enter":{"status":[200]},"ring":{"status":[200]}}}],'
        '"requests":[{"capture":{"code":"/code"},"headers":{},"id":"ring","method":"GET","path":"/bell"},'
        '{"capture":{},"headers":{},"id":"enter","identity":"guest","method":"POST","path":"/door/{code}"}],'
        '"requires":[],"title":"The door opens"}}'
    )
    assert digest(small_document()) == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_definition_digest_ignores_key_order_services_and_other_tests() -> None:
    def change(document: dict[str, Any]) -> None:
        document["tests"][0] = dict(reversed(document["tests"][0].items()))
        document["tests"].append(document["tests"][0] | {"id": "other", "enables": []})
        answer = {"when": {"method": "GET", "path": "/bell"}, "respond": {"status": 200}}
        document["services"] = {"door": {"r1": [answer]}}
        document["identities"]["unused"] = {"headers": {"x-key": "1"}}

    assert digest(changed(change)) == digest(small_document())


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["tests"][0]["requests"][0].update(path="/bell2"),
        lambda d: d["tests"][0]["requests"][0].update(method="POST"),
        lambda d: d["tests"][0]["requests"][0].update(headers={"a": "b"}),
        lambda d: d["tests"][0]["requests"][0].update(body="x"),
        lambda d: d["tests"][0]["requests"][0].update(capture={"code": "/other"}),
        lambda d: d["tests"][0]["requests"][0].update(identity="guest"),
        lambda d: d["tests"][0]["bounds"].update(timeout_seconds=3),
        lambda d: d["tests"][0]["outcomes"][0]["when"]["ring"].update(status=[201]),
        lambda d: d["tests"][0]["outcomes"][0]["when"]["ring"].update(body_contains="x"),
        lambda d: d["tests"][0].update(impact=11),
        lambda d: d["tests"][0].update(enables=[]),
        lambda d: d["identities"]["guest"].update(headers={"x-key": {"env": "OTHER_KEY"}}),
        lambda d: d["identities"]["guest"].update(headers={"x-other": {"env": "GUEST_KEY"}}),
    ],
)
def test_the_definition_digest_changes_with_whatever_decides_what_is_sent_or_how_it_is_judged(change: Change) -> None:
    assert digest(changed(change)) != digest(small_document())


@pytest.mark.parametrize(
    ("change", "path", "says"),
    [
        (lambda d: d.update(format="forktrail.registry/2"), "$.format", "forktrail.registry/1"),
        (lambda d: d.update(extra=1), "$.extra", "not permitted"),
        (lambda d: d.pop("tests"), "$.tests", "required"),
        (lambda d: d["tests"][0].update(impact=101), "$.tests[0].impact", "100"),
        (lambda d: d["tests"][0].update(impact="10"), "$.tests[0].impact", "integer"),
        (lambda d: d["tests"][0].update(id="Open"), "$.tests[0].id", "pattern"),
        (lambda d: d["tests"][0].update(id="open\n"), "$.tests[0].id", "pattern"),
        (lambda d: d["tests"][0].update(id="x" * 64), "$.tests[0].id", "pattern"),
        (lambda d: d["tests"][0].update(asset="gate"), "$.tests[0].asset", "no asset 'gate'"),
        (lambda d: d["tests"][0].update(enables=["x"]), "$.tests[0].enables[0]", "no capability 'x'"),
        (lambda d: d["tests"][0].update(enables=["inside"] * 2), "$.tests[0].enables[1]", "twice"),
        (lambda d: d["tests"][0].update(requires=["x"]), "$.tests[0].requires[0]", "no capability 'x'"),
        (lambda d: d["tests"].append(d["tests"][0]), "$.tests[1]", "twice"),
        (lambda d: d["assets"].append(d["assets"][0]), "$.assets[1]", "twice"),
        (lambda d: d["capabilities"].append(d["capabilities"][0]), "$.capabilities[1]", "twice"),
        (lambda d: d["revisions"].append("r1"), "$.revisions[2]", "twice"),
        (lambda d: d.update(first_revision="r3"), "$.first_revision", "no revision 'r3'"),
        (lambda d: d["identities"]["guest"]["headers"].update(Host="x"), "$.identities.guest.headers.Host", "sets"),
        (
            lambda d: d["identities"]["guest"]["headers"].update(a={"env": "lower"}),
            "$.identities.guest.headers.a.env",
            "pattern",
        ),
        (lambda d: d["tests"][0].update(requests=[]), "$.tests[0].requests", "at least 1"),
        (lambda d: d["tests"][0]["requests"][1].update(id="ring"), "$.tests[0].requests[1]", "twice"),
        (lambda d: d["tests"][0]["requests"][1].update(identity="x"), "$.tests[0].requests[1].identity", "identity"),
        (
            lambda d: d["tests"][0]["requests"][1].update(headers={"X-Key": "1"}),
            "$.tests[0].requests[1].headers.X-Key",
            "twice",
        ),
        (lambda d: d["tests"][0]["requests"][0].update(headers={"a": "b\r\nc"}), ".headers.a", "pattern"),
        (lambda d: d["tests"][0]["requests"][0].update(path="//evil.example"), ".requests[0].path", "pattern"),
        (lambda d: d["tests"][0]["requests"][0].update(path="/a b"), ".requests[0].path", "pattern"),
        (lambda d: d["tests"][0]["requests"][0].update(path="/a/../b"), ".requests[0].path", "segment"),
        (lambda d: d["tests"][0]["requests"][0].update(path="/{code}"), ".requests[0].path", "no earlier request"),
        (lambda d: d["tests"][0]["requests"][1].update(body="{cod}"), ".requests[1].body", "no earlier request"),
        (lambda d: d["tests"][0]["requests"][1].update(path="/{Code}"), ".requests[1].path", "brace"),
        (lambda d: d["tests"][0]["requests"][1].update(capture={"code": "/x"}), ".capture.code", "captured before"),
        (lambda d: d["tests"][0]["requests"][0].update(capture={"code": "x"}), ".capture.code", "pattern"),
        (lambda d: d["tests"][0]["bounds"].update(timeout_seconds=0), ".bounds.timeout_seconds", "greater than 0"),
        (lambda d: d["tests"][0]["outcomes"][0].update(outcome="inconclusive"), ".outcomes[0].outcome", "reproduced"),
        (lambda d: d["tests"][0]["outcomes"][0].update(outcome="not_reproduced"), ".outcomes", "no rule can"),
        (lambda d: d["tests"][0]["outcomes"][0]["when"].pop("ring"), ".outcomes[0].when", "nothing of request 'ring'"),
        (
            lambda d: d["tests"][0]["outcomes"][0]["when"].update(bell={"status": [200]}),
            ".outcomes[0].when.bell",
            "no request 'bell'",
        ),
        (lambda d: d["tests"][0]["outcomes"][0]["when"]["ring"].update(status=[]), ".when.ring.status", "at least 1"),
        (lambda d: d.update(services={"gate": {}}), "$.services.gate", "no asset 'gate'"),
        (lambda d: d.update(services={"door": {"r3": []}}), "$.services.door.r3", "no revision 'r3'"),
        (
            lambda d: d.update(
                services={
                    "door": {
                        "r1": [
                            {"when": {"method": "GET", "path": "/"}, "respond": {"status": 200, "json": 1, "text": ""}}
                        ]
                    }
                }
            ),
            "$.services.door.r1[0].respond",
            "not both",
        ),
    ],
)
def test_a_fault_is_refused_with_file_and_json_path(change: Change, path: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(changed(change))
    assert "small.json: $" in caught.value.message
    assert f"{path}: " in caught.value.message
    assert says in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_capability_that_no_test_enables_cannot_be_required() -> None:
    def change(document: dict[str, Any]) -> None:
        document["capabilities"].append({"id": "upstairs", "title": "Be upstairs"})
        document["tests"].append(document["tests"][0] | {"id": "second", "requires": ["upstairs"]})

    with pytest.raises(InvalidInput, match=r"\$\.tests\[1\]\.requires\[0\]: no test enables 'upstairs'"):
        parse(changed(change))


def test_tests_that_only_enable_each_other_are_refused() -> None:
    def change(document: dict[str, Any]) -> None:
        document["capabilities"] += [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]
        document["tests"].append(document["tests"][0] | {"id": "first", "requires": ["a"], "enables": ["b"]})
        document["tests"].append(document["tests"][0] | {"id": "second", "requires": ["b"], "enables": ["a"]})

    with pytest.raises(InvalidInput, match="'a' is enabled only by tests that need it first; 1 more after it"):
        parse(changed(change))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not a JSON registry"),
        (b"{", "not a JSON registry"),
        (b"\xff", "not a JSON registry"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b"[" * 100_000, "not a JSON registry"),
        (b"[]", r"\$: "),
        (b'{"impact": NaN}', "small.json"),
    ],
)
def test_bytes_that_are_no_registry_are_refused(raw: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        parse_registry(raw, source="small.json")


def test_a_missing_file_and_an_unknown_test_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"none\.json"):
        load_registry(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="can't be read"):
        load_registry(tmp_path)
    with pytest.raises(NotFound, match=r"no test 'x'.*open-door"):
        find_test(parse(small_document()), "x")


def test_an_identity_takes_its_value_from_the_environment_it_is_given_and_never_shows_it() -> None:
    registry = parse(small_document())
    resolved = resolve_identities(registry, registry.tests[0], {"GUEST_KEY": "hush-hush"})
    assert [(header.name, header.value, header.secret) for header in resolved["guest"].headers] == [
        ("x-key", "hush-hush", True)
    ]
    assert "hush" not in repr(resolved)


@pytest.mark.parametrize("environ", [{}, {"GUEST_KEY": " "}, {"GUEST_KEY": "a\nb"}, {"GUEST_KEY": "clé"}])
def test_an_identity_without_a_usable_value_is_refused_by_the_variable_name(environ: dict[str, str]) -> None:
    registry = parse(small_document())
    with pytest.raises(InvalidInput, match="GUEST_KEY"):
        resolve_identities(registry, registry.tests[0], environ)


@pytest.mark.parametrize("title", ["a\x00b", "a\nb", "\x1b[2J", "a\x9bb"])
def test_a_title_with_control_characters_is_refused_before_it_gets_into_an_event(title: str) -> None:
    document = small_document()
    document["tests"][0]["title"] = title
    with pytest.raises(InvalidInput, match="title"):
        parse(document)
