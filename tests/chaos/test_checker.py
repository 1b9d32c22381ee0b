"""The checker reports a lost event, a doubled one, a swapped order, altered bytes, a wrong verdict, another digest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from chaos.checker import (
    ALL_JUDGED,
    AT_ITS_OFFSET,
    COUNTS_ONCE,
    IN_ORDER,
    NONE_LEFT,
    NOTHING_STRANGE,
    Stream,
    check_equal,
    check_log,
)
from chaos.journal import Content, Sent
from chaos.plan import Expected
from forktrail_projectors.record import LogRecord, Verdict

LATE = Expected("void", "already_reviewed")
FORGED = Expected("void", "role_missing", again="void")
# What was sent, and where each lies; the third one's first copy was never acknowledged, and so it was sent again.
EXPECTED = [Expected(), LATE, Expected(), FORGED]
LOG = [0, 1, 2, 2, 3, 3]
OFFSETS = {0: 0, 1: 1, 2: 3, 3: 5}
VERDICTS = [
    Verdict(0, "valid", event_id="id-0"),
    Verdict(1, "void", "already_reviewed", event_id="id-1"),
    Verdict(2, "valid", event_id="id-2"),
    Verdict(3, "duplicate", event_id="id-2"),
    Verdict(4, "void", "role_missing", event_id="id-3"),
    Verdict(5, "void", "role_missing", event_id="id-3"),
]


def sent(number: int, expected: Expected = EXPECTED[0]) -> Sent:
    headers = (("ce_id", f"id-{number}".encode()),)
    return Sent(number, f"id-{number}", Content(1_000 + number, b"key", f"value {number}".encode(), headers), expected)


def record(offset: int, event: Sent) -> LogRecord:
    content = event.content
    return LogRecord(offset, content.timestamp_ms, content.key, content.value, content.headers)


@dataclass
class Scene:
    """What the checker is given."""

    sent: list[Sent]
    offsets: dict[int, int]
    log: list[LogRecord]
    verdicts: list[Verdict]

    def broken(self) -> set[str]:
        """The invariants that don't hold."""
        checks = check_log([Stream(self.sent, self.offsets)], self.log, self.verdicts)
        return {check.invariant for check in checks if not check.passed}


def scene() -> Scene:
    events = [sent(number, expected) for number, expected in enumerate(EXPECTED)]
    log = [record(offset, events[number]) for offset, number in enumerate(LOG)]
    return Scene(events, dict(OFFSETS), log, list(VERDICTS))


def renumbered(records: Sequence[LogRecord]) -> list[LogRecord]:
    return [replace(record, offset=offset) for offset, record in enumerate(records)]


def lose_the_last(it: Scene) -> None:
    del it.log[5], it.verdicts[5]


def lose_in_the_middle(it: Scene) -> None:
    """Kafka keeps offsets dense, so everything after a lost record moves."""
    it.log = renumbered(it.log[:1] + it.log[2:])
    it.verdicts = [verdict._replace(offset=i) for i, verdict in enumerate(it.verdicts[:1] + it.verdicts[2:])]


def count_twice(it: Scene) -> None:
    it.verdicts[3] = Verdict(3, "valid", event_id="id-2")


def count_never(it: Scene) -> None:
    it.verdicts[0] = Verdict(0, "void", "bad_signature", event_id="id-0")


def let_a_wrong_one_count(it: Scene) -> None:
    it.verdicts[1] = Verdict(1, "valid", event_id="id-1")


def let_a_copy_of_a_forged_one_take_its_id(it: Scene) -> None:
    it.verdicts[5] = Verdict(5, "duplicate", "role_missing", event_id="id-3")


def judge_one_for_another(it: Scene) -> None:
    it.verdicts[2] = it.verdicts[2]._replace(event_id="id-9")


def swap_two(it: Scene) -> None:
    """Their acknowledgements tell the truth, and so do the verdicts."""
    it.log[0], it.log[1] = record(0, it.sent[1]), record(1, it.sent[0])
    it.offsets[0], it.offsets[1] = 1, 0
    it.verdicts[0], it.verdicts[1] = it.verdicts[1]._replace(offset=0), it.verdicts[0]._replace(offset=1)


def acknowledge_out_of_order(it: Scene) -> None:
    """The second copy of the third event is acknowledged after that of the fourth."""
    it.offsets[3] = 4
    it.offsets[2] = 5
    it.log[5], it.verdicts[5] = record(5, it.sent[2]), Verdict(5, "duplicate", event_id="id-2")


def alter_a_byte(it: Scene) -> None:
    it.log[0] = replace(it.log[0], value=b"value O")


def alter_a_header(it: Scene) -> None:
    it.log[0] = replace(it.log[0], headers=(("ce_id", b"id-7"),))


def alter_a_time(it: Scene) -> None:
    it.log[0] = replace(it.log[0], timestamp_ms=1)


def add_a_stranger(it: Scene) -> None:
    it.log.append(LogRecord(6, 0, None, b"from nowhere"))
    it.verdicts.append(Verdict(6, "unreadable", "not_avro"))


def leave_a_gap(it: Scene) -> None:
    it.log[5] = replace(it.log[5], offset=6)
    it.offsets[3] = 6
    it.verdicts[5] = it.verdicts[5]._replace(offset=6)


def forget_a_verdict(it: Scene) -> None:
    del it.verdicts[4]


def never_acknowledge(it: Scene) -> None:
    del it.offsets[3]


CASES: list[tuple[Callable[[Scene], None], set[str]]] = [
    (lose_the_last, {AT_ITS_OFFSET}),
    (lose_in_the_middle, {AT_ITS_OFFSET, COUNTS_ONCE}),
    (count_twice, {COUNTS_ONCE}),
    (count_never, {COUNTS_ONCE}),
    (let_a_wrong_one_count, {COUNTS_ONCE}),
    (let_a_copy_of_a_forged_one_take_its_id, {COUNTS_ONCE}),
    (judge_one_for_another, {COUNTS_ONCE}),
    (swap_two, {IN_ORDER}),
    (acknowledge_out_of_order, {IN_ORDER}),
    (alter_a_byte, {AT_ITS_OFFSET, COUNTS_ONCE, NOTHING_STRANGE}),
    (alter_a_header, {AT_ITS_OFFSET, COUNTS_ONCE, NOTHING_STRANGE}),
    (alter_a_time, {AT_ITS_OFFSET, COUNTS_ONCE, NOTHING_STRANGE}),
    (add_a_stranger, {NOTHING_STRANGE}),
    (leave_a_gap, {ALL_JUDGED}),
    (forget_a_verdict, {COUNTS_ONCE, ALL_JUDGED}),
    (never_acknowledge, {NONE_LEFT}),
]


def test_a_log_in_order_passes() -> None:
    assert scene().broken() == set()


@pytest.mark.parametrize(("harm", "broken"), CASES, ids=[harm.__name__ for harm, _ in CASES])
def test_each_harm_is_reported_by_the_invariant_that_it_breaks(harm: Callable[[Scene], None], broken: set[str]) -> None:
    it = scene()
    harm(it)
    assert it.broken() == broken


def test_two_producers_may_interleave_but_each_keeps_its_order() -> None:
    left, right = [sent(0), sent(1)], [replace(sent(7), number=0), replace(sent(8), number=1)]
    told = [left[0], right[0], right[1], left[1]]
    log = [record(offset, event) for offset, event in enumerate(told)]
    verdicts = [Verdict(offset, "valid", event_id=event.event_id) for offset, event in enumerate(told)]
    streams = [Stream(left, {0: 0, 1: 3}), Stream(right, {0: 1, 1: 2})]
    assert all(check.passed for check in check_log(streams, log, verdicts))
    swapped = [replace(right[1], number=0), replace(right[0], number=1)]
    streams[1] = Stream(swapped, {0: 2, 1: 1})
    assert [check.invariant for check in check_log(streams, log, verdicts) if not check.passed] == [IN_ORDER]


def test_digests_that_differ_are_reported_with_where_each_comes_from() -> None:
    assert check_equal("digests agree", {"live": "aa", "rebuilt": "aa"}).passed
    check = check_equal("digests agree", {"live": "aa", "rebuilt": "bb", "in memory": "aa"})
    assert check.faults == ("aa…: live, in memory", "bb…: rebuilt")
