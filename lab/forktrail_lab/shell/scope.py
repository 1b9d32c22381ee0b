"""What the variables of a statement stand for, as far as its patterns say so, even while it is being typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forktrail_lab.shell.catalog import Catalog
from forktrail_lab.shell.tokens import Token

# Words before a `(` that is a pattern's; after any other word it is a call's.
_PATTERN_WORDS = frozenset({"MATCH", "EXISTS", "WHERE", "AND", "OR", "NOT", "XOR", "SHORTEST", "TRAIL", "ACYCLIC"})
_CLAUSES = frozenset({"MATCH", "WHERE", "RETURN", "WITH", "UNWIND", "ORDER", "SKIP", "LIMIT", "UNION", "OPTIONAL"})


@dataclass(frozen=True)
class _Element:
    """A node or relation of a pattern, as it stands there.

    Attributes:
        first: the place of its opening bracket among the tokens.
        last: that of the closing one, or of the last token where nothing closes it.
    """

    bracket: str
    variable: str | None
    names: frozenset[str]
    first: int
    last: int


def variables(tokens: Sequence[Token], catalog: Catalog) -> dict[str, frozenset[str]]:
    """Each variable with the labels or relation types that it can stand for; with none where nothing is known.

    A node without a label gets one from the relations that lead to it.
    """
    found: dict[str, set[str]] = {}
    for element, names in _resolved(list(_elements(tokens)), tokens, catalog):
        if element.variable is not None:
            found.setdefault(element.variable, set()).update(names)
    for variable, source in _aliases(tokens):
        found.setdefault(variable, set()).update(found.get(source, ()))
    return {name: frozenset(names) for name, names in found.items()}


def pattern_names(tokens: Sequence[Token], opening: int) -> frozenset[str] | None:
    """The labels or relation types in the pattern whose bracket opens at a place among the tokens; None: it is none."""
    return next((element.names for element in _elements(tokens) if element.first == opening), None)


def _elements(tokens: Sequence[Token]) -> Iterator[_Element]:
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        if (token.text == "(" and _opens_node(before, token)) or (token.text == "[" and before and before.text == "-"):
            yield _element(tokens, place)


def _opens_node(before: Token | None, bracket: Token) -> bool:
    if before is None or before.kind == "sign":
        return True
    return before.word in _PATTERN_WORDS or (before.kind == "word" and before.end < bracket.start)


def _element(tokens: Sequence[Token], opening: int) -> _Element:
    place = opening + 1
    variable = None
    if place < len(tokens) and tokens[place].identifier is not None:
        variable = tokens[place].identifier
        place += 1
    names: set[str] = set()
    while place + 1 < len(tokens) and tokens[place].text in (":", "|"):
        skipped = 2 if tokens[place].text == "|" and tokens[place + 1].text == ":" else 1
        name = tokens[place + skipped].identifier if place + skipped < len(tokens) else None
        if name is None:
            break
        names.add(name)
        place += skipped + 1
    bracket = tokens[opening].text
    return _Element(bracket, variable, frozenset(names), opening, _closing(tokens, opening))


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        if tokens[place].kind == "sign":
            depth += (tokens[place].text in "([{") - (tokens[place].text in ")]}")
        if depth == 0:
            return place
    return len(tokens) - 1


def _resolved(
    elements: Sequence[_Element], tokens: Sequence[Token], catalog: Catalog
) -> Iterator[tuple[_Element, frozenset[str]]]:
    """Every element with its names; a node without any has those to which a relation beside it leads."""
    given: dict[str, set[str]] = {}
    for element in elements:
        if element.variable is not None:
            given.setdefault(element.variable, set()).update(element.names)
    for place, element in enumerate(elements):
        names = set(element.names) or set(given.get(element.variable or "", ()))
        if element.bracket == "(" and not names:
            names = _led_to(elements, place, given, tokens, catalog)
        yield element, frozenset(names)


def _led_to(
    elements: Sequence[_Element],
    place: int,
    given: dict[str, set[str]],
    tokens: Sequence[Token],
    catalog: Catalog,
) -> set[str]:
    for step in (-1, 1):
        near, far = place + step, place + 2 * step
        if not (0 <= far < len(elements) and elements[near].bracket == "[" and elements[near].names):
            continue
        if not _joined(elements, min(place, near), tokens):
            continue
        other = set(elements[far].names) or given.get(elements[far].variable or "", set())
        arrow = _arrow(tokens, elements[near])
        found: set[str] = set()
        if arrow != "<":
            found |= catalog.across(elements[near].names, other, forward=step < 0)
        if arrow != ">":
            found |= catalog.across(elements[near].names, other, forward=step > 0)
        if found:
            return found
    return set()


def _joined(elements: Sequence[_Element], place: int, tokens: Sequence[Token]) -> bool:
    """Whether nothing but dashes and arrows stands between an element and the next."""
    between = tokens[elements[place].last + 1 : elements[place + 1].first]
    return all(token.text in "-<>" for token in between)


def _arrow(tokens: Sequence[Token], relation: _Element) -> str:
    """The direction in which a relation is drawn: `>`, `<`, or neither."""
    if relation.first >= 2 and tokens[relation.first - 2].text == "<":
        return "<"
    return ">" if [token.text for token in tokens[relation.last + 1 : relation.last + 3]] == ["-", ">"] else ""


def _aliases(tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Every name that AS gives, with the name before it (of which it is another name, if that stands alone)."""
    for place in range(1, len(tokens) - 1):
        name, before = tokens[place + 1].identifier, tokens[place - 1]
        if tokens[place].word == "AS" and name is not None:
            alone = place < 2 or tokens[place - 2].text == "," or tokens[place - 2].word in _CLAUSES | {"DISTINCT"}
            yield name, (before.identifier or "") if alone else ""
