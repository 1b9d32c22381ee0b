"""The shape of a test registry file: what a registered test sends, and how its answers are judged."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

REGISTRY_FORMAT = "forktrail.registry/1"
PLACEHOLDER_PATTERN = r"\{([a-z][a-z0-9_]{0,62})\}"

Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
CaptureName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
# No control characters: these go into events, evidence and terminals.
Title = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]{0,4094}[!-~])?$")]
RequestPath = Annotated[str, StringConstraints(pattern=r'^/([!"$-.0-~][!"$-~]*)?$', max_length=2048)]
JsonPointer = Annotated[str, StringConstraints(pattern=r"^(/([^~/]|~[01])*)+$", max_length=500)]
Status = Annotated[int, Field(ge=100, le=599)]
Needle = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class Model(BaseModel):
    """Base of everything in a registry: frozen, no coercion, no unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Named(Model):
    """An asset or a capability."""

    id: Id
    title: Title


class EnvironmentReference(Model):
    """A header value that stands in an environment variable, so that the file holds no credential."""

    env: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")]


class Identity(Model):
    """Who a request speaks as: headers, each a synthetic literal or a reference to the environment."""

    headers: Annotated[dict[HeaderName, HeaderValue | EnvironmentReference], Field(min_length=1)]


class RegisteredRequest(Model):
    """One request of a test; `{name}` in path or body stands for a value captured by an earlier request.

    `capture` takes values out of the JSON answer by JSON Pointer (RFC 6901).
    """

    id: Id
    method: Method
    path: RequestPath
    identity: Id | None = None
    headers: dict[HeaderName, HeaderValue] = {}
    body: Annotated[str, StringConstraints(max_length=65536)] | None = None
    capture: dict[CaptureName, JsonPointer] = {}


class Bounds(Model):
    """The limits of a test: seconds for the whole of it, redirects per request, kept bytes per answer.

    With `redirects_max` 0 a redirect is itself the answer to judge; above 0, one too many is an error.
    """

    timeout_seconds: Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)]
    redirects_max: Annotated[int, Field(ge=0, le=10)]
    body_bytes_max: Annotated[int, Field(ge=1, le=16 * 1024 * 1024)]


class Condition(Model):
    """What one answer must be: one of these statuses and, if asked, with and without a text."""

    status: Annotated[tuple[Status, ...], Field(min_length=1)]
    body_contains: Needle | None = None
    body_not_contains: Needle | None = None


class OutcomeRule(Model):
    """An outcome and, per request, the condition under which it is reached; all must hold.

    Each rule names every request of its test: a rule that leaves an answer out could call a test reproduced
    though its control request failed.
    """

    outcome: Literal["reproduced", "not_reproduced"]
    when: dict[Id, Condition]


class RegisteredTest(Model):
    """One test that people may approve and the runner may send; the first rule that holds is its outcome."""

    id: Id
    title: Title
    description: Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=r"^[^\x00]+$")]
    asset: Id
    requires: tuple[Id, ...]
    enables: tuple[Id, ...]
    impact: Annotated[int, Field(ge=0, le=100)]
    requests: Annotated[tuple[RegisteredRequest, ...], Field(min_length=1, max_length=20)]
    bounds: Bounds
    outcomes: Annotated[tuple[OutcomeRule, ...], Field(min_length=1)]


class ServiceMatch(Model):
    """Which requests a service's answer is for.

    A `{segment}` of the path stands for any one segment; a path without `?` matches whatever the query is.
    """

    method: Method
    path: RequestPath
    headers: dict[HeaderName, HeaderValue] = {}
    body_contains: Needle | None = None


class ServiceResponse(Model):
    """What a service answers: a status, headers, and JSON or text or neither."""

    status: Annotated[int, Field(ge=200, le=599)]
    headers: dict[HeaderName, HeaderValue] = {}
    json_body: Annotated[JsonValue, Field(alias="json")] = None
    text: str | None = None

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.json_body is not None and self.text is not None:
            raise ValueError("give json or text, not both")
        return self


class ServiceAnswer(Model):
    """One line of a service's script; the first whose `when` matches answers."""

    when: ServiceMatch
    respond: ServiceResponse


class Registry(Model):
    """A whole registry file; `forktrail_lab.registry.file` loads one and checks what its parts say of each other."""

    format: Literal["forktrail.registry/1"]
    name: Id
    first_revision: Id
    revisions: Annotated[tuple[Id, ...], Field(min_length=1)]
    assets: Annotated[tuple[Named, ...], Field(min_length=1)]
    capabilities: tuple[Named, ...]
    identities: dict[Id, Identity]
    tests: Annotated[tuple[RegisteredTest, ...], Field(min_length=1)]
    services: dict[Id, dict[Id, tuple[ServiceAnswer, ...]]] = {}
