"""What a test sent and what came back, and its form as stored evidence."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

import rfc8785
from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, ValidationError, model_validator

from forktrail_lab.registry.model import Id, Model
from forktrail_schemas.errors import Corruption

EVIDENCE_FORMAT: Final = "forktrail.evidence/1"
EVIDENCE_MEDIA_TYPE = "application/vnd.forktrail.evidence+json"
REVISION_HEADER = "x-service-revision"


class ExchangeErrorCode(StrEnum):
    """Why a request has no answer that may be judged."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    RESPONSE_INVALID = "response_invalid"
    HOST_REFUSED = "host_refused"
    REDIRECTS_EXCEEDED = "redirects_exceeded"
    CAPTURE_FAILED = "capture_failed"
    REVISION_MISMATCH = "revision_mismatch"
    NOT_SENT = "not_sent"


def _body_from_document(value: object) -> object:
    """Read {"text": …} or {"base64": …}; bytes pass as they are."""
    if not isinstance(value, Mapping):
        return value
    text, encoded = value.get("text"), value.get("base64")
    if len(value) == 1 and isinstance(text, str):
        return text.encode()
    if len(value) == 1 and isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError("not base64") from error
    raise ValueError("a body is one of text and base64")


def _body_to_document(body: bytes) -> dict[str, str]:
    """Write UTF-8 as text, so that people can read it, and anything else as base64."""
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


Body = Annotated[bytes, BeforeValidator(_body_from_document), PlainSerializer(_body_to_document)]
Headers = tuple[tuple[str, str], ...]
Sha256Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class SentRequest(Model):
    """A request as it went out, all its headers included; an identity's values stand as `<identity ID>`."""

    method: str
    url: str
    headers: Headers
    body: Body


class ReceivedResponse(Model):
    """An answer as it came; `truncated` where the body was longer than what is kept of it."""

    status: Annotated[int, Field(ge=100, le=999)]
    headers: Headers
    body: Body
    truncated: bool

    @property
    def revision(self) -> str | None:
        """The revision that the service says it is, if it says one."""
        return next((value for name, value in self.headers if name.lower() == REVISION_HEADER), None)


class ExchangeError(Model):
    """Why an exchange can't be judged: a cause, and a text that quotes nothing of what the service sent.

    What the service sent may hold a secret in a form that no redaction recognises; it stands in the hops alone.
    """

    code: ExchangeErrorCode
    message: str


class Hop(Model):
    """One HTTP request and its answer; a redirect that is followed makes another hop."""

    sent: SentRequest
    received: ReceivedResponse | None


class Exchange(Model):
    """All that happened for one request of a test, in order."""

    request_id: Id
    hops: tuple[Hop, ...]
    error: ExchangeError | None

    @property
    def response(self) -> ReceivedResponse | None:
        """The answer to judge: the last one, and only where no error came."""
        return self.hops[-1].received if self.hops and self.error is None else None


class Transcript(Model):
    """One execution of one test for one case; `interrupted` where its runner died and nothing is known of it."""

    format: Literal["forktrail.evidence/1"] = EVIDENCE_FORMAT
    case_id: Annotated[str, StringConstraints(min_length=1)]
    test_id: Id
    revision: Id
    definition_sha256: Sha256Hex
    target: str
    exchanges: tuple[Exchange, ...]
    interrupted: bool = False

    @model_validator(mode="after")
    def _nothing_known_when_interrupted(self) -> Self:
        if self.interrupted and self.exchanges:
            raise ValueError("an interrupted transcript has no exchanges")
        return self

    @property
    def request_count(self) -> int:
        """How many HTTP requests were sent, redirects included."""
        return sum(len(exchange.hops) for exchange in self.exchanges)


def foreign_revision(exchange: Exchange, revision: str) -> str | None:
    """Return a revision that an answer claims and that isn't the one expected, if there is one.

    A service that names no revision is taken at its word.
    """
    for hop in exchange.hops:
        if hop.received is not None and hop.received.revision not in (None, revision):
            return hop.received.revision
    return None


def evidence_bytes(transcript: Transcript) -> bytes:
    """The evidence document: canonical JSON (RFC 8785), the same bytes for the same transcript."""
    return rfc8785.dumps(transcript.model_dump(mode="json"))


def parse_evidence(data: bytes) -> Transcript:
    """Read a transcript back from its document.

    Raises:
        Corruption: the bytes are not exactly what `evidence_bytes` writes for any transcript.
    """
    try:
        transcript = Transcript.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f".{part}" for part in first["loc"])
        raise Corruption(
            f"stored evidence is not an evidence document: ${place}: {first['msg']}",
            hint="restore the blob from a copy whose digest is right",
        ) from error
    try:
        canonical = evidence_bytes(transcript)
    except rfc8785.CanonicalizationError as error:
        raise Corruption(f"stored evidence has no canonical form: {error}") from error
    if canonical != data:
        raise Corruption("stored evidence is not in canonical form", hint="it was not written by the runner")
    return transcript
