"""Reads one function or class and notes what in it isn't deterministic."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import deque
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, MutableSet
from types import ModuleType
from typing import Any

from forktrail_behaviors.determinism import instead
from forktrail_behaviors.determinism.forbidden import Forbidden, forbidden_import, forbidden_member, forbidden_object
from forktrail_behaviors.determinism.scope import UNKNOWN, Names, Scope, is_set_annotation, scope_of
from forktrail_behaviors.determinism.sets import Sets

Found = tuple[int, str, str]  # line, what, what to use instead
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_CHANGING = frozenset(
    {
        *("append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "clear"),
        *("update", "setdefault", "add", "discard", "sort", "reverse", "rotate", "difference_update"),
        *("intersection_update", "symmetric_difference_update", "send", "write"),
    }
)
_CONTAINERS = (MutableMapping, MutableSequence, MutableSet, deque)


class Reader:
    """Walks a tree in the order of its text.

    Attributes:
        faults: found so far.
        named: the objects that the text names, functions and classes of the same module among them.
    """

    def __init__(self, source: Any, outside: Mapping[str, object], tree: _Function | ast.ClassDef) -> None:
        self.faults: set[Found] = set()
        self.named: list[object] = []
        self._source = source
        self._tree = tree
        self._names = Names(outside)
        self._sets = Sets(self._names, self._value, set(_set_attributes(tree)))

    def read(self) -> None:
        """Walk the whole tree. Its decorators are left out: they are done with before anything runs."""
        if isinstance(self._tree, ast.ClassDef):
            self._class(self._tree)
        else:
            self._function(self._tree)

    # Statements

    def _visit(self, node: ast.AST | None, *, blind: bool = False) -> None:
        if node is None:
            return
        for shown in self._sets.shown_by(node, blind=blind):
            self._fault(shown, f"the order of a set, {_text(shown)}", instead.ORDER)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
            case ast.ClassDef():
                self._class(node)
            case ast.Lambda():
                self._inside(scope_of(node), [node.body])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node)
            case ast.If() | ast.For() | ast.While() | ast.Try() | ast.Match():
                self._branching(node)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
                self._assignment(node)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Global() | ast.Nonlocal():
                self._outer_names(node)
            case ast.AsyncFor() | ast.AsyncWith():
                self._fault(node, "async for, or async with", instead.WAIT)
                self._children(node)
            case _:
                self._expression(node)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            self._visit(node)

    def _function(self, node: _Function) -> None:
        self._all([*node.args.defaults, *node.args.kw_defaults])
        if self._names.scopes:
            self._names.scopes[-1].functions.add(node.name)
        self._inside(scope_of(node), node.body)

    def _class(self, node: ast.ClassDef) -> None:
        self._all(node.bases)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign | ast.Assign):
                self._visit(statement.value)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                self._visit(statement)

    def _inside(self, scope: Scope, nodes: Iterable[ast.AST]) -> None:
        self._names.scopes.append(scope)
        self._all(nodes)
        self._names.scopes.pop()

    def _comprehension(self, node: _Comprehension) -> None:
        self._names.scopes.append(scope_of(node))
        for one in node.generators:
            if one.is_async:
                self._fault(node, "async for", instead.WAIT)
            self._all([one.iter, *one.ifs])
        self._all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._names.scopes.pop()

    def _branching(self, node: ast.If | ast.For | ast.While | ast.Try | ast.Match) -> None:
        """Read each branch from where the statement began; afterwards a name is a set if any branch leaves it one."""
        if isinstance(node, ast.If | ast.While):
            self._visit(node.test)
        elif isinstance(node, ast.For):
            self._all([node.iter, node.target])
        elif isinstance(node, ast.Match):
            self._visit(node.subject)
        before = [set(scope.sets) for scope in self._names.scopes]
        merged = [set(sets) for sets in before]
        if isinstance(node, ast.If) and node.orelse:
            merged = [set() for _ in before]
        for branch in _branches(node):
            # A loop's second turn sees what its first left.
            for _ in range(2 if isinstance(node, ast.For | ast.While) else 1):
                self._all(branch)
            for scope, sets, first in zip(self._names.scopes, merged, before, strict=True):
                sets |= scope.sets
                scope.sets.clear()
                scope.sets |= first
        for scope, sets in zip(self._names.scopes, merged, strict=True):
            scope.sets |= sets
            scope.sets &= sets

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) -> None:
        value = node.value
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        self._all([value, *targets])
        annotated = isinstance(node, ast.AnnAssign) and is_set_annotation(node.annotation)
        is_set = annotated or (value is not None and self._sets.is_set(value))
        for target in targets:
            if not isinstance(target, ast.Name) or (scope := self._names.scope_with(target.id)) is None:
                continue
            if isinstance(node, ast.AugAssign):
                is_set = is_set or target.id in scope.sets
            (scope.sets.add if is_set else scope.sets.discard)(target.id)
            if value is not None and self._may_be_awaited(value):
                scope.awaitables.add(target.id)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = node.module if isinstance(node, ast.ImportFrom) and not node.level else None
        for alias in node.names:
            name = alias.name if isinstance(node, ast.ImportFrom) else None
            if isinstance(node, ast.ImportFrom) and module is None:
                continue  # of the same package
            found = forbidden_import(module or alias.name, name)
            if found is not None:
                self._note(node, found)
                continue
            imported = _imported(module or alias.name, name, whole=alias.asname is not None)
            if self._names.scopes and imported is not UNKNOWN:
                self._names.scopes[-1].imported[alias.asname or alias.name.partition(".")[0]] = imported

    def _outer_names(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            inner = self._names.scopes[:-1] if isinstance(node, ast.Nonlocal) else []
            if not any(name in scope.bound for scope in inner):
                self._fault(node, f"{name}, which outlives the execution", instead.STATE)

    # Expressions

    def _expression(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._call(node)
            return
        if isinstance(node, ast.Await):
            self._await(node)
        elif isinstance(node, ast.Name | ast.Attribute):
            self._reference(node)
            return
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            self._changed(node, node.value)
        elif isinstance(node, ast.Delete):
            self._all(node.targets)
            return
        self._children(node)

    def _reference(self, node: ast.Name | ast.Attribute) -> None:
        """A name or a dotted name: what it stands for, and each module on the way there."""
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            found = forbidden_member(owner, node.attr) if owner is not UNKNOWN else None
            if found is not None:
                self._note(node, found)
                return
            if not isinstance(node.ctx, ast.Load):
                self._changed(node, node.value)
        value = self._value(node)
        if value is not UNKNOWN and isinstance(node.ctx, ast.Load):
            found = forbidden_object(value)
            if found is not None:
                self._note(node, found)
                return
            self.named.append(value)
        if isinstance(node, ast.Attribute):
            self._visit(node.value)

    def _call(self, node: ast.Call) -> None:
        function = self._value(node.func)
        if function is hash and not (node.args and self._is_whole(node.args[0])):
            self._fault(node, "hash(…)", instead.ADDRESS)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            owner = node.func.value
            if isinstance(self._root_value(owner), _CONTAINERS):
                self._fault(node, f"a change of {_text(owner)}, which outlives the execution", instead.STATE)
        self._visit(node.func)
        blind = self._sets.is_blind(node)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._visit(argument, blind=blind)

    def _await(self, node: ast.Await) -> None:
        if not self._may_be_awaited(node.value):
            self._fault(node, f"await {_text(node.value)}", instead.WAIT)

    def _may_be_awaited(self, node: ast.expr) -> bool:
        """Whether it is asked of the context, or of an async function of the same module."""
        if isinstance(node, ast.Name):
            scope = self._names.scope_with(node.id)
            return scope is not None and node.id in scope.awaitables
        if not isinstance(node, ast.Call):
            return False
        function = self._value(node.func)
        if inspect.iscoroutinefunction(function):
            return bool(getattr(function, "__module__", None) == self._source.__module__)
        root = _root(node.func)
        scope = self._names.scope_with(root.id) if isinstance(root, ast.Name) else None
        if scope is None or not isinstance(root, ast.Name):
            return False
        if isinstance(node.func, ast.Name):
            return root.id in scope.functions
        return root.id in scope.parameters

    # What stands for what

    def _value(self, node: ast.expr) -> object:
        """The object of a name or dotted name, found through modules and classes alone; UNKNOWN for all else."""
        if isinstance(node, ast.Name):
            return self._names.value(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, ModuleType | type):
                return getattr(owner, node.attr, UNKNOWN)
        return UNKNOWN

    def _root_value(self, node: ast.expr) -> object:
        """The object outside of the function that an expression reaches into, or an attribute of the class itself."""
        if isinstance(node, ast.Attribute):
            value = self._value(node)
            if value is not UNKNOWN:
                return value
            root = node.value
            if isinstance(root, ast.Name) and root.id in ("self", "cls") and inspect.isclass(self._source):
                return vars(self._source).get(node.attr, UNKNOWN)
            return self._root_value(root)
        if isinstance(node, ast.Subscript):
            return self._root_value(node.value)
        return self._value(node)

    def _changed(self, node: ast.expr, owner: ast.expr) -> None:
        """A part of something is set or deleted: of what is outside, or of a class's own containers."""
        value = self._root_value(owner)
        if value is not UNKNOWN and (self._is_outside(owner) or isinstance(value, _CONTAINERS)):
            self._fault(node, f"a change of {_text(owner)}, which outlives the execution", instead.STATE)

    def _is_outside(self, node: ast.expr) -> bool:
        root = _root(node)
        return isinstance(root, ast.Name) and self._names.scope_with(root.id) is None

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether it is an integer, whose hash is the same everywhere."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        function = self._value(node.func) if isinstance(node, ast.Call) else None
        return function is int or function is len

    def _note(self, node: ast.AST, found: Forbidden) -> None:
        self._fault(node, found.what, found.instead)

    def _fault(self, node: ast.AST, what: str, hint: str) -> None:
        self.faults.add((getattr(node, "lineno", self._tree.lineno), what, hint))


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _branches(node: ast.If | ast.For | ast.While | ast.Try | ast.Match) -> list[list[ast.stmt | ast.expr]]:
    if isinstance(node, ast.Match):
        return [[*([case.guard] if case.guard else []), *case.body] for case in node.cases]
    if isinstance(node, ast.Try):
        types = [handler.type for handler in node.handlers if handler.type is not None]
        whole: list[ast.stmt | ast.expr] = [*node.body, *node.orelse, *node.finalbody, *types]
        branches = [whole]
        for handler in node.handlers:
            branches.append([*handler.body, *node.finalbody])
        return branches
    return [list(node.body), list(node.orelse)]


def _set_attributes(tree: ast.AST) -> Iterable[str]:
    """The attributes of `self` that a class's text says are sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and is_set_annotation(node.annotation):
            target: ast.expr = node.target
        elif isinstance(node, ast.Assign) and _is_plainly_set(node.value):
            target = node.targets[0]
        else:
            continue
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr


def _is_plainly_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def _imported(module: str, name: str | None, *, whole: bool) -> object:
    """What a local import binds, where the module is loaded already."""
    if name is None and not whole:
        module = module.partition(".")[0]
    loaded = sys.modules.get(module)
    if loaded is None or name is None:
        return UNKNOWN if loaded is None else loaded
    return getattr(loaded, name, UNKNOWN)
