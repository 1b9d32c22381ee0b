"""What sets a diligence off: a goal, and the companies it is about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from forktrail_lab.diligence.reading import id_of
from forktrail_lab.diligence.tools import documents_folder, papers
from forktrail_producers.producer import meta
from forktrail_schemas.events import GoalSet, ObjectCreated
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id
from forktrail_schemas.wire import build


def companies() -> list[str]:
    """The companies that there are documents about."""
    return sorted({paper.company for paper in papers(documents_folder())})


def company_fields(name: str) -> dict[str, object]:
    """The fields of the ObjectCreated of a company, but for `meta`."""
    return {"object_type": "Company", "object_id": id_of("company", name), "data": json.dumps({"name": name})}


def opening(run: str, actor: str, names: Iterable[str]) -> Iterator[Event]:
    """A goal, and the companies that it leads to, as a person says them."""
    told = list(names)
    goal = build(GoalSet, {"meta": meta(run, "human", actor), "text": f"find out about {', '.join(told)}"})
    yield goal
    goal_id = derived_id("goal", goal.meta.event_id)
    for name in told:
        head = meta(run, "human", actor, causes=[goal.meta.event_id], goal=goal_id)
        yield build(ObjectCreated, {"meta": head, **company_fields(name)})


def fixture(kit: Any) -> None:
    """Play the pack on a testing kit, for one of the companies that there are documents about.

    Args:
        kit: a `forktrail_behaviors.testing.Kit`.
    """
    for name in companies()[:1]:
        kit.tell(ObjectCreated, **company_fields(name))
    kit.run()
