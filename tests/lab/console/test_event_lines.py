"""Events as lines of a screen: whatever its width they fit, and each time, verdict and reason can be read."""

from __future__ import annotations

import pytest

from forktrail_lab.console.event_lines import EventLines, event_row

# 2026-12-01T04:53:34.500Z
MOMENT = 1_796_100_814_500_000
DAY = 86_400_000_000
REPORT = (9, MOMENT, "forktrail.ReportFiled", "rita", "gateway-routing-context", "valid", "", "")
LATE = "case-0123456789abcdef0123 was decided at offset 7, by somebody else, and stays as it was decided then"
DECISION = (
    10, MOMENT + DAY, "forktrail.ApprovalDecided", "olga", "case-0123456789abcdef0123", "void", "already_decided", LATE,
)  # fmt: skip
NO_EVENT = (11, None, None, None, None, "unreadable", "not_avro", "")


def test_at_80_columns_the_day_has_a_line_and_a_long_reason_its_own() -> None:
    lines = EventLines(80)
    assert lines.lines([event_row(*REPORT), event_row(*DECISION)]) == [
        "offset  time      type                 actor         subject          verdict",
        "        2026-12-01 (UTC)",
        "     9  04:53:34  ReportFiled          rita          gateway-ro…text  valid",
        "        2026-12-02 (UTC)",
        "    10  04:53:34  ApprovalDecided      olga          case-01234…0123  void",
        "                  already_decided (case-0123456789abcdef0123 was decided at",
        "                  offset 7, by somebody else, and stays as it was decided then)",
    ]
    assert lines.lines([event_row(*NO_EVENT)]) == [
        "    11  -         -                    -             -                unreadable",
        "                  not_avro",
    ]


def test_with_room_nothing_is_cut() -> None:
    (*_, decision) = EventLines(230).lines([event_row(*DECISION)])
    assert "  case-0123456789abcdef0123  " in decision
    assert decision.endswith(f"  void: already_decided ({LATE})")


@pytest.mark.parametrize("screen", range(62, 240, 6))
def test_no_line_is_wider_than_the_screen(screen: int) -> None:
    lines = EventLines(screen).lines([event_row(*REPORT), event_row(*DECISION), event_row(*NO_EVENT)])
    assert max(map(len, lines)) <= screen


def test_where_there_is_no_screen_only_digests_are_cut() -> None:
    test, digest = "a-test-of-" + "a-very-long-name-" * 9, "0123456789ab" + "c" * 52
    rows = [event_row(1, MOMENT, "forktrail.TestRegistered", "admin", test, "void", "r", "why " * 90)]
    lines = EventLines(None)
    first, second = lines.lines(rows)
    assert first.split() == ["offset", "time", "type", "actor", "subject", "verdict", "reason"]
    assert f" 2026-12-01T04:53:34.500Z  TestRegistered      admin         {test}  void        r (why why" in second
    (again,) = lines.lines([event_row(2, MOMENT, "forktrail.KeyRegistered", "admin", digest, "valid", "", "")])
    assert "  0123456789ab…  " in again
    assert again.endswith("  valid")
