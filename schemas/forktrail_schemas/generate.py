"""Writes the event classes from the `.avsc` files; run by `make generate`, checked for drift by a test.

    python -m forktrail_schemas.generate [--check]

`avsc/shared/*.avsc` are the one source of the records that several events embed: each event file holds a copy, so that
another service needs that one file alone, and this module refreshes the copies. `Type.v1.avsc` is an earlier version of
a type, as it was published: it is never written, and its class stands in `events/earlier.py` as `TypeV1`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from forktrail_schemas.values import FORMATS

Json = Any  # an Avro schema is JSON of any shape; schema_limits checks it when it is read

PACKAGE = Path(__file__).parent
AVSC = PACKAGE / "avsc"
CLASSES = PACKAGE / "events"
SHARED = "shared"
EVENT_FAMILIES = ("log", "evidence", "graph", "work")
FAMILIES = (SHARED, *EVENT_FAMILIES, "directory")
EARLIER = "earlier"
LINE_WIDTH = 116
CODE_WIDTH = 120
_EARLIER_FILE = re.compile(r"(?P<type>\w+)\.v(?P<version>[1-9][0-9]*)\.avsc")
_PRIMITIVES = {"string": "str", "boolean": "bool", "bytes": "bytes", "int": "Int32", "long": "Int64"}


def generated_files() -> dict[Path, str]:
    """Every file that this module owns, with the text it should have."""
    shared = {path.stem: json.loads(path.read_text()) for path in sorted((AVSC / SHARED).glob("*.avsc"))}
    files: dict[Path, str] = {}
    members: dict[str, list[str]] = {}
    for family in FAMILIES:
        schemas = []
        for path in current_files(AVSC / family):
            schema = json.loads(path.read_text())
            if family != SHARED:
                schema = _with_shared(schema, shared)
            files[path] = _layout(schema) + "\n"
            schemas.append(schema)
        module = _Module(family, known=set() if family == SHARED else _named_types(list(shared.values())))
        files[CLASSES / f"{family}.py"] = module.text(schemas)
        members[family] = module.exported
    earlier = _Module(EARLIER, known=set())
    files[CLASSES / f"{EARLIER}.py"] = earlier.text_of_earlier(earlier_files(AVSC), shared)
    members[EARLIER] = earlier.exported
    files[CLASSES / "__init__.py"] = _package(members)
    return files


def current_files(folder: Path) -> list[Path]:
    """The schema files of the current versions in a family's folder, by name."""
    return [path for path in sorted(folder.glob("*.avsc")) if not _EARLIER_FILE.fullmatch(path.name)]


def earlier_files(folder: Path) -> list[Path]:
    """The schema files of all earlier versions in all families' folders, by name."""
    found = [path for path in folder.glob("*/*.avsc") if _EARLIER_FILE.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.name)


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


def _import(module: str, names: set[str]) -> str:
    """An import as ruff lays it out."""
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) <= CODE_WIDTH:
        return line
    return f"from {module} import (\n    " + ",\n    ".join(sorted(names)) + ",\n)"


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


def _definition(schema: Json, name: str) -> Json | None:
    """The definition of a record somewhere in a schema, None where it has none."""
    if isinstance(schema, dict) and schema.get("type") == "record" and schema.get("name") == name:
        return schema
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return next((found for part in parts if (found := _definition(part, name)) is not None), None)


class _Module:
    """Collects the classes of one generated module."""

    def __init__(self, family: str, known: set[str]) -> None:
        self._family = family
        self._known = known
        self._imported: set[str] = set()
        self._formats: set[str] = set()
        self._definitions: list[str] = []
        # Class names by Avro names.
        self._defined: dict[str, str] = {}
        self._suffix = ""
        self.exported: list[str] = []

    def text(self, schemas: list[Json]) -> str:
        for schema in schemas:
            self._record(schema)
        return self._layout(f"Records of `avsc/{self._family}/`. Generated by `make generate`; edit the .avsc instead.")

    def text_of_earlier(self, paths: list[Path], shared: dict[str, Json]) -> str:
        """Each version has classes of its own, but for the shared records that are still the same."""
        for path in paths:
            schema = json.loads(path.read_text())
            embedded = {name: found for name in shared if (found := _definition(schema, name)) is not None}
            self._known = _named_types([found for name, found in embedded.items() if found == shared[name]])
            self._suffix, self._defined = f"V{schema['forktrail'].get('version', 1)}", {}
            self._record(schema)
        return self._layout("Earlier versions of event types. Generated by `make generate` from `avsc/*/*.v*.avsc`.")

    def _layout(self, doc: str) -> str:
        base = "Event" if any("class " in text and "(Event)" in text for text in self._definitions) else None
        annotated = any("Annotated[" in text for text in self._definitions)
        fields = any("Field(" in text for text in self._definitions)
        typing = ["Annotated"] * annotated + ["ClassVar"]
        typing += ["Literal"] * any("Literal[" in text for text in self._definitions)
        records = any("(Record)" in text for text in self._definitions)
        lines = [
            f'"""{doc}"""',
            "",
            "from __future__ import annotations",
            "",
            f"from typing import {', '.join(typing)}",
            "",
        ]
        lines += ["from pydantic import Field", ""] if fields else []
        lines += ["from forktrail_schemas.events.base import Event"] if base else []
        if self._imported:
            lines += [_import("forktrail_schemas.events.shared", self._imported)]
        lines += ["from forktrail_schemas.record import Record"] if records else []
        lines += [_import("forktrail_schemas.values", self._formats), ""]
        gap = "\n\n" if self._definitions[0].startswith("class ") else "\n"
        return "\n".join(lines) + gap + "\n\n".join(self._definitions)

    def _record(self, schema: Json) -> str:
        name: str = schema["name"]
        if name in self._known:
            self._imported.add(name)
            return name
        if name in self._defined:
            return self._defined[name]
        self._defined[name] = class_name = name + self._suffix
        annotations = schema.get("forktrail", {})
        is_event = bool(annotations)
        body = [f'    """{schema.get("doc") or name}"""', ""]
        body += [f'    TYPE: ClassVar[str] = "{schema.get("namespace", "forktrail")}.{name}"']
        if annotations.get("version", 1) != 1:
            body += [f"    VERSION: ClassVar[int] = {annotations['version']}"]
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
            f"class {class_name}({'Event' if is_event else 'Record'}):\n" + "\n".join(body).rstrip() + "\n"
        )
        if is_event or (self._family == "directory" and "namespace" in schema):  # embedded records have none
            self.exported.append(class_name)
        return class_name

    def _field(self, field: Json) -> list[str]:
        annotation = self._type(field["type"], field)
        if "default" in field:
            default = () if field["default"] == [] else field["default"]
            annotation += f" = {json.dumps(default) if isinstance(default, str) else repr(default)}"
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
            return name
        return self._defined.get(name)

    def _array(self, schema: Json, field: Json) -> str:
        bounds = [f"{word}={field[key]}" for key, word in _ITEM_BOUNDS if key in field]
        # JSON and general reading give a list where a value wants a tuple; strict mode would refuse it.
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
            return name
        if name not in self._defined:
            self._defined[name] = name + self._suffix
            symbols = ", ".join(json.dumps(symbol) for symbol in schema["symbols"])
            self._definitions.append(f"{self._defined[name]} = Literal[{symbols}]\n")
        return self._defined[name]


_ITEM_BOUNDS = (("minimum_items", "min_length"), ("maximum_items", "max_length"))
_VALUE_BOUNDS = (("minimum", "ge"), ("maximum", "le"))


def _package(members: dict[str, list[str]]) -> str:
    events = sorted(name for family in EVENT_FAMILIES for name in members[family])
    lines = [
        '"""Every record type as a class. Generated by `make generate`; edit the .avsc instead."""',
        "",
    ]
    for family in sorted(members):
        if members[family]:
            names = ",\n    ".join(sorted(members[family]))
            lines.append(f"from forktrail_schemas.events.{family} import (\n    {names},\n)")
    every = sorted(name for names in members.values() for name in names)
    listed = ",\n    ".join(json.dumps(name) for name in ["EARLIER_VERSIONS", "EVENT_TYPES", "OTHER_TYPES", *every])
    lines += ["", f"__all__ = [\n    {listed},\n]", ""]
    lines += _tuple("EVENT_TYPES", events, "Every event class; `forktrail_schemas.catalog` finds them by schema.")
    lines += _tuple("OTHER_TYPES", sorted(members["directory"]), "The classes of records that aren't on a run's topic.")
    lines += _tuple("EARLIER_VERSIONS", members[EARLIER], "Classes of the earlier versions of event types.")
    return "\n".join(lines) + "\n"


def _tuple(name: str, members: list[str], doc: str) -> list[str]:
    return [f"{name} = (\n    " + ",\n    ".join(members) + ",\n)", f'"""{doc}"""']


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
