"""A run's graph owned for long: folded as records come, and served to others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from forktrail_projectors.lock import WAIT_SECONDS, owned
from forktrail_projectors.opener import Opener
from forktrail_projectors.owner.address import listening
from forktrail_projectors.owner.client import OwnerView
from forktrail_projectors.owner.follower import Follower
from forktrail_projectors.owner.letters import LetterWriter
from forktrail_projectors.owner.log import LogEnd
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.owner.server import Server
from forktrail_projectors.owner.turn import owner_of
from forktrail_projectors.projection import graph_file, lock_file
from forktrail_projectors.view import Position, Say
from forktrail_schemas.errors import GraphBusy, GraphError
from forktrail_schemas.settings import Settings

SOCKETS = "sockets"
LETTERS_SUFFIX = ".letters"


class Owner:
    """A run's graph that this process owns, folded live and served; from `own`.

    Attributes:
        address: the path of its socket, None where it has none.
    """

    def __init__(self, settings: Settings, owned: Owned, server: Server, address: Path | None) -> None:
        self._settings = settings
        self._owned = owned
        self._server = server
        self.run = owned.run
        self.address = address

    def position(self) -> Position:
        """Where the graph stands now."""
        return self._owned.projection().position(self._owned.end())

    def wait(self) -> None:
        """Wait for the fold to end, which it does by itself only where it can't go on.

        Raises:
            ForktrailError: why not.
        """
        self._owned.wait_closed()

    def view(self, wait_seconds: float = WAIT_SECONDS) -> OwnerView:
        """The run as this process shows it to itself, in the same way as to others; close it after use."""
        servers = self._settings.bootstrap_servers
        return OwnerView(self._server.dial, self.run, servers, live=True, wait_seconds=wait_seconds)


@contextmanager
def own(
    settings: Settings,
    run: str,
    *,
    rebuild: bool = False,
    stays: bool = True,
    say: Say = lambda line: None,
    wait_seconds: float = 0.0,
) -> Iterator[Owner]:
    """Own a run's graph for the length of a `with` block: fold it live, and answer others.

    Args:
        rebuild: make it anew from the log first.
        stays: False if this process lets go soon, and at once where another asks for the graph that wants to stay;
            whoever asks this one is then told OwnerGone.
        say: takes each line about what is set aside, and how the fold fares; from another thread too.

    Raises:
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer.
        GraphBusy: another process owns it and stays (code `graph_owned`), or held it for `wait_seconds`.
        GraphError: as `open_projection`.
    """
    with ExitStack() as stack:
        end = LogEnd(settings.bootstrap_servers, run)
        stack.callback(end.close)
        state = Owned(run, end)
        path = graph_file(settings, run)
        opener_of = partial(Opener, path, settings.graph_engine, run, say=say)
        letters = LetterWriter(settings.bootstrap_servers, state, path.with_suffix(LETTERS_SUFFIX), say)
        follower = Follower(settings.bootstrap_servers, run, opener_of, state, say, letters.folded)
        # Only now is it known that there is such a run, so that no lock file is made for one that isn't.
        ask = partial(_ask_for_turn, settings, run, stays)
        lock = stack.enter_context(owned(lock_file(settings, run), wait_seconds, while_waiting=ask))
        stack.callback(follower.stop)
        follower.start(rebuild=rebuild)
        stack.callback(letters.stop)
        letters.start()
        server, address = _serve(stack, settings, state, path.name, stays, say)
        lock.name_socket(address)
        stack.callback(lock.name_socket, None)
        stack.callback(state.closed, for_good=True)
        holding = _Holding(stack.pop_all(), state, say)
    if not stays:
        holding.let_go_when_asked()
    try:
        yield Owner(settings, state, server, address)
    finally:
        holding.end()


class _Holding:
    """All that an owner holds; it ends once, with its block or before."""

    def __init__(self, stack: ExitStack, state: Owned, say: Say) -> None:
        self._stack = stack
        self._state = state
        self._say = say
        self._lock = threading.Lock()

    def end(self) -> None:
        """End it, or wait for whoever does.

        Raises:
            GraphError: the graph didn't close.
        """
        with self._lock:
            self._stack.close()
        self._state.let_go.set()

    def let_go_when_asked(self) -> None:
        """End it in a thread of its own where another process asks for the graph."""
        threading.Thread(target=self._wait_and_end, name="forktrail-let-go", daemon=True).start()

    def _wait_and_end(self) -> None:
        self._state.let_go.wait()
        try:
            self.end()
        except GraphError as error:
            self._say(str(error))


def _ask_for_turn(settings: Settings, run: str, stays: bool) -> None:
    """Raise GraphBusy where the process that holds the graph means to keep it; one that doesn't is asked to let go.

    Args:
        stays: whether this process means to keep it; else it waits until the other lets go by itself.
    """
    view = owner_of(lock_file(settings, run), run, settings.bootstrap_servers)
    if view is None:
        return
    try:
        if stays and not view.stays:
            view.let_go()
    except OwnerGone:  # it has
        pass
    finally:
        view.close()
    if view.stays:
        raise GraphBusy(
            f"{view.owner} owns the graph of {run} and folds it live",
            code="graph_owned",
            hint="every command works beside it; stop it first to put another in its place",
            run=run,
        )


def _serve(
    stack: ExitStack, settings: Settings, state: Owned, name: str, stays: bool, say: Say
) -> tuple[Server, Path | None]:
    """Begin to answer; returns the socket's path too, None where none can be made."""
    listener, address = None, None
    try:
        listener, address = stack.enter_context(listening(settings.home / SOCKETS, name))
    except GraphError as error:
        say(f"{error}; other processes have to wait until this one lets go of {name}")
    server = Server(state, listener, stays=stays)
    stack.callback(server.close)
    return server, address
