"""Finds properties in patterns that their objects don't have: such a pattern never matches, and nobody is told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.subscription import OnPattern
from forktrail_behaviors.types import Types
from forktrail_projectors.graph.declared_tables import BUILT_IN, OBJECT_COLUMNS
from forktrail_projectors.graph.schema import STAMP_CHANGED, STAMP_CREATED
from forktrail_schemas.errors import InvalidInput

_OF_EVERY_OBJECT = ("id", *OBJECT_COLUMNS, *STAMP_CREATED, *STAMP_CHANGED)


def check_patterns(behaviors: Sequence[Behavior], types: Types) -> None:
    """Refuse patterns that name a property which their label doesn't have; labels of other packs are their affair.

    Raises:
        InvalidInput: naming the behavior, the property, and what there is.
    """
    for behavior in behaviors:
        for handler in behavior.handlers:
            if isinstance(handler.subscription, OnPattern):
                for label, name in handler.subscription.pattern.properties:
                    known = _properties(label, types)
                    if known is not None and name not in known:
                        raise _unknown(behavior.name, label, name, known)


def _properties(label: str, types: Types) -> Collection[str] | None:
    """The properties of a label; None where it isn't known here."""
    declared = types.properties(label)
    if declared is not None:
        return (*declared, *_OF_EVERY_OBJECT)
    built_in = BUILT_IN.nodes.get(label)
    return None if built_in is None else built_in.columns


def _unknown(behavior: str, label: str, name: str, known: Collection[str]) -> InvalidInput:
    close = get_close_matches(name, known, 1)
    meant = f"is it {close[0]}? " if close else ""
    return InvalidInput(
        f"{behavior}: there is no property {name} of {label}", hint=f"{meant}there are: {', '.join(sorted(known))}"
    )
