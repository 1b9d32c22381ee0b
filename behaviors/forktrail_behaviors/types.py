"""Types of objects and relations as a pack writes them: pydantic models, with references by `Ref`.

    class Question(BaseModel):
        text: str
        about: Ref["Company"]
        asked_by: Ref["Person"] | None = None

A reference holds the id of an object, and makes a relation to it as well, called as the property in upper case.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from forktrail_behaviors.tools import Tool
from forktrail_projectors.graph.declared_tables import implied_relation
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.events.log import MergeRule
from forktrail_schemas.json_text import Json, canonical_json, read_json
from forktrail_schemas.object_types import DataType, ObjectType, object_type, relation_type
from forktrail_schemas.values import ObjectTypeName, RelationTypeName

_EMPTY = canonical_json({"type": "object", "properties": {}})
# What only tells people what a schema means; a docstring that changes would make it another type.
_TELLING = ("title", "description")
_SCHEMAS_BY_NAME = ("properties", "$defs")


@dataclass(frozen=True)
class Reference:
    """Marks a text as the id of an object of some type."""

    object_type: str


@dataclass(frozen=True)
class Merged:
    """Marks how frames that change a property come together, as in `Annotated[int, Merged("max")]`."""

    by: MergeRule


if TYPE_CHECKING:
    from typing_extensions import TypeAliasType

    _Named = TypeVar("_Named")
    Ref = TypeAliasType("Ref", str, type_params=(_Named,))
else:

    class Ref:
        """The id of an object of a declared type, as in `Ref["Company"]`."""

        def __class_getitem__(cls, named: str | type) -> Any:
            return Annotated[str, Reference(named if isinstance(named, str) else named.__name__)]


@dataclass(frozen=True)
class RelationDeclaration:
    """A relation type, as a run declares it; made by `relation_type_of`.

    Attributes:
        json_schema: canonical JSON Schema text of its data.
        sources: object types that it leads from.
        targets: object types that it leads to.
    """

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    json_schema: str

    def fields(self) -> dict[str, object]:
        """The fields of its TypeDeclared, but for `meta`."""
        return {
            "name": self.name,
            "kind": "relation",
            "json_schema": self.json_schema,
            "references": [],
            "sources": list(self.sources),
            "targets": list(self.targets),
            "personal": [],
            "merge": [],
        }


def object_type_of(model: type[BaseModel]) -> dict[str, object]:
    """The fields of the TypeDeclared of an object type, but for `meta`.

    Raises:
        InvalidInput: its name or a property can't be declared.
    """
    name = _name(model.__name__, ObjectTypeName, "an object type's name is like Company")
    references = dict(_references(model))
    schema = _schema(model)
    merge = dict(_merges(model))
    _compiled(name, lambda: object_type(name, schema, _pairs(references), _pairs(merge)))
    return {
        "name": name,
        "kind": "object",
        "json_schema": schema,
        "references": [{"property": property, "object_type": target} for property, target in references.items()],
        "sources": [],
        "targets": [],
        "personal": [],
        "merge": [{"property": property, "by": rule} for property, rule in merge.items()],
    }


def relation_type_of(
    name: str,
    sources: Sequence[str | type[BaseModel]],
    targets: Sequence[str | type[BaseModel]],
    model: type[BaseModel] | None = None,
) -> RelationDeclaration:
    """Declare a relation type.

    Args:
        sources: object types that it leads from, by name or model.
        targets: object types that it leads to.
        model: what data it carries; none where left out.

    Raises:
        InvalidInput: its name, its ends or a property can't be declared.
    """
    _name(name, RelationTypeName, "a relation type's name is like SUPPORTED_BY")
    if model is not None and (reference := next(_references(model), None)) is not None:
        raise InvalidInput(f"{name}.{reference[0]}: a relation's data holds no reference", hint="only an object's may")
    schema = _EMPTY if model is None else _schema(model)
    ends = tuple(tuple(one if isinstance(one, str) else one.__name__ for one in end) for end in (sources, targets))
    declared = RelationDeclaration(name, ends[0], ends[1], schema)
    _compiled(name, lambda: relation_type(name, schema, declared.sources, declared.targets))
    return declared


def references_of(model: type[BaseModel]) -> dict[str, str]:
    """The properties of an object type that are references, and the types that they name."""
    return dict(_references(model))


def relations_implied(model: type[BaseModel]) -> tuple[str, ...]:
    """The relation types that an object type's references make."""
    return tuple(implied_relation(name) for name, _ in _references(model))


class Types:
    """What a pack's behaviors check their data and calls with, before anything is written."""

    def __init__(
        self,
        objects: Sequence[type[BaseModel]] = (),
        relations: Sequence[RelationDeclaration] = (),
        tools: Iterable[Tool] = (),
    ) -> None:
        """Compile the types.

        Args:
            tools: that behaviors may call.

        Raises:
            InvalidInput: a type can't be declared.
        """
        self._objects = {model.__name__: _object_type(model) for model in objects}
        self._relations = {
            one.name: relation_type(one.name, one.json_schema, one.sources, one.targets) for one in relations
        }
        self._tools = {tool.name: tool for tool in tools}

    def checked_object(self, object_type: str, data: Mapping[str, Json], whole: bool = True) -> dict[str, Json]:
        """An object's data as it was given, where its type allows it.

        Args:
            whole: False for a change: only what the data names, and null clears.

        Raises:
            InvalidInput: naming the type, the property, and what is wrong with it.
        """
        return _checked(_known(self._objects, object_type, "object type"), data, whole=whole)

    def checked_relation(
        self, relation_type: str, source_type: str, target_type: str, data: Mapping[str, Json]
    ) -> dict[str, Json]:
        """A relation's data as it was given, where its type allows it and joins such ends.

        Raises:
            InvalidInput: naming the type and what is wrong.
        """
        known = _known(self._relations, relation_type, "relation type")
        for end, given, allowed in (("source", source_type, known.sources), ("target", target_type, known.targets)):
            if given not in allowed:
                raise InvalidInput(f"{relation_type}: a {given} can't be its {end}", hint=f"{', '.join(allowed)} can")
        return _checked(known, data, whole=True)

    def properties(self, object_type: str) -> Sequence[str] | None:
        """The properties of an object type; None where the pack has none of this name."""
        declared = self._objects.get(object_type)
        return None if declared is None else list(declared.columns)

    def tool(self, name: str) -> Tool:
        """A tool.

        Raises:
            InvalidInput: the pack has none of this name.
        """
        return _known(self._tools, name, "tool")

    @property
    def tool_names(self) -> list[str]:
        """The names of all tools, sorted."""
        return sorted(self._tools)


_Known = TypeVar("_Known")


def _known(known: Mapping[str, _Known], name: str, kind: str) -> _Known:
    try:
        return known[name]
    except KeyError:
        raise InvalidInput(
            f"the pack has no {kind} {name!r}", hint=f"it has {', '.join(sorted(known)) or 'none'}"
        ) from None


def _checked(declared: DataType, data: Mapping[str, Json], *, whole: bool) -> dict[str, Json]:
    try:
        for name, value in data.items():
            _read_back(name, value)
        declared.check(data, whole=whole)
    except InvalidInput as error:
        there = f"its properties: {', '.join(declared.columns)}" if declared.columns else "it has no properties"
        raise InvalidInput(f"{declared.name}.{error.message}", hint=error.hint or there) from None
    return dict(data)


def _read_back(name: str, value: Json) -> None:
    """Refuse a value that the log would refuse as JSON."""
    try:
        read_json(canonical_json(value))
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.message}") from None


def _object_type(model: type[BaseModel]) -> ObjectType:
    fields = object_type_of(model)
    references = {one["property"]: one["object_type"] for one in cast("list[dict[str, str]]", fields["references"])}
    return object_type(model.__name__, str(fields["json_schema"]), _pairs(references))


def _pairs(references: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={target}" for name, target in references.items())


def _compiled(name: str, compile: Callable[[], DataType]) -> None:
    """Refuse a type that the log's rules would refuse, in the same words and with its name."""
    try:
        compile()
    except InvalidInput as error:
        raise InvalidInput(f"{name} can't be declared: {error.message}", hint=error.hint) from None


def _name(name: str, allowed: Any, hint: str) -> str:
    try:
        TypeAdapter(allowed).validate_python(name)
    except ValidationError:
        raise InvalidInput(f"{name!r} can't be the name of a type", hint=hint) from None
    return name


def _references(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The properties of a model that are references, and the types that they name.

    Raises:
        InvalidInput: a reference stands inside a list or another model, or names two types.
    """
    for name, field in model.model_fields.items():
        found = [one for one in field.metadata if isinstance(one, Reference)]
        plain, nested = _split(field.annotation)
        found += plain
        if nested or len(found) > 1:
            raise InvalidInput(
                f"{model.__name__}.{name}: a reference is a property of its own, of one type, optional or not",
                hint="join many objects by a relation type instead",
            )
        if found:
            yield name, found[0].object_type


def _merges(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The properties of a model that are merged, and by which rule."""
    for name, field in model.model_fields.items():
        for rule in field.metadata:
            if isinstance(rule, Merged):
                yield name, rule.by


def _split(annotation: object) -> tuple[list[Reference], bool]:
    """The references in an annotation that stand there plainly or optionally, and whether others stand deeper."""
    plain: list[Reference] = []
    nested = False
    for part in _parts(annotation):
        metadata = getattr(part, "__metadata__", ())
        here = [one for one in metadata if isinstance(one, Reference)]
        plain += here
        nested = nested or (not here and _holds_reference(part, set()))
    return plain, nested


def _parts(annotation: object) -> Iterator[object]:
    """The alternatives of a union, or the annotation itself."""
    if get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _parts(one)
    else:
        yield annotation


def _holds_reference(annotation: object, seen: set[type[BaseModel]]) -> bool:
    if isinstance(annotation, Reference):
        return True
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return False
        seen.add(annotation)
        fields = annotation.model_fields.values()
        return any(_holds_reference(part, seen) for one in fields for part in (*one.metadata, one.annotation))
    parts = (*get_args(annotation), *getattr(annotation, "__metadata__", ()))
    return any(_holds_reference(part, seen) for part in parts)


def _schema(model: type[BaseModel]) -> str:
    """The canonical JSON Schema text of a model."""
    try:
        return canonical_json(_bare(model.model_json_schema()))
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        why = str(error).splitlines()[0]
        raise InvalidInput(f"{model.__name__} can't be declared: {why}", hint="use text, numbers and lists") from None


def _bare(schema: Json) -> Json:
    """A schema without its titles and descriptions."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Json] = {}
    for word, value in schema.items():
        if word in _SCHEMAS_BY_NAME:
            made[word] = {name: _bare(part) for name, part in value.items()}
        elif word in ("anyOf", "items"):
            made[word] = _bare(value)
        elif word not in _TELLING:
            made[word] = value
    return made
