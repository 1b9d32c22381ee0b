"""A due diligence, played as separate operating-system processes on a real log: from names of companies to memos."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from forktrail_lab.console.output import Format, print_facts, print_rows
from forktrail_lab.diligence.counts import bases_of, counts_of
from forktrail_lab.diligence.opening import opening
from forktrail_lab.diligence.tools import DOCUMENTS_VARIABLE, documents_folder, papers
from forktrail_lab.stage import Stage, StoryBroken, pasteable
from forktrail_producers.keys import KeyStore
from forktrail_producers.producer import Producer
from forktrail_projectors.graph.memory import MemoryGraph
from forktrail_projectors.projection import fold_in_memory
from forktrail_projectors.state import NodeKey
from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.settings import Settings

ADMIN = "admin"
PACK = "diligence"
MEMOS = "MATCH (m:Memo)-[:ABOUT]->(c:Company) RETURN c.name, m.text"
EVIDENCE = (
    "MATCH (m:Memo)-[:BASED_ON]->(k:Claim)-[:DERIVED_FROM]->(d:Document), (e:Evidence)-[:SUPPORTS]->(k) "
    "RETURN m.id, k.text, e.quote, d.name"
)


def play(
    settings: Settings,
    names: Sequence[str] = (),
    *,
    documents: Path | None = None,
    models: Path | None = None,
    format: str = Format.TABLE,
) -> None:
    """Play it, and print what it came to.

    Args:
        names: of the companies; those that the documents are about where left out.
        documents: the folder of documents; the pack's own where left out.
        models: the file that says which models answer; the pack's fixture does where left out.
        format: of what it came to. JSON has stdout for itself, and the story goes to stderr.

    Raises:
        InvalidInput: no company is named, and no document is about one.
        NotFound: there is no such folder.
        StoryBroken: a process failed, or a company has no memo.
    """
    began = time.monotonic()
    stage = Stage(settings)
    with redirect_stdout(sys.stderr if format == Format.JSON else sys.stdout):
        run = _played(stage, names, documents, models)
        _replayed(stage, run)
    graph, _ = fold_in_memory(settings, run)
    facts = counts_of(graph.rows())
    bases = _bases(graph)
    if format == Format.JSON:
        print_facts({"run": run, **facts, "memos": bases}, format)
    else:
        stage.chapter("What it came to")
        print_rows(("what", "count"), list(facts.items()), format)
        print()
        print_rows(("memo on", "rests on claims"), list(bases.items()), format)
        print(f"\n   {stage.processes} processes, {time.monotonic() - began:.0f} s. {run} is left to explore:")
        for words in (["query", run, MEMOS], ["query", run, EVIDENCE], ["trace", run], ["tail", run]):
            print(f"     {pasteable(['forktrail', *words])}")
    if len(bases) < facts["company"]:
        raise StoryBroken(
            f"memos were written on {len(bases)} of {facts['company']} companies",
            hint=f"`forktrail executions list {run}` shows what failed, `forktrail patches list {run}` what waits",
        )


def _played(stage: Stage, names: Sequence[str], documents: Path | None, models: Path | None) -> str:
    """Have the pack react to the companies; returns the run."""
    stage.chapter("A log, a key and a run")
    if documents is not None:
        stage.export(DOCUMENTS_VARIABLE, str(documents))
    known = sorted({paper.company for paper in papers(documents or documents_folder())})
    told = [name.strip() for name in names if name.strip()] or known
    if not told:
        raise InvalidInput("no company is named, and no document is about one", hint="--companies NAME,NAME")
    if not stage.settings.external_kafka:
        stage.run("broker", "start")
    if ADMIN not in KeyStore(stage.settings.keys_dir).names():
        stage.run("key", "new", ADMIN)
    opened = stage.run("run", "open", "--goal", "know some companies", "--key", ADMIN)
    found = re.search(r"\brun-[0-9a-f]+\b", opened)
    if found is None:
        raise StoryBroken("no run was opened")
    run = found[0]
    stage.chapter("The pack's types and behaviors are declared in it")
    reacting = ["behaviors", "run", run, "--pack", PACK, *(["--models", str(models)] if models else []), "--until-idle"]
    stage.run(*reacting)
    stage.chapter("A goal and its companies are put on the log; the behaviors react, and nothing tells them what to do")
    with Producer(stage.settings.bootstrap_servers) as producer:
        producer.emit_all([(event, None) for event in opening(run, ADMIN, told)])
    stage.tell(", ".join(told))
    stage.run(*reacting)
    return run


def _replayed(stage: Stage, run: str) -> None:
    stage.chapter("Every execution is run again with no model and no tool, and makes the same; that is certified")
    path = stage.settings.home / "replays" / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    certified = ["--certificate", str(path), "--key", ADMIN]
    stage.run("replay", run, "--pack", PACK, "--strict", *certified, hidden=r"^(run|compared|state_digest|log_root) ")
    stage.run("replay", run, "--check", str(path), hidden="^(?!holds )")


def _bases(graph: MemoryGraph) -> dict[str, int]:
    """How many claims the memo on each company rests on."""
    named = {key: row for key, row in graph.rows() if isinstance(key, NodeKey) and key.table in ("Memo", "Company")}
    memos = {memo: NodeKey("Company", str(named[NodeKey("Memo", memo)]["about"])) for memo in bases_of(graph.rows())}
    counts = bases_of(graph.rows())
    return dict(sorted((str(named[company]["name"]), counts[memo]) for memo, company in memos.items()))
