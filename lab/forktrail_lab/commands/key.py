"""`forktrail key`: make signing keys; register and revoke them in a run."""

from __future__ import annotations

import argparse
from typing import get_args

from forktrail_lab.console.arguments import (
    ADMIN_KEY,
    add_action,
    add_actions,
    add_format,
    add_key,
    add_reason,
    add_run,
    run_id,
)
from forktrail_lab.console.output import print_result, print_rows
from forktrail_lab.console.registered_keys import find_key
from forktrail_lab.console.run_summary import KEY_COLUMNS, key_rows
from forktrail_lab.console.session import open_session
from forktrail_lab.console.signing import SERVICE_ROLES
from forktrail_producers.keys import KeyStore
from forktrail_schemas.errors import ExitCode, ForktrailError, InvalidInput
from forktrail_schemas.events import KeyRegistered, KeyRevoked
from forktrail_schemas.events.log import Role
from forktrail_schemas.events.shared import ActorKind
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import PUBLIC_KEY_BYTES, key_id

NEW_EXAMPLE = "  forktrail key new olga"
LIST_EXAMPLE = "  forktrail key list\n  forktrail key list $RUN"
REGISTER_EXAMPLE = "  forktrail key register $RUN olga --role operator"
REVOKE_EXAMPLE = "  forktrail key revoke $RUN olga --reason 'her laptop is lost'"
EXAMPLE = "\n".join((NEW_EXAMPLE, REGISTER_EXAMPLE, LIST_EXAMPLE, REVOKE_EXAMPLE))
KINDS = get_args(ActorKind)
LOCAL_COLUMNS = ("name", "key_id", "problem")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare new, list, register and revoke."""
    actions = add_actions(parser, "new|list|register|revoke")
    new = add_action(actions, "new", "make a signing key, in a file that only its owner may read", NEW_EXAMPLE)
    new.add_argument("name", metavar="NAME", help="what it is called here, and whom it speaks for")
    add_format(new)
    listing = add_action(actions, "list", "list the keys here, or those registered in a run", LIST_EXAMPLE)
    listing.add_argument("run", type=run_id, metavar="RUN", nargs="?", help="run id")
    add_format(listing)
    register = add_action(actions, "register", "let a key sign in a run, in some roles", REGISTER_EXAMPLE)
    add_run(register)
    register.add_argument("name", metavar="NAME", help="name of a key here, or with --public-key whom it speaks for")
    register.add_argument(
        "--role", dest="roles", action="append", required=True, choices=get_args(Role), help="may be given repeatedly"
    )
    register.add_argument("--holder", metavar="NAME", help="actor id that it speaks for (default: NAME)")
    register.add_argument(
        "--kind",
        choices=KINDS,
        help="what the holder is (default: service for runners, sealers and workers, else human)",
    )
    register.add_argument("--public-key", metavar="HEX", help="the public key of one that is kept elsewhere")
    add_key(register, ADMIN_KEY)
    add_format(register)
    revoke = add_action(actions, "revoke", "end a key; what it signed before still counts", REVOKE_EXAMPLE)
    add_run(revoke)
    revoke.add_argument("name", metavar="NAME|KEY_ID", help="its name here, its holder, or its id")
    add_reason(revoke, required=True)
    add_key(revoke, ADMIN_KEY)
    add_format(revoke)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Do the action; `list` returns 1 where a key here can't be used."""
    if arguments.action == "new":
        return _new(arguments, settings)
    if arguments.action == "register":
        return _register(arguments, settings)
    if arguments.action == "revoke":
        return _revoke(arguments, settings)
    return _list_local(arguments, settings) if arguments.run is None else _list_registered(arguments, settings)


def _new(arguments: argparse.Namespace, settings: Settings) -> int:
    key = KeyStore(settings.keys_dir).new(arguments.name)
    facts: dict[str, object] = {"name": arguments.name, "key_id": key.key_id, "public_key": key.public_key}
    print_result(f"{arguments.name}  {key.key_id}", facts, arguments.format)
    return ExitCode.OK


def _list_local(arguments: argparse.Namespace, settings: Settings) -> int:
    store = KeyStore(settings.keys_dir)
    rows = [_local_row(store, name) for name in store.names()]
    print_rows(LOCAL_COLUMNS, rows, arguments.format)
    return ExitCode.ERROR if any(problem for _, _, problem in rows) else ExitCode.OK


def _local_row(store: KeyStore, name: str) -> tuple[str, str | None, str | None]:
    try:
        return name, store.load(name).key_id, None
    except ForktrailError as error:
        return name, None, str(error)


def _list_registered(arguments: argparse.Namespace, settings: Settings) -> int:
    with open_session(settings, arguments.run) as session:
        rows = key_rows(session)
    print_rows(KEY_COLUMNS, rows, arguments.format)
    return ExitCode.OK


def _register(arguments: argparse.Namespace, settings: Settings) -> int:
    public_key = _public_key(arguments, settings)
    holder = arguments.holder or arguments.name
    kind = arguments.kind or ("service" if set(arguments.roles) <= SERVICE_ROLES else "human")
    with open_session(settings, arguments.run) as session:
        written = session.write(
            KeyRegistered,
            session.person(arguments.key),
            key_id=key_id(public_key),
            public_key=public_key,
            holder=holder,
            holder_kind=kind,
            roles=sorted(set(arguments.roles)),
        )
    roles = ", ".join(sorted(set(arguments.roles)))
    facts = written.facts() | {
        "key_id": key_id(public_key),
        "holder": holder,
        "holder_kind": kind,
        "roles": sorted(set(arguments.roles)),
    }
    print_result(f"{key_id(public_key)} registered for {holder} as {roles}", facts, arguments.format)
    return ExitCode.OK


def _public_key(arguments: argparse.Namespace, settings: Settings) -> str:
    if arguments.public_key is None:
        return KeyStore(settings.keys_dir).load(arguments.name).public_key
    text: str = arguments.public_key.lower()
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != PUBLIC_KEY_BYTES or raw.hex() != text:
        raise InvalidInput("--public-key is not a raw Ed25519 key in hex", hint="64 hex digits")
    return text


def _revoke(arguments: argparse.Namespace, settings: Settings) -> int:
    with open_session(settings, arguments.run) as session:
        key = find_key(session, KeyStore(settings.keys_dir), arguments.name)
        written = session.write(KeyRevoked, session.person(arguments.key), key_id=key["id"], reason=arguments.reason)
    facts = written.facts() | {"key_id": key["id"], "holder": key["holder"]}
    print_result(f"{key['id']} of {key['holder']} revoked at offset {written.offset}", facts, arguments.format)
    return ExitCode.OK
