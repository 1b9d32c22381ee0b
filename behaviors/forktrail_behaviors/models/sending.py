"""Sends a request to a model's provider: again where that may help, never longer or larger than allowed.

429 and what looks like a passing fault is sent again: after as long as the provider asks for (`Retry-After`), or a
random part of a wait that doubles. Everything else is told as it came. No other provider is ever asked instead.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
FIRST_WAIT_SECONDS, WAIT_SECONDS_MAX = 0.5, 60.0


@dataclass(frozen=True)
class Limits:
    """How long and how large an exchange may be.

    Attributes:
        timeout_seconds: of one attempt, from the connection to the last byte.
        attempts: so often it is sent at most.
        body_bytes_max: of an answer.
    """

    timeout_seconds: float = 120.0
    attempts: int = 4
    body_bytes_max: int = 16_000_000


@dataclass(frozen=True)
class Clock:
    """What waiting goes by; tests have their own."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    part: Callable[[], float] = random.random


@dataclass(frozen=True)
class Sent:
    """What came of sending.

    Attributes:
        status: of the last answer; None where there was none.
        body: of the last answer, as far as it came.
        fault: why there is no whole answer, in words; "" where there is one.
        attempts: how often it was sent.
    """

    status: int | None
    body: bytes = field(repr=False)
    fault: str
    attempts: int


class Sender:
    """Sends JSON to one address; may be used by several threads at once."""

    def __init__(self, url: str, headers: Mapping[str, str], limits: Limits, clock: Clock | None = None) -> None:
        """Open no connection yet.

        Args:
            headers: with the key; they are shown nowhere.
        """
        self._url = url
        self._limits = limits
        self._clock = clock or Clock()
        # What is compressed could be small and become any size.
        told = {"accept-encoding": "identity", "content-type": "application/json", **headers}
        timeout = httpx.Timeout(limits.timeout_seconds)
        self._client = httpx.Client(headers=told, timeout=timeout, follow_redirects=False, trust_env=False)

    def send(self, body: bytes) -> Sent:
        """Send it, and again while that may help; never raises."""
        attempt = 0
        while True:
            attempt += 1
            status, answer, fault, asked_for = self._once(body)
            passing = fault != "" if status is None else status in PASSING
            if not passing or attempt >= self._limits.attempts:
                return Sent(status, answer, fault, attempt)
            self._clock.sleep(self._wait(attempt, asked_for))

    def close(self) -> None:
        """Close what is open."""
        self._client.close()

    def _once(self, body: bytes) -> tuple[int | None, bytes, str, str | None]:
        """One attempt: status, body, fault, and what `Retry-After` says."""
        began = self._clock.monotonic()
        answer = bytearray()
        status: int | None = None
        try:
            with self._client.stream("POST", self._url, content=body) as response:
                status = response.status_code
                for part in response.iter_raw():
                    answer += part
                    if len(answer) > self._limits.body_bytes_max:
                        del answer[self._limits.body_bytes_max :]
                        fault = f"the answer has more than {self._limits.body_bytes_max:,} bytes"
                        return status, bytes(answer), fault, None
                    if self._clock.monotonic() - began > self._limits.timeout_seconds:
                        return None, bytes(answer), self._timed_out(), None
                encoded = response.headers.get("content-encoding", "identity")
                if encoded != "identity":
                    return status, bytes(answer), f"the answer is compressed ({encoded[:20]}), unasked", None
                return status, bytes(answer), "", response.headers.get("retry-after")
        except httpx.TimeoutException:
            return None, bytes(answer), self._timed_out(), None
        except httpx.ConnectError:
            return None, bytes(answer), "there is no connection", None
        except httpx.TransportError as error:
            # What it says may hold the address; its kind says enough.
            return None, bytes(answer), f"the connection broke off ({type(error).__name__})", None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return 0, bytes(answer), f"it can't be sent ({type(error).__name__})", None

    def _timed_out(self) -> str:
        return f"no whole answer within {self._limits.timeout_seconds:g} s"

    def _wait(self, attempt: int, asked_for: str | None) -> float:
        """Seconds to wait before the next attempt."""
        asked = self._seconds(asked_for)
        if asked is not None:
            return min(asked, WAIT_SECONDS_MAX)
        return float(self._clock.part() * min(FIRST_WAIT_SECONDS * 2**attempt, WAIT_SECONDS_MAX))

    def _seconds(self, told: str | None) -> float | None:
        """What a `Retry-After` means: seconds, or a date (RFC 9110, 10.2.3); None where it means nothing."""
        if told is None:
            return None
        if told.isascii() and told.isdecimal():
            return float(told[:9])
        try:
            at = parsedate_to_datetime(told)
        except ValueError:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return max(0.0, (at - self._clock.now()).total_seconds())
