"""What a behavior's coroutine yields: a request for something that isn't in what it was given, or several at once."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from forktrail_schemas.errors import ForktrailError
from forktrail_schemas.events.base import Event


@dataclass(frozen=True)
class Draft:
    """An event as a behavior means it; the runtime adds `meta`, the epoch and a signature.

    Attributes:
        path: where in its execution it was made.
        fields: without `meta` and `epoch`.
        frame: that it is made in.
        large: bytes that the event names by their digest, and that have to be stored before it.
    """

    event: type[Event]
    path: str
    fields: Mapping[str, object]
    frame: str | None = None
    large: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Request:
    """One thing asked for: its request goes on the log, and the coroutine waits for the answer."""

    draft: Draft


@dataclass(frozen=True)
class Gather:
    """Coroutines that go on side by side; the answer is the list of what they returned."""

    path: str
    branches: tuple[Coroutine[Any, Any, Any], ...]


Command = Request | Gather


class Yielded:
    """An awaitable that hands a command to whoever drives the coroutine, and returns what that sends back."""

    __slots__ = ("_command",)

    def __init__(self, command: Command) -> None:
        self._command = command

    def __await__(self) -> Generator[Command, Any, Any]:
        return (yield self._command)


@dataclass(frozen=True)
class Answer:
    """What an answer on the log says.

    Attributes:
        outcome: ok, error, or abstained.
        value: the JSON text of the answer; of an approval its decision; "" where there is none.
        error: what went wrong, for people.
        person: who decided, of an approval.
        reason: why they did.
    """

    outcome: str
    value: str = ""
    error: str = ""
    person: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Refusal:
    """The rules refused a request; it is on the log and void."""

    reason: str
    detail: str


class RequestRefused(ForktrailError):
    """The rules of the log refused what the behavior asked for; `code` is the reason code."""

    code = "request_refused"


def settled(answer: Answer) -> Answer:
    """The answer, where it is one.

    Raises:
        Abstained, EffectFailed: it isn't.
    """
    if answer.outcome == "abstained":
        raise Abstained(answer.error or "the model can't tell")
    if answer.outcome != "ok":
        raise EffectFailed(answer.error or f"the outcome is {answer.outcome}")
    return answer


class EffectFailed(ForktrailError):
    """A model or tool answered with an error, or with something that isn't what was asked for."""

    code = "effect_failed"


class Abstained(EffectFailed):
    """A model answered that it can't tell."""

    code = "abstained"
