"""Whether a condition holds: true, false, or null where it can't be told (three-valued logic, as in SQL and Cypher)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from forktrail_behaviors.pattern.tree import (
    Compare,
    Every,
    Exists,
    Expression,
    IsNull,
    Not,
    Operand,
    Part,
    Property,
)
from forktrail_projectors.state import Row

Truth = bool | None
Rows = Mapping[str, Row]  # by variable
There = Callable[[Part], bool]  # whether what EXISTS asks for is there

# Called only for two values of one kind, so that each has an order.
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "STARTS WITH": str.startswith,
    "ENDS WITH": str.endswith,
    "CONTAINS": lambda text, part: part in text and part != "",  # to the engine no text contains the empty one
}


def truth(expression: Expression, rows: Rows, there: There) -> Truth:
    """What a condition comes to.

    Args:
        rows: the row of every variable that the condition names.
        there: asked for each EXISTS that the answer depends on.
    """
    if isinstance(expression, Compare):
        return _compared(expression.operator, _value(expression.left, rows), _value(expression.right, rows))
    if isinstance(expression, IsNull):
        return (_value(expression.operand, rows) is None) is not expression.negated
    if isinstance(expression, Exists):
        return there(expression.part)
    if isinstance(expression, Not):
        inner = truth(expression.term, rows, there)
        return None if inner is None else not inner
    # One false term decides AND, one true term OR; else one null makes it null.
    decides = not isinstance(expression, Every)
    found: Truth = not decides
    for term in expression.terms:
        one = truth(term, rows, there)
        if one is decides:
            return decides
        if one is None:
            found = None
    return found


def _value(operand: Operand, rows: Rows) -> object:
    return rows[operand.variable].get(operand.name) if isinstance(operand, Property) else operand.value


def _compared(operator: str, left: object, right: object) -> Truth:
    if left is None or right is None:
        return None
    if operator == "IN":
        return _among(left, right)
    if operator in _TEXTS:
        return _TEXTS[operator](left, right) if isinstance(left, str) and isinstance(right, str) else None
    return _ORDERS[operator](left, right) if _kind(left) == _kind(right) else None


def _among(left: object, right: object) -> Truth:
    """Whether a value is one of a list's; nulls in the list are no values."""
    if not isinstance(right, tuple):
        return None
    kind = _kind(left)
    return any(_kind(one) == kind and one == left for one in right)


def _kind(value: object) -> str:
    """What a value can be compared with: whole and other numbers are of one kind, and booleans are no numbers."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, tuple) else "text"
