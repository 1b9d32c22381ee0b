"""Queries by name: a few that come with the shell, and those that its user keeps."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forktrail_lab.shell.parameters import parameter_value
from forktrail_lab.shell.tokens import parameter_names
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput, NotFound

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True)
class NamedQuery:
    """A query and what it is for."""

    cypher: str
    summary: str


# Every aggregate is DISTINCT, as in discovery.py.
_CURRENT = """MATCH (r:Run)
WITH r.active_revision AS revision
MATCH (t:TestCase)-[:REQUIRES]->(c:Capability)
OPTIONAL MATCH (f:Finding)-[:ENABLES]->(c)
WITH revision, t, c, count(DISTINCT CASE WHEN f.revision = revision AND NOT f.withdrawn THEN f.id END) AS providers
"""
BUILT_IN: Mapping[str, NamedQuery] = {
    "findings": NamedQuery(
        """MATCH (r:Run), (f:Finding)
RETURN f.id AS finding, f.test AS test, f.asset AS asset, f.depth AS depth, f.impact AS impact, f.revision AS revision,
       f.revision = r.active_revision AND NOT f.withdrawn AS current
ORDER BY f.created_offset""",
        "what accepted reviews established, and whether it is current",
    ),
    "eligible": NamedQuery(
        _CURRENT
        + """WITH revision, t, count(DISTINCT CASE WHEN providers = 0 THEN c.id END) AS missing
WHERE missing = 0 AND NOT EXISTS { MATCH (t)<-[:ATTEMPTS]-(a:`Case`) WHERE a.revision = revision AND NOT a.retried }
RETURN t.id AS test, t.asset AS asset, t.impact AS impact, t.title AS title ORDER BY impact DESC, test""",
        "tests that may be proposed now",
    ),
    "blocked": NamedQuery(
        _CURRENT
        + """WITH t, c, providers WHERE providers = 0
RETURN t.id AS test, t.asset AS asset, collect(DISTINCT c.id) AS missing ORDER BY test""",
        "tests that wait for a capability, and for which",
    ),
    "cases": NamedQuery(
        """MATCH (c:`Case`)
OPTIONAL MATCH (f:Finding)-[:FOUND_IN]->(c)
RETURN c.id AS case_id, c.test AS test, c.revision AS revision, c.status AS status, c.outcome AS outcome,
       f.id AS finding
ORDER BY c.created_offset""",
        "all cases, how far each came and what it led to",
    ),
    "verdicts": NamedQuery(
        """MATCH (e:Event) WHERE e.verdict <> 'valid'
RETURN e.offset AS offset, e.type AS type, e.actor AS actor, e.verdict AS verdict, e.reason AS reason,
       e.detail AS detail
ORDER BY offset""",
        "events that were refused, doubled or not read, and why",
    ),
    "causes": NamedQuery(
        """MATCH (c:Event)-[:CAUSED*1..30]->(e:Event {offset: $offset})
RETURN DISTINCT c.offset AS offset, c.type AS type, c.actor AS actor, c.subject AS subject ORDER BY offset""",
        "the events that led to one: `:run causes 12`",
    ),
}


class NamedQueries:
    """The queries that can be run by name; kept in one JSON file, readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        """Use a file, which may not be there yet."""
        self._path = path

    def all(self) -> dict[str, NamedQuery]:
        """Every query by name: the shell's own, then the kept ones, which win over a name of the shell's.

        Raises:
            InvalidInput: the file isn't what this class writes.
        """
        kept = {name: NamedQuery(cypher, "yours") for name, cypher in self._kept().items()}
        return {**BUILT_IN, **kept}

    def get(self, name: str) -> NamedQuery:
        """One query.

        Raises:
            NotFound: there is none of that name.
        """
        queries = self.all()
        _require(name, queries, "no query is named")
        return queries[name]

    def save(self, name: str, cypher: str) -> None:
        """Keep a query, in place of an earlier one of the name.

        Raises:
            InvalidInput: the name is none, or the file can't be read.
            OSError: it can't be written.
        """
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is no name for a query", hint="a letter, then letters, digits, - and _")
        self._write(self._kept() | {name: cypher})

    def remove(self, name: str) -> None:
        """Forget a kept query.

        Raises:
            NotFound: none is kept under that name.
        """
        kept = self._kept()
        _require(name, kept, "no query of yours is named")
        del kept[name]
        self._write(kept)

    def _kept(self) -> dict[str, str]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            raise InvalidInput(f"{self._path} can't be read: {error}", hint="mend it, or move it away") from error
        if not isinstance(kept, dict) or not all(isinstance(cypher, str) for cypher in kept.values()):
            raise InvalidInput(f"{self._path} is no file of named queries", hint="mend it, or move it away")
        return kept

    def _write(self, kept: Mapping[str, str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(dict(kept), file, indent=2, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)


def _require(name: str, queries: Collection[str], otherwise: str) -> None:
    if name not in queries:
        raise NotFound(f"{otherwise} {name!r}", hint="`:named` lists them")


def arguments(cypher: str, words: Sequence[str]) -> dict[str, Value]:
    """Values for a query's parameters: `name=value` by name, others by the order in which the query names them.

    Raises:
        InvalidInput: there are more values than parameters.
    """
    names = parameter_names(cypher)
    given: dict[str, Value] = {}
    free: list[str] = []
    for word in words:
        name, separator, value = word.partition("=")
        if separator and name in names:
            given[name] = parameter_value(value)
        else:
            free.append(word)
    open_names = [name for name in names if name not in given]
    if len(free) > len(open_names):
        takes = ", ".join(names) or "no values"
        raise InvalidInput(f"there is no parameter for {free[len(open_names)]!r}", hint=f"the query takes {takes}")
    return given | {name: parameter_value(word) for name, word in zip(open_names, free, strict=False)}
