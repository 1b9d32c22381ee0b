"""A pack: object and relation types with the behaviors, tools and models that work on them; and how to load one.

PACK = Pack("diligence", objects=[Company, Question], relations=[…], behaviors=[ask_questions], tools=[fetch])
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.cycles import check_cycles
from forktrail_behaviors.determinism.check import check
from forktrail_behaviors.effects import Model
from forktrail_behaviors.tools import Tool
from forktrail_behaviors.types import RelationDeclaration, Types, object_type_of, relations_implied
from forktrail_schemas.errors import ForktrailError, InvalidInput, NotFound

ATTRIBUTE = "PACK"


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
        for behavior in self.reactions:
            _check_determinism(behavior)
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


def load_pack(name: str) -> Pack:
    """Load a pack by the module that holds it as `PACK`, or by `module:attribute`; a module beside one is found too.

    Raises:
        NotFound: there is no such module or attribute.
        InvalidInput: it is no pack, its import fails, or the pack is refused.
    """
    module_name, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise NotFound(f"there is no module {module_name!r}", hint="name it as Python imports it") from error
        raise InvalidInput(f"{module_name} can't be imported: {error}") from error
    except ForktrailError:
        raise  # a pack that is refused
    except Exception as error:  # what a module of the user's raises may be anything
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{at.filename}:{at.lineno}"
        raise InvalidInput(f"{module_name} can't be imported: {type(error).__name__}: {error} ({where})") from error
    pack: Any = getattr(module, attribute or ATTRIBUTE, None)
    if pack is None:
        raise NotFound(f"{module_name} has no {attribute or ATTRIBUTE}", hint="PACK = Pack(…) makes one")
    if not isinstance(pack, Pack):
        raise InvalidInput(f"{name} is no Pack: its type is {type(pack).__name__}")
    return pack


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
