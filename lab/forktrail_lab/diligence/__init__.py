"""The diligence pack: from a company's name to a memo on what its documents say, with nothing but behaviors.

    forktrail behaviors run $RUN --pack diligence --until-idle

A Company object on the log is enough: questions are raised, answered from documents by claims with their evidence,
claims are weighed against each other, and a memo is proposed that is linked to every claim it rests on.
"""

from __future__ import annotations

from forktrail_behaviors.pack import Pack
from forktrail_lab.diligence.analyst import FixtureAnalyst
from forktrail_lab.diligence.behaviors import close_research, raise_questions, research, weigh, write_memo
from forktrail_lab.diligence.opening import fixture
from forktrail_lab.diligence.tools import fetch_document, search_documents
from forktrail_lab.diligence.types import OBJECTS, RELATIONS

PACK = Pack(
    "diligence",
    OBJECTS,
    RELATIONS,
    behaviors=[raise_questions, research, close_research, weigh, write_memo],
    tools=[search_documents, fetch_document],
    models=[FixtureAnalyst()],
    fixture=fixture,
)
