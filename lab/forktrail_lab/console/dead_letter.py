"""A dead letter as people see it: its verdict, the record's bytes, and what of them can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forktrail_lab.console.output import section_lines, time_text
from forktrail_lab.console.reading import fields_of
from forktrail_projectors.dead_letters import dead_verdicts, sent_again
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord, Verdict
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.view import RunView
from forktrail_schemas.errors import EventUnreadable, NotFound
from forktrail_schemas.events import DeadLetter, DeadLetterAcknowledged

HEX_DIGITS_A_LINE = 64
BYTES_SHOWN = 4_096


def find_letter(view: RunView, offset: int) -> Verdict:
    """The verdict on a dead letter.

    Raises:
        NotFound: there is no record at this offset, or it isn't one.
    """
    found = next(dead_verdicts(view.graph, offset, offset + 1), None)
    if found is not None:
        return found
    if offset >= view.next_offset:
        raise NotFound(f"{view.run} ends before offset {offset}, at {view.next_offset}", run=view.run, offset=offset)
    raise NotFound(
        f"the record at offset {offset} is no dead letter: it is {view.verdict(offset).kind}",
        hint=f"`forktrail dead list {view.run}` lists them, `forktrail tail {view.run}` all",
        run=view.run,
        offset=offset,
    )


def letter_facts(
    view: RunView,
    record: LogRecord,
    verdict: Verdict,
    letter: DeadLetter | None,
    acknowledged: DeadLetterAcknowledged | None,
) -> dict[str, object]:
    """Everything that is known of a letter, fit for JSON.

    Args:
        letter: as it lies on the topic, None where the run's owner hasn't published it yet.
    """
    unreadable = record.headers == UNREADABLE_HEADERS
    fields, fields_fault = _fields(view, record.value)
    return {
        **verdict_facts(verdict),
        "recorded_at": time_text(record.timestamp_ms * 1000),
        "published_at": time_text(letter.published_at) if letter else None,
        "acknowledged": acknowledgement_facts(acknowledged),
        "again": [{"offset": offset, "verdict": kind} for offset, kind in sent_again(view.graph, record)],
        "key": None if record.key is None else record.key.decode(errors="backslashreplace"),
        "headers": None if unreadable else [[name, _header(value)] for name, value in record.headers],
        "fields": fields,
        "fields_fault": fields_fault,
        "value_bytes": None if record.value is None else len(record.value),
        "value": None if record.value is None else record.value.hex(),
    }


def verdict_facts(verdict: Verdict) -> dict[str, object]:
    """What the fold made of a record."""
    return {
        "offset": verdict.offset,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "detail": verdict.detail,
        "type": verdict.type or None,
        "event_id": verdict.event_id or None,
    }


def acknowledgement_facts(acknowledged: DeadLetterAcknowledged | None) -> dict[str, object] | None:
    """Who dealt with it, and why; None where nobody has."""
    if acknowledged is None:
        return None
    at = time_text(acknowledged.acknowledged_at)
    return {"by": acknowledged.by, "reason": acknowledged.reason, "at": at}


def acknowledged_in_words(acknowledged: Mapping[str, object]) -> str:
    """Who dealt with it, when and why, from `acknowledgement_facts`."""
    return f"by {acknowledged['by']} at {acknowledged['at']}: {acknowledged['reason']}"


def letter_lines(facts: Mapping[str, Any]) -> list[str]:
    """A letter to read; of a long value the beginning."""
    lines = section_lines(f"offset {facts['offset']} is {facts['verdict']}", _shown(facts))
    headers = [tuple(pair) for pair in facts["headers"] or ()]
    lines += section_lines("headers", headers) if facts["headers"] is not None else ["headers", "  can't be read"]
    lines += section_lines("fields", _fields_shown(facts))
    digits = facts["value"] or ""
    shown = min(len(digits), 2 * BYTES_SHOWN)
    lines.append(f"value, {facts['value_bytes'] or 0} bytes")
    lines += [f"  {digits[start : start + HEX_DIGITS_A_LINE]}" for start in range(0, shown, HEX_DIGITS_A_LINE)]
    if shown < len(digits):
        lines.append(f"  … the first {BYTES_SHOWN} bytes; --format json prints all")
    return lines


def _shown(facts: Mapping[str, Any]) -> list[tuple[str, object]]:
    acknowledged = facts["acknowledged"]
    by = acknowledged_in_words(acknowledged) if acknowledged else "no"
    again = ", ".join(f"offset {other['offset']} ({other['verdict']})" for other in facts["again"])
    return [
        ("why", _why(facts)),
        *((name, facts[name]) for name in ("reason", "type", "event_id", "key", "recorded_at", "published_at")),
        ("sent again", f"the same bytes lie at {again}" if again else "no: the same bytes lie nowhere further on"),
        ("acknowledged", by),
    ]


def _why(facts: Mapping[str, Any]) -> str:
    """The reason in words; of what can't be read the detail is a sentence of its own, which says the same."""
    if facts["verdict"] == "unreadable" and facts["detail"]:
        return str(facts["detail"])
    return in_words(facts["reason"], facts["detail"])


def _fields_shown(facts: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The fields, times in words too; where they can't be read, why, unless that was said above."""
    fault = facts["fields_fault"]
    if facts["fields"] is None:
        return [("can't be shown", "for the reason above" if fault == facts["detail"] else fault)]
    return [(name, _timed(name, value)) for name, value in facts["fields"].items()]


def _timed(name: str, value: object) -> object:
    """A value, or a record's, with the microseconds of an `…_at` as RFC 3339 before them."""
    if isinstance(value, dict):
        return {inner: _timed(inner, held) for inner, held in value.items()}
    if name.endswith("_at") and isinstance(value, int) and not isinstance(value, bool):
        return f"{time_text(value)} ({value} microseconds)"
    return value


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")


def _fields(view: RunView, value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
    """The fields of a value, unchecked, or why they can't be shown."""
    if value is None:
        return None, "the record has no value"
    try:
        return fields_of(view.graph, value), None
    except EventUnreadable as error:
        return None, error.message
