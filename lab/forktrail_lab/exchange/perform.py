"""Sending a test's requests within its bounds, and keeping what was sent and what came back.

The whole test ends at its timeout, be the service slow to connect, to answer or between two bytes. Redirects are
followed one by one and counted, bodies are cut, and nothing is sent to a host that isn't allowed. Each request has a
connection of its own, and no cookie or proxy is used. A redirect to another origin does not carry the identity's
headers; 301 and 302 turn a POST, and 303 all but HEAD, into a GET, as browsers do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

import httpcore
import httpx

from forktrail_lab.exchange.capture import CaptureFailed, captured_values
from forktrail_lab.exchange.deadline import Deadline, open_pool
from forktrail_lab.exchange.identities import Redaction, ResolvedIdentity, redaction_of
from forktrail_lab.exchange.receiver import Receiver, decoded_headers
from forktrail_lab.exchange.targets import DEFAULT_PORTS, host_and_port
from forktrail_lab.exchange.transcript import (
    Exchange,
    ExchangeError,
    ExchangeErrorCode,
    Hop,
    SentRequest,
    Transcript,
    foreign_revision,
)
from forktrail_lab.registry.model import PLACEHOLDER_PATTERN, Bounds, RegisteredRequest, RegisteredTest

DEFAULT_HEADERS = {"accept": "*/*", "user-agent": "forktrail-runner"}
RUNNER_HEADERS = {"accept-encoding": "identity", "connection": "close"}


@dataclass(frozen=True)
class _Session:
    """What stays the same over one execution of a test."""

    pool: httpcore.ConnectionPool
    deadline: Deadline
    bounds: Bounds
    origin: str
    revision: str
    allowed_hosts: frozenset[str]
    redaction: Redaction


@dataclass(frozen=True)
class _Outgoing:
    """A request about to be sent."""

    method: str
    url: httpx.URL
    headers: dict[str, str]
    body: bytes | None
    identity: ResolvedIdentity | None


@dataclass(frozen=True)
class _Sent:
    """A request sent, what came of it, and where a redirect leads (as it came, before anything is masked)."""

    hop: Hop
    error: ExchangeError | None
    location: str | None


def perform(
    test: RegisteredTest,
    *,
    case_id: str,
    revision: str,
    definition_sha256: str,
    origin: str,
    identities: Mapping[str, ResolvedIdentity],
    clock: Callable[[], float],
    allowed_hosts: frozenset[str] | None = None,
) -> Transcript:
    """Send the requests of a test in order; after the first error the rest is not sent and stands as `not_sent`.

    Args:
        test: what to send, and its bounds.
        case_id: the case it is sent for.
        revision: the revision under test; a service that says it is another one is an error.
        definition_sha256: digest of the test's definition, kept in the transcript.
        origin: scheme, host and port of the service under test.
        identities: each identity that the test uses, by id.
        clock: monotonic seconds.
        allowed_hosts: the `host:port` that may be asked; the origin's own if not given.

    Returns:
        A transcript that holds no value of an identity's headers, nor one from the environment that was sent back.
    """
    deadline = Deadline(clock, clock() + test.bounds.timeout_seconds)
    hosts = frozenset((host_and_port(httpx.URL(origin)),)) if allowed_hosts is None else allowed_hosts
    with open_pool(deadline) as pool:
        session = _Session(pool, deadline, test.bounds, origin, revision, hosts, redaction_of(identities.values()))
        exchanges = _perform_all(session, test, identities)
    return Transcript(
        case_id=case_id,
        test_id=test.id,
        revision=revision,
        definition_sha256=definition_sha256,
        target=origin,
        exchanges=exchanges,
    )


def _perform_all(
    session: _Session, test: RegisteredTest, identities: Mapping[str, ResolvedIdentity]
) -> tuple[Exchange, ...]:
    exchanges: list[Exchange] = []
    captured: dict[str, str] = {}
    for request in test.requests:
        if exchanges and exchanges[-1].error is not None:
            exchanges.append(_failed(request.id, (), ExchangeErrorCode.NOT_SENT, "an earlier request failed"))
        else:
            exchanges.append(_perform_one(session, request, identities, captured))
    return tuple(exchanges)


def _perform_one(
    session: _Session,
    request: RegisteredRequest,
    identities: Mapping[str, ResolvedIdentity],
    captured: dict[str, str],
) -> Exchange:
    """Send one request and add what it captures to `captured`."""
    try:
        outgoing = _outgoing(session, request, identities, captured)
    except httpx.InvalidURL:
        message = "with the captured values its path makes no URL"
        return _failed(request.id, (), ExchangeErrorCode.CAPTURE_FAILED, message)
    return _with_captures(request, _send_and_follow(session, request.id, outgoing), captured)


def _outgoing(
    session: _Session,
    request: RegisteredRequest,
    identities: Mapping[str, ResolvedIdentity],
    captured: Mapping[str, str],
) -> _Outgoing:
    path = re.sub(PLACEHOLDER_PATTERN, lambda found: quote(captured[found[1]], safe=""), request.path)
    body = None
    if request.body is not None:
        body = re.sub(PLACEHOLDER_PATTERN, lambda found: captured[found[1]], request.body).encode()
    return _Outgoing(
        method=request.method,
        url=httpx.URL(session.origin + path),
        headers=DEFAULT_HEADERS | {name.lower(): value for name, value in request.headers.items()},
        body=body,
        identity=identities[request.identity] if request.identity is not None else None,
    )


def _send_and_follow(session: _Session, request_id: str, outgoing: _Outgoing) -> Exchange:
    hops: tuple[Hop, ...] = ()
    while True:
        if (refusal := _refusal(session, outgoing.url)) is not None:
            return _failed(request_id, hops, ExchangeErrorCode.HOST_REFUSED, refusal)
        sent = _send(session, outgoing)
        hops = (*hops, sent.hop)
        if sent.error is not None:
            return Exchange(request_id=request_id, hops=hops, error=sent.error)
        answered = Exchange(request_id=request_id, hops=hops, error=None)
        if foreign_revision(answered, session.revision) is not None:
            message = f"the service says it is another revision than {session.revision}"
            return _failed(request_id, hops, ExchangeErrorCode.REVISION_MISMATCH, message)
        if sent.location is None or session.bounds.redirects_max == 0:
            return answered
        if len(hops) > session.bounds.redirects_max:
            message = f"more than {session.bounds.redirects_max} redirects"
            return _failed(request_id, hops, ExchangeErrorCode.REDIRECTS_EXCEEDED, message)
        try:
            outgoing = _redirected(outgoing, sent)
        except httpx.InvalidURL:
            return _failed(request_id, hops, ExchangeErrorCode.RESPONSE_INVALID, "redirected to no URL")


def _failed(request_id: str, hops: tuple[Hop, ...], code: ExchangeErrorCode, message: str) -> Exchange:
    return Exchange(request_id=request_id, hops=hops, error=ExchangeError(code=code, message=message))


def _refusal(session: _Session, url: httpx.URL) -> str | None:
    """Why a URL must not be asked, if it mustn't; none of it is quoted, for a redirect's is the service's."""
    if url.scheme not in DEFAULT_PORTS:
        return "the scheme is not http or https"
    if url.userinfo:
        return "the URL holds a user name"
    if host_and_port(url) not in session.allowed_hosts:
        return "the host is not among the allowed ones"
    return None


def _redirected(outgoing: _Outgoing, sent: _Sent) -> _Outgoing:
    """The request that a redirect asks for (RFC 9110, section 15.4)."""
    url = outgoing.url.join(sent.location or "")
    same_origin = (url.scheme, host_and_port(url)) == (outgoing.url.scheme, host_and_port(outgoing.url))
    following = replace(outgoing, url=url, identity=outgoing.identity if same_origin else None)
    status = sent.hop.received.status if sent.hop.received is not None else 0
    becomes_get = (status == 303 and outgoing.method != "HEAD") or (status in (301, 302) and outgoing.method == "POST")
    if not becomes_get:
        return following
    headers = {name: value for name, value in outgoing.headers.items() if name != "content-type"}
    return replace(following, method="GET", headers=headers, body=None)


def _send(session: _Session, outgoing: _Outgoing) -> _Sent:
    """Send one request; every way it can go wrong becomes an error in the result."""
    identity = outgoing.identity
    secret = {header.name.lower(): header.value for header in identity.headers} if identity else {}
    request = httpx.Request(
        outgoing.method,
        outgoing.url,
        headers=outgoing.headers | secret | RUNNER_HEADERS,
        content=outgoing.body,
    )
    sent = SentRequest(
        method=outgoing.method,
        url=session.redaction.apply_text(str(request.url)),
        headers=tuple(
            (name, identity.mark if identity and name.lower() in secret else session.redaction.apply_text(value))
            for name, value in decoded_headers(request.headers.raw)
        ),
        body=session.redaction.apply(outgoing.body or b""),
    )
    receiver = Receiver(session.pool, session.deadline, session.redaction, session.bounds.body_bytes_max)
    error = receiver.exchange(request, outgoing.body)
    return _Sent(Hop(sent=sent, received=receiver.response()), error, receiver.location())


def _with_captures(request: RegisteredRequest, exchange: Exchange, captured: dict[str, str]) -> Exchange:
    """Add what the request captures from its answer to `captured`, or turn the exchange into a failed one."""
    if exchange.response is None or not request.capture:
        return exchange
    try:
        captured.update(captured_values(exchange.response, request.capture))
    except CaptureFailed as error:
        return _failed(request.id, exchange.hops, ExchangeErrorCode.CAPTURE_FAILED, str(error))
    return exchange
