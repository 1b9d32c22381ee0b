"""A view whose owner ends goes on with the next one, and never mixes two states without saying so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import pytest

from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.owner.handover import Handover
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.view import RunView
from forktrail_schemas.errors import GraphBusy, GraphUnavailable, LogUnavailable


class Owner:
    """A view at an offset, whose owner ends when the test says so."""

    run = "story"

    def __init__(self, next_offset: int, *, gone: bool = False) -> None:
        self.next_offset = next_offset
        self.gone = gone
        self.closed = False

    @property
    def graph(self) -> Owner:
        """Itself."""
        return self

    def query(self, cypher: str, parameters: object = None, *, timeout_ms: int | None = None) -> Table:
        """Where it stands."""
        if self.gone:
            raise OwnerGone
        return Table(("at",), [(self.next_offset,)])

    def catch_up(self, end: int | None = None) -> None:
        """Go on by one."""
        if self.gone:
            raise OwnerGone
        self.next_offset += 1


class Owners:
    """Opens one after the other."""

    def __init__(self, *owners: Owner | Exception) -> None:
        self._left = list(owners)

    def __call__(self) -> AbstractContextManager[RunView]:
        """The next."""
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[RunView]:
        owner = self._left.pop(0)
        if isinstance(owner, Exception):
            raise owner
        yield cast(RunView, owner)
        owner.closed = True


def at(view: Handover) -> object:
    return view.query("at").rows[0][0]


def test_the_next_owner_is_asked_the_same_question() -> None:
    first, second = Owner(5), Owner(5)
    owners = Owners(first, second)
    with Handover(owners, owners) as view:
        assert at(view) == 5
        first.gone = True
        assert at(view) == 5
        assert (first.closed, second.closed) == (True, False)
    assert second.closed


def test_an_owner_that_ends_before_it_was_ever_asked_is_no_matter() -> None:
    owners = Owners(Owner(5, gone=True), Owner(9))
    with Handover(owners, owners) as view:
        assert at(view) == 9


def test_a_steady_view_refuses_to_go_on_from_another_state() -> None:
    first = Owner(5)
    owners = Owners(first, Owner(6))
    with Handover(owners, owners) as view:
        assert at(view) == 5
        first.gone = True
        for _ in range(2):
            with pytest.raises(GraphBusy, match="from offset 5 to 6") as raised:
                at(view)
            assert raised.value.code == "graph_moved"
        view.catch_up()
        assert at(view) == 7


def test_a_live_view_goes_on_from_whatever_there_is() -> None:
    first = Owner(5)
    owners = Owners(first, Owner(6))
    with Handover(owners, owners, live=True) as view:
        assert at(view) == 5
        first.gone = True
        assert at(view) == 6


def test_what_keeps_the_next_from_opening_is_said_and_tried_again_at_the_next_question() -> None:
    first = Owner(5)
    owners = Owners(first, LogUnavailable("away"), Owner(5))
    with Handover(owners, owners) as view:
        first.gone = True
        with pytest.raises(LogUnavailable):
            at(view)
        assert at(view) == 5


def test_owners_that_all_end_over_the_same_question_are_not_tried_without_end() -> None:
    owners = Owners(*(Owner(5, gone=True) for _ in range(50)))
    with Handover(owners, owners) as view, pytest.raises(GraphUnavailable, match="before it answers"):
        at(view)


def test_a_view_answers_nothing_once_it_is_closed() -> None:
    owners = Owners(Owner(5))
    with Handover(owners, owners) as view:
        pass
    with pytest.raises(GraphUnavailable, match="closed"):
        at(view)
