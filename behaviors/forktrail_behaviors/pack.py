"""A pack: object and relation types with the behaviors, tools and models that work on them; and how to load one.

PACK = Pack("diligence", objects=[Company, Question], relations=[…], behaviors=[ask_questions], tools=[fetch])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.cycles import check_cycles
from forktrail_behaviors.determinism.check import check
from forktrail_behaviors.effects import Model
from forktrail_behaviors.pattern_names import check_patterns
from forktrail_behaviors.tools import Tool
from forktrail_behaviors.types import RelationDeclaration, Types, object_type_of, relations_implied
from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_schemas.errors import InvalidInput


@dataclass(frozen=True)
class Pack:
    """Everything that a worker brings to a run, checked when it is made.

    Raises:
        InvalidInput: two things of one name, a behavior whose code isn't deterministic, a cycle that nobody says ends.
    """

    name: str
    objects: Sequence[type[BaseModel]] = ()
    relations: Sequence[RelationDeclaration] = ()
    behaviors: Sequence[Behavior | type] = field(
        default=(), kw_only=True
    )  # a class that is one is still a type to mypy
    tools: Sequence[Tool] = field(default=(), kw_only=True)
    models: Sequence[Model] = field(default=(), kw_only=True)
    # Plays the pack on a testing kit, with models that need no network: what `forktrail pack check` tries it by.
    fixture: Callable[[Any], None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for one in self.behaviors:
            if not isinstance(one, Behavior):
                raise InvalidInput(f"{one!r} is no behavior", hint="put @behavior(…) above it")
        for kind, names in (
            ("type", [model.__name__ for model in self.objects] + [one.name for one in self.relations]),
            ("behavior", [one.name for one in self.reactions]),
            ("tool", [one.name for one in self.tools]),
            ("model", [one.name for one in self.models]),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise InvalidInput(f"the pack {self.name} has two {kind}s called {twice!r}")
        for name in (*(model.__name__ for model in self.objects), *(one.name for one in self.relations)):
            if BUILT_IN.taken(name):
                raise InvalidInput(
                    f"the pack {self.name} can't have a type {name!r}: the graph has one", hint="rename it"
                )
        for behavior in self.reactions:
            _check_determinism(behavior)
        check_patterns(self.reactions, self.types)
        check_cycles(self.reactions, {model.__name__: relations_implied(model) for model in self.objects})

    @cached_property
    def reactions(self) -> tuple[Behavior, ...]:
        """Its behaviors, in order."""
        return tuple(one for one in self.behaviors if isinstance(one, Behavior))

    @cached_property
    def behaviors_by_name(self) -> Mapping[str, Behavior]:
        """Its behaviors, each under its name."""
        return {one.name: one for one in self.reactions}

    @cached_property
    def types(self) -> Types:
        """What its behaviors check their data with."""
        return Types(self.objects, self.relations, self.tools)

    def declarations(self) -> list[dict[str, object]]:
        """The fields of a TypeDeclared for each of its types, objects first."""
        return [*(object_type_of(model) for model in self.objects), *(one.fields() for one in self.relations)]


def _check_determinism(behavior: Behavior) -> None:
    faults = check(behavior.source)
    if faults:
        first, more = faults[0], len(faults) - 1
        raise InvalidInput(
            f"{behavior.name} isn't deterministic: {first.file}:{first.line}: {first.what}"
            + (f", and {more} more" if more else ""),
            code="not_deterministic",
            hint=first.instead,
        )
