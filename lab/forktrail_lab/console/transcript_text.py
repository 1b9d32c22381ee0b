"""Stored exchanges as people read them: `>` before what was sent, `<` before what came back, `!` before an error.

Every line begins with its mark, and whatever isn't printable is escaped, so that no answer can forge a line. The stored
document itself is the exact form.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from forktrail_lab.console.output import counted, printable
from forktrail_lab.exchange.transcript import Exchange, Headers, Hop, ReceivedResponse, SentRequest, Transcript

BODY_CHARACTERS_SHOWN = 2000


def transcript_lines(transcript: Transcript, *, full: bool = False) -> list[str]:
    """Every exchange, in order.

    Args:
        full: show bodies whole, however long.
    """
    shown = None if full else BODY_CHARACTERS_SHOWN
    lines = [
        f"case {transcript.case_id}, test {transcript.test_id}, revision {transcript.revision}",
        f"sent to {transcript.target}: {counted(transcript.request_count, 'HTTP request')}",
    ]
    if transcript.interrupted:
        lines.append("interrupted: the runner ended before the test did, and nothing is known of what it sent")
    for exchange in transcript.exchanges:
        lines += ["", *_exchange(exchange, shown)]
    return [printable(line) for line in lines]


def _exchange(exchange: Exchange, shown: int | None) -> Iterator[str]:
    yield f"request {exchange.request_id}"
    for number, hop in enumerate(exchange.hops, start=1):
        if len(exchange.hops) > 1:
            yield f"hop {number} of {len(exchange.hops)}{', after a redirect' if number > 1 else ''}"
        yield from _hop(hop, shown)
    if exchange.error is not None:
        yield f"! {exchange.error.code}: {exchange.error.message}"


def _hop(hop: Hop, shown: int | None) -> Iterator[str]:
    yield from _sent(hop.sent, shown)
    if hop.received is None:
        yield "! no answer came"
    else:
        yield from _received(hop.received, shown)


def _sent(sent: SentRequest, shown: int | None) -> Iterator[str]:
    yield f"> {sent.method} {sent.url}"
    yield from _rest(">", sent.headers, sent.body, shown)


def _received(received: ReceivedResponse, shown: int | None) -> Iterator[str]:
    yield f"< {received.status}"
    yield from _rest("<", received.headers, received.body, shown)
    if received.truncated:
        yield "! the body was longer, and the runner kept no more of it"


def _rest(mark: str, headers: Headers, body: bytes, shown: int | None) -> Iterator[str]:
    yield from (f"{mark} {name}: {value}" for name, value in headers)
    if not body:
        return
    yield mark
    try:
        text = body.decode()
    except UnicodeDecodeError:
        yield "! the body is not UTF-8; in base64:"
        text = base64.b64encode(body).decode()
    yield from (f"{mark} {line}" if line else mark for line in text[:shown].split("\n"))
    if shown is not None and len(text) > shown:
        yield f"! {counted(len(text) - shown, 'character')} more, with --full"
