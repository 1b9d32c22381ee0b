"""Everybody who may speak in a tale, with their keys."""

from __future__ import annotations

from typing import NamedTuple

from forktrail_schemas.signatures import SigningKey
from support.story import ADMIN, OPERATOR, REVIEWER, RUNNER, STRANGER, fixed_key


class Person(NamedTuple):
    """Somebody with a key."""

    key: SigningKey
    name: str
    kind: str
    roles: tuple[str, ...]


STAFF = (
    Person(ADMIN, "ada", "human", ("admin",)),
    Person(OPERATOR, "olga", "human", ("operator",)),
    Person(REVIEWER, "ravi", "human", ("reviewer",)),
    Person(RUNNER, "runner-1", "service", ("runner",)),
)
# Who may come later: another runner, the operator as a reviewer, a machine in a person's roles, a second admin, and a
# worker.
GUESTS = (
    Person(fixed_key(6), "runner-2", "service", ("runner",)),
    Person(fixed_key(7), "olga", "human", ("reviewer",)),
    Person(fixed_key(8), "bot", "agent", ("operator", "reviewer")),
    Person(fixed_key(9), "adam", "human", ("admin", "operator")),
    Person(fixed_key(10), "worker-1", "service", ("worker",)),
)
NOBODY = Person(STRANGER, "stranger", "human", ())


def person_of(public_key: str) -> Person:
    """Whose key it is."""
    return next(person for person in (*STAFF, *GUESTS, NOBODY) if person.key.public_key == public_key)
