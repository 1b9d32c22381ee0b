"""A time by which a whole test is over, held on every read and write of its sockets.

httpx's timeouts bound each single read; a service that drips one byte a second would never reach one. Here every
socket operation gets what is left of the test's time, so slow headers end as surely as slow bodies.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import httpcore

CONNECT_SECONDS_MAX = 5.0
SILENCE_SECONDS_MAX = 30.0
WRITE_PIECE_BYTES = 16 * 1024

SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


@dataclass(frozen=True)
class Deadline:
    """A point on a monotonic clock.

    Attributes:
        clock: seconds, never going back.
        at: when the time is over.
    """

    clock: Callable[[], float]
    at: float

    def remaining_seconds(self, at_most: float) -> float:
        """Seconds left, but at most so many.

        Raises:
            httpcore.ReadTimeout: none are left.
        """
        left = min(self.at - self.clock(), at_most)
        if left <= 0:
            raise httpcore.ReadTimeout("the time for the whole test is over")
        return left


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose every operation ends by the deadline; the timeouts httpcore passes are not used."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there, waiting no longer than the deadline allows."""
        return self._stream.read(max_bytes, self._deadline.remaining_seconds(SILENCE_SECONDS_MAX))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write everything, or raise at the deadline."""
        for start in range(0, len(buffer), WRITE_PIECE_BYTES):
            left = self._deadline.remaining_seconds(SILENCE_SECONDS_MAX)
            self._stream.write(buffer[start : start + WRITE_PIECE_BYTES], left)

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Shake hands within the deadline."""
        left = self._deadline.remaining_seconds(CONNECT_SECONDS_MAX)
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> object:
        """What httpcore asks of the socket below."""
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that keep to a deadline; looking up a host's name is the system's and isn't bounded."""

    def __init__(self, deadline: Deadline) -> None:
        self._backend = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect within the deadline."""
        left = self._deadline.remaining_seconds(CONNECT_SECONDS_MAX)
        try:
            stream = self._backend.connect_tcp(host, port, left, local_address, socket_options)
        except (OverflowError, UnicodeError) as error:  # a port or host name that no socket takes
            raise httpcore.ConnectError(str(error)) from error
        return DeadlineStream(stream, self._deadline)


def open_pool(deadline: Deadline) -> httpcore.ConnectionPool:
    """A pool that keeps to the deadline, opens a connection per request and knows no proxy.

    Certificates are checked against the operating system's authorities.
    """
    return httpcore.ConnectionPool(
        ssl_context=_system_trust(),
        max_keepalive_connections=0,
        network_backend=DeadlineBackend(deadline),
    )


@functools.cache
def _system_trust() -> ssl.SSLContext:
    """The system's certificate authorities; loading them takes some 40 ms, so once a process."""
    return ssl.create_default_context()
