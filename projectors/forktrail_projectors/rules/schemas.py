"""Rule of declared schemas: which records a run can read, beyond those of built-in types, is decided by its log."""

from __future__ import annotations

from forktrail_projectors.rules.context import Context, Refused
from forktrail_schemas.catalog import by_fingerprint
from forktrail_schemas.declared import declared_schema
from forktrail_schemas.errors import InvalidSchema
from forktrail_schemas.events import SchemaDeclared


def schema_declared(ctx: Context[SchemaDeclared]) -> None:
    """Keeps the text of a schema under its fingerprint, which no other schema may have."""
    event = ctx.event
    try:
        schema = declared_schema(event.text)
    except InvalidSchema as error:
        raise Refused("bad_schema", error.message, takes_id=False) from None
    fingerprint = schema.fingerprint.hex()
    if fingerprint != event.fingerprint:
        raise Refused("fingerprint_mismatch", fingerprint, takes_id=False)
    built_in = by_fingerprint().get(schema.fingerprint)
    if built_in is not None and built_in.sha256 == schema.sha256:
        raise Refused("schema_built_in", f"{built_in.name} version {built_in.version}", takes_id=False)
    if built_in is not None:
        raise Refused("fingerprint_taken", f"{built_in.name} version {built_in.version}", takes_id=False)
    declared = ctx.node("Schema", fingerprint)
    if declared is not None and declared["sha256"] == schema.sha256:
        raise Refused("schema_exists", schema.name)
    if declared is not None:
        raise Refused("fingerprint_taken", str(declared["name"]))
    ctx.create("Schema", fingerprint, name=schema.name, sha256=schema.sha256, text=event.text)
