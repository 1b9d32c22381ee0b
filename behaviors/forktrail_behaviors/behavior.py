"""What a behavior is, and the three ways to write one.

    @behavior(on=ObjectCreated, where={"object_type": "Company"}, emits=["Question"])
    async def ask_questions(ctx: Context, event: ObjectCreated) -> None: ...

    @behavior(when="MATCH (c:Claim)-[:ABOUT]->(q:Question) WHERE q.open = true", emits=["Answer"])
    def settle(ctx: Context, c: Node, q: Node) -> None: ...

    @behavior(emits=["Risk"])
    class Watch:
        @handler(relation="CONTRADICTS")
        async def weigh(self, ctx: Context, source: Node, target: Node) -> None: ...

A handler takes what it names: `ctx` first, then any of `event` (the trigger), the variables of its pattern, `source`
and `target` of its relation, and its `reads`. It keeps nothing: a class is made anew for each execution.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forktrail_behaviors.determinism.code import code_sha256
from forktrail_behaviors.pattern.syntax import parse
from forktrail_behaviors.reads import check_reads
from forktrail_behaviors.subscription import OnEvent, OnPattern, OnRelation, Scalar, Subscription, check_where
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.base import Event

# What a handler returns is nothing, or a coroutine that is driven by hand; what it takes is checked by name.
HandlerFunction = Callable[..., Any]
AUTO_VERSION_DIGITS = 12
_MARK = "_forktrail_handler"


@dataclass(frozen=True)
class Handler:
    """One way a behavior fires.

    Attributes:
        function: called with the context and what it names, by keyword.
        takes: the names it takes, without the context.
        reads: Cypher by name, asked of the graph as of the trigger's offset.
    """

    name: str
    function: HandlerFunction = field(repr=False)
    subscription: Subscription
    takes: tuple[str, ...]
    reads: Mapping[str, str]


@dataclass(frozen=True)
class Behavior:
    """A named reaction with its version.

    Attributes:
        version: part of the identity of all it does; by default the beginning of `code_sha256`.
        code_sha256: digest of the source that it is made of, its pack's other modules included.
        emits: event types, object types and relation types that it may write.
        repeats: why a cycle that it is part of ends; empty where it is part of none.
        source: the function or class that it was written as.
        in_class: whether handlers take an instance first.
    """

    name: str
    version: str
    code_sha256: str
    handlers: tuple[Handler, ...]
    emits: tuple[str, ...]
    repeats: str
    source: Any = field(repr=False)
    in_class: bool = False

    def handler(self, name: str) -> Handler:
        """Its handler of that name.

        Raises:
            KeyError: it has none.
        """
        return next(handler for handler in self.handlers if handler.name == name)


def behavior(
    *,
    on: type[Event] | None = None,
    where: Mapping[str, Scalar] | None = None,
    relation: str | None = None,
    when: str | None = None,
    reads: Mapping[str, str] | None = None,
    emits: Iterable[str | type[Event]] = (),
    name: str | None = None,
    version: str | None = None,
    repeats: str = "",
) -> Callable[[Any], Behavior]:
    """Make a behavior of a function, or of a class whose methods are marked by `handler`.

    Args:
        on: fire on each valid event of this type, of those with `where`.
        relation: fire on each new relation of this type.
        when: fire once on each match of this pattern (see `forktrail_behaviors.pattern`).
        reads: named Cypher queries; `$name` in them is a field of the trigger, or the id of a bound variable.
        emits: what it writes: event classes, names of object and relation types.
        version: change it when its meaning changes; left out, every change of its code is a new version.
        repeats: where it can trigger itself, directly or through others: why that ends.

    Raises:
        InvalidInput: it says what can't be, with what to do instead.
    """

    def make(source: Any) -> Behavior:
        own_name = name or _snake(source.__name__)
        if inspect.isclass(source):
            if on or relation or when or where or reads:
                raise InvalidInput(f"{own_name} is a class: what it reacts to stands at its methods, in @handler(…)")
            handlers = _handlers_of(source)
        else:
            handlers = (_handler(own_name, source, (on, where, relation, when), reads or {}, skip=1),)
        code = code_sha256(source)
        listed = tuple(entry if isinstance(entry, str) else entry.__name__ for entry in emits)
        own_version = version or code[:AUTO_VERSION_DIGITS]
        return Behavior(own_name, own_version, code, handlers, listed, repeats, source, inspect.isclass(source))

    return make


def handler(
    *,
    on: type[Event] | None = None,
    where: Mapping[str, Scalar] | None = None,
    relation: str | None = None,
    when: str | None = None,
    reads: Mapping[str, str] | None = None,
) -> Callable[[HandlerFunction], HandlerFunction]:
    """Mark a method of a behavior's class as one of its handlers; see `behavior` for the arguments."""

    def mark(method: HandlerFunction) -> HandlerFunction:
        setattr(method, _MARK, ((on, where, relation, when), reads or {}))
        return method

    return mark


_Said = tuple[type[Event] | None, Mapping[str, Scalar] | None, str | None, str | None]


def _handlers_of(source: type) -> tuple[Handler, ...]:
    marked = [(name, method) for name, method in vars(source).items() if hasattr(method, _MARK)]
    if not marked:
        raise InvalidInput(f"{source.__name__} has no handler", hint="mark its methods with @handler(on=…)")
    return tuple(_handler(name, method, *getattr(method, _MARK), skip=2) for name, method in marked)


def _handler(name: str, function: HandlerFunction, said: _Said, reads: Mapping[str, str], *, skip: int) -> Handler:
    subscription = _subscription(name, *said)
    check_reads(name, reads)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(f"{name} is a generator, whose body would never run", hint="await, and don't yield")
    parameters = list(inspect.signature(function).parameters.values())
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters) or len(parameters) < skip:
        raise InvalidInput(f"{name} must take ctx first and then what it uses, each by its name")
    takes = tuple(one.name for one in parameters[skip:])
    given = _given(subscription, reads)
    for one in takes:
        if one not in given:
            raise InvalidInput(f"{name} takes {one!r}, which nothing gives it", hint=f"it may take {', '.join(given)}")
    for one in reads:
        if one not in takes:
            raise InvalidInput(f"{name} reads {one!r} and doesn't take it", hint=f"add a parameter {one}")
    return Handler(name, function, subscription, takes, dict(reads))


def _given(subscription: Subscription, reads: Mapping[str, str]) -> tuple[str, ...]:
    """The names that a handler may take."""
    bound: tuple[str, ...] = ()
    if isinstance(subscription, OnRelation):
        bound = ("source", "target")
    if isinstance(subscription, OnPattern):
        bound = tuple(name for name, _ in subscription.pattern.variables)
    clash = next((name for name in reads if name in ("event", *bound)), None)
    if clash is not None:
        raise InvalidInput(f"a read may not be called {clash!r}: that is given already")
    return ("event", *bound, *reads)


def _subscription(
    name: str,
    on: type[Event] | None,
    where: Mapping[str, Scalar] | None,
    relation: str | None,
    when: str | None,
) -> Subscription:
    if sum(one is not None for one in (on, relation, when)) != 1:
        raise InvalidInput(f"{name} must say one of on=, relation= and when=")
    if where is not None and on is None:
        raise InvalidInput(f"{name}: where= filters events, so it goes with on=")
    if relation is not None:
        return OnRelation(relation)
    if when is not None:
        return OnPattern(parse(when), when)
    assert on is not None
    check_where(on, where or {})
    return OnEvent(on, dict(where or {}))


def _snake(name: str) -> str:
    """A class's name as a behavior's: `WatchClaims` as `watch_claims`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
