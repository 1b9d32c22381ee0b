"""Tools: functions that touch the world for behaviors, with declared arguments, limits, and what they do to it.

@tool(side_effects="read", timeout_seconds=10)
def fetch(name: str, pages: int = 1) -> str: ...
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json

SideEffects = Literal["none", "read", "write"]
TIMEOUT_SECONDS = 30.0
OUTPUT_BYTES_MAX = 1_000_000
_KEY = "idempotency_key"


class Tool(Protocol):
    """A tool by the name that behaviors call it under.

    Attributes:
        description: what it does, for a model that may call it.
        parameters: JSON Schema of its arguments.
        side_effects: what calling it does to the world.
        timeout_seconds: after so long it counts as failed.
        output_bytes_max: a longer answer, as JSON, counts as failed.
        takes_key: whether it recognizes a second sending by an idempotency key.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Json: ...
    @property
    def side_effects(self) -> SideEffects: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def output_bytes_max(self) -> int: ...
    @property
    def takes_key(self) -> bool: ...

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that aren't as declared.

        Raises:
            InvalidInput: naming the tool, the argument and what is wrong.
        """
        ...

    def call(self, arguments: Mapping[str, Any], idempotency_key: str | None) -> Json:
        """Call it with checked arguments; returns a JSON value.

        May be called by several threads at once. What it raises becomes the outcome `error`.
        """
        ...


@dataclass(frozen=True)
class FunctionTool:
    """A tool made of a function that takes its arguments by name; made by `tool`.

    Raises:
        InvalidInput: an argument's annotation can't be read, or says nothing that JSON could hold.
    """

    name: str
    side_effects: SideEffects
    function: Callable[..., Json] = field(repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS
    output_bytes_max: int = OUTPUT_BYTES_MAX

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.function) or inspect.isgeneratorfunction(self.function):
            raise InvalidInput(f"the tool {self.name} must be a plain function", hint="it has a thread of its own")
        if self.side_effects not in typing.get_args(SideEffects):
            allowed = ", ".join(typing.get_args(SideEffects))
            raise InvalidInput(
                f"the tool {self.name} can't have side effects {self.side_effects!r}", hint=f"one of {allowed}"
            )
        if self.timeout_seconds <= 0 or self.output_bytes_max <= 0:
            raise InvalidInput(f"the limits of the tool {self.name} must be more than 0")
        _ = self.parameters

    @property
    def takes_key(self) -> bool:
        """Whether the function has a parameter for an idempotency key."""
        return _KEY in inspect.signature(self.function).parameters

    @property
    def description(self) -> str:
        """The first paragraph of the function's docstring."""
        return (inspect.getdoc(self.function) or "").split("\n\n")[0]

    @cached_property
    def parameters(self) -> Json:
        """JSON Schema of its arguments."""
        try:
            return self._arguments.model_json_schema()
        except PydanticUserError as error:
            raise InvalidInput(
                f"the arguments of the tool {self.name} can't be declared: {str(error).splitlines()[0]}",
                hint="use text, numbers, lists, mappings or pydantic models",
            ) from None

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that aren't as declared."""
        self._checked(arguments)

    def call(self, arguments: Mapping[str, Any], idempotency_key: str | None) -> Json:
        """Call the function; a parameter `idempotency_key` gets the key."""
        checked = self._checked(arguments)
        names = {name: field.alias for name, field in self._arguments.model_fields.items()}
        given = {str(names[name]): getattr(checked, name) for name in checked.model_fields_set}
        key = {_KEY: idempotency_key} if self.takes_key else {}
        return self.function(**given, **key)

    def _checked(self, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            return self._arguments.model_validate_json(json.dumps(dict(arguments)), strict=True)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the arguments"
            raise InvalidInput(
                f"{self.name}: {where}: {fault['msg']}",
                hint=f"it takes: {', '.join(self._names) or 'nothing'}",
            ) from None

    @property
    def _names(self) -> list[str]:
        """The names of its arguments."""
        return [str(field.alias) for field in self._arguments.model_fields.values()]

    @cached_property
    def _arguments(self) -> type[BaseModel]:
        """The arguments as a model."""
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise InvalidInput(
                f"an annotation of the tool {self.name} can't be read: {error}",
                hint="annotate it with names that its module has",
            ) from None
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise InvalidInput(f"the tool {self.name} takes its arguments by name: {parameter} can't be declared")
            if name != _KEY:
                default = ... if parameter.default is parameter.empty else parameter.default
                # Under another name, since pydantic has words of its own.
                fields[f"argument_{len(fields)}"] = (hints.get(name, Any), Field(default, alias=name))
        return create_model(f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def tool(
    *,
    name: str | None = None,
    side_effects: SideEffects = "read",
    timeout_seconds: float = TIMEOUT_SECONDS,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> Callable[[Callable[..., Json]], FunctionTool]:
    """Make a tool of a function; by default it is called what the function is.

    Args:
        side_effects: what calling it does to the world. What writes is sent a second time, after a kill, only under an
            idempotency key; without one a person settles what became of it.
        timeout_seconds: after so long a call counts as failed; the function is not stopped.
        output_bytes_max: a longer answer counts as failed.
    """
    return lambda function: FunctionTool(
        name or function.__name__, side_effects, function, timeout_seconds, output_bytes_max
    )
