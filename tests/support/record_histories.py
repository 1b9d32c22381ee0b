"""Records what this code's fold makes of every history: `PYTHONPATH=tests python -m support.record_histories`.

A log that isn't recorded yet is told first; one that is never changes. Under a raised fold version its digests are put
beside the old ones, with every row that changed. `--again` replaces what was recorded under this fold version, which is
right only while no release folds by it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from forktrail_projectors.content_digest import content_digest
from forktrail_projectors.fold import FOLD_VERSION
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projector import Projector
from forktrail_projectors.row_diff import row_differences
from support.histories import FOLDER, ChangedRows, Fold, History, Rows, all_histories, without_nulls
from support.history_stories import STORIES
from support.story import TOPIC_ID, Story


def main(argv: Sequence[str]) -> int:
    """Record; returns 1 where a fold of this version differs from what is recorded and `--again` isn't given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="replace what is recorded under this fold version")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="(default: tests/histories)")
    arguments = parser.parse_args(argv)
    for name, telling in STORIES.items():
        history = History(name, arguments.folder)
        if not history.log_file.exists():
            story = Story(name)
            telling.tell(story)
            history.write_log(telling.about, story.records)
    return max([record(history, again=arguments.again) for history in all_histories(arguments.folder)], default=0)


def record(history: History, *, again: bool) -> int:
    """Record the fold of one history, if it isn't; returns 1 where it is and differs."""
    rows, fold = folded(history)
    folds = history.folds()
    recorded = next((earlier for earlier in folds if earlier["fold_version"] == FOLD_VERSION), None)
    if recorded is not None and not again:
        if recorded == {**fold, "changed": recorded["changed"]}:
            return 0
        print(f"{history.name}: fold version {FOLD_VERSION} makes another state of it than recorded", file=sys.stderr)
        for change in changed_rows(history.rows(FOLD_VERSION), rows):
            print(f"  {change['table']} {change['kind']} {change['columns']}: {change['rows']}", file=sys.stderr)
        print("  raise FOLD_VERSION, or --again if no release folds by it", file=sys.stderr)
        return 1
    earlier = [older for older in folds if older["fold_version"] != FOLD_VERSION]
    if earlier:
        fold["changed"] = changed_rows(history.rows(earlier[-1]["fold_version"]), rows)
    history.write_fold(rows, [*earlier, fold])
    print(f"{history.name}: recorded under fold version {FOLD_VERSION}, {len(rows)} rows")
    return 0


def folded(history: History) -> tuple[Rows, Fold]:
    """The rows and digests that this code makes of a history."""
    graph = MemoryGraph()
    projector = Projector(graph, TOPIC_ID)
    verdicts = projector.apply(history.records())
    rows = dict(graph.rows())
    return rows, Fold(
        fold_version=FOLD_VERSION,
        log_sha256=history.log_sha256(),
        state_digest=projector.state_digest,
        content_digest=content_digest(rows.items(), graph.tables),
        verdicts=dict(sorted(Counter(verdict.kind for verdict in verdicts).items())),
        changed=[],
    )


def changed_rows(before: Rows, after: Rows) -> list[ChangedRows]:
    """Every row that differs, by table, kind and columns; a column that is null counts as one that isn't there."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for difference in row_differences(without_nulls(before).items(), without_nulls(after).items()):
        found.setdefault((difference.key.table, difference.kind, difference.columns), []).append(difference.name)
    return [
        ChangedRows(table=table, kind=kind, columns=list(columns), rows=sorted(names))
        for (table, kind, columns), names in sorted(found.items())
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
