"""The JSON Schema of a pydantic model, as models are asked for it.

What pydantic does on the way (it looks for plugins in the environment, and leaves out a default where that is refused)
is none of the behavior's doing, so the guard excuses this module: the schema follows from the class alone.
"""

from __future__ import annotations

from functools import lru_cache

from pydantic import BaseModel

from forktrail_schemas.json_text import Json


@lru_cache(256)
def json_schema_of(model: type[BaseModel]) -> Json:
    """The JSON Schema of a model."""
    return model.model_json_schema()
