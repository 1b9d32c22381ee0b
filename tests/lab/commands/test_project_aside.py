"""`forktrail project` says what graphs were set aside, and deletes them only where that is asked for."""

from __future__ import annotations

import pytest

from forktrail_schemas.settings import Settings
from support.command_line import CommandLine


def test_what_was_set_aside_is_told_until_it_is_pruned(forktrail: CommandLine, run: str, settings: Settings) -> None:
    first = forktrail.ok("project", run, "--format", "json")
    assert "set aside" not in first.err
    for _ in range(2):
        forktrail.ok("project", run, "--rebuild")
    said = forktrail.ok("project", run)
    assert said.err.startswith("2 graphs set aside, ")
    assert "; --prune-aside deletes that" in said.err
    assert len(list(settings.graphs_dir.glob(f"{run}.aside-*"))) >= 2
    pruned = forktrail.ok("project", run, "--prune-aside", "--format", "json")
    assert pruned.err.startswith("2 graphs set aside, ")
    assert pruned.err.endswith(" MB: deleted\n")
    assert list(settings.graphs_dir.glob(f"{run}.aside-*")) == []
    assert pruned.json["state_digest"] == first.json["state_digest"]
    assert forktrail.ok("project", run).err == ""


@pytest.mark.parametrize("other", ["--check-upgrade", "--follow"])
def test_it_goes_with_no_other_way_of_projecting(forktrail: CommandLine, run: str, other: str) -> None:
    assert forktrail("project", run, other, "--prune-aside").code == 2
