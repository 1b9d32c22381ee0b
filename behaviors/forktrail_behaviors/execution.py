"""Drives one behavior's coroutine by hand: what it is sent are answers, what it yields are requests. Pure.

Each time it goes on is a stretch. What a stretch emits goes out with the request or the end that it comes to; a stretch
that raises emits nothing.
"""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from forktrail_behaviors.behavior import Behavior, Handler
from forktrail_behaviors.commands import Answer, Draft, Gather, Refusal, Request, RequestRefused
from forktrail_behaviors.context import Branch, Context, Identity
from forktrail_behaviors.determinism import guard
from forktrail_behaviors.types import Types
from forktrail_schemas.errors import ForktrailError, InvalidInput
from forktrail_schemas.events import BehaviorCompleted, BehaviorFailed

MESSAGE_LENGTH_MAX = 1_000
END = "end"
# Where an object lies in memory differs from process to process.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class EndedItself(ForktrailError):
    """A behavior raised what ends a process."""

    code = "ended_itself"


@dataclass
class _Line:
    """One coroutine of an execution: the handler's own, or a branch of a gather."""

    coroutine: Coroutine[Any, Any, Any]
    branch: Branch
    group: _Group | None = None
    place: int = 0


@dataclass
class _Group:
    """The branches of a gather, and the line that waits for them."""

    waiting: _Line
    left: int
    results: list[Any]
    errors: dict[int, Exception] = field(default_factory=dict)


class Execution:
    """One firing of a handler; ends by returning or raising.

    Attributes:
        ended: whether it has; nothing resumes it then.
    """

    def __init__(self, identity: Identity, behavior: Behavior, given: Mapping[str, object], types: Types) -> None:
        """Prepare it; nothing of it has run.

        Args:
            given: by name, everything that the handler may take.
        """
        handler = behavior.handler(identity.handler)
        self.identity = identity
        self.ended = False
        self._context = Context(identity, types, frozenset(behavior.emits))
        takes = {name: given[name] for name in handler.takes}
        self._root = _Line(_called(behavior, handler, self._context, takes), self._context.branch)
        self._waiting: dict[str, _Line] = {}
        self._drafts: list[Draft] = []

    def start(self, now_micros: int) -> list[Draft]:
        """Run its first stretch; returns what it makes, in order."""
        return self._go_on(self._root, None, now_micros)

    def waits_at(self, path: str) -> bool:
        """Whether it waits for the answer to the request at a path."""
        return path in self._waiting

    def resume(self, path: str, answer: Answer | Refusal, now_micros: int) -> list[Draft]:
        """Go on with the answer to the request at a path, for which it waits; returns what it makes, in order."""
        line = self._waiting.pop(path)
        if isinstance(answer, Refusal):
            return self._go_on(line, RequestRefused(answer.detail or answer.reason, code=answer.reason), now_micros)
        return self._go_on(line, answer, now_micros)

    def close(self) -> None:
        """End it where it stands: it was cancelled, or its process ends."""
        self.ended = True
        for line in [*self._waiting.values(), self._root]:
            # One that awaits on its way out, or raises there, has nobody left to hear it.
            with suppress(Exception, SystemExit):
                line.coroutine.close()
        self._waiting.clear()

    def _go_on(self, line: _Line, sent: object, now_micros: int) -> list[Draft]:
        self._context.now_micros = now_micros
        ready: deque[tuple[_Line, object]] = deque([(line, sent)])
        while ready:
            self._stretch(*ready.popleft(), ready)
        drafts, self._drafts = self._drafts, []
        return drafts

    def _stretch(self, line: _Line, sent: object, ready: deque[tuple[_Line, object]]) -> None:
        """Run one coroutine up to its next await or its end."""
        context = self._context
        context.branch, context.stretch = line.branch, []
        try:
            with guard.armed():
                command = line.coroutine.throw(sent) if isinstance(sent, Exception) else line.coroutine.send(sent)
        except StopIteration as end:
            self._drafts += context.stretch
            self._returned(line, end.value, ready)
        except Exception as error:
            self._raised(line, error, ready)
        except (SystemExit, GeneratorExit) as error:  # a behavior can't end its worker
            self._raised(line, EndedItself(f"the behavior raised {type(error).__name__}"), ready)
        else:
            self._drafts += context.stretch
            self._asked(line, command, ready)

    def _asked(self, line: _Line, command: object, ready: deque[tuple[_Line, object]]) -> None:
        if isinstance(command, Request):
            self._drafts.append(command.draft)
            self._waiting[command.draft.path] = line
        elif isinstance(command, Gather):
            self._gathered(line, command, ready)
        else:
            foreign = InvalidInput("a behavior awaits ctx.… and nothing else", hint="put I/O into a tool: ctx.tool(…)")
            ready.append((line, foreign))

    def _gathered(self, line: _Line, command: Gather, ready: deque[tuple[_Line, object]]) -> None:
        if not command.branches:
            ready.append((line, []))
            return
        group = _Group(line, len(command.branches), [None] * len(command.branches))
        for place, coroutine in enumerate(command.branches):
            branch = Branch(f"{command.path}.{place + 1}.")
            ready.append((_Line(coroutine, branch, group, place), None))

    def _returned(self, line: _Line, value: object, ready: deque[tuple[_Line, object]]) -> None:
        if line.group is None:
            self.ended = True
            self._drafts.append(Draft(BehaviorCompleted, END, {}))
            return
        line.group.results[line.place] = value
        self._joined(line.group, ready)

    def _raised(self, line: _Line, error: Exception, ready: deque[tuple[_Line, object]]) -> None:
        if line.group is None:
            self.ended = True
            fields = {"error_type": type(error).__name__, "message": _message(error)}
            self._drafts.append(Draft(BehaviorFailed, END, fields))
            return
        line.group.errors[line.place] = error
        self._joined(line.group, ready)

    @staticmethod
    def _joined(group: _Group, ready: deque[tuple[_Line, object]]) -> None:
        """One branch has ended; the line that waits goes on after the last."""
        group.left -= 1
        if not group.left:
            first = group.errors[min(group.errors)] if group.errors else None
            ready.append((group.waiting, first or group.results))


async def _called(behavior: Behavior, handler: Handler, context: Context, takes: Mapping[str, object]) -> None:
    """Call a handler, plain or not, on an instance of its own where it is a method."""
    first = (behavior.source(), context) if behavior.in_class else (context,)
    result = handler.function(*first, **takes)
    if inspect.iscoroutine(result):
        await result


def _message(error: Exception) -> str:
    """What an error says, the same in every process."""
    try:
        told = str(error)
    except Exception as another:  # its own words may be anything, a failing __str__ too
        told = f"its message can't be read: {type(another).__name__}"
    text = " ".join(_ADDRESS.sub("", told).replace("\x00", "").split())
    return text.encode("utf-8", "replace").decode()[:MESSAGE_LENGTH_MAX]
