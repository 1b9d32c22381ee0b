"""A model's provider on loopback that speaks the real protocols, and misbehaves as it is told to."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-standin-0123456789abcdef"


@dataclass
class Asked:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any


Answer = Callable[["Handler", Asked], None]


@dataclass
class StandIn:
    """What the server was asked, and how it answers, in turn; the last way goes on.

    Attributes:
        address: its base URL.
    """

    address: str
    answers: list[Answer]
    asked: list[Asked] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Answers by the stand-in's next way."""

    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Note the request, and answer it."""
        length = int(self.headers["content-length"])
        asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(self.rfile.read(length)))
        told = self.stand_in
        told.asked.append(asked)
        way = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
        way(self, asked)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def stand_in(*answers: Answer) -> Iterator[StandIn]:
    """A server that answers in these ways."""
    handler: Any = type("Told", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    told = StandIn(f"http://127.0.0.1:{server.server_address[1]}", list(answers))
    handler.stand_in = told
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()


# How it answers, whatever the protocol.


def status(code: int, told: Any = None, **headers: str) -> Answer:
    """An answer of some status, by default in the providers' way of telling an error."""
    body = json.dumps(told if told is not None else {"error": {"message": f"went wrong ({code})"}}).encode()
    return lambda handler, asked: handler.send(code, body, **headers)


def raw(body: bytes, **headers: str) -> Answer:
    """An answer of status 200 with these bytes."""
    return lambda handler, asked: handler.send(200, body, **headers)


def echo_of_the_request(handler: Handler, asked: Asked) -> None:
    """A fault that repeats everything it was sent, as careless proxies do."""
    told = {"error": {"message": f"bad key: {dict(asked.headers)}"}, "request": [dict(asked.headers), asked.body]}
    handler.send(401, json.dumps(told).encode())


def silence(handler: Handler, asked: Asked) -> None:
    """The head of an answer, and then nothing until the client gives up."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.wfile.flush()
    handler.connection.settimeout(20)
    try:
        handler.connection.recv(1)
    except OSError:
        return


def cut(handler: Handler, asked: Asked) -> None:
    """Half an answer, and a connection reset."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def flood(size: int) -> Answer:
    """An answer of so many bytes."""

    def answer(handler: Handler, asked: Asked) -> None:
        handler.send_response(200)
        handler.send_header("content-length", str(size))
        handler.end_headers()
        part = b" " * 65_536
        try:
            for _ in range(size // len(part)):
                handler.wfile.write(part)
        except OSError:
            handler.close_connection = True

    return answer


# Right answers, by protocol.


def chat(content: Any = None, *, finish: str = "stop", calls: Any = None, refusal: str | None = None) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": refusal}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "small-2026",
        "choices": [{"index": 0, "finish_reason": finish, "message": message, "logprobs": None}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }


def messages(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    """A message of Anthropic's."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small-2026",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 50,
            "output_tokens": 20,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 40,
        },
    }


def text(told: str) -> dict[str, Any]:
    """A text block of Anthropic's."""
    return {"type": "text", "text": told}
