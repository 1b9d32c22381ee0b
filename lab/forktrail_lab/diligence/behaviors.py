"""The behaviors of a due diligence: each reacts to what the graph holds, and none knows of another.

    Company ─▶ raise_questions ─▶ Question ─▶ research ─▶ Claim, Evidence, Document
    all questions settled ─▶ close_research ─▶ weigh, claim by claim ─▶ Risk, Contradiction
    all claims weighed ─▶ write_memo ─▶ Memo

What a model is asked holds texts alone, sorted: no id, no time, and no order in which answers came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from forktrail_behaviors.asking import Message
from forktrail_behaviors.behavior import behavior
from forktrail_behaviors.commands import EffectFailed
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Object, Rows
from forktrail_lab.diligence import prompts
from forktrail_lab.diligence.answers import Finding, Findings, MemoText, Questions, Weighing
from forktrail_lab.diligence.reading import Fetched, fault_of, fetched_in, id_of, text_sha256
from forktrail_lab.diligence.types import (
    ANSWERED,
    ASKED,
    FAILED,
    NEW,
    NO_FINDING,
    OPEN,
    REFUSED,
    REPORTED,
    RESEARCHED,
    WEIGHED,
)
from forktrail_schemas.events import ObjectCreated

ANALYST = "analyst"
TOOLS = ("search_documents", "fetch_document")
_CITED = re.compile(r"\[(\d{1,9})\]")
_CLAIMS_OF = "MATCH (e:Evidence)-[:SUPPORTS]->(k:Claim)-[:ADDRESSES]->(q:Question)-[:ABOUT]->(:Company {id: $c})"


@behavior(
    on=ObjectCreated,
    where={"object_type": "Company"},
    emits=["Question", "Company"],
    repeats="it creates no company",
)
async def raise_questions(ctx: Context, event: ObjectCreated) -> None:
    """Ask what there is to know of a new company."""
    name = json.loads(event.data)["name"]
    answer = await ctx.model(ANALYST, messages=_asked(prompts.QUESTIONS, {"company": name}), schema=Questions)
    company = Object("Company", event.object_id)
    for text in answer.questions:
        ctx.create("Question", text=text, about=company, status=OPEN)
    ctx.patch(company, status=ASKED)


@behavior(
    when=f"MATCH (q:Question)-[:ABOUT]->(c:Company) WHERE q.status = '{OPEN}'",
    emits=["Question", "Document", "Claim", "Evidence", "Unsupported"],
    repeats="a question is researched once",
)
async def research(ctx: Context, q: Node, c: Node) -> None:
    """Have a question answered from the documents; what no document bears out is no claim, and is kept as such."""
    transcript: list[Message] = []
    try:
        answer = await ctx.model(
            ANALYST,
            messages=_asked(prompts.RESEARCH, {"company": c.name, "question": q.text}),
            schema=Findings,
            tools=TOOLS,
            transcript=transcript,
        )
    except EffectFailed as error:
        ctx.patch(q.object, status=FAILED, note=error.message)
        return
    read = fetched_in(transcript)
    documents = {name: _document(ctx, one) for name, one in read.items()}
    taken: list[Finding] = []
    for finding in answer.findings:
        fault = fault_of(finding, read, taken)
        if fault is not None:
            said = f"{finding.claim} ({finding.quote})"
            ctx.create("Unsupported", text=said, why=fault, about=c.object)
            continue
        taken.append(finding)
        source = documents[finding.document]
        claim = ctx.create("Claim", text=finding.claim, addresses=q.object, derived_from=source, status=NEW)
        ctx.create("Evidence", quote=finding.quote, supports=claim)
    if taken:
        ctx.patch(q.object, status=ANSWERED)
    else:
        ctx.patch(q.object, status=NO_FINDING, note=f"nothing in {', '.join(read) or 'any document'}")


def _document(ctx: Context, read: Fetched) -> Object:
    """A document that was read. Who reads it a second time makes the same object, which the log refuses."""
    name, digest = read["name"], text_sha256(read["text"])
    made = {"name": name, "title": read["title"], "date": read["date"], "text_sha256": digest}
    return ctx.create("Document", id=id_of("document", name, digest), **made)


@behavior(
    when=f"""MATCH (c:Company) WHERE c.status = '{ASKED}'
        AND NOT EXISTS {{ MATCH (q:Question)-[:ABOUT]->(c) WHERE q.status = '{OPEN}' }}""",
    emits=["Company"],
    repeats="a company's research ends once",
)
def close_research(ctx: Context, c: Node) -> None:
    """Say that a company's questions are settled."""
    ctx.patch(c.object, status=RESEARCHED)


@behavior(
    when=f"""MATCH (k:Claim)-[:ADDRESSES]->(q:Question)-[:ABOUT]->(c:Company)
        WHERE c.status = '{RESEARCHED}' AND k.status = '{NEW}'""",
    reads={
        "others": f"{_CLAIMS_OF} WHERE k.id <> $k RETURN k.id AS id, k.text AS text, e.quote AS quote"
        " ORDER BY text, quote, id"
    },
    emits=["Claim", "Risk", "Contradiction", "CONTRADICTS", "Unsupported"],
    repeats="a claim is weighed once",
)
async def weigh(ctx: Context, k: Node, c: Node, others: Rows) -> None:
    """Weigh a claim against the company's others."""
    told = [{"number": number, "claim": other.text} for number, other in enumerate(others, 1)]
    content = {"company": c.name, "claim": k.text, "others": told}
    try:
        answer = await ctx.model(ANALYST, messages=_asked(prompts.WEIGHING, content), schema=Weighing)
    except EffectFailed:
        ctx.patch(k.object, status=FAILED)
        return
    if answer.risk:
        ctx.create("Risk", text=answer.risk, raised_by=k.object)
    for number in sorted(set(answer.contradicts)):
        other = others[number - 1] if 0 < number <= len(others) else None
        if other is None or other.text == k.text:
            why = "there is no such claim" if other is None else "both say the same"
            ctx.create("Unsupported", text=f"{k.text} contradicts number {number}", why=why, about=c.object)
            continue
        # Whichever of the two finds it, it is the same contradiction: the log refuses the second.
        pair = sorted([(k.text, k.id), (other.text, other.id)])
        one, another = (Object("Claim", id) for _, id in pair)
        ctx.create("Contradiction", id=id_of("contradiction", one.id, another.id), one=one, other=another)
        ctx.relate("CONTRADICTS", one, another)
    ctx.patch(k.object, status=WEIGHED)


@behavior(
    when=f"""MATCH (c:Company) WHERE c.status = '{RESEARCHED}'
        AND NOT EXISTS {{ MATCH (k:Claim)-[:ADDRESSES]->(q:Question)-[:ABOUT]->(c) WHERE k.status = '{NEW}' }}""",
    reads={
        "claims": f"{_CLAIMS_OF} MATCH (k)-[:DERIVED_FROM]->(d:Document)"
        " RETURN k.id AS id, k.text AS text, k.status AS status, q.text AS question, d.title AS document,"
        " e.quote AS quote ORDER BY text, question, quote, id",
        "risks": "MATCH (r:Risk)-[:RAISED_BY]->(k:Claim)-[:ADDRESSES]->(:Question)-[:ABOUT]->(:Company {id: $c})"
        " RETURN k.id AS claim, r.text AS text",
        "contradictions": "MATCH (k:Claim)-[:ADDRESSES]->(:Question)-[:ABOUT]->(:Company {id: $c})"
        " MATCH (k)-[:CONTRADICTS]->(o:Claim) RETURN k.id AS one, o.id AS other",
        "unanswered": f"MATCH (q:Question)-[:ABOUT]->(:Company {{id: $c}}) WHERE q.status <> '{ANSWERED}'"
        " RETURN q.text AS question, q.status AS status, q.note AS note",
    },
    emits=["Memo", "BASED_ON", "Company", "Unsupported"],
    repeats="a company has one memo",
)
async def write_memo(ctx: Context, c: Node, claims: Rows, risks: Rows, contradictions: Rows, unanswered: Rows) -> None:
    """Write what a company's claims come to, and link it to those that it rests on."""
    content = _memo_content(c, claims, risks, contradictions, unanswered)
    answer = await ctx.model(ANALYST, messages=_asked(prompts.MEMO, content), schema=MemoText)
    named = sorted({*answer.rests_on, *map(int, _CITED.findall(answer.text))})
    basis = [Object("Claim", claims[number - 1].id) for number in named if 0 < number <= len(claims)]
    for number in named:
        if not 0 < number <= len(claims):
            said = f"the memo rests on number {number}"
            ctx.create("Unsupported", text=said, why="there is no such claim", about=c.object)
    if claims and not basis:
        ctx.create("Unsupported", text=answer.text, why="it names no claim that it rests on", about=c.object)
        ctx.patch(c.object, status=REFUSED)
        return
    proposed = await ctx.propose.create("Memo", text=answer.text, about=c.object, reason=f"the memo on {c.name}")
    if not proposed.approved or proposed.object is None:
        ctx.patch(c.object, status=REFUSED)
        return
    await ctx.gather(*(ctx.propose.relate("BASED_ON", proposed.object, claim) for claim in basis))
    ctx.patch(c.object, status=REPORTED)


def _memo_content(c: Node, claims: Rows, risks: Rows, contradictions: Rows, unanswered: Rows) -> dict[str, object]:
    """What a memo is written from; claims have numbers in place of their ids."""
    numbers = {claim.id: number for number, claim in enumerate(claims, 1)}
    shown = ("text", "question", "document", "quote")
    return {
        "company": c.name,
        "claims": [{"number": numbers[one.id], **{name: one[name] for name in shown}} for one in claims],
        "risks": sorted([numbers[one.claim], one.text] for one in risks),
        "contradictions": sorted([numbers[one.one], numbers[one.other]] for one in contradictions),
        "not_weighed": sorted(numbers[one.id] for one in claims if one.status == FAILED),
        "unanswered": [dict(one) for one in unanswered],
    }


def _asked(prompt: str, content: Mapping[str, object]) -> Iterable[Mapping[str, str]]:
    """The messages of a question: what is to be done, and with what."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
