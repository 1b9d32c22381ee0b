"""The scalar types that schemas name by `format`: the one place that says what an id, digest or text may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from forktrail_schemas.errors import InvalidInput
from forktrail_schemas.json_text import read_json

LINE_LENGTH_MAX = 256
TEXT_LENGTH_MAX = 65_536
# Everything but NUL, which graph engines and C tools cut strings at.
_NO_NUL = r"^[^\x00]*$"


def _checked_json(text: str) -> str:
    try:
        read_json(text)
    except InvalidInput as error:
        raise PydanticCustomError("json_text", "{fault}", {"fault": error.message}) from None
    return text


Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PublicKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,126}$")]
LocalId = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,32}-[0-9a-f-]{8,64}$")]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=LINE_LENGTH_MAX)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=LINE_LENGTH_MAX)]
Text = Annotated[str, StringConstraints(pattern=_NO_NUL, max_length=TEXT_LENGTH_MAX)]
JsonText = Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX), AfterValidator(_checked_json)]
ObjectTypeName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]{0,62}$")]
RelationTypeName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,62}$")]
PropertyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

# Format names in an .avsc, and the type above that checks them.
FORMATS: dict[str, str] = {
    "uuid": "Uuid",
    "sha256": "Sha256",
    "public-key": "PublicKey",
    "run-id": "RunId",
    "slug": "Slug",
    "local-id": "LocalId",
    "goal-id": "LocalId",
    "fingerprint": "Fingerprint",
    "name": "Name",
    "line": "Line",
    "text": "Text",
    "json": "JsonText",
    "object-type": "ObjectTypeName",
    "relation-type": "RelationTypeName",
    "property": "PropertyName",
}
