"""Writes the event classes from the `.avsc` files; run by `make generate`, checked for drift by a test.

    python -m forktrail_schemas.generate [--check]

`avsc/shared/*.avsc` are the one source of the records that several events embed: each event file holds a copy, so that
another service needs that one file alone, and this module refreshes the copies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from forktrail_schemas.values import FORMATS

Json = Any  # an Avro schema is JSON of any shape; it is checked by fastavro when it is parsed

PACKAGE = Path(__file__).parent
AVSC = PACKAGE / "avsc"
CLASSES = PACKAGE / "events"
SHARED = "shared"
FAMILIES = (SHARED, "log", "evidence", "directory")
LINE_WIDTH = 116
_PRIMITIVES = {"string": "str", "boolean": "bool", "bytes": "bytes", "int": "Int32", "long": "Int64"}


def generated_files() -> dict[Path, str]:
    """Every file that this module owns, with the text it should have."""
    shared = {path.stem: json.loads(path.read_text()) for path in sorted((AVSC / SHARED).glob("*.avsc"))}
    files: dict[Path, str] = {}
    members: dict[str, list[str]] = {}
    for family in FAMILIES:
        schemas = []
        for path in sorted((AVSC / family).glob("*.avsc")):
            schema = json.loads(path.read_text())
            if family != SHARED:
                schema = _with_shared(schema, shared)
            files[path] = _layout(schema) + "\n"
            schemas.append(schema)
        module = _Module(family, known=set() if family == SHARED else _named_types(list(shared.values())))
        files[CLASSES / f"{family}.py"] = module.text(schemas)
        members[family] = module.exported
    files[CLASSES / "__init__.py"] = _package(members)
    return files


def main(arguments: list[str]) -> int:
    """Write what differs, or with `--check` only name it; returns 1 if `--check` found a difference."""
    stale = [path for path, text in generated_files().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(PACKAGE)} differs from its .avsc; run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    texts = generated_files()
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[path])
    return 0


def _with_shared(schema: Json, shared: dict[str, Json]) -> Json:
    """The schema with each embedded shared record replaced by the one source of it."""
    if isinstance(schema, dict):
        if schema.get("type") == "record" and schema.get("name") in shared:
            return shared[schema["name"]]
        return {key: _with_shared(value, shared) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_with_shared(item, shared) for item in schema]
    return schema


def _layout(value: Json, indent: int = 0) -> str:
    """JSON with whatever fits on a line on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= LINE_WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_layout(item, indent + 2)}" for key, item in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + _layout(item, indent + 2) for item in value) + "\n" + " " * indent + "]"


def _named_types(schemas: list[Json]) -> set[str]:
    """Names of the records and enums defined anywhere in the schemas."""
    names: set[str] = set()
    for schema in schemas:
        if isinstance(schema, dict):
            if schema.get("type") in ("record", "enum"):
                names.add(schema["name"])
            names |= _named_types(list(schema.values()))
        elif isinstance(schema, list):
            names |= _named_types(schema)
    return names


class _Module:
    """Collects the classes of one generated module."""

    def __init__(self, family: str, known: set[str]) -> None:
        self._family = family
        self._known = known
        self._imported: set[str] = set()
        self._formats: set[str] = set()
        self._definitions: list[str] = []
        self._defined: set[str] = set()
        self.exported: list[str] = []

    def text(self, schemas: list[Json]) -> str:
        for schema in schemas:
            self._record(schema)
        base = "Event" if any("class " in text and "(Event)" in text for text in self._definitions) else None
        annotated = any("Annotated[" in text for text in self._definitions)
        fields = any("Field(" in text for text in self._definitions)
        typing = ["Annotated"] * annotated + ["ClassVar"]
        typing += ["Literal"] * any("Literal[" in text for text in self._definitions)
        records = any("(Record)" in text for text in self._definitions)
        lines = [
            f'"""Records of `avsc/{self._family}/`. Generated by `make generate`; edit the .avsc instead."""',
            "",
            "from __future__ import annotations",
            "",
            f"from typing import {', '.join(typing)}",
            "",
        ]
        lines += ["from pydantic import Field", ""] if fields else []
        lines += ["from forktrail_schemas.events.base import Event"] if base else []
        if self._imported:
            lines += [f"from forktrail_schemas.events.shared import {', '.join(sorted(self._imported))}"]
        lines += ["from forktrail_schemas.record import Record"] if records else []
        lines += [f"from forktrail_schemas.values import {', '.join(sorted(self._formats))}", ""]
        gap = "\n\n" if self._definitions[0].startswith("class ") else "\n"
        return "\n".join(lines) + gap + "\n\n".join(self._definitions)

    def _record(self, schema: Json) -> str:
        name: str = schema["name"]
        if name in self._known:
            self._imported.add(name)
            return name
        if name in self._defined:
            return name
        self._defined.add(name)
        annotations = schema.get("forktrail", {})
        is_event = bool(annotations)
        body = [f'    """{schema.get("doc") or name}"""', ""]
        body += [f'    TYPE: ClassVar[str] = "{schema.get("namespace", "forktrail")}.{name}"']
        if is_event:
            role = annotations["role"]
            body += [f"    ROLE: ClassVar[str | None] = {json.dumps(role) if role else None}"]
            body += [f'    SUBJECT: ClassVar[str] = "{annotations["subject"]}"']
        body += [""]
        for field in schema["fields"]:
            if is_event and field["name"] == "meta":
                continue
            body += self._field(field)
        self._definitions.append(
            f"class {name}({'Event' if is_event else 'Record'}):\n" + "\n".join(body).rstrip() + "\n"
        )
        if is_event or self._family == "directory":
            self.exported.append(name)
        return name

    def _field(self, field: Json) -> list[str]:
        annotation = self._type(field["type"], field)
        if "default" in field:
            default = () if field["default"] == [] else field["default"]
            annotation += f" = {default!r}"
        lines = [f"    {field['name']}: {annotation}"]
        if "doc" in field:
            lines.append(f'    """{field["doc"]}"""')
        return lines

    def _type(self, schema: Json, field: Json) -> str:
        if isinstance(schema, list):
            return " | ".join("None" if part == "null" else self._type(part, field) for part in reversed(schema))
        if isinstance(schema, str):
            return self._named(schema) or self._primitive(schema, field)
        kind = schema["type"]
        if kind == "record":
            return self._record(schema)
        if kind == "enum":
            return self._enum(schema)
        if kind == "array":
            return self._array(schema, field)
        return self._primitive(kind, field)

    def _named(self, name: str) -> str | None:
        """A type that the file defined further up, by its name; None for a primitive."""
        if name in self._known:
            self._imported.add(name)
        return name if name in self._known | self._defined else None

    def _array(self, schema: Json, field: Json) -> str:
        bounds = [f"{word}={field[key]}" for key, word in _ITEM_BOUNDS if key in field]
        # fastavro gives a list where a value wants a tuple; strict mode would refuse it.
        constraint = f"Field({', '.join(['strict=False', *bounds])})"
        return f"Annotated[tuple[{self._type(schema['items'], field)}, ...], {constraint}]"

    def _primitive(self, name: str, field: Json) -> str:
        if name == "string":
            alias = FORMATS[field["format"]]
            self._formats.add(alias)
            return alias
        python = _PRIMITIVES[name]
        if python in ("Int32", "Int64"):
            self._formats.add(python)
        bounds = [f"{word}={field[key]}" for key, word in _VALUE_BOUNDS if key in field]
        return f"Annotated[{python}, Field({', '.join(bounds)})]" if bounds else python

    def _enum(self, schema: Json) -> str:
        name: str = schema["name"]
        if name in self._known:
            self._imported.add(name)
        elif name not in self._defined:
            self._defined.add(name)
            symbols = ", ".join(json.dumps(symbol) for symbol in schema["symbols"])
            self._definitions.append(f"{name} = Literal[{symbols}]\n")
        return name


_ITEM_BOUNDS = (("minimum_items", "min_length"), ("maximum_items", "max_length"))
_VALUE_BOUNDS = (("minimum", "ge"), ("maximum", "le"))


def _package(members: dict[str, list[str]]) -> str:
    events = sorted(name for family in ("log", "evidence") for name in members[family])
    lines = [
        '"""Every record type as a class. Generated by `make generate`; edit the .avsc instead."""',
        "",
    ]
    for family in sorted(members):
        if members[family]:
            names = ",\n    ".join(sorted(members[family]))
            lines.append(f"from forktrail_schemas.events.{family} import (\n    {names},\n)")
    every = sorted(name for names in members.values() for name in names)
    listed = ",\n    ".join(json.dumps(name) for name in ["EVENT_TYPES", *every])
    lines += ["", f"__all__ = [\n    {listed},\n]", ""]
    lines += ["EVENT_TYPES = (\n    " + ",\n    ".join(events) + ",\n)"]
    lines += ['"""Every event class; `forktrail_schemas.catalog` finds them by schema."""']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
