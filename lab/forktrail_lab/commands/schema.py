"""`forktrail schema`: list or show schemas, declare one in a run, publish them for other tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.console.arguments import ADMIN_KEY, add_action, add_actions, add_format, add_key, add_run, run_id
from forktrail_lab.console.output import Format, counted, print_made, print_result, print_rows
from forktrail_lab.console.session import RunSession, open_session
from forktrail_producers.producer import Producer
from forktrail_producers.schema_topic import SchemaTopic, built_in_schemas
from forktrail_schemas.catalog import Schema, by_fingerprint
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.errors import ExitCode, InvalidInput, NotFound
from forktrail_schemas.events import SchemaDeclared
from forktrail_schemas.schema_types import short_name
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import SCHEMAS

LIST_EXAMPLE = "  forktrail schema list\n  forktrail schema list $RUN"
SHOW_EXAMPLE = "  forktrail schema show ReportFiled > ReportFiled.avsc"
DECLARE_EXAMPLE = "  forktrail schema declare $RUN ScanProgressed.avsc"
PUBLISH_EXAMPLE = "  forktrail schema publish $RUN"
EXAMPLE = "\n".join((LIST_EXAMPLE, SHOW_EXAMPLE, DECLARE_EXAMPLE, PUBLISH_EXAMPLE))
COLUMNS = ("name", "version", "fingerprint", "declared_at", "sha256")
TABLE_COLUMNS = COLUMNS[:-1]


@dataclass(frozen=True)
class Known:
    """A schema, and the offset at which a run declared it; None where it is built in."""

    schema: Schema
    declared_at: int | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare list, show, declare and publish."""
    actions = add_actions(parser, "list|show|declare|publish")
    listing = add_action(actions, "list", "list the built-in schemas, and those that a run declared", LIST_EXAMPLE)
    listing.add_argument("run", type=run_id, metavar="RUN", nargs="?", help="run id")
    add_format(listing)
    showing = add_action(actions, "show", "print a schema's Avro text", SHOW_EXAMPLE)
    showing.add_argument("schema", metavar="NAME|FINGERPRINT", help="of a name, the latest version is shown")
    showing.add_argument("--run", type=run_id, metavar="RUN", help="look among what this run declared, too")
    declaring = add_action(
        actions, "declare", "make records written under a schema readable in a run, from there on", DECLARE_EXAMPLE
    )
    add_run(declaring)
    declaring.add_argument("file", type=Path, metavar="FILE", help="the Avro schema of a record")
    add_key(declaring, ADMIN_KEY)
    add_format(declaring)
    publishing = add_action(
        actions, "publish", f"put schemas on the topic {SCHEMAS.name}, for tools that decode records", PUBLISH_EXAMPLE
    )
    publishing.add_argument("run", type=run_id, metavar="RUN", nargs="?", help="publish what this run declared, too")
    add_format(publishing)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action."""
    actions = {"list": _list, "show": _show, "declare": _declare, "publish": _publish}
    actions[arguments.action](arguments, settings)
    return ExitCode.OK


def _list(arguments: argparse.Namespace, settings: Settings) -> None:
    columns = COLUMNS if arguments.format == Format.JSON else TABLE_COLUMNS
    rows = [_row(known)[: len(columns)] for known in _known(settings, arguments.run)]
    print_rows(columns, rows, arguments.format)


def _row(known: Known) -> tuple[object, ...]:
    schema = known.schema
    return schema.name, schema.version, schema.fingerprint.hex(), known.declared_at, schema.sha256


def _show(arguments: argparse.Namespace, settings: Settings) -> None:
    wanted = arguments.schema
    known = [known.schema for known in _known(settings, arguments.run)]
    found = [schema for schema in known if wanted in (schema.name, short_name(schema.name), schema.fingerprint.hex())]
    if not found:
        raise NotFound(f"there is no schema {wanted!r}", hint="`forktrail schema list [RUN]` shows them")
    print(found[-1].text.rstrip("\n"), flush=True)


def _declare(arguments: argparse.Namespace, settings: Settings) -> None:
    schema = _read(arguments.file)
    with open_session(settings, arguments.run) as session:
        written = session.write(
            SchemaDeclared, session.person(arguments.key), fingerprint=schema.fingerprint.hex(), text=schema.text
        )
    _put_on_topic(settings, [schema])
    facts = written.facts() | {"name": schema.name, "fingerprint": schema.fingerprint.hex(), "sha256": schema.sha256}
    line = f"{schema.name} can be read in {arguments.run} after offset {written.offset}"
    print_made(schema.fingerprint.hex(), line, facts, arguments.format)


def _read(file: Path) -> Schema:
    """The schema in a file.

    Raises:
        InvalidInput: there is no such file, or no schema in it that a run could declare.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} can't be read: {error}", hint="give the file of an Avro schema") from error
    schema = declared_schema(text)
    built_in = by_fingerprint().get(schema.fingerprint)
    if built_in is not None:
        raise InvalidInput(
            f"{file} has the fingerprint of {built_in.name} version {built_in.version}, which is built in",
            hint="records written under it can be read as they are",
        )
    return schema


def _publish(arguments: argparse.Namespace, settings: Settings) -> None:
    schemas = [known.schema for known in _known(settings, arguments.run)]
    added = _put_on_topic(settings, schemas)
    facts: dict[str, object] = {"topic": SCHEMAS.name, "schemas": len(schemas), "added": added}
    print_result(f"{counted(added, 'schema')} added to {SCHEMAS.name}", facts, arguments.format)


def _put_on_topic(settings: Settings, schemas: Sequence[Schema]) -> int:
    with Producer(settings.bootstrap_servers) as producer:
        return SchemaTopic(settings.bootstrap_servers).publish(schemas, producer)


def _known(settings: Settings, run: str | None) -> list[Known]:
    """The built-in schemas by name and version, then those of a run in the order that it declared them."""
    built_in = [Known(schema) for schema in built_in_schemas()]
    if run is None:
        return built_in
    with open_session(settings, run) as session:
        return [*built_in, *_declared(session)]


def _declared(session: RunSession) -> list[Known]:
    rows = session.query("MATCH (s:Schema) RETURN s.text, s.created_offset ORDER BY s.created_offset").rows
    return [Known(declared_schema(str(text)), int(str(offset))) for text, offset in rows]
