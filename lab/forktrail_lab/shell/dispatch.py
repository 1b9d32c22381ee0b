"""Runs what was typed, piece by piece, and says of each what became of it."""

from __future__ import annotations

from forktrail_lab.console.output import printable
from forktrail_lab.shell.actions import Leave, perform
from forktrail_lab.shell.asking import Cancelled
from forktrail_lab.shell.faults import fault_lines
from forktrail_lab.shell.meta import query_of
from forktrail_lab.shell.session import Session
from forktrail_lab.shell.statements import is_complete, is_farewell, is_meta, statements
from forktrail_projectors.graph.parameters import check_values
from forktrail_schemas.errors import ForktrailError


def is_finished(text: str) -> bool:
    """Whether Enter runs what is typed: a statement that is complete, or a command whose query is."""
    if not is_meta(text):
        return is_complete(text)
    query = query_of(text)
    return not query or is_complete(query)


def execute(session: Session, text: str) -> bool:
    """Run one command to the shell, or the statements of a text in order until one fails; returns whether none did.

    Raises:
        Leave: by `:quit`, `quit` or `exit`.
        KeyboardInterrupt: by Ctrl-C, where nobody is there to go on.
        BrokenPipeError: nobody reads the answers any more.
    """
    if is_farewell(text):
        raise Leave
    if is_meta(text):
        return _run(session, text.strip())
    return all(_run(session, statement.strip()) for statement in statements(text))


def _run(session: Session, piece: str) -> bool:
    session.attempted = ""
    try:
        check_values(piece, {})
        if is_meta(piece):
            perform(session, piece)
        else:
            session.face.answer(session.ask(session.question(piece)))
    except (Cancelled, KeyboardInterrupt):
        if not session.face.interactive:
            raise KeyboardInterrupt from None
        session.face.interrupted("cancelled")
        return False
    except ForktrailError as error:
        session.face.fail(fault_lines(error, session.attempted, session.catalog, session.source.run))
        return False
    except BrokenPipeError:  # nobody reads what a script says
        raise
    except OSError as error:  # a full disk, a folder that may not be written
        session.face.fail([printable(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "))])
        return False
    return True
