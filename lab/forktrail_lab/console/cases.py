"""Cases as people name them: by id, or by the first characters of one."""

from __future__ import annotations

from forktrail_lab.console.session import RunSession
from forktrail_projectors.state import Row
from forktrail_schemas.errors import InvalidInput, NotFound

PREFIX = "case-"
LISTED_MAX = 10


def find_case(session: RunSession, name: str) -> Row:
    """The row of the one case whose id is, or begins with, `name`; `case-` may be left out.

    Raises:
        NotFound: no case's does.
        InvalidInput: several do; they are listed.
    """
    run = session.projection.run
    start = name if name.startswith(PREFIX) else PREFIX + name
    if start == PREFIX:
        raise InvalidInput("a case has to be named by its id, or the first characters of it", run=run)
    found = session.query(
        "MATCH (c:`Case`) WHERE c.id STARTS WITH $start RETURN c.id, c.test ORDER BY c.id LIMIT $limit",
        start=start,
        limit=LISTED_MAX + 1,
    ).rows
    if not found:
        raise NotFound(
            f"{run} has no case {name!r}",
            hint=f"forktrail query {run} 'MATCH (c:`Case`) RETURN c.id, c.test, c.status'",
            run=run,
        )
    if len(found) > 1:
        listed = [f"{case} ({test})" for case, test in found[:LISTED_MAX]] + ["…"] * (len(found) > LISTED_MAX)
        raise InvalidInput(f"{name!r} is the start of several cases: {', '.join(listed)}", hint="give more of the id")
    return session.existing("Case", str(found[0][0]))


def last_event(session: RunSession, case: Row) -> str:
    """The id of the event that a decision on a case answers: its observation's, or else the one that opened it."""
    observation = case["observation"]
    latest = case if observation is None else session.existing("Observation", str(observation))
    return str(latest["created_event"])
