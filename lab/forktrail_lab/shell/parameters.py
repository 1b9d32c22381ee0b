"""Values for the `$names` of a statement, as they are typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping

from forktrail_lab.shell.tokens import parameter_names
from forktrail_projectors.graph.parameters import check_integer
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput

_WHOLE = re.compile("-?(?:0|[1-9][0-9]*)")  # as in JSON
_DIGITS_MAX = 21
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def parameter_value(text: str) -> Value:
    """A whole number, true, false, null, a quoted string or a list of strings, as in JSON; else the text itself.

    Raises:
        InvalidInput: a whole number of more than 64 bits.
    """
    if _WHOLE.fullmatch(text):
        # Python takes no number of thousands of digits, and 20 are too many already.
        value = int(text[:_DIGITS_MAX])
        check_integer(text if len(text) <= _DIGITS_MAX else f"{text[:_DIGITS_MAX]}…", value)
        return value
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if len(text) > 1 and text[0] == text[-1] == "'":
            return text[1:-1]
        return text
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    return text


def parameter_pair(text: str) -> tuple[str, Value]:
    """The name and value of `name=value`.

    Raises:
        InvalidInput: there is no '=' after a name.
    """
    name, separator, value = text.partition("=")
    name = name.strip().removeprefix("$")
    if not separator or not _NAME.fullmatch(name):
        raise InvalidInput(f"{text!r} is not of the form name=value", hint="letters, digits and _ make a name")
    return name, parameter_value(value.strip())


def used(cypher: str, parameters: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters that a statement names.

    Raises:
        InvalidInput: one of them has no value.
    """
    require_values(cypher, parameters, lambda name: f"`:param {name}=…` gives it one")
    return {name: parameters[name] for name in parameter_names(cypher)}


def require_values(cypher: str, given: Collection[str], hint: Callable[[str], str]) -> None:
    """Check that a statement's parameters are all among those that are given.

    Args:
        hint: says how the parameter of a name gets a value.

    Raises:
        InvalidInput: one of them has no value.
    """
    for name in parameter_names(cypher):
        if name not in given:
            raise InvalidInput(f"${name} has no value", hint=hint(name))
