"""What a handler is given: nodes and rows as of its trigger, which nothing can change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Json = Any  # a JSON value that can't be changed: null, boolean, number, string, tuple of such, or Row


class Object(NamedTuple):
    """An object by its type and id."""

    type: str
    id: str


class Row(Mapping[str, Json]):
    """Values by name, also as attributes; can't be changed."""

    __slots__ = ("_values",)

    _values: Mapping[str, Json]

    def __init__(self, values: Mapping[str, object]) -> None:
        object.__setattr__(self, "_values", {name: frozen(value) for name, value in values.items()})

    def __getitem__(self, name: str) -> Json:
        return self._values[name]

    def __getattr__(self, name: str) -> Json:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} here, but {', '.join(self)}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled: anew from its values."""
        return Row, (dict(self._values),)

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("what a handler is given can't be changed: emit a change by ctx.patch(…)")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class Node(Row):
    """A node of the graph as of the trigger: its columns, its id among them, and its label as `type`."""

    __slots__ = ("type",)

    type: str

    def __init__(self, type: str, values: Mapping[str, object]) -> None:
        super().__init__(values)
        object.__setattr__(self, "type", type)

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled."""
        return Node, (self.type, dict(self._values))

    @property
    def object(self) -> Object:
        """It by type and id, as `ctx.relate` takes it."""
        return Object(self.type, str(self["id"]))


Rows = Sequence[Row]


def frozen(value: object) -> Json:
    """A JSON value that can't be changed."""
    if isinstance(value, Mapping):
        return Row(value)
    return tuple(frozen(item) for item in value) if isinstance(value, list | tuple) else value
