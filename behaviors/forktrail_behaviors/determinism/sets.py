"""Where a set's order shows: it differs from process to process, so nothing may follow from it."""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator, Set

from forktrail_behaviors.determinism.scope import UNKNOWN, Names, is_set_annotation

_ORDER_BLIND = (len, any, all, set, frozenset, sorted, min, max)
_BY_KEY = (sorted, min, max)
# What hands on what it is given, in its order: nothing shows where nobody minds the order.
_PASSING = (list, tuple, map, filter, iter, reversed)
_SHOWING = (list, tuple, enumerate, zip, map, filter, iter, next, reversed, sum, str, repr, dict)
_SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_VIEWS = frozenset({"keys", "items"})
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_TAKING_ITERABLES = frozenset({"join", "extend", "fromkeys", "writelines", "from_iterable", "extendleft"})
_MODULES = frozenset({"itertools", "collections", "functools", "_functools", "_heapq", "json"})


class Sets:
    """Tells which expressions are sets, and which show the order of one."""

    def __init__(self, names: Names, attributes: Set[str]) -> None:
        """Look at one function.

        Args:
            attributes: those of `self` that hold sets.
        """
        self._names = names
        self._attributes = attributes

    def is_set(self, node: ast.expr) -> bool:
        """Whether an expression is a set, as far as its text says."""
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Name):
            scope = self._names.scope_with(node.id)
            return node.id in scope.sets if scope else isinstance(self._names.value(node), Set)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self._attributes:
                return True
            return isinstance(self._names.value(node), Set)
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            return isinstance(node.op, _OPERATORS) and any(self.is_set(one) or _is_view(one) for one in sides)
        if isinstance(node, ast.IfExp):
            return self.is_set(node.body) or self.is_set(node.orelse)
        if isinstance(node, ast.BoolOp):
            return any(map(self.is_set, node.values))
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self.is_set(node.value)
        return isinstance(node, ast.Call) and self._returns_set(node)

    def _returns_set(self, call: ast.Call) -> bool:
        function = self._names.value(call.func)
        if function is set or function is frozenset:
            return True
        if function is typing.cast:
            return bool(call.args) and is_set_annotation(call.args[0])
        annotation = getattr(function, "__annotations__", {}).get("return") if function is not UNKNOWN else None
        if annotation is not None:
            text = annotation if isinstance(annotation, str) else str(annotation)
            return text.replace("typing.", "").partition("[")[0] in ("set", "frozenset", "<class 'set'>", "AbstractSet")
        func = call.func
        return isinstance(func, ast.Attribute) and func.attr in _SET_METHODS and self.is_set(func.value)

    def shown_by(self, node: ast.AST, *, blind: bool) -> Iterator[ast.expr]:
        """The sets whose order a node shows by itself.

        Args:
            blind: whether the node stands where the order of what it gives doesn't matter.
        """
        if isinstance(node, ast.For) and self.is_set(node.iter):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and not blind:
            yield from (one.iter for one in node.generators if self.is_set(one.iter))
        elif isinstance(node, ast.Call):
            yield from () if blind and self._passes_on(node) else self._shown_by_call(node)
        elif isinstance(node, ast.List | ast.Tuple):
            yield from (one for one in node.elts if isinstance(one, ast.Starred) and self.is_set(one.value))
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.YieldFrom):
            if _unpacks(node) and self.is_set(node.value):
                yield node.value
        elif isinstance(node, ast.FormattedValue) and self.is_set(node.value):
            yield node.value

    def _shown_by_call(self, call: ast.Call) -> Iterator[ast.expr]:
        function = self._names.value(call.func)
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        sets = [one for one in given if self.is_set(one)]
        starred = [one for one in given if isinstance(one, ast.Starred) and self.is_set(one)]
        if _among(function, _ORDER_BLIND):
            # Of what a key finds equal, the set's order decides which comes first.
            by_key = _among(function, _BY_KEY) and any(keyword.arg == "key" for keyword in call.keywords)
            yield from sets if by_key else starred
        elif _among(function, _SHOWING) or getattr(function, "__module__", None) in _MODULES:
            yield from sets
        elif isinstance(call.func, ast.Attribute):
            if call.func.attr in ("pop", "__iter__") and not given and self.is_set(call.func.value):
                yield call.func.value
            yield from sets if call.func.attr in _TAKING_ITERABLES else starred
        else:
            yield from starred

    def is_blind(self, call: ast.Call, *, blind: bool) -> bool:
        """Whether a call doesn't mind in which order its arguments give what they hold.

        Args:
            blind: whether the call itself stands where the order of what it gives doesn't matter.
        """
        by_key = any(keyword.arg == "key" for keyword in call.keywords)
        function = self._names.value(call.func)
        if function is sum:
            return len(call.args) == 1 and not call.keywords and self._counts(call.args[0])
        return (blind and self._passes_on(call)) or (
            _among(function, _ORDER_BLIND) and not (by_key and _among(function, _BY_KEY))
        )

    def _passes_on(self, call: ast.Call) -> bool:
        return _among(self._names.value(call.func), _PASSING)

    def _counts(self, node: ast.expr) -> bool:
        """Whether it gives integers alone, whose sum is the same in any order."""
        if not isinstance(node, ast.GeneratorExp | ast.ListComp):
            return False
        return isinstance(node.elt, ast.Compare) or is_whole(node.elt, self._names)


def is_whole(node: ast.expr, names: Names) -> bool:
    """Whether it is an integer, as far as its text says."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    function = names.value(node.func) if isinstance(node, ast.Call) else None
    return function is int or function is len


def _among(function: object, functions: tuple[object, ...]) -> bool:
    return any(function is one for one in functions)


def _unpacks(node: ast.Assign | ast.AugAssign | ast.YieldFrom) -> bool:
    """Whether a statement takes its value apart, in its order; a list that grows by it does."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add)
    return isinstance(node, ast.YieldFrom) or any(
        isinstance(to, ast.List | ast.Tuple) or (isinstance(to, ast.Subscript) and isinstance(to.slice, ast.Slice))
        for to in node.targets
    )


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
