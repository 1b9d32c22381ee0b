"""Cases, findings, calls and executions as people name them: by id, or by the first characters of one."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_lab.console.session import RunSession
from forktrail_projectors.state import Row
from forktrail_schemas.errors import InvalidInput, NotFound

LISTED_MAX = 10


@dataclass(frozen=True)
class Kind:
    """What can be named.

    Attributes:
        told: column that tells people which one it is.
        prefix: what its ids begin with.
        listing: command that lists them.
    """

    word: str
    table: str
    told: str
    prefix: str
    listing: str


CASE = Kind("case", "Case", "test", "case-", "case list")
FINDING = Kind("finding", "Finding", "test", "finding-", "case list")
CALL = Kind("call", "Call", "name", "call-", "approvals list")
PATCH = Kind("proposal", "Patch", "type_name", "patch-", "patches list")
EXECUTION = Kind("execution", "Execution", "behavior", "", "executions list")


def find_case(session: RunSession, name: str) -> Row:
    """The row of the one case whose id is, or begins with, `name`; `case-` may be left out.

    Raises:
        NotFound: no case's does.
        InvalidInput: several do; they are listed.
    """
    return _find(session, CASE, name)


def find_finding(session: RunSession, name: str) -> Row:
    """The row of the one finding whose id is, or begins with, `name`; `finding-` may be left out.

    Raises:
        NotFound: no finding's does.
        InvalidInput: several do; they are listed.
    """
    return _find(session, FINDING, name)


def find_call(session: RunSession, name: str) -> Row:
    """The row of the one request of a behavior whose id is, or begins with, `name`; `call-` may be left out.

    Raises:
        NotFound: no request's does.
        InvalidInput: several do; they are listed.
    """
    return _find(session, CALL, name)


def find_patch(session: RunSession, name: str) -> Row:
    """The row of the one proposal whose id is, or begins with, `name`; `patch-` may be left out.

    Raises:
        NotFound: no proposal's does.
        InvalidInput: several do; they are listed.
    """
    return _find(session, PATCH, name)


def find_execution(session: RunSession, name: str) -> Row:
    """The row of the one execution whose id is, or begins with, `name`.

    Raises:
        NotFound: no execution's does.
        InvalidInput: several do; they are listed.
    """
    return _find(session, EXECUTION, name)


def observation_of(session: RunSession, case: Row) -> Row:
    """The observation of a case.

    Raises:
        InvalidInput: there is none yet.
    """
    if case["observation"] is None:
        run = session.projection.run
        raise InvalidInput(
            f"{case['id']} has no observation: it is {case['status']}",
            code="no_observation",
            hint=f"an approved case is run by `forktrail runner {run}`",
            run=run,
        )
    return session.existing("Observation", str(case["observation"]))


def last_event(session: RunSession, case: Row) -> str:
    """The id of the event that a decision on a case answers: its observation's, or else the one that opened it."""
    observation = case["observation"]
    latest = case if observation is None else session.existing("Observation", str(observation))
    return str(latest["created_event"])


def _find(session: RunSession, kind: Kind, name: str) -> Row:
    run, prefix = session.projection.run, kind.prefix
    start = name if name.startswith(prefix) else prefix + name
    if not name or start == prefix:
        raise InvalidInput(f"a {kind.word} has to be named by its id, or the first characters of it", run=run)
    found = session.query(
        f"MATCH (n:`{kind.table}`) WHERE n.id STARTS WITH $start"
        f" RETURN n.id, n.`{kind.told}` ORDER BY n.id LIMIT $limit",
        start=start,
        limit=LISTED_MAX + 1,
    ).rows
    if not found:
        raise NotFound(
            f"{run} has no {kind.word} {name!r}", hint=f"`forktrail {kind.listing} {run}` shows what there is", run=run
        )
    if len(found) > 1:
        listed = [f"{id} ({test})" for id, test in found[:LISTED_MAX]] + ["…"] * (len(found) > LISTED_MAX)
        raise InvalidInput(
            f"{name!r} is the start of several {kind.word}s: {', '.join(listed)}", hint="give more of the id"
        )
    return session.existing(kind.table, str(found[0][0]))
