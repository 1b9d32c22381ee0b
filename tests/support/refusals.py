"""What it means that the rules refuse an event: the harness that every case in `refused_*.py` is put through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from forktrail_projectors.record import LogRecord
from forktrail_projectors.state import NodeKey
from forktrail_schemas import events
from support.story import ADMIN, HOLDERS, Story

Write = Callable[[Story], LogRecord]


@dataclass(frozen=True)
class Refusal:
    """A record that a story leads to, and the reason it is to be refused for.

    Attributes:
        name: of the function that tells the story.
        code: the reason code.
        takes_id: whether it was refused for when it came, and so takes its id.
        write: tells the story, up to the record in question; appends anything but that one.
    """

    name: str
    code: str
    takes_id: bool
    write: Write


def case(table: list[Refusal], code: str, *, takes_id: bool) -> Callable[[Write], Write]:
    """Put the function in a table of refusals."""

    def put(write: Write) -> Write:
        table.append(Refusal(f"{code}-{write.__name__}", code, takes_id, write))
        return write

    return put


def check(refusal: Refusal) -> None:
    """Put a case through both halves of what a refusal means."""
    story = Story()
    record = refusal.write(story)
    event_id = _check_void(story, record, refusal)
    _check_identity(story, record, event_id, refusal)


def _check_void(story: Story, record: LogRecord, refusal: Refusal) -> str:
    """The record is void for its reason, and nothing but its own verdict and identity is new or changed."""
    before = story.rows()
    verdict = story.append(record)
    after = story.rows()
    assert (verdict.kind, verdict.reason) == ("void", refusal.code), verdict
    row = after[NodeKey("Event", record.offset)]
    assert (row["verdict"], row["reason"], row["id"]) == ("void", refusal.code, verdict.event_id)
    own = {NodeKey("Event", record.offset)}
    if refusal.takes_id:
        own.add(NodeKey("Identity", verdict.event_id))
    assert after.keys() - before.keys() == own
    assert {key: row for key, row in after.items() if key in before} == before
    assert story.projector.recomputed_digest() == story.projector.state_digest
    return verdict.event_id


def _check_identity(story: Story, record: LogRecord, event_id: str, refusal: Refusal) -> None:
    """A late copy stays refused, and another event under the same id is accepted only where the id isn't taken."""
    copy = story.append(replace(record, offset=len(story.records)))
    assert not copy.valid
    assert copy.reason == refusal.code
    assert copy.kind == ("duplicate" if refusal.takes_id else "void")
    if NodeKey("Run", "run") in story.rows():
        other = story.tell(story.event(events.GoalSet, event_id=event_id, text="a good event"))
    else:
        fields = {"goal": "", "revision": "r1", "admin_public_key": ADMIN.public_key}
        other = story.tell(story.event(events.RunOpened, HOLDERS[ADMIN.key_id], event_id=event_id, **fields), ADMIN)
    assert (other.kind, other.reason) == (("void", "id_reused") if refusal.takes_id else ("valid", ""))
