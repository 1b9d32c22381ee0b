"""What can come next in a statement, from the tokens before the cursor and what the statement names anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from forktrail_lab.shell.catalog import Catalog, schema_catalog
from forktrail_lab.shell.keywords import FUNCTIONS, KEYWORDS, STARTERS, procedures, quoted
from forktrail_lab.shell.matching import fit, fitting
from forktrail_lab.shell.scope import pattern_names, variables
from forktrail_lab.shell.tokens import CLOSING, OPENING, Token, code

_PATTERN_STARTS = frozenset({"MATCH", "SHORTEST"})


@dataclass(frozen=True)
class Vocabulary:
    """What suggestions are drawn from: the graph's tables, and the session's parameters and named queries."""

    catalog: Catalog = field(default_factory=schema_catalog)
    parameters: Sequence[str] = ()
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Suggestion:
    """A text that would replace the `replaced` characters before the cursor.

    Attributes:
        shown: how the menu names it.
        kind: label, relation, property, variable, function, keyword, parameter, procedure, command, file or value.
        detail: what the menu says beside it.
    """

    text: str
    shown: str
    kind: str
    detail: str
    replaced: int


@dataclass(frozen=True)
class _Place:
    """Where the cursor stands: what is typed of a name so far, and the tokens around it."""

    typed: str
    replaced: int
    before: list[Token]
    all: list[Token]
    in_backticks: bool = False

    @property
    def last(self) -> Token | None:
        return self.before[-1] if self.before else None


def suggest(before: str, after: str, vocabulary: Vocabulary) -> list[Suggestion]:
    """Suggestions for a statement, best first.

    Args:
        before: its text up to the cursor.
        after: the rest of it, which may name what the variables before it stand for.
    """
    place = _place(before, after)
    if place is None:
        return _in_string(before, vocabulary.catalog)
    last = place.last
    if last is not None and last.text == "$":
        return _offers(place, vocabulary.parameters, "parameter")
    if last is not None and last.text == ".":
        return _properties(place, vocabulary)
    if last is not None and last.text in (":", "|"):
        return _names(place, vocabulary)
    if last is not None and last.word == "CALL":
        return _offers(place, procedures(), "procedure", ending="()")
    opening = _innermost(place.before)
    if opening is not None and place.before[opening].text == "{" and place.before[-1].text in ("{", ","):
        keys = _pattern_keys(place, opening, vocabulary)
        if keys is not None:
            return keys
    if opening is not None and _expects_variable(place.before, opening):
        return _offers(place, _variables(place, vocabulary), "variable")
    return _words(place, vocabulary)


def _place(before: str, after: str) -> _Place | None:
    """Where the cursor stands, or None where it stands inside a string."""
    tokens = code(before)
    rest = [token._replace(start=token.start + len(before)) for token in code(after)]
    if tokens and tokens[-1].kind == "open":
        if not tokens[-1].text.startswith("`"):
            return None
        typed = tokens[-1].text[1:]
        return _Place(typed, len(typed) + 1, tokens[:-1], tokens[:-1], in_backticks=True)
    touching = bool(tokens) and tokens[-1].end == len(before)
    if touching and tokens[-1].kind in ("word", "parameter"):
        last = tokens.pop()
        if last.kind == "parameter":
            tokens.append(Token("sign", "$", last.start))
        typed = last.text.removeprefix("$")
        # A word that the cursor stands in the middle of ends here.
        rest = rest[1:] if rest and rest[0].start == len(before) and rest[0].kind == "word" else rest
        return _Place(typed, len(typed), tokens, [*tokens, *rest])
    return _Place("", 0, tokens, [*tokens, *rest])


def _offers(
    place: _Place,
    names: Iterable[str] | Mapping[str, str],
    kind: str,
    *,
    ending: str = "",
    spell: Callable[[str], str] = str,
) -> list[Suggestion]:
    """The names that fit what was typed, each with its detail where there is one."""
    details = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
    return [
        Suggestion(spell(name) + ending, name, kind, details[name], place.replaced)
        for name in fitting(place.typed, details, str)
    ]


def _spelled(place: _Place) -> Callable[[str], str]:
    return (lambda name: f"`{name}`") if place.in_backticks else quoted


def _properties(place: _Place, vocabulary: Vocabulary) -> list[Suggestion]:
    """The columns of what stands before the dot; all columns there are where that isn't known."""
    names: frozenset[str] = frozenset()
    variable = place.before[-2].identifier if len(place.before) > 1 else None
    if variable is not None:
        names = variables(place.all, vocabulary.catalog).get(variable, names)
    return _offers(place, vocabulary.catalog.columns(names), "property", spell=_spelled(place))


def _names(place: _Place, vocabulary: Vocabulary) -> list[Suggestion]:
    """Labels or relation types after a colon, whichever the bracket around it takes; values in a map have neither."""
    opening = _innermost(place.before)
    bracket = "" if opening is None else place.before[opening].text
    if bracket == "(":
        labels = {label.name: ", ".join(list(label.columns)[:4]) for label in vocabulary.catalog.labels.values()}
        return _offers(place, labels, "label", spell=_spelled(place))
    if bracket == "[":
        relations = {relation.name: relation.ends() for relation in vocabulary.catalog.relations.values()}
        return _offers(place, relations, "relation", spell=_spelled(place))
    return _words(place, vocabulary)


def _pattern_keys(place: _Place, opening: int, vocabulary: Vocabulary) -> list[Suggestion] | None:
    """The columns to compare in the braces of a pattern, `(f:Finding {`; None where the braces aren't a pattern's."""
    around = _innermost(place.before[:opening])
    if around is None or place.before[around].text not in "([":
        return None
    names = pattern_names(place.before, around)
    if names is None:
        return None
    if not names and place.before[around + 1].identifier is not None:
        names = variables(place.all, vocabulary.catalog).get(place.before[around + 1].identifier or "", names)
    columns = vocabulary.catalog.columns(names)
    return _offers(place, columns, "property", ending=": ", spell=_spelled(place))


def _variables(place: _Place, vocabulary: Vocabulary) -> dict[str, str]:
    found = variables(place.all, vocabulary.catalog)
    return {quoted(name): " or ".join(sorted(names)) for name, names in found.items()}


def _words(place: _Place, vocabulary: Vocabulary) -> list[Suggestion]:
    """Variables, functions and keywords; at the start of a statement, what may begin one.

    Keywords fit by their start alone: typing goes on past them all the time.
    """
    if place.in_backticks:
        return _offers(place, _variables(place, vocabulary), "variable", spell=_spelled(place))
    if place.last is None or place.last.text == ";":
        return list(_keywords(place, STARTERS))
    found = _offers(place, _variables(place, vocabulary), "variable")
    keywords = list(_keywords(place, KEYWORDS))
    functions = _offers(place, FUNCTIONS, "function", ending="(")
    if not place.typed:
        return [*found, *keywords, *functions]
    ranked = [*found, *keywords, *functions]
    return sorted(ranked, key=lambda suggestion: fit(place.typed, suggestion.shown) or (9, 0))


def _keywords(place: _Place, keywords: Iterable[str]) -> Iterator[Suggestion]:
    """The keywords that begin with what was typed, in small letters where that ends in one."""
    for keyword in keywords:
        if keyword.lower().startswith(place.typed.lower()):
            text = keyword.lower() if place.typed[-1:].islower() else keyword
            yield Suggestion(text, text, "keyword", "", place.replaced)


def _in_string(before: str, catalog: Catalog) -> list[Suggestion]:
    """Inside a string there is something to suggest only where a procedure takes a table's name."""
    tokens = code(before)
    *_, name, bracket, string = [Token("", "", 0), Token("", "", 0), *tokens]
    if bracket.text != "(" or name.word not in ("TABLE_INFO", "SHOW_CONNECTION", "STORAGE_INFO", "STATS_INFO"):
        return []
    typed = string.text[1:]
    tables = [*catalog.relations] if name.word == "SHOW_CONNECTION" else [*catalog.labels, *catalog.relations]
    return _offers(_Place(typed, len(typed), [], []), tables, "label", ending=string.text[0])


def _innermost(tokens: Sequence[Token]) -> int | None:
    """The place of the innermost bracket that is open at the end."""
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        if tokens[place].kind != "sign":
            continue
        if tokens[place].text in CLOSING:
            depth += 1
        elif tokens[place].text in OPENING:
            if depth == 0:
                return place
            depth -= 1
    return None


def _expects_variable(tokens: Sequence[Token], opening: int) -> bool:
    """Whether the last token opens the node or relation of a pattern, where a name of one's own may stand."""
    if opening != len(tokens) - 1:
        return False
    if tokens[opening].text == "[":
        return opening > 0 and tokens[opening - 1].text == "-"
    before = tokens[opening - 1] if opening else None
    return (
        tokens[opening].text == "("
        and before is not None
        and (before.word in _PATTERN_STARTS or before.text in ("-", ">", ",", "="))
    )
