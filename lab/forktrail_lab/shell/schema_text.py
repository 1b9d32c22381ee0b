"""`:schema`: what a graph has to name."""

from __future__ import annotations

from forktrail_lab.shell.catalog import Catalog, Label, Relation
from forktrail_lab.shell.keywords import quoted
from forktrail_projectors.graph.protocol import Table
from forktrail_schemas.errors import NotFound


def overview(catalog: Catalog) -> list[str]:
    """Every label with its columns' names, and every relation type with what it joins."""
    width = max(len(quoted(name)) for name in [*catalog.labels, *catalog.relations])
    stamps = _in_every(catalog)
    lines = ["labels"]
    for name, label in catalog.labels.items():
        own = [column for column in label.columns if column not in stamps]
        lines.append(f"  {quoted(name):<{width}}  {', '.join(own)}")
    lines.append("relation types")
    lines += [f"  {quoted(name):<{width}}  {relation.ends()}" for name, relation in catalog.relations.items()]
    lines += [
        "",
        f"Labels of what events are about also have {', '.join(sorted(stamps))}.",
        ":schema LABEL shows types.",
    ]
    return lines


def described(catalog: Catalog, name: str) -> tuple[Table, list[str]]:
    """The columns of a label or relation type with their types, and the relations it takes part in.

    Raises:
        NotFound: there is none of that name, in any letter case.
    """
    wanted = name.strip("`").lower()
    tables: list[Label | Relation] = [*catalog.labels.values(), *catalog.relations.values()]
    found = next((table for table in tables if table.name.lower() == wanted), None)
    if found is None:
        raise NotFound(f"there is no label or relation type {name}", hint="`:schema` lists them")
    rows = [(column, kind) for column, kind in found.columns.items()]
    if isinstance(found, Relation):
        return Table(("column", "type"), rows), [
            f"(:{quoted(a)})-[:{found.name}]->(:{quoted(b)})" for a, b in found.pairs
        ]
    return Table(("column", "type"), rows), _relations_of(catalog, found.name)


def _relations_of(catalog: Catalog, label: str) -> list[str]:
    lines = []
    for relation in catalog.relations.values():
        for source, target in relation.pairs:
            if label in (source, target):
                lines.append(f"(:{quoted(source)})-[:{quoted(relation.name)}]->(:{quoted(target)})")
    return lines


def _in_every(catalog: Catalog) -> set[str]:
    """Columns that most labels share: the stamps of who made and last changed a node."""
    columns = [set(label.columns) for label in catalog.labels.values()]
    return {
        name
        for name in set().union(*columns)
        if name != "id" and sum(name in label for label in columns) > len(columns) // 2
    }
