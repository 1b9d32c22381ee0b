"""Reads the `when` language, as the package's docstring has it; all else is refused with what to write instead."""

from __future__ import annotations

from typing import cast

from forktrail_behaviors.pattern.scope import Scope
from forktrail_behaviors.pattern.tokens import Token, TokenKind, refused, tokens_of
from forktrail_behaviors.pattern.tree import (
    Compare,
    Constant,
    Every,
    Exists,
    Expression,
    IsNull,
    Not,
    Operand,
    Operator,
    Part,
    Pattern,
    Property,
    Scalar,
    Some,
    Step,
    variables_in,
)
from forktrail_schemas.errors import InvalidInput

__all__ = ["DEPTH_MAX", "STEPS_MAX", "WALK_MAX", "Pattern", "parse"]

WALK_MAX = 5
STEPS_MAX = 64
DEPTH_MAX = 32
_INTEGER_MAX = 2**63 - 1
_CONSTANTS: dict[str, Scalar] = {"TRUE": True, "FALSE": False, "NULL": None}
_SIGNS: tuple[Operator, ...] = ("=", "<>", "<", "<=", ">", ">=")
_FOREIGN = {
    "RETURN": "a pattern returns nothing: its named nodes are given to the handler",
    "WITH": "say it in one MATCH … WHERE …",
    "OPTIONAL": "use EXISTS { MATCH … } or NOT EXISTS { MATCH … }",
    "MATCH": "separate several patterns by commas",
    "ORDER": "a pattern has no order: each match fires by itself",
    "LIMIT": "each match fires by itself",
    "UNION": "write two handlers",
    "XOR": "write (a OR b) AND NOT (a AND b)",
    "UNWIND": "a pattern is one MATCH with a WHERE",
    "CREATE": "a pattern only reads: emit changes by ctx.create(…)",
    "SET": "a pattern only reads: emit changes by ctx.patch(…)",
    "DELETE": "a pattern only reads: emit changes by ctx.retire(…)",
}


def parse(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        InvalidInput: with line, column and what to write instead.
    """
    return _Parser(text).pattern()


class _Parser:
    """Reads from the first token on; each method takes what it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._at = 0
        self._depth = 0
        self._properties: set[tuple[str, str]] = set()
        self._relations: set[str] = set()

    def pattern(self) -> Pattern:
        scope = Scope(self._text, None)
        part = self._part(scope)
        self._expect("end")
        labels = dict(part.labels)
        variables = tuple((name, labels[name]) for name in scope.named)
        if not variables:
            raise InvalidInput("when: no node has a name", hint="name what the behavior is about, as in (c:Company)")
        return Pattern(part, variables, tuple(sorted(self._properties)), tuple(sorted(self._relations)))

    # MATCH

    def _part(self, scope: Scope) -> Part:
        self._word("MATCH", hint="a pattern begins with MATCH")
        steps: list[Step] = []
        given: list[Compare] = []
        self._path(scope, steps, given)
        while self._sign(","):
            self._path(scope, steps, given)
        if len(steps) > STEPS_MAX:
            raise self._refused(f"a MATCH has more than {STEPS_MAX} relations", "write several handlers")
        labels = scope.close(steps)
        conditions: list[Expression] = list(given)
        for condition in given:
            assert isinstance(condition.left, Property), "made so"
            self._note(scope, condition.left)
        if self._keyword("WHERE"):
            where = self._either(scope)
            conditions += where.terms if isinstance(where, Every) else (where,)
        used = {variable for variable, _ in labels}.union(*map(variables_in, conditions))
        return Part(labels, tuple(steps), tuple(conditions), frozenset(filter(scope.is_shared, used)))

    def _path(self, scope: Scope, steps: list[Step], given: list[Compare]) -> None:
        here = self._node(scope, given)
        while self._next.text in ("-", "<") and self._next.kind == "sign":
            step = self._relation(scope, here)
            there = self._node(scope, given)
            steps.append(_turned(step, there))
            here = there

    def _node(self, scope: Scope, given: list[Compare]) -> str:
        position = self._next.position
        self._expect("sign", "(", hint="a node is written (name:Label)")
        name = self._take() if self._next.kind == "word" else None
        label = self._expect("word", hint="a label follows the colon") if self._sign(":") else None
        if self._next.text in (":", "|") and self._next.kind == "sign":
            raise self._refused("a node has one label", "write a handler for each label")
        variable = scope.mention(name, label, position)
        if self._sign("{"):
            given += self._given(variable)
        self._expect("sign", ")", hint="a node is written (name:Label {property: literal})")
        return variable

    def _given(self, variable: str) -> list[Compare]:
        found: list[Compare] = []
        while True:
            name = self._expect("word", hint="write {property: literal}")
            self._expect("sign", ":", hint="write {property: literal}")
            found.append(Compare("=", Property(variable, name.text), self._literal()))
            if not self._sign(","):
                self._expect("sign", "}", hint="write {property: literal, property: literal}")
                return found

    def _relation(self, scope: Scope, here: str) -> Step:
        """A relation that leads on from `here`; the open end is left empty."""
        start = self._next
        backwards = self._sign("<")
        self._expect("sign", "-", hint="a relation is written -[:TYPE]->")
        self._expect("sign", "[", hint="a relation has a type: -[:TYPE]->")
        name = self._take() if self._next.kind == "word" else None
        self._expect("sign", ":", hint="a relation has a type: -[:TYPE]->")
        types = [self._expect("word", hint="a relation's type follows the colon").text]
        while self._sign("|"):
            self._sign(":")
            types.append(self._expect("word", hint="write -[:A|B]->").text)
        low, high = self._hops(name)
        if self._next.text == "{" and self._next.kind == "sign":
            raise self._refused("a relation takes no properties here", "name it, and say it in WHERE: r.property = 1")
        self._expect("sign", "]", hint="a relation is written -[:TYPE]->")
        self._expect("sign", "-", hint="a relation is written -[:TYPE]-> or <-[:TYPE]-")
        forwards = self._sign(">")
        if forwards == backwards:
            raise refused(self._text, start.position, "a relation has one direction", "write -[:TYPE]-> or <-[:TYPE]-")
        self._relations.update(types)
        variable = scope.name_relation(name) if name else None
        ends = ("", here) if backwards else (here, "")
        return Step(*ends, tuple(dict.fromkeys(types)), low, high, variable)

    def _hops(self, name: Token | None) -> tuple[int, int]:
        star = self._next
        if not self._sign("*"):
            return 1, 1
        low = self._count() if self._next.kind == "number" else None
        if not self._sign(".."):
            high = low
        else:
            high = self._count() if self._next.kind == "number" else None
            low = 1 if low is None else low
        hint = f"write *1..3, at most *1..{WALK_MAX}"
        if low is None or high is None:
            raise refused(self._text, star.position, "a walk has an end", hint)
        if not 1 <= low <= high <= WALK_MAX:
            raise refused(self._text, star.position, f"a walk takes from 1 to {WALK_MAX} relations", hint)
        if name is not None:
            raise refused(self._text, name.position, "a walk has no name", "name a single relation, or none")
        return low, high

    def _count(self) -> int:
        token = self._take()
        if not token.text.isdigit() or len(token.text) > 3:
            raise refused(self._text, token.position, "the length of a walk is a whole number", f"at most {WALK_MAX}")
        return int(token.text)

    # WHERE

    def _either(self, scope: Scope) -> Expression:
        terms = [self._all(scope)]
        while self._keyword("OR"):
            terms.append(self._all(scope))
        return Some(tuple(terms)) if len(terms) > 1 else terms[0]

    def _all(self, scope: Scope) -> Expression:
        terms = [self._opposite(scope)]
        while self._keyword("AND"):
            terms.append(self._opposite(scope))
        return Every(tuple(terms)) if len(terms) > 1 else terms[0]

    def _opposite(self, scope: Scope) -> Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refused(f"the condition is nested deeper than {DEPTH_MAX}")
        found = Not(self._opposite(scope)) if self._keyword("NOT") else self._condition(scope)
        self._depth -= 1
        return found

    def _condition(self, scope: Scope) -> Expression:
        if self._keyword("EXISTS"):
            self._expect("sign", "{", hint="write EXISTS { MATCH … WHERE … }")
            part = self._part(Scope(self._text, scope))
            self._expect("sign", "}", hint="EXISTS { … } has no closing }")
            return Exists(part)
        if self._sign("("):
            inner = self._either(scope)
            self._expect("sign", ")", hint="a bracket isn't closed")
            return inner
        start = self._next
        left = self._operand(scope)
        if self._keyword("IS"):
            negated = self._keyword("NOT")
            self._word("NULL", hint="write IS NULL or IS NOT NULL")
            if not isinstance(left, Property):
                raise refused(self._text, start.position, "only a property may be null", "write v.property IS NULL")
            return IsNull(left, negated)
        found = Compare(self._operator(), left, self._operand(scope))
        if self._next.kind == "sign" and self._next.text in _SIGNS:
            raise self._refused("one comparison follows another", "write a < b AND b < c")
        return found

    def _operator(self) -> Operator:
        token = self._next
        if token.kind == "sign" and token.text in _SIGNS:
            return cast("Operator", self._take().text)
        if self._keyword("IN"):
            return "IN"
        if self._keyword("CONTAINS"):
            return "CONTAINS"
        for word in ("STARTS", "ENDS"):
            if self._keyword(word):
                self._word("WITH", hint=f"write {word} WITH")
                return cast("Operator", f"{word} WITH")
        if token.upper == "NOT":
            raise self._refused("NOT stands before a whole condition", "write NOT v.property IN […]")
        raise self._refused("a comparison is missing", "a property by itself says nothing: write v.property = true")

    def _operand(self, scope: Scope) -> Operand:
        token = self._next
        if token.kind != "word" or token.upper in _CONSTANTS:
            return self._literal()
        self._take()
        if self._next.text == "(" and self._next.kind == "sign":
            raise refused(
                self._text, token.position, f"{token.text}(…): there are no functions", "compare properties: v.id"
            )
        if not scope.knows(token.text):
            raise self._foreign(token, f"nothing is called {token.text}", "name a node of the MATCH")
        if self._next.text == ")" and self._next.kind == "sign":
            raise self._refused("a pattern is no condition", "write EXISTS { MATCH … } around it")
        self._expect("sign", ".", hint=f"compare properties: {token.text}.id")
        found = Property(token.text, self._expect("word", hint="a property follows the dot").text)
        self._note(scope, found)
        return found

    def _literal(self) -> Constant:
        if not self._sign("["):
            return Constant(self._scalar())
        found: list[Scalar] = []
        while not self._sign("]"):
            if found:
                self._expect("sign", ",", hint="write [literal, literal]")
            found.append(self._scalar())
        return Constant(tuple(found))

    def _scalar(self) -> Scalar:
        token = self._take()
        if token.kind == "text":
            return token.text
        if token.kind == "word" and token.upper in _CONSTANTS:
            return _CONSTANTS[token.upper]
        negative = token.kind == "sign" and token.text == "-"
        number = self._take() if negative else token
        if number.kind == "number":
            return self._number(number, -1 if negative else 1)
        raise self._foreign(token, "a literal is missing", "text in quotes, a number, true, null or a list")

    def _number(self, token: Token, sign: int) -> int | float:
        if token.text.isdigit():
            if len(token.text) > 1 and token.text[0] == "0":
                raise refused(self._text, token.position, "a number begins with 0", "write it without leading zeros")
            whole = sign * int(token.text) if len(token.text) < 20 else _INTEGER_MAX + 1
            if not -_INTEGER_MAX - 1 <= whole <= _INTEGER_MAX:
                raise refused(self._text, token.position, "this is no integer of 64 bits", "write a double: 1e19")
            return whole
        value = sign * float(token.text)
        if value in (float("inf"), float("-inf")):
            raise refused(self._text, token.position, "the number is beyond what a double holds")
        return value

    # Tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _sign(self, text: str) -> bool:
        found = self._next.kind == "sign" and self._next.text == text
        if found:
            self._take()
        return found

    def _keyword(self, word: str) -> bool:
        found = self._next.upper == word
        if found:
            self._take()
        return found

    def _word(self, word: str, *, hint: str) -> None:
        if not self._keyword(word):
            raise self._foreign(self._next, f"{word} is missing", hint)

    def _expect(self, kind: TokenKind, text: str = "", *, hint: str = "") -> Token:
        token = self._next
        if token.kind == kind and text in ("", token.text):
            return self._take()
        if kind == "end":
            raise self._foreign(token, f"{token.text!r} follows the pattern", "join conditions by AND or OR")
        raise self._foreign(token, f"{text!r} is missing" if text else "a name is missing", hint)

    def _note(self, scope: Scope, used: Property) -> None:
        """Remember which properties of which labels the pattern asks for."""
        label = scope.label(used.variable)
        if label is not None:
            self._properties.add((label, used.name))

    def _foreign(self, token: Token, message: str, hint: str) -> InvalidInput:
        """An error about a token; where it is a word of Cypher that no pattern has, it says so."""
        if token.upper in _FOREIGN:
            message, hint = f"{token.upper} isn't part of a pattern", _FOREIGN[token.upper]
        return refused(self._text, token.position, message, hint)

    def _refused(self, message: str, hint: str = "") -> InvalidInput:
        return refused(self._text, self._next.position, message, hint)


def _turned(step: Step, there: str) -> Step:
    """A step with its open end filled."""
    ends = (there, step.target) if not step.source else (step.source, there)
    return Step(*ends, step.types, step.low, step.high, step.variable)
