"""What names stand for inside a function that is checked: local values, or the objects of its module."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

UNKNOWN = object()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SET_ANNOTATIONS = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})


@dataclass
class Scope:
    """The names that one function binds.

    Attributes:
        sets: those that stand for a set at this point of the text.
        awaitables: those that stand for something that was asked of the context and not yet awaited.
        imported: those that a local import binds, with the module or object.
        functions: those of functions defined inside; awaiting them is fine, their text is part of what is checked.
    """

    bound: set[str]
    parameters: set[str] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)
    awaitables: set[str] = field(default_factory=set)
    imported: dict[str, object] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)


def scope_of(node: ast.AST) -> Scope:
    """The scope that a function, lambda or comprehension opens."""
    scope = Scope(set(_bound(node)))
    if isinstance(node, _FUNCTIONS):
        arguments = node.args
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if one is not None:
                scope.bound.add(one.arg)
                scope.parameters.add(one.arg)
                if is_set_annotation(one.annotation):
                    scope.sets.add(one.arg)
    return scope


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that are bound in a node, without those that only a scope inside it binds."""
    outer = {name for child in ast.iter_child_nodes(node) if isinstance(child, ast.Global) for name in child.names}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store) and child.id not in outer:
            yield child.id
        if isinstance(child, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and child.name:
            yield child.name
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.partition(".")[0]) for alias in child.names)
        if not isinstance(child, _SCOPES):
            yield from _bound(child)


def is_set_annotation(annotation: ast.expr | None) -> bool:
    """Whether an annotation says that a value is a set."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    if isinstance(annotation, ast.Subscript):
        return is_set_annotation(annotation.value)
    if isinstance(annotation, ast.BinOp):
        return is_set_annotation(annotation.left) or is_set_annotation(annotation.right)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr in _SET_ANNOTATIONS
    return isinstance(annotation, ast.Name) and annotation.id in _SET_ANNOTATIONS


class Names:
    """Resolves names, innermost scope first."""

    def __init__(self, outside: Mapping[str, object]) -> None:
        """Begin outside of any function.

        Args:
            outside: the module's names, and what the function closes over.
        """
        self.scopes: list[Scope] = []
        self._outside = outside

    def scope_with(self, name: str) -> Scope | None:
        """The scope that binds a name; None where it comes from outside."""
        return next((scope for scope in reversed(self.scopes) if name in scope.bound), None)

    def value(self, name: str) -> object:
        """The object that a name stands for, UNKNOWN for a local value."""
        scope = self.scope_with(name)
        if scope is not None:
            return scope.imported.get(name, UNKNOWN)
        return self._outside.get(name, vars(builtins).get(name, UNKNOWN))
