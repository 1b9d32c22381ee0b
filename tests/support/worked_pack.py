"""A pack that does a bit of everything: from a company's name it raises questions, answers them and weighs the answers.

Three object types with references, a relation with data, five behaviors: on an event with a filter and a read (`ask`),
on a relation (`weigh`), on a pattern (`answer`) and on one with NOT EXISTS (`remind`), and a class with two handlers
(`Watch`); a timer, a gather, an approval, a tool, a model and a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from forktrail_behaviors.behavior import behavior, handler
from forktrail_behaviors.context import Context
from forktrail_behaviors.given import Node, Object, Rows
from forktrail_behaviors.pack import Pack
from forktrail_behaviors.testing import FixtureModel
from forktrail_behaviors.tools import tool
from forktrail_behaviors.types import Ref, relation_type_of
from forktrail_schemas.events import ObjectCreated, ObjectPatched


class Company(BaseModel):
    """What it is all about."""

    name: str
    sector: str | None = None


class Question(BaseModel):
    """What is to be known of a company."""

    text: str
    about: Ref[Company]
    open: bool = True


class Answer(BaseModel):
    """What was found out."""

    text: str
    to: Ref[Question]
    confidence: float


class Weight(BaseModel):
    """How much an answer counts."""

    tokens: int
    answers: int


class Asked(BaseModel):
    """What the model is to give."""

    questions: list[str]


@tool(side_effects="read")
def sector_of(company: str) -> dict[str, str]:
    """Look a company's sector up."""
    return {"sector": f"sector of {company}"}


@behavior(
    on=ObjectCreated,
    where={"object_type": "Company"},
    reads={"known": "MATCH (q:Question)-[:ABOUT]->(:Company {id: $object_id}) RETURN q.text AS text ORDER BY text"},
    emits=["Company", "Question"],
    repeats="a company is patched, and only its creation triggers this",
)
async def ask(ctx: Context, event: ObjectCreated, known: Rows) -> None:
    """Look the company up and ask a model what to ask, side by side."""
    company = Object("Company", event.object_id)

    async def looked_up() -> str:
        found = await ctx.tool("sector_of", company=company.id)
        await ctx.sleep(60)
        return str(found["sector"])

    async def asked() -> Asked:
        message = {"role": "user", "content": f"known: {[row.text for row in known]}"}
        return await ctx.model("questions", messages=[message], schema=Asked)

    sector, answer = await ctx.gather(looked_up(), asked())
    ctx.patch(company, sector=sector)
    for text in answer.questions:
        ctx.create("Question", text=text, about=company, open=True)


@behavior(
    when="MATCH (q:Question)-[:ABOUT]->(c:Company) WHERE q.open = true AND c.sector IS NOT NULL",
    emits=["Answer", "Question"],
    repeats="it closes the question that it answers",
)
async def answer(ctx: Context, q: Node, c: Node) -> None:
    """Answer an open question, once a person agrees."""
    decision = await ctx.approval(f"answer {q.text}", details=f"about {c.name}")
    if decision.approved:
        ctx.create("Answer", text=f"{c.name} {q.text} {decision.by}", to=q.object, confidence=ctx.random.random())
        ctx.patch(q.object, open=False)


@behavior(relation="TO", emits=["WEIGHS"])
async def weigh(ctx: Context, source: Node, target: Node) -> None:
    """Weigh an answer by its length, and by how many its question has."""
    rows = await ctx.query(
        "MATCH (a:Answer)-[:TO]->(q:Question {id: $question}) RETURN count(a) AS answers", question=target.id
    )
    ctx.relate("WEIGHS", source.object, target.object, tokens=len(str(source.text).split()), answers=rows[0].answers)


@behavior(
    when="MATCH (c:Company) WHERE c.sector IS NOT NULL AND NOT EXISTS { MATCH (q:Question)-[:ABOUT]->(c) }",
    emits=["Question"],
    repeats="a company fires it once",
)
def remind(ctx: Context, c: Node) -> None:
    """Ask something of a company of which nobody asks anything."""
    ctx.create("Question", text="is anything to be asked?", about=c.object, open=False)


@behavior(emits=["Company"], repeats="it patches nothing that it listens to twice")
class Watch:
    """Keeps an eye on companies."""

    @handler(on=ObjectPatched, where={"object_type": "Company"})
    def note_change(self, ctx: Context, event: ObjectPatched) -> None:
        """Nothing to do: that it was seen is on the log."""

    @handler(on=ObjectCreated, where={"object_type": "Company", "data.name": "Acme"})
    async def wait_a_day(self, ctx: Context, event: ObjectCreated) -> None:
        """Look again a day later."""
        await ctx.sleep(86_400)


def questions(request: Mapping[str, Any]) -> object:
    """The fixture's answer: two questions, whatever is asked."""
    return {"questions": ["what does it sell?", "who owns it?"]}


def worked_pack() -> Pack:
    """The pack; made anew, so that each has a model of its own."""
    return Pack(
        "worked",
        [Company, Question, Answer],
        [relation_type_of("WEIGHS", [Answer], [Question], Weight)],
        behaviors=[ask, answer, weigh, remind, Watch],
        tools=[sector_of],
        models=[FixtureModel("questions", questions)],
    )


PACK = worked_pack()
