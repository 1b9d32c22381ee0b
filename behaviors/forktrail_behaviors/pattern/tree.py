"""What a pattern says, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scalar = str | int | float | bool | None
Operator = Literal["=", "<>", "<", "<=", ">", ">=", "IN", "STARTS WITH", "ENDS WITH", "CONTAINS"]


@dataclass(frozen=True)
class Property:
    """A property of what a variable stands for."""

    variable: str
    name: str


@dataclass(frozen=True)
class Constant:
    """A value that the pattern names."""

    value: Scalar | tuple[Scalar, ...]


Operand = Property | Constant


@dataclass(frozen=True)
class Compare:
    """Two values, compared."""

    operator: Operator
    left: Operand
    right: Operand


@dataclass(frozen=True)
class IsNull:
    """Whether a property has no value; or, negated, has one."""

    operand: Property
    negated: bool


@dataclass(frozen=True)
class Not:
    """The opposite."""

    term: Expression


@dataclass(frozen=True)
class Every:
    """All of them: AND."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Some:
    """At least one of them: OR."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Exists:
    """Whether a part of the graph is there, around the nodes bound so far."""

    part: Part


Expression = Compare | IsNull | Not | Every | Some | Exists


@dataclass(frozen=True)
class Step:
    """A relation between two nodes, or a walk of several.

    Attributes:
        source: the variable that it leads from.
        types: its relation types, any of which will do.
        low, high: how many relations it may take.
        variable: its name, of a single relation; None where it has none.
    """

    source: str
    target: str
    types: tuple[str, ...]
    low: int = 1
    high: int = 1
    variable: str | None = None

    @property
    def is_walk(self) -> bool:
        """Whether it may be other than a single relation."""
        return (self.low, self.high) != (1, 1)


@dataclass(frozen=True, eq=False)
class Part:
    """What one MATCH asks for; compared and hashed by what it is, not by what it says.

    Attributes:
        labels: the label of each node's variable, nodes of an enclosing part that it names among them.
        conditions: all of which must be true.
        shared: variables that belong to an enclosing part, those that its conditions name among them.
    """

    labels: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    conditions: tuple[Expression, ...]
    shared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pattern:
    """A whole pattern.

    Attributes:
        variables: the named nodes and their labels, in the order of first mention; their ids identify a match.
        properties: what it asks of nodes, as (label, property), sorted.
        relations: the relation types that it names, sorted.
    """

    part: Part
    variables: tuple[tuple[str, str], ...]
    properties: tuple[tuple[str, str], ...]
    relations: tuple[str, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The labels that it names, those in EXISTS among them."""
        return frozenset(label for part in parts_of(self.part) for _, label in part.labels)


def terms_of(expression: Expression) -> tuple[Expression, ...]:
    """An expression and all that it is made of, without going into EXISTS."""
    if isinstance(expression, Not):
        return (expression, *terms_of(expression.term))
    if isinstance(expression, Every | Some):
        return (expression, *(inner for term in expression.terms for inner in terms_of(term)))
    return (expression,)


def inner_parts(part: Part) -> tuple[Part, ...]:
    """The parts that EXISTS asks for in its conditions, without those inside them."""
    terms = (term for condition in part.conditions for term in terms_of(condition))
    return tuple(term.part for term in terms if isinstance(term, Exists))


def parts_of(part: Part) -> tuple[Part, ...]:
    """A part and all that stand inside it."""
    return (part, *(deeper for inner in inner_parts(part) for deeper in parts_of(inner)))


def variables_in(expression: Expression) -> frozenset[str]:
    """The variables that an expression needs a value of; of EXISTS, those that it shares."""
    found: set[str] = set()
    for term in terms_of(expression):
        if isinstance(term, Compare):
            found |= {side.variable for side in (term.left, term.right) if isinstance(side, Property)}
        elif isinstance(term, IsNull):
            found.add(term.operand.variable)
        elif isinstance(term, Exists):
            found |= term.part.shared
    return frozenset(found)
