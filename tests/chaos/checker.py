"""Looks for what got lost, doubled, reordered, altered or misjudged. Pure: it sees journals, records and verdicts.

It knows nothing of the fold: a record is found by its bytes, and the verdict it must have stands in the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chaos.journal import Content, Sent, content_of
from forktrail_projectors.record import LogRecord, Verdict

AT_ITS_OFFSET = "every acknowledged event lies at its offset, byte for byte"
COUNTS_ONCE = "every event counts once, with the verdict it must have; copies are duplicates"
IN_ORDER = "each producer's acknowledged events lie in the order in which they were sent"
NOTHING_STRANGE = "the log holds nothing that was never sent"
ALL_JUDGED = "offsets are dense, and each has one verdict"
NONE_LEFT = "in the end everything that was sent is acknowledged"


@dataclass(frozen=True)
class Check:
    """One invariant, and what speaks against it.

    Attributes:
        looked_at: what was compared, in words.
    """

    invariant: str
    looked_at: str
    faults: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.faults


@dataclass(frozen=True)
class Stream:
    """What one producer sent, in order, and the offset of each event that was acknowledged, by number."""

    sent: Sequence[Sent]
    offsets: Mapping[int, int]


def check_log(streams: Sequence[Stream], log: Sequence[LogRecord], verdicts: Sequence[Verdict]) -> list[Check]:
    """Everything that can be said of a log at rest."""
    places: defaultdict[Content, list[int]] = defaultdict(list)
    for record in log:
        places[content_of(record)].append(record.offset)
    sent = [event for stream in streams for event in stream.sent]
    acknowledged = sum(len(stream.offsets) for stream in streams)
    copies = len(log) - len(places)
    return [
        Check(AT_ITS_OFFSET, f"{acknowledged:,} events", tuple(_not_at_their_offset(streams, log))),
        Check(
            COUNTS_ONCE,
            f"{len(sent):,} events, {copies:,} copies",
            tuple(_misjudged(sent, places, {verdict.offset: verdict for verdict in verdicts})),
        ),
        Check(IN_ORDER, f"{acknowledged:,} events", tuple(_out_of_order(streams, places))),
        Check(NOTHING_STRANGE, f"{len(log):,} records", tuple(_strange(sent, log))),
        Check(ALL_JUDGED, f"{len(log):,} records", tuple(_not_dense(log, verdicts))),
        Check(NONE_LEFT, f"{len(sent):,} events", tuple(_left(streams))),
    ]


def check_equal(invariant: str, values: Mapping[str, str]) -> Check:
    """That all values are one, each being named for where it comes from."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in values.items():
        groups[value].append(name)
    faults = () if len(groups) == 1 else tuple(f"{value[:16]}…: {', '.join(names)}" for value, names in groups.items())
    return Check(invariant, ", ".join(values), faults)


def _not_at_their_offset(streams: Iterable[Stream], log: Sequence[LogRecord]) -> Iterable[str]:
    by_offset = {record.offset: record for record in log}
    for stream in streams:
        for number, offset in stream.offsets.items():
            record = by_offset.get(offset)
            if record is None:
                yield f"event {number}, acknowledged at offset {offset}, is lost: there is no such record"
            elif content_of(record) != stream.sent[number].content:
                yield f"event {number}, acknowledged at offset {offset}: another record lies there"


def _misjudged(
    sent: Iterable[Sent], places: Mapping[Content, Sequence[int]], verdicts: Mapping[int, Verdict]
) -> Iterable[str]:
    for event in sent:
        kind, reason, again = event.expected
        offsets = places.get(event.content, ())
        if not offsets:
            yield f"event {event.number} isn't on the log"
        for copy, offset in enumerate(offsets):
            verdict = verdicts.get(offset)
            wanted = again if copy else kind
            if verdict is None or (verdict.kind, verdict.reason, verdict.event_id) != (wanted, reason, event.event_id):
                yield f"event {event.number} at offset {offset} must be {wanted} {reason}".rstrip() + f", is {verdict}"


def _out_of_order(streams: Iterable[Stream], places: Mapping[Content, Sequence[int]]) -> Iterable[str]:
    for stream in streams:
        last_first, last_acknowledged = -1, -1
        for event in stream.sent:
            if event.number not in stream.offsets or event.content not in places:
                continue
            first, acknowledged = places[event.content][0], stream.offsets[event.number]
            if first <= last_first:
                yield f"event {event.number} lies at offset {first}, one sent before it at {last_first}"
            if acknowledged <= last_acknowledged:
                yield (
                    f"event {event.number} was acknowledged at offset {acknowledged}, "
                    f"one sent before it at {last_acknowledged}"
                )
            last_first, last_acknowledged = first, acknowledged


def _strange(sent: Iterable[Sent], log: Iterable[LogRecord]) -> Iterable[str]:
    known = {event.content for event in sent}
    for record in log:
        if content_of(record) not in known:
            yield f"the record at offset {record.offset} was never sent"


def _not_dense(log: Sequence[LogRecord], verdicts: Sequence[Verdict]) -> Iterable[str]:
    dense = list(range(len(log)))
    if [record.offset for record in log] != dense:
        yield f"the log's {len(log):,} records don't have the offsets from 0 on"
    if sorted(verdict.offset for verdict in verdicts) != dense:
        yield f"{len(verdicts):,} verdicts for {len(log):,} records"


def _left(streams: Iterable[Stream]) -> Iterable[str]:
    for stream in streams:
        for event in stream.sent:
            if event.number not in stream.offsets:
                yield f"event {event.number} was never acknowledged"
