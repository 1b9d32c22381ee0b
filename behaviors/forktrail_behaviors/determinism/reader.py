"""Reads one function or class and notes what in it isn't deterministic."""

from __future__ import annotations

import ast
import bisect
import heapq
import inspect
import operator
import sys
from collections import deque
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, MutableSet
from types import FunctionType
from typing import Any

from forktrail_behaviors.determinism import instead
from forktrail_behaviors.determinism.forbidden import Forbidden, forbidden_import, forbidden_member, forbidden_object
from forktrail_behaviors.determinism.held import all_held
from forktrail_behaviors.determinism.scope import UNKNOWN, Names, Scope, is_set_annotation, root_of, scope_of
from forktrail_behaviors.determinism.sets import Sets, is_whole

Found = tuple[int, str, str]  # line, what, what to use instead
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Tree = _Function | ast.ClassDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_CHANGING = frozenset(
    {
        *("append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "clear"),
        *("update", "setdefault", "add", "discard", "sort", "reverse", "rotate", "difference_update"),
        *("intersection_update", "symmetric_difference_update", "send", "write"),
    }
)
_CONTAINERS = (MutableMapping, MutableSequence, MutableSet, deque)
# Functions that change what they are given first.
_CHANGING_FIRST = (
    *(heapq.heappush, heapq.heappop, heapq.heapify, heapq.heapreplace, heapq.heappushpop),
    *(bisect.insort, bisect.insort_left, operator.setitem, operator.delitem, setattr, delattr),
)
_MAKES_CONTAINER = (list, dict, set, deque, bytearray)


class Reader:
    """Walks a tree in the order of its text.

    Attributes:
        faults: found so far.
        named: the objects that the text names, functions and classes of the same module among them.
    """

    def __init__(self, source: Any, outside: Mapping[str, object], tree: Tree) -> None:
        self.faults: set[Found] = set()
        self.named: list[object] = []
        self._source = source
        self._tree = tree
        self._names = Names(source, outside)
        self._sets = Sets(self._names, set(_set_attributes(tree)))

    def read(self) -> None:
        """Walk the whole tree. Its decorators are left out: they are done with before anything runs."""
        if isinstance(self._tree, ast.ClassDef):
            self._class(self._tree)
        elif isinstance(self._tree, ast.Lambda):
            self._visit(self._tree)
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
                self._inside(self._called(node), [node.body])
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
                self._expression(node, blind=blind)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child)

    def _all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            self._visit(node)

    def _function(self, node: _Function) -> None:
        if self._names.scopes:
            self._all(node.decorator_list)
            self._names.scopes[-1].functions.add(node.name)
        self._inside(self._called(node), node.body)

    def _called(self, node: _Function | ast.Lambda) -> Scope:
        """The scope of a function's body, which knows of the defaults that outlive a call."""
        self._all([*node.args.defaults, *node.args.kw_defaults])
        scope = scope_of(node)
        arguments = [*node.args.posonlyargs, *node.args.args]
        given = [*zip(reversed(arguments), reversed(node.args.defaults), strict=False)]
        for one, default in (*given, *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)):
            if default is not None and self._is_container(default):
                scope.known[one.arg] = []
            if default is not None and self._sets.is_set(default):
                scope.sets.add(one.arg)
        return scope

    def _class(self, node: ast.ClassDef) -> None:
        if self._names.scopes:
            self._all(node.decorator_list)
        self._all([*node.bases, *(keyword.value for keyword in node.keywords)])
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
            if isinstance(target, ast.Name) and isinstance(node, ast.AugAssign):
                self._grow(target, is_set=is_set and not isinstance(node.op, ast.Add))
            elif isinstance(target, ast.Name):
                self._bind(target, value, is_set=is_set)
            elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                for one, part in zip(target.elts, value.elts, strict=False):
                    if isinstance(one, ast.Name) and not isinstance(part, ast.Starred):
                        self._bind(one, part, is_set=self._sets.is_set(part))

    def _bind(self, target: ast.Name, value: ast.expr | None, *, is_set: bool) -> None:
        """A local name stands for something else from here on."""
        scope = self._names.scope_with(target.id)
        if scope is None:
            return
        (scope.sets.add if is_set else scope.sets.discard)(target.id)
        meant = self._itself(value)
        if isinstance(meant, _CONTAINERS):
            scope.known[target.id] = meant
        else:
            scope.known.pop(target.id, None)
        if value is not None and self._may_be_awaited(value):
            scope.awaitables.add(target.id)

    def _grow(self, target: ast.Name, *, is_set: bool) -> None:
        """A name is assigned to by `+=` and the like, which changes a container where it lies."""
        scope = self._names.scope_with(target.id)
        if scope is not None and is_set:
            scope.sets.add(target.id)
        if isinstance(self._names.value(target), _CONTAINERS):
            self._fault(target, f"a change of {target.id}, which outlives the execution", instead.STATE)

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
                self._names.scopes[-1].known[alias.asname or alias.name.partition(".")[0]] = imported

    def _outer_names(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            inner = self._names.scopes[:-1] if isinstance(node, ast.Nonlocal) else []
            if not any(name in scope.bound for scope in inner):
                self._fault(node, f"{name}, which outlives the execution", instead.STATE)

    # Expressions

    def _expression(self, node: ast.AST, *, blind: bool) -> None:
        if isinstance(node, ast.Call):
            self._call(node, blind=blind)
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
            owner = self._names.value(node.value)
            found = forbidden_member(owner, node.attr) if owner is not UNKNOWN else None
            if found is not None:
                self._note(node, found)
                return
            if isinstance(inspect.getattr_static(type(owner), node.attr, None), FunctionType | property):
                self.named.append(type(owner))  # a method of an object that lies outside
            if not isinstance(node.ctx, ast.Load):
                self._changed(node, node.value)
        value = self._names.value(node)
        if value is not UNKNOWN and isinstance(node.ctx, ast.Load):
            found = forbidden_object(value)
            if found is not None:
                self._note(node, found)
                return
            for one in all_held(value):
                if (inner := forbidden_object(one)) is not None:
                    self._fault(node, f"{inner.what}, in {_text(node)}", inner.instead)
                self.named.append(one)
        if isinstance(node, ast.Attribute):
            self._visit(node.value)

    def _call(self, node: ast.Call, *, blind: bool) -> None:
        function = self._names.value(node.func)
        if function is hash and not (node.args and is_whole(node.args[0], self._names)):
            self._fault(node, "hash(…)", instead.ADDRESS)
        if function is getattr and len(node.args) > 1 and isinstance(name := node.args[1], ast.Constant):
            self._visit(ast.copy_location(ast.Attribute(node.args[0], str(name.value), ast.Load()), node))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            self._changed(node, node.func.value, whole=False)
        elif node.args and any(function is one for one in _CHANGING_FIRST):
            self._changed(node, node.args[0], whole=function is setattr or function is delattr)
        self._visit(node.func)
        blind = self._sets.is_blind(node, blind=blind)
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
        function = self._names.value(node.func)
        if inspect.iscoroutinefunction(function):
            return bool(getattr(function, "__module__", None) == self._source.__module__)
        root = root_of(node.func)
        scope = self._names.scope_with(root.id) if isinstance(root, ast.Name) else None
        if scope is None or not isinstance(root, ast.Name):
            return False
        if isinstance(node.func, ast.Name):
            return root.id in scope.functions
        return root.id in scope.parameters

    def _changed(self, node: ast.expr, owner: ast.expr, *, whole: bool = True) -> None:
        """A part of something is set or deleted: of what is outside, or of a class's own containers.

        Args:
            whole: False where only a container can be changed so.
        """
        value = self._names.root_value(owner)
        changed = whole and value is not UNKNOWN and self._names.is_outside(owner)
        if changed or isinstance(value, _CONTAINERS):
            self._fault(node, f"a change of {_text(owner)}, which outlives the execution", instead.STATE)

    def _is_container(self, node: ast.expr) -> bool:
        """Whether it is a container that can be changed, made where it stands or from outside."""
        if isinstance(node, ast.Call):
            return any(self._names.value(node.func) is one for one in _MAKES_CONTAINER)
        literals = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
        return isinstance(node, literals) or isinstance(self._itself(node), _CONTAINERS)

    def _itself(self, node: ast.expr | None) -> object:
        """The object that an expression is, and not one that it reaches into: what a table holds may be a number."""
        return self._names.root_value(node) if isinstance(node, ast.Name | ast.Attribute) else UNKNOWN

    def _note(self, node: ast.AST, found: Forbidden) -> None:
        self._fault(node, found.what, found.instead)

    def _fault(self, node: ast.AST, what: str, hint: str) -> None:
        self.faults.add((getattr(node, "lineno", self._tree.lineno), what, hint))


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
    """The attributes of `self` that a class's text says are sets, in its methods or above them."""
    fields = tree.body if isinstance(tree, ast.ClassDef) else []
    for one in fields:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and is_set_annotation(one.annotation):
            yield one.target.id
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
