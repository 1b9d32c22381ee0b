"""The lab's deliberately vulnerable services: one HTTP origin per asset and revision, scripted by a registry."""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from forktrail_lab.exchange.targets import TARGETS_FORMAT, Targets
from forktrail_lab.registry.model import Registry, ServiceAnswer, ServiceMatch, ServiceResponse
from forktrail_schemas.errors import ForktrailError, InvalidInput

LOOPBACK = "127.0.0.1"
REQUESTS_PATH = "/__lab__/requests"
REQUESTS_KEPT = 1000
REQUEST_BODY_BYTES_MAX = 1024 * 1024
IDLE_SECONDS_MAX = 30
NOT_FOUND = ServiceResponse.model_validate({"status": 404, "json": {"error": "not found"}})
BAD_BODY = ServiceResponse.model_validate(
    {"status": 400, "json": {"error": "a body needs a content-length, of 1 MiB at most"}}
)


@dataclass
class RequestLog:
    """How many requests a service has answered, and the last of them as (method, path)."""

    count: int = 0
    last: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=REQUESTS_KEPT))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, method: str, path: str) -> None:
        """Note one request."""
        with self.lock:
            self.count += 1
            self.last.append((method, path))

    def document(self) -> dict[str, object]:
        """What `GET /__lab__/requests` answers."""
        with self.lock:
            return {"count": self.count, "requests": [list(entry) for entry in self.last]}


def answer_for(
    answers: Sequence[ServiceAnswer], method: str, path: str, headers: Mapping[str, str], body: bytes
) -> ServiceResponse:
    """The first answer whose `when` matches a request; 404 where none does.

    Args:
        answers: a service's script.
        method: the request's method.
        path: path and query as sent.
        headers: the request's, names in lower case.
        body: the request's.
    """
    for answer in answers:
        if _matches(answer.when, method, path, headers, body):
            return answer.respond
    return NOT_FOUND


def _matches(when: ServiceMatch, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bool:
    target = path if "?" in when.path else path.partition("?")[0]
    return (
        when.method == method
        and re.fullmatch(_path_pattern(when.path), target) is not None
        and all(headers.get(name.lower()) == value for name, value in when.headers.items())
        and (when.body_contains is None or when.body_contains.encode() in body)
    )


def _path_pattern(path: str) -> str:
    return "[^/?]+".join(re.escape(part) for part in re.split(r"\{[^{}/]*\}", path))


class Service(ThreadingHTTPServer):
    """One asset in one revision, listening on a port of its own from the moment it is made."""

    daemon_threads = True

    def __init__(self, host: str, asset: str, revision: str, answers: Sequence[ServiceAnswer]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), _Handler)
        self.asset = asset
        self.revision = revision
        self.answers = answers
        self.requests = RequestLog()
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"http://{shown}:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet about clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    """Answers from the service's script; every answer says which revision it is."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS_MAX
    server: Service

    def _answer(self) -> None:
        body = self._read_body()
        if body is None:
            self._respond(BAD_BODY)
        elif self.command == "GET" and self.path == REQUESTS_PATH:
            self._respond(ServiceResponse.model_validate({"status": 200, "json": self.server.requests.document()}))
        else:
            self.server.requests.add(self.command, self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._respond(answer_for(self.server.answers, self.command, self.path, headers, body))

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  # http.server's names

    def _read_body(self) -> bytes | None:
        """The request's body; None, and the connection given up, where its end isn't known or it is too long."""
        length = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers or not length.isdecimal() or int(length) > REQUEST_BODY_BYTES_MAX:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _respond(self, response: ServiceResponse) -> None:
        body, media_type = b"", None
        if response.json_body is not None:
            body, media_type = json.dumps(response.json_body).encode(), "application/json"
        elif response.text is not None:
            body, media_type = response.text.encode(), "text/plain; charset=utf-8"
        headers = {name.lower(): value for name, value in response.headers.items()}
        if media_type is not None:
            headers.setdefault("content-type", media_type)
        self.send_response_only(response.status)
        self.send_header("X-Service-Revision", self.server.revision)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep stderr for errors; `GET /__lab__/requests` tells what was asked."""


class Lab:
    """All services of a registry, answering until closed.

    Every one is listening once `start` returns.
    """

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = tuple(services)
        self._threads = [
            threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            for service in services
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def start(cls, registry: Registry, *, host: str = LOOPBACK, beyond_loopback: bool = False) -> Self:
        """Start one service for each asset and revision that the registry scripts, on ports the system picks.

        Raises:
            InvalidInput: the registry scripts none, or the host isn't loopback and that wasn't asked for.
            ForktrailError: a port can't be had.
        """
        if not beyond_loopback and not is_loopback(host):
            raise InvalidInput(f"{host} is not loopback", hint="these services are vulnerable on purpose; stay local")
        if not registry.services:
            raise InvalidInput(
                f"registry {registry.name!r} scripts no services", hint="write a targets file for your own by hand"
            )
        services: list[Service] = []
        try:
            for asset, revisions in registry.services.items():
                for revision, answers in revisions.items():
                    services.append(Service(host, asset, revision, answers))
        except OSError as error:
            for service in services:
                service.server_close()
            raise ForktrailError(
                f"can't listen on {host}: {error}", code="lab_unavailable", hint="try --host 127.0.0.1"
            ) from error
        return cls(services)

    def targets(self, pid: int | None = None) -> Targets:
        """Where each service listens."""
        origins: dict[str, dict[str, str]] = {}
        for service in self.services:
            origins.setdefault(service.revision, {})[service.asset] = service.origin
        return Targets(format=TARGETS_FORMAT, pid=pid, targets=origins)

    def close(self) -> None:
        """Stop listening; requests being answered are let go."""
        for service in self.services:
            service.shutdown()
            service.server_close()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone, by its address or the name `localhost`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
