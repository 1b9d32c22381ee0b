"""Stored exchanges as lines: all of them, in order, and none that an answer could have forged."""

from __future__ import annotations

import base64

from forktrail_lab.console.transcript_text import BODY_CHARACTERS_SHOWN, transcript_lines
from forktrail_lab.exchange.transcript import (
    Exchange,
    ExchangeError,
    ExchangeErrorCode,
    Headers,
    Hop,
    ReceivedResponse,
    SentRequest,
    Transcript,
)

ORIGIN = "http://127.0.0.1:1"


def hop(
    path: str, status: int | None, body: bytes = b"", headers: Headers = (), *, sent: bytes = b"", cut: bool = False
) -> Hop:
    request = SentRequest(method="POST" if sent else "GET", url=ORIGIN + path, headers=(("accept", "*/*"),), body=sent)
    if status is None:
        return Hop(sent=request, received=None)
    return Hop(sent=request, received=ReceivedResponse(status=status, headers=headers, body=body, truncated=cut))


def lines_of(*hops: Hop, error: ExchangeError | None = None, full: bool = False) -> list[str]:
    """The lines of a transcript of one exchange, without those that head it."""
    exchange = Exchange(request_id="probe", hops=hops, error=error)
    lines = transcript_lines(transcript(exchange), full=full)
    assert lines[2:4] == ["", "request probe"]
    return lines[4:]


def transcript(*exchanges: Exchange, interrupted: bool = False) -> Transcript:
    return Transcript(
        case_id="case-1",
        test_id="door",
        revision="r1",
        definition_sha256="0" * 64,
        target=ORIGIN,
        exchanges=exchanges,
        interrupted=interrupted,
    )


def test_a_request_and_its_answer_are_told_line_by_line() -> None:
    assert lines_of(hop("/x", 403, b'{"no": 1}', (("retry-after", "1"),), sent=b"ask\n\nnicely")) == [
        "> POST http://127.0.0.1:1/x",
        "> accept: */*",
        ">",
        "> ask",
        ">",
        "> nicely",
        "< 403",
        "< retry-after: 1",
        "<",
        '< {"no": 1}',
    ]


def test_the_head_says_what_it_is_of() -> None:
    one = Exchange(request_id="probe", hops=(hop("/", 200),), error=None)
    assert transcript_lines(transcript(one))[:2] == [
        "case case-1, test door, revision r1",
        "sent to http://127.0.0.1:1: 1 HTTP request",
    ]


def test_redirects_are_told_as_hops() -> None:
    lines = lines_of(hop("/a", 302, headers=(("location", "/b"),)), hop("/b", 200, b"there"))
    assert [line for line in lines if not line.startswith("> accept")] == [
        "hop 1 of 2",
        "> GET http://127.0.0.1:1/a",
        "< 302",
        "< location: /b",
        "hop 2 of 2, after a redirect",
        "> GET http://127.0.0.1:1/b",
        "< 200",
        "<",
        "< there",
    ]


def test_errors_and_missing_answers_are_told() -> None:
    error = ExchangeError(code=ExchangeErrorCode.TIMEOUT, message="10 s are over")
    assert lines_of(hop("/", None), error=error)[-2:] == ["! no answer came", "! timeout: 10 s are over"]
    assert lines_of(error=ExchangeError(code=ExchangeErrorCode.NOT_SENT, message="told")) == ["! not_sent: told"]


def test_an_interrupted_one_says_so() -> None:
    assert transcript_lines(transcript(interrupted=True))[2].startswith("interrupted: ")


def test_no_answer_moves_the_cursor_or_forges_a_line() -> None:
    body = "\x1b[2Jgone\r\n> GET http://127.0.0.1:1/forged\x85! \u2028< 200\x00".encode()
    lines = lines_of(hop("/", 200, body, (("x", "a\tb"),)))
    assert lines[-4:] == [
        "< x: a\\tb",
        "<",
        "< \\x1b[2Jgone\\r",
        "< > GET http://127.0.0.1:1/forged\\x85! \\u2028< 200\\x00",
    ]
    assert all(line.isprintable() for line in lines)


def test_what_is_not_utf_8_is_told_in_base64() -> None:
    body = b"\xff\x00\x1b"
    assert lines_of(hop("/", 200, body))[-3:] == [
        "<",
        "! the body is not UTF-8; in base64:",
        f"< {base64.b64encode(body).decode()}",
    ]


def test_a_long_body_is_cut_and_told_whole_when_asked() -> None:
    body = b"a" * BODY_CHARACTERS_SHOWN + b"z"
    assert lines_of(hop("/", 200, body))[-2:] == ["< " + "a" * BODY_CHARACTERS_SHOWN, "! 1 character more, with --full"]
    assert lines_of(hop("/", 200, body), full=True)[-1] == "< " + body.decode()
    assert lines_of(hop("/", 200, body[:-1]))[-1] == "< " + "a" * BODY_CHARACTERS_SHOWN


def test_a_body_that_the_runner_cut_says_so() -> None:
    assert lines_of(hop("/", 200, b"half", cut=True))[-2:] == [
        "< half",
        "! the body was longer, and the runner kept no more of it",
    ]
