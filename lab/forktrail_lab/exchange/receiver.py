"""Taking in one HTTP answer within bounds, keeping what came whatever goes wrong."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable

import httpcore
import httpx

from forktrail_lab.exchange.deadline import Deadline
from forktrail_lab.exchange.identities import Redaction
from forktrail_lab.exchange.transcript import ExchangeError, ExchangeErrorCode, ReceivedResponse

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))


class Receiver:
    """Takes in one answer piece by piece, so that what came before an error is kept."""

    def __init__(
        self, pool: httpcore.ConnectionPool, deadline: Deadline, redaction: Redaction, body_bytes_max: int
    ) -> None:
        self._pool = pool
        self._deadline = deadline
        self._redaction = redaction
        self._body_bytes_max = body_bytes_max
        self._status: int | None = None
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._complete = False

    def exchange(self, request: httpx.Request, body: bytes | None) -> ExchangeError | None:
        """Send the request and read its answer up to the bounds; return what went wrong.

        The texts are fixed: those of the HTTP parser and of TLS quote what the service sent.
        """
        code = ExchangeErrorCode.RESPONSE_INVALID
        try:
            self._read(request, body)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            return ExchangeError(code=ExchangeErrorCode.UNREACHABLE, message=_why_no_connection(error))
        except httpcore.TimeoutException:
            return ExchangeError(code=ExchangeErrorCode.TIMEOUT, message="no complete answer in time")
        except httpcore.NetworkError:
            return ExchangeError(code=code, message="the connection broke")
        except httpcore.LocalProtocolError:
            return ExchangeError(code=code, message="the request can't be put as HTTP")
        except httpcore.ProtocolError:
            return ExchangeError(code=code, message="the answer is not valid HTTP, or broke off")
        encoding = self._header("content-encoding")
        if encoding not in (None, "", "identity"):
            return ExchangeError(code=code, message="the body is encoded, which was not asked for")
        return None

    def response(self) -> ReceivedResponse | None:
        """What came, without secrets; None where not even a status did."""
        if self._status is None:
            return None
        limit = self._body_bytes_max
        kept = self._redaction.apply(bytes(self._body[:limit]), cut=not self._complete)
        return ReceivedResponse(
            status=self._status,
            headers=tuple(
                (self._redaction.apply_text(name), self._redaction.apply_text(value)) for name, value in self._headers
            ),
            body=kept[:limit],
            truncated=not self._complete or len(kept) > limit,
        )

    def location(self) -> str | None:
        """Where a redirect leads."""
        return self._header("location") if self._status in REDIRECT_STATUSES else None

    def _header(self, wanted: str) -> str | None:
        return next((value for name, value in self._headers if name.lower() == wanted), None)

    def _read(self, request: httpx.Request, body: bytes | None) -> None:
        url = request.url
        address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        limit = self._body_bytes_max
        with self._pool.stream(request.method, address, headers=request.headers.raw, content=body) as response:
            self._status = response.status
            self._headers = decoded_headers(response.headers)
            for piece in response.iter_stream():
                self._body += piece
                if len(self._body) > limit:
                    return
                self._deadline.remaining_seconds(at_most=1.0)
        self._complete = True


def _why_no_connection(error: Exception) -> str:
    cause = error.__cause__
    if isinstance(error, httpcore.ConnectTimeout):
        return "no connection in time"
    if isinstance(cause, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(cause, socket.gaierror):
        return "the host's name has no address"
    if isinstance(cause, ssl.SSLError):
        return "no TLS connection"
    return "no connection"


def decoded_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Header names and values as text, each byte one code point, as RFC 9110 reads them."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
