"""`forktrail schema`: list or show schemas, declare one in a run, publish them for other tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.console.arguments import ADMIN_KEY, add_action, add_actions, add_format, add_key, add_run, run_id
from forktrail_lab.console.output import Format, counted, note, print_made, print_result, print_rows
from forktrail_lab.console.session import RunSession, open_session
from forktrail_lab.files import read_file
from forktrail_producers.producer import Producer
from forktrail_producers.schema_topic import SchemaTopic, built_in_schemas
from forktrail_schemas.catalog import Schema, by_fingerprint
from forktrail_schemas.declared import declared_schema, hindrances_as_built_in
from forktrail_schemas.errors import ExitCode, InvalidInput, InvalidSchema, NotFound
from forktrail_schemas.events import SchemaDeclared
from forktrail_schemas.schema_types import short_name
from forktrail_schemas.settings import Settings
from forktrail_schemas.topics import SCHEMAS
from forktrail_schemas.values import TEXT_LENGTH_MAX

_FILE_BYTES_MAX = 4 * TEXT_LENGTH_MAX  # of so many characters in UTF-8

LIST_EXAMPLE = "  forktrail schema list\n  forktrail schema list $RUN"
SHOW_EXAMPLE = "  forktrail schema show ReportFiled > ReportFiled.avsc"
DECLARE_EXAMPLE = """\
  echo '{"type": "record", "name": "ScanProgressed", "namespace": "acme",
         "fields": [{"name": "percent", "type": "int"}]}' > ScanProgressed.avsc
  forktrail schema declare $RUN ScanProgressed.avsc"""
PUBLISH_EXAMPLE = "  forktrail schema publish $RUN"
EXAMPLE = "\n".join((LIST_EXAMPLE, SHOW_EXAMPLE, DECLARE_EXAMPLE, PUBLISH_EXAMPLE))
COLUMNS = ("name", "version", "fingerprint", "declared_at", "sha256")
TABLE_COLUMNS = COLUMNS[:-1]


@dataclass(frozen=True)
class Known:
    """A schema, and the offset at which a run declared it; None where it is built in."""

    schema: Schema
    declared_at: int | None = None

    def is_called(self, wanted: str) -> bool:
        """Whether that is its name, with or without namespace, or its fingerprint."""
        return wanted in (self.schema.name, short_name(self.schema.name), self.schema.fingerprint.hex())


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
    declaring.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=f"the Avro schema of a record, {TEXT_LENGTH_MAX:,} characters at most; under a built-in type's name, one"
        " that can be read as that type",
    )
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
    found = [known for known in _known(settings, arguments.run) if known.is_called(arguments.schema)]
    if not found:
        hint = "`forktrail schema list` shows those built in; `--run RUN` looks among what a run declared, too"
        if arguments.run is not None:
            hint = f"`forktrail schema list {arguments.run}` shows them"
        raise NotFound(f"there is no schema {arguments.schema!r}", hint=hint)
    # One that is declared under a built-in type's name is read as that type, and takes nothing of it away.
    shown = ([known for known in found if known.declared_at is None] or found)[-1]
    print(shown.schema.text.rstrip("\n"), flush=True)
    for other in found:
        if other is not shown and other.declared_at is not None:
            fingerprint = other.schema.fingerprint.hex()
            note(
                f"{arguments.run} declares another {other.schema.name}, at offset {other.declared_at}:"
                f" `forktrail schema show {fingerprint} --run {arguments.run}` shows it"
            )


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
        NotFound: there is no such file.
        InvalidInput: there is no schema in it that a run could declare.
    """
    try:
        text = read_file(file, _FILE_BYTES_MAX, hint="give the file of an Avro schema").decode()
    except ValueError as error:
        raise InvalidSchema(f"{file} is not UTF-8", hint="give the Avro schema of a record, as JSON") from error
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidSchema(
            f"{file} has more than the {TEXT_LENGTH_MAX:,} characters that a declared schema may have",
            hint="leave out the docs",
        )
    schema = declared_schema(text)
    built_in = by_fingerprint().get(schema.fingerprint)
    if built_in is not None:
        raise InvalidInput(
            f"{file} has the fingerprint of {built_in.name} version {built_in.version}, which is built in",
            hint="records written under it can be read as they are",
        )
    if found := hindrances_as_built_in(schema):
        raise InvalidSchema(
            f"no record of it could be read as the built-in {schema.name}: {'; '.join(found)}",
            hint="give it a name of its own, or what the built-in type asks for",
        )
    return schema


def _publish(arguments: argparse.Namespace, settings: Settings) -> None:
    schemas = [known.schema for known in _known(settings, arguments.run)]
    added = _put_on_topic(settings, schemas)
    facts: dict[str, object] = {"topic": SCHEMAS.name, "schemas": len(schemas), "added": added}
    there = len(schemas) - added
    line = f"{counted(added, 'schema')} added to {SCHEMAS.name}, {there} there already"
    print_result(line, facts, arguments.format)


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
