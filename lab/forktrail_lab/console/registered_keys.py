"""Registered keys as people name them: by id, by holder, or by the name of the local key."""

from __future__ import annotations

from forktrail_lab.console.session import RunSession
from forktrail_producers.keys import KeyStore
from forktrail_projectors.state import Row
from forktrail_schemas.errors import InvalidInput, NotFound

ID_DIGITS_MIN = 8


def find_key(session: RunSession, store: KeyStore, name: str) -> Row:
    """The one registered key that `name` means: its id (or eight digits of it), its holder, or a local key's name.

    Revoked ones are considered only where no other fits. The local file need not exist: lost keys are revoked too.

    Raises:
        NotFound: the run has no such key.
        InvalidInput: it has several.
    """
    local = store.load(name).key_id if name in store.names() else ""
    found = session.query(
        "MATCH (k:Key) WHERE k.id = $local OR k.holder = $name OR ($by_id AND k.id STARTS WITH $name) "
        "RETURN k.id, k.revoked ORDER BY k.created_offset",
        local=local,
        name=name,
        by_id=len(name) >= ID_DIGITS_MIN,
    ).rows
    ids = [str(id) for id, revoked in found if not revoked] or [str(id) for id, _ in found]
    run = session.projection.run
    if not ids:
        raise NotFound(f"{run} has no key {name!r}", hint=f"forktrail key list {run}", run=run)
    if len(ids) > 1:
        raise InvalidInput(f"{name!r} means several keys: {', '.join(ids)}", hint="give the key's id", run=run)
    return session.existing("Key", ids[0])
