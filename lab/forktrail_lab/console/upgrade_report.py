"""How `forktrail project --check-upgrade` tells what another version of the code would read or decide otherwise."""

from __future__ import annotations

from dataclasses import asdict

from forktrail_lab.console.output import Format, counted, print_facts, print_lines, table_lines, to_json
from forktrail_projectors.upgrade import Decision, Upgrade

VERDICTS_SHOWN = 50


def print_upgrade(upgrade: Upgrade, format: str) -> None:
    """Print the comparison as one JSON object, or as facts and two tables, of verdicts the first VERDICTS_SHOWN."""
    if format == Format.JSON:
        print_lines([to_json(asdict(upgrade) | {"differs": upgrade.differs}, indent=2)])
        return
    facts = {
        "run": upgrade.run,
        "fold_version": upgrade.fold_version,
        "code_fold_version": upgrade.code_fold_version,
        "next_offset": upgrade.next_offset,
        "verdicts": _otherwise(len(upgrade.verdicts), "event", "decided"),
        "rows": _otherwise(sum(group.count for group in upgrade.rows), "row", "made"),
    }
    print_facts(facts, format)
    if upgrade.verdicts:
        shown = upgrade.verdicts[:VERDICTS_SHOWN]
        rows = [(change.offset, change.type, _words(change.before), _words(change.after)) for change in shown]
        print_lines(["", *table_lines(("offset", "type", "was", "would_be"), rows)])
        if more := len(upgrade.verdicts) - len(shown):
            print_lines([f"and {more} more; --format json lists all"])
    if upgrade.rows:
        groups = [
            (group.table, group.kind, group.columns, group.count, ", ".join(group.examples)) for group in upgrade.rows
        ]
        print_lines(["", *table_lines(("table", "rows", "columns", "count", "examples"), groups)])


def _otherwise(number: int, noun: str, verb: str) -> str:
    return f"{counted(number, noun)} would be {verb} otherwise" if number else "none differs"


def _words(decision: Decision) -> str:
    return f"{decision.kind}, {decision.reason}" if decision.reason else decision.kind or "-"
