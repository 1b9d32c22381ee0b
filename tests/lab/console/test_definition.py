"""A registered test's definition in words. Expected values are read off the registry files."""

from __future__ import annotations

from forktrail_lab.console.definition import bounds_in_words, request_parts, rules_in_words
from forktrail_lab.registry.file import find_test, load_registry, shipped_registry_path
from forktrail_lab.registry.model import Bounds, RegisteredTest, Registry

NORTHWIND = load_registry(shipped_registry_path()).registry
LEFT = {"outcome": "inconclusive", "when": ["nothing before holds, or a request has no complete answer"]}


def defined(id: str) -> RegisteredTest:
    return find_test(NORTHWIND, id)


class TestRequests:
    def test_one_is_told_whole_with_its_identitys_header_names_and_no_value_of_them(self) -> None:
        parts = [request_parts(request, NORTHWIND) for request in defined("invoice-chain").requests]
        assert [(part["method"], part["path"]) for part in parts] == [
            ("GET", "/v1/invoices?counterparty=tenant-beta"),
            ("GET", "/v1/invoices/{invoice_id}"),
            ("PUT", "/v1/invoices/{invoice_id}/payout-account"),
        ]
        assert {(str(part["identity"]), str(part["identity_headers"])) for part in parts} == {
            ("tenant-alpha-clerk", "['authorization']")
        }
        assert parts[0]["captures"] == {"invoice_id": "/invoices/0/id", "invoice_version": "/invoices/0/version"}
        assert parts[2]["body"] == '{"payout_account": "synthetic-alpha-account", "version": {invoice_version}}'
        assert "synthetic-tenant-alpha-clerk" not in str(parts)

    def test_one_without_an_identity_names_none(self) -> None:
        part = request_parts(defined("gateway-routing-context").requests[1], NORTHWIND)
        assert (part["identity"], part["identity_headers"], part["body"]) == (None, [], None)
        assert part["headers"] == {"accept": "application/json", "x-route-context": "internal-mesh"}


class TestBounds:
    def test_redirects_that_are_not_followed(self) -> None:
        assert bounds_in_words(defined("gateway-routing-context")) == (
            "at most 2 HTTP requests within 10 s; no redirect followed; up to 65536 bytes kept of each body"
        )

    def test_redirects_that_are_followed_count_as_requests(self) -> None:
        bounds = Bounds(timeout_seconds=0.5, redirects_max=3, body_bytes_max=1)
        test = defined("export-scope").model_copy(update={"bounds": bounds})
        assert bounds_in_words(test) == (
            "at most 4 HTTP requests within 0.5 s; up to 3 redirects followed per request; "
            "up to 1 byte kept of each body"
        )


class TestRules:
    def test_each_outcome_has_its_conditions_and_inconclusive_is_what_is_left(self) -> None:
        assert rules_in_words(defined("gateway-routing-context")) == [
            {
                "outcome": "reproduced",
                "when": [
                    "no-credentials is answered with 401",
                    "routing-marker is answered with 200, 'invoice-api' in the body",
                ],
            },
            {
                "outcome": "not_reproduced",
                "when": [
                    "no-credentials is answered with 401",
                    "routing-marker is answered with 401 or 403, no 'invoice-api' in the body",
                ],
            },
            LEFT,
        ]

    def test_every_test_of_the_shipped_registry_can_be_told(self) -> None:
        registry: Registry = NORTHWIND
        assert all(rules_in_words(test)[-1] == LEFT for test in registry.tests)
