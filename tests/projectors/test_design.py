"""DESIGN.md tells the graph's tables as they are."""

from __future__ import annotations

from pathlib import Path

from forktrail_projectors.graph.declared_tables import BUILT_IN
from forktrail_projectors.graph.schema import STAMP_CHANGED, STAMP_CREATED

DESIGN = (Path(__file__).parents[2] / "projectors" / "DESIGN.md").read_text()


def test_every_table_stands_in_the_design_with_its_columns() -> None:
    for table in BUILT_IN.nodes.values():
        own = [name for name in table.columns if not (table.domain and name in STAMP_CREATED | STAMP_CHANGED)]
        assert f"| {table.name} | {', '.join(own)} |\n" in DESIGN


def test_every_relation_stands_in_the_design_with_its_ends() -> None:
    for joins in BUILT_IN.edges.values():
        if joins.name == "PRODUCED":
            domain = {name for name, table in BUILT_IN.nodes.items() if table.domain}
            assert {target for _, target in joins.pairs} == domain
            assert "| PRODUCED | Event → every domain node that it made |\n" in DESIGN
        else:
            ends = "; ".join(f"{source} → {target}" for source, target in joins.pairs)
            assert f"| {joins.name} | {ends} |\n" in DESIGN
