"""Executing a test over real HTTP on loopback: its bounds, what is kept, and what is never kept."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forktrail_lab.exchange.identities import Redaction, resolve_identities
from forktrail_lab.exchange.outcome import judge
from forktrail_lab.exchange.perform import perform
from forktrail_lab.exchange.targets import origin_of
from forktrail_lab.exchange.transcript import Transcript, evidence_bytes, parse_evidence
from forktrail_lab.registry.file import definition_sha256, load_registry, parse_registry, shipped_registry_path
from forktrail_lab.registry.model import Registry
from forktrail_lab.services import Lab

Script = Callable[[socket.socket], None]
HARBOR = Path(__file__).parents[1] / "registries" / "harbor.json"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
GET = {"id": "only", "method": "GET", "path": "/"}


def registry_of(
    *requests: dict[str, Any],
    answers: list[dict[str, Any]] | None = None,
    identities: dict[str, Any] | None = None,
    bounds: dict[str, Any] | None = None,
) -> Registry:
    """A registry of one test on one asset, reproduced where every request is answered 200."""
    test = {
        "id": "probe",
        "title": "Probe",
        "description": "Probe.",
        "asset": "door",
        "requires": [],
        "enables": [],
        "impact": 1,
        "requests": list(requests),
        "bounds": {"timeout_seconds": 5, "redirects_max": 0, "body_bytes_max": 1000, **(bounds or {})},
        "outcomes": [{"outcome": "reproduced", "when": {request["id"]: {"status": [200]} for request in requests}}],
    }
    document = {
        "format": "forktrail.registry/1",
        "name": "probe",
        "first_revision": "r1",
        "revisions": ["r1", "r2"],
        "assets": [{"id": "door", "title": "Door"}],
        "capabilities": [],
        "identities": identities or {},
        "tests": [test],
        "services": {"door": {"r1": answers or []}},
    }
    return parse_registry(json.dumps(document).encode(), source="probe.json")


def answer(path: str, status: int, *, method: str = "GET", when: dict[str, Any] | None = None, **respond: Any) -> Any:
    return {"when": {"method": method, "path": path, **(when or {})}, "respond": {"status": status, **respond}}


def run(
    registry: Registry,
    origin: str,
    *,
    revision: str = "r1",
    environ: Mapping[str, str] | None = None,
    allowed_hosts: frozenset[str] | None = None,
    index: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Transcript:
    test = registry.tests[index]
    return perform(
        test,
        case_id="case-1",
        revision=revision,
        definition_sha256=definition_sha256(test, registry),
        origin=origin,
        identities=resolve_identities(registry, test, environ or {}),
        clock=clock,
        allowed_hosts=allowed_hosts,
    )


def run_in_lab(registry: Registry, **options: Any) -> Transcript:
    with Lab.start(registry) as lab:
        return run(registry, lab.services[0].origin, **options)


@contextmanager
def raw_server(script: Script) -> Iterator[str]:
    """Accept connections, read each request's head, and let the script say the rest; yields the origin."""
    listener = socket.create_server(("127.0.0.1", 0))

    def converse(connection: socket.socket) -> None:
        with connection:
            head = b""
            try:
                while b"\r\n\r\n" not in head and (piece := connection.recv(65536)):
                    head += piece
                script(connection)
            except OSError:
                pass  # the client hung up, as it should at its deadline

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def saying(data: bytes) -> Script:
    return lambda connection: connection.sendall(data)


def dripping(start: bytes, drop: bytes) -> Script:
    """Send the start at once, then one drop every 20 ms for 10 seconds."""

    def script(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range(500):
            connection.sendall(drop)
            time.sleep(0.02)

    return script


def errors_of(transcript: Transcript) -> list[str | None]:
    return [exchange.error.code if exchange.error else None for exchange in transcript.exchanges]


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (
            "r1",
            {
                "gateway-routing-context": ("reproduced", [401, 200]),
                "invoice-tenant-boundary": ("reproduced", [200]),
                "invoice-chain": ("reproduced", [200, 200, 200]),
                "export-scope": ("not_reproduced", [403]),
                "audit-trail-read": ("inconclusive", [503]),
            },
        ),
        ("r2", {"gateway-routing-context": ("not_reproduced", [401, 401])}),
    ],
)
def test_the_shipped_tests_come_out_as_the_table_of_the_issue(
    revision: str, expected: dict[str, tuple[str, list[int]]]
) -> None:
    registry = load_registry(shipped_registry_path()).registry
    with Lab.start(registry) as lab:
        for index, test in enumerate(registry.tests):
            if test.id not in expected:
                continue
            transcript = run(registry, origin_of(lab.targets(), revision, test.asset), revision=revision, index=index)
            statuses = [exchange.response.status for exchange in transcript.exchanges if exchange.response]
            assert (judge(test, transcript).outcome, statuses) == expected[test.id]


def test_the_second_registry_mixes_all_outcomes_in_r1_and_reproduces_nothing_in_r2() -> None:
    registry = load_registry(HARBOR).registry
    outcomes: dict[str, dict[str, str]] = {"r1": {}, "r2": {}}
    with Lab.start(registry) as lab:
        for revision, seen in outcomes.items():
            for index, test in enumerate(registry.tests):
                origin = origin_of(lab.targets(), revision, test.asset)
                seen[test.id] = judge(test, run(registry, origin, revision=revision, index=index)).outcome
    assert outcomes["r1"] == {
        "berth-debug-token": "reproduced",
        "pilot-guest-session": "reproduced",
        "manifest-cross-carrier": "reproduced",
        "berth-reassign": "reproduced",
        "crane-remote-hold": "inconclusive",
        "customs-archive-read": "not_reproduced",
        "customs-seal-bypass": "reproduced",  # what it would be, though nothing ever makes it eligible
    }
    assert set(outcomes["r2"].values()) == {"not_reproduced"}


def test_a_captured_value_goes_into_later_paths_encoded_and_into_later_bodies_as_it_is() -> None:
    registry = registry_of(
        GET | {"id": "first", "capture": {"word": "/list/1/a~1b", "number": "/n"}},
        {"id": "second", "method": "POST", "path": "/x/{word}?n={number}", "body": '{"w": "{word}", "n": {number}}'},
        answers=[
            answer("/", 200, json={"list": [0, {"a/b": "../e?"}], "n": 12}),
            answer("/x/..%2Fe%3F?n=12", 200, method="POST", when={"body_contains": '{"w": "../e?", "n": 12}'}),
        ],
    )
    transcript = run_in_lab(registry)
    assert errors_of(transcript) == [None, None]
    assert judge(registry.tests[0], transcript).outcome == "reproduced"
    assert transcript.exchanges[1].hops[0].sent.body == b'{"w": "../e?", "n": 12}'


@pytest.mark.parametrize(
    "body",
    [
        {"json": {"id": True}},
        {"json": {"id": None}},
        {"json": {"id": ".."}},
        {"json": {"id": 'a"b'}},
        {"json": {"id": ""}},
        {"json": {"id": 1.5}},
        {"json": {}},
        {"json": [1]},
        {"text": "not json"},
        {"text": '{"id": "' + "x" * 2000 + '"}'},
        {"text": "[" * 900},
        {},
    ],
)
def test_a_value_that_cannot_be_captured_stops_the_test_and_the_rest_is_not_sent(body: dict[str, Any]) -> None:
    registry = registry_of(
        GET | {"id": "first", "capture": {"id": "/id"}},
        {"id": "second", "method": "GET", "path": "/{id}"},
        {"id": "third", "method": "GET", "path": "/"},
        answers=[answer("/", 200, **body)],
    )
    with Lab.start(registry) as lab:
        transcript = run(registry, lab.services[0].origin)
        assert lab.services[0].requests.count == 1
    assert errors_of(transcript) == ["capture_failed", "not_sent", "not_sent"]
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


def test_an_unreachable_service_is_inconclusive_and_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    registry = registry_of(GET, GET | {"id": "next"})
    transcript = run(registry, origin)
    assert errors_of(transcript) == ["unreachable", "not_sent"]
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "127.0.0.1:99999", "a..example"])
def test_an_address_that_no_socket_takes_is_an_error_and_not_a_crash(host: str) -> None:
    transcript = run(registry_of(GET), f"http://{host}")
    assert errors_of(transcript) == ["unreachable"]


def test_captured_values_that_make_the_path_too_long_are_an_error_and_not_a_crash() -> None:
    registry = registry_of(
        GET | {"id": "first", "capture": {"x": "/x"}},
        {"id": "second", "method": "GET", "path": "/" + "{x}" * 100},
        answers=[answer("/", 200, json={"x": "?" * 900})],
    )
    assert errors_of(run_in_lab(registry)) == [None, "capture_failed"]


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b""),
    ],
    ids=["silent", "dripping headers", "dripping body", "dripping chunks", "body that stops"],
)
def test_a_slow_service_is_cut_at_the_deadline_of_the_whole_test(start: bytes, drop: bytes) -> None:
    registry = registry_of(GET, bounds={"timeout_seconds": 0.3})
    with raw_server(dripping(start, drop)) as origin:
        began = time.monotonic()
        transcript = run(registry, origin)
        took = time.monotonic() - began
    assert errors_of(transcript) == ["timeout"]
    assert 0.25 < took < 5  # the service would go on for 10
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


def test_what_came_before_the_deadline_is_kept_as_evidence() -> None:
    registry = registry_of(GET, bounds={"timeout_seconds": 0.6})
    with raw_server(dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nfirst", b"")) as origin:
        received = run(registry, origin).exchanges[0].hops[0].received
    assert received is not None
    assert (received.status, received.body, received.truncated) == (200, b"first", True)


def test_the_deadline_is_one_for_all_requests_of_the_test() -> None:
    registry = registry_of(*(GET | {"id": f"n{number}"} for number in range(5)), bounds={"timeout_seconds": 5})
    now = [100.0]

    def two_seconds_late(connection: socket.socket) -> None:
        now[0] += 2
        connection.sendall(OK)

    with raw_server(two_seconds_late) as origin:
        transcript = run(registry, origin, clock=lambda: now[0])
    assert errors_of(transcript) == [None, None, "timeout", "not_sent", "not_sent"]


def test_a_body_is_cut_at_its_bound_and_exactly_at_the_bound_it_is_whole() -> None:
    registry = registry_of(
        GET,
        GET | {"id": "longer", "path": "/longer"},
        bounds={"body_bytes_max": 10},
        answers=[answer("/", 200, text="0123456789"), answer("/longer", 200, text="0123456789a")],
    )
    responses = [exchange.response for exchange in run_in_lab(registry).exchanges]
    assert [(response.body, response.truncated) for response in responses if response] == [
        (b"0123456789", False),
        (b"0123456789", True),
    ]


def test_an_endless_body_is_left_at_its_bound() -> None:
    registry = registry_of(GET, bounds={"body_bytes_max": 50_000})

    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with raw_server(endless) as origin:
        response = run(registry, origin).exchanges[0].response
    assert response is not None
    assert (len(response.body), response.truncated) == (50_000, True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "no HTTP", "half a body", "an encoding not asked for", "endless header"],
)
def test_a_broken_answer_is_inconclusive(data: bytes) -> None:
    registry = registry_of(GET)
    with raw_server(saying(data)) as origin:
        transcript = run(registry, origin)
    assert errors_of(transcript) == ["response_invalid"]
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


def test_redirects_are_followed_one_by_one_up_to_the_bound_and_each_is_kept() -> None:
    answers = [
        answer("/", 302, headers={"location": "/b"}),
        answer("/b", 307, headers={"location": "c?d=1"}),
        answer("/c?d=1", 200, text="there"),
    ]
    enough = run_in_lab(registry_of(GET, answers=answers, bounds={"redirects_max": 2}))
    assert [hop.sent.url.split("/", 3)[3] for hop in enough.exchanges[0].hops] == ["", "b", "c?d=1"]
    assert [hop.received.status for hop in enough.exchanges[0].hops if hop.received] == [302, 307, 200]
    assert enough.request_count == 3
    short = run_in_lab(registry_of(GET, answers=answers, bounds={"redirects_max": 1}))
    assert errors_of(short) == ["redirects_exceeded"]
    assert short.request_count == 2


def test_a_redirect_is_the_answer_itself_where_none_may_be_followed() -> None:
    transcript = run_in_lab(registry_of(GET, answers=[answer("/", 302, headers={"location": "/b"})]))
    assert errors_of(transcript) == [None]
    assert transcript.request_count == 1


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"), (308, "PUT", "PUT")],
)
def test_a_redirect_keeps_or_drops_method_and_body_as_the_standard_says(status: int, method: str, then: str) -> None:
    registry = registry_of(
        {"id": "only", "method": method, "path": "/", "body": "x", "headers": {"content-type": "text/plain"}},
        answers=[answer("/", status, method=method, headers={"location": "/b"}), answer("/b", 200, method=then)],
        bounds={"redirects_max": 1},
    )
    second = run_in_lab(registry).exchanges[0].hops[1]
    assert second.sent.method == then
    assert second.sent.body == (b"" if then == "GET" else b"x")
    assert second.received is not None
    assert second.received.status == 200


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/",
        "http://localhost:{port}/",
        "file:///etc/passwd",
        "//evil.example/",
        "http://u:p@127.0.0.1:{port}/",
    ],
)
def test_a_redirect_to_a_host_that_is_not_allowed_is_never_followed(location: str) -> None:
    registry = registry_of(GET, bounds={"redirects_max": 3})
    seen: list[int] = []

    def redirect(connection: socket.socket) -> None:
        seen.append(1)
        where = location.format(port=connection.getsockname()[1])
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode())

    with raw_server(redirect) as origin:
        transcript = run(registry, origin)
    assert errors_of(transcript) == ["host_refused"]
    assert (len(seen), transcript.request_count) == (1, 1)
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


@pytest.mark.parametrize(
    "location",
    [
        b"http://[::1",
        b"http://",
        b"http://\xff\xfe/",
        b"http://a:b:c/",
        b"//",
        b"http://h:0/",
        b"http://xn--\xe9/",
        b"?" * 70_000,
    ],
)
def test_a_redirect_to_nowhere_is_inconclusive_and_not_a_crash(location: bytes) -> None:
    registry = registry_of(GET, bounds={"redirects_max": 3})
    with raw_server(
        saying(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
    ) as origin:
        transcript = run(registry, origin)
    assert errors_of(transcript)[0] in ("host_refused", "response_invalid", "redirects_exceeded")
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"
    assert parse_evidence(evidence_bytes(transcript)) == transcript


def test_a_target_that_is_not_allowed_is_not_asked_at_all() -> None:
    registry = registry_of(GET)
    with Lab.start(registry) as lab:
        transcript = run(registry, lab.services[0].origin, allowed_hosts=frozenset(("127.0.0.1:1",)))
        assert lab.services[0].requests.count == 0
    assert errors_of(transcript) == ["host_refused"]
    assert transcript.request_count == 0


def test_an_allowed_other_host_is_followed_to_without_the_identity() -> None:
    credentials = {"authorization": "Bearer synthetic"}
    registry = registry_of(
        GET | {"identity": "guest"}, identities={"guest": {"headers": credentials}}, bounds={"redirects_max": 1}
    )
    second = registry_of(GET, answers=[answer("/", 500, when={"headers": credentials}), answer("/", 200)])
    with Lab.start(second) as lab:
        there = lab.services[0].origin
        head = f"HTTP/1.1 302 Found\r\nLocation: {there}/\r\nContent-Length: 0\r\n\r\n".encode()
        with raw_server(saying(head)) as origin:
            hosts = frozenset(url.removeprefix("http://") for url in (origin, there))
            transcript = run(registry, origin, allowed_hosts=hosts)
    assert [hop.received.status for hop in transcript.exchanges[0].hops if hop.received] == [302, 200]
    names = [{name.lower() for name, _ in hop.sent.headers} for hop in transcript.exchanges[0].hops]
    assert ["authorization" in each for each in names] == [True, False]
    assert errors_of(transcript) == [None]


def test_a_service_of_another_revision_is_an_error_and_the_rest_is_not_sent() -> None:
    registry = registry_of(GET, GET | {"id": "next"}, answers=[answer("/", 200)])
    transcript = run_in_lab(registry, revision="r2")
    assert errors_of(transcript) == ["revision_mismatch", "not_sent"]
    assert judge(registry.tests[0], transcript).outcome == "inconclusive"


def test_a_service_that_changes_revision_within_a_test_is_an_error() -> None:
    registry = registry_of(GET, GET | {"id": "next"})
    turn = iter(("r1", "r2"))

    def changing(connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nX-Service-Revision: {next(turn)}\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(head.encode())

    with raw_server(changing) as origin:
        assert errors_of(run(registry, origin)) == [None, "revision_mismatch"]


def test_credentials_are_sent_and_never_stored_even_where_the_service_sends_them_back() -> None:
    secret = "Bearer 5f2c9d1e8a"
    echo = f"you are {secret}, or 5f2c9d1e8a for short"
    received: list[bytes] = []
    registry = registry_of(
        GET | {"identity": "guest"},
        identities={"guest": {"headers": {"authorization": {"env": "GUEST"}}}},
        bounds={"redirects_max": 1},
    )

    def echoing(connection: socket.socket) -> None:
        received.append(b"")
        head = f"HTTP/1.1 200 OK\r\nX-You: {secret}\r\nContent-Length: {len(echo)}\r\n\r\n{echo}"
        if len(received) == 1:
            head = "HTTP/1.1 302 Found\r\nLocation: /?token=5f2c9d1e8a\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(head.encode())

    with raw_server(echoing) as origin:
        stored = evidence_bytes(run(registry, origin, environ={"GUEST": secret}))
    assert b"5f2c9d1e8a" not in stored
    assert b"you are <identity guest>, or <identity guest> for short" in stored
    assert b'["authorization","<identity guest>"]' in stored


TOKEN = "Zx9sEcReT7tOkEn"
PORT_TOKEN = "61999"  # beyond the ports that a listener is given
FOUND = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("spelled", [str, str.lower, str.upper], ids=["as it is", "lower", "upper"])
@pytest.mark.parametrize(
    ("token", "said"),
    [
        (TOKEN, FOUND + b"http://%b.evil/\r\n\r\n"),
        (TOKEN, FOUND + b"%b://x\r\n\r\n"),
        (TOKEN, FOUND + b"http://127.0.0.1:%b/\r\n\r\n"),
        (PORT_TOKEN, FOUND + b"http://127.0.0.1:%b/\r\n\r\n"),
        (TOKEN, FOUND + b"http://%b@127.0.0.1/\r\n\r\n"),
        (TOKEN, FOUND + b"http://[%b]/\r\n\r\n"),
        (TOKEN, FOUND + b"/%b\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 %b OK\r\n\r\n"),
        (TOKEN, b"%b\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\n%b\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %b\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: 0\r\n\r\n"),
        (TOKEN, CHUNKED + b"%b\r\n"),
        (TOKEN, CHUNKED + b"2\r\nok%b\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\n%b: x\r\nContent-Length: 0\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 OK\r\nX-Service-Revision: %b\r\nContent-Length: 0\r\n\r\n"),
        (TOKEN, b"HTTP/1.1 200 %b\r\nContent-Length: 15\r\n\r\n%b"),
    ],
    ids=[
        "host", "scheme", "no port", "port", "user name", "no address", "path", "status", "no HTTP", "header line",
        "length", "transfer encoding", "encoding", "chunk header", "chunk end", "header name", "revision", "body",
    ],
)  # fmt: skip
def test_a_secret_that_comes_back_is_neither_in_the_evidence_nor_in_the_reason(
    token: str, said: bytes, spelled: Callable[[str], str]
) -> None:
    registry = registry_of(
        GET | {"identity": "guest"},
        identities={"guest": {"headers": {"authorization": {"env": "GUEST"}}}},
        bounds={"redirects_max": 1},
    )
    with raw_server(saying(said.replace(b"%b", spelled(token).encode()))) as origin:
        transcript = run(registry, origin, environ={"GUEST": token})
    assert token.lower().encode() not in evidence_bytes(transcript).lower()
    assert token.lower() not in judge(registry.tests[0], transcript).reason.lower()
    assert parse_evidence(evidence_bytes(transcript)) == transcript


def test_a_secret_captured_in_two_halves_is_not_stored_in_the_request_that_puts_them_together() -> None:
    secret = "S3cr3t/with+signs"
    registry = registry_of(
        GET | {"id": "first", "identity": "guest", "capture": {"a": "/a", "b": "/b"}},
        {"id": "second", "method": "POST", "path": "/x/{a}{b}", "body": "{a}{b}"},
        identities={"guest": {"headers": {"x-key": {"env": "GUEST"}}}},
        answers=[
            answer("/", 200, json={"a": secret[:9], "b": secret[9:]}),
            answer("/x/S3cr3t%2Fwith%2Bsigns", 200, method="POST"),
        ],
    )
    transcript = run_in_lab(registry, environ={"GUEST": secret})
    sent = transcript.exchanges[1].hops[0].sent
    assert errors_of(transcript) == [None, None]
    assert (sent.url.partition("/x/")[2], sent.body) == ("<identity guest>", b"<identity guest>")


@pytest.mark.parametrize("end", ["abcdefghijk", "ABCdef", "abc%64%6", "%41%62", "a%"])
def test_a_secret_cut_in_two_is_recognised_in_any_case_and_percent_encoded(end: str) -> None:
    redaction = Redaction(((b"abcdefghijkl", b"<identity guest>"),))
    assert redaction.apply(f"key: {end}".encode(), cut=True) == b"key: "
    assert redaction.apply(b"%61BCdefghij%6bl is it") == b"<identity guest> is it"


def test_a_secret_cut_in_two_by_the_bound_is_not_stored_in_part() -> None:
    registry = registry_of(
        GET | {"identity": "guest"},
        identities={"guest": {"headers": {"x-key": {"env": "GUEST"}}}},
        answers=[answer("/", 200, text="key: abcdefghijkl and more")],
        bounds={"body_bytes_max": 10},
    )
    response = run_in_lab(registry, environ={"GUEST": "abcdefghijkl"}).exchanges[0].response
    assert response is not None
    assert (response.body, response.truncated) == (b"key: ", True)


def test_cookies_and_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    registry = registry_of(
        GET, GET | {"id": "next"}, answers=[answer("/", 200, headers={"set-cookie": "a=b"}, text="x")]
    )
    transcript = run_in_lab(registry)
    assert errors_of(transcript) == [None, None]
    assert "cookie" not in {name.lower() for name, _ in transcript.exchanges[1].hops[0].sent.headers}


def test_what_is_stored_as_sent_is_what_went_over_the_wire() -> None:
    heads: list[bytes] = []
    registry = registry_of({"id": "only", "method": "POST", "path": "/a?b=1", "body": "hé", "headers": {"x-a": "1"}})
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            while not b"".join(heads).endswith("hé".encode()):
                heads.append(connection.recv(65536))
            connection.sendall(OK)

    thread = threading.Thread(target=serve)
    thread.start()
    sent = run(registry, f"http://127.0.0.1:{listener.getsockname()[1]}").exchanges[0].hops[0].sent
    thread.join()
    listener.close()
    lines = [f"{sent.method} /a?b=1 HTTP/1.1", *(f"{name}: {value}" for name, value in sent.headers), "", ""]
    assert b"".join(heads) == "\r\n".join(lines).encode() + sent.body
