"""What names stand for inside a function that is checked: local values, or the objects of its module."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType

UNKNOWN = object()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SET_ANNOTATIONS = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
_AROUND = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})


@dataclass
class Scope:
    """The names that one function binds.

    Attributes:
        sets: those that stand for a set at this point of the text.
        awaitables: those that stand for something that was asked of the context and not yet awaited.
        known: those of a known object: a local import's, a default that outlives a call, a container from outside.
        functions: those of functions defined inside; awaiting them is fine, their text is part of what is checked.
    """

    bound: set[str]
    parameters: set[str] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)
    awaitables: set[str] = field(default_factory=set)
    known: dict[str, object] = field(default_factory=dict)
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
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if _last_name(annotation.value) in _AROUND:
            return any(map(is_set_annotation, inner))
        return is_set_annotation(annotation.value)
    if isinstance(annotation, ast.BinOp):
        return is_set_annotation(annotation.left) or is_set_annotation(annotation.right)
    return _last_name(annotation) in _SET_ANNOTATIONS


def _last_name(node: ast.expr | None) -> str:
    """What a name, dotted or not, ends in; "" for all else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class Names:
    """Resolves names, innermost scope first."""

    def __init__(self, source: object, outside: Mapping[str, object]) -> None:
        """Begin outside of any function.

        Args:
            source: the function or class that is read.
            outside: the module's names, and what the function closes over.
        """
        self.scopes: list[Scope] = []
        self._source = source
        self._outside = outside

    def scope_with(self, name: str) -> Scope | None:
        """The scope that binds a name; None where it comes from outside."""
        return next((scope for scope in reversed(self.scopes) if name in scope.bound), None)

    def value(self, node: ast.expr) -> object:
        """The object of a name or dotted name, found through modules and classes alone; UNKNOWN for all else."""
        if isinstance(node, ast.Name):
            scope = self.scope_with(node.id)
            if scope is not None:
                return scope.known.get(node.id, UNKNOWN)
            return self._outside.get(node.id, vars(builtins).get(node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(owner, ModuleType | type):
                return getattr(owner, node.attr, UNKNOWN)
        return UNKNOWN

    def root_value(self, node: ast.expr) -> object:
        """The object outside of the function that an expression reaches into, or an attribute of the class itself."""
        if isinstance(node, ast.Attribute):
            value = self.value(node)
            if value is not UNKNOWN:
                return value
            root = node.value
            if isinstance(root, ast.Name) and root.id in ("self", "cls") and inspect.isclass(self._source):
                return vars(self._source).get(node.attr, UNKNOWN)
            return self.root_value(root)
        if isinstance(node, ast.Subscript):
            return self.root_value(node.value)
        return self.value(node)

    def is_outside(self, node: ast.expr) -> bool:
        """Whether an expression begins with a name from outside."""
        root = root_of(node)
        return isinstance(root, ast.Name) and self.scope_with(root.id) is None


def root_of(node: ast.expr) -> ast.expr:
    """What an expression of attributes, subscripts and calls begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node
