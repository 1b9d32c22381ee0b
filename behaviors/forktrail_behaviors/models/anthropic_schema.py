"""JSON Schema as Anthropic's structured outputs take it: every object closed, and no limits.

https://platform.claude.com/docs/en/build-with-claude/structured-outputs names what is supported. What can't be said is
put into the description; the behavior checks the answer by the whole schema all the same.
"""

from __future__ import annotations

import json
from typing import Any

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import Json

_LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
_BY_NAME = ("properties", "$defs")
_ANY_OF = ("anyOf", "allOf", "oneOf")


def supported(schema: Json) -> Json:
    """A schema that says what it can.

    Raises:
        InvalidInput: it has an object whose names aren't fixed, which can't be asked for.
    """
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    limits: dict[str, Json] = {}
    for word, value in schema.items():
        if word in _LIMITS:
            limits[word] = value
        elif word in _BY_NAME:
            made[word] = {name: supported(part) for name, part in value.items()}
        elif word in _ANY_OF:
            made[word] = [supported(part) for part in value]
        else:
            made[word] = supported(value) if word == "items" else value
    if schema.get("type") == "object":
        if "properties" not in schema:
            raise InvalidInput(
                "anthropic can't be asked for an object whose names aren't fixed", hint="use a list of pairs instead"
            )
        made["additionalProperties"] = False
    if limits:
        told = ", ".join(f"{word}: {json.dumps(value)}" for word, value in sorted(limits.items()))
        made["description"] = f"{made['description']} ({told})" if made.get("description") else told
    return made
