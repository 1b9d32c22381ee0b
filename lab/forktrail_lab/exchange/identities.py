"""Who a test's requests speak as, with values taken from the environment and kept out of all that is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from forktrail_lab.registry.file import identity_ids
from forktrail_lab.registry.model import EnvironmentReference, RegisteredTest, Registry
from forktrail_schemas.errors import InvalidInput

SECRET_PART_LENGTH_MIN = 8


@dataclass(frozen=True)
class ResolvedHeader:
    """One header of an identity; `secret` where its value came from the environment."""

    name: str
    value: str = field(repr=False)
    secret: bool


@dataclass(frozen=True)
class ResolvedIdentity:
    """An identity ready to send."""

    id: str
    headers: tuple[ResolvedHeader, ...]

    @property
    def mark(self) -> str:
        """What stands for its values in everything stored."""
        return f"<identity {self.id}>"


@dataclass(frozen=True)
class Redaction:
    """Replaces secret values by the mark of their identity, longest first.

    A secret that a service sends back in another encoding is not recognised.
    """

    replacements: tuple[tuple[bytes, bytes], ...] = field(repr=False)

    def apply(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets; where it was cut, also without the first part of one at its end."""
        for secret, mark in self.replacements:
            data = data.replace(secret, mark)
        if cut:
            for secret, _ in self.replacements:
                part = next((n for n in range(len(secret) - 1, 0, -1) if data.endswith(secret[:n])), 0)
                data = data[: len(data) - part]
        return data

    def apply_text(self, text: str) -> str:
        """Return the text (code points up to U+00FF, as in header values) without secrets."""
        return self.apply(text.encode("latin-1")).decode("latin-1")


def resolve_identities(
    registry: Registry, test: RegisteredTest, environ: Mapping[str, str]
) -> dict[str, ResolvedIdentity]:
    """Look up the headers of every identity that a test uses.

    Raises:
        InvalidInput: a variable is not set, or its value can't be sent in a header.
    """
    return {
        name: ResolvedIdentity(
            name,
            tuple(
                _resolve(name, header, value, environ)
                for header, value in sorted(registry.identities[name].headers.items())
            ),
        )
        for name in identity_ids(test)
    }


def redaction_of(identities: Iterable[ResolvedIdentity]) -> Redaction:
    """What to take out of stored answers: each secret value, and its last word ("Bearer abc…") if long enough."""
    replacements: dict[bytes, bytes] = {}
    for identity in identities:
        for header in identity.headers:
            if not header.secret:
                continue
            words = [header.value, header.value.split()[-1]]
            for word in words[: 2 if len(words[1]) >= SECRET_PART_LENGTH_MIN else 1]:
                replacements[word.encode()] = identity.mark.encode()
    return Redaction(tuple(sorted(replacements.items(), key=lambda pair: (-len(pair[0]), pair[0]))))


def _resolve(
    identity: str, header: str, value: str | EnvironmentReference, environ: Mapping[str, str]
) -> ResolvedHeader:
    if isinstance(value, str):
        return ResolvedHeader(header, value, secret=False)
    found = environ.get(value.env, "").strip()
    if not found:
        raise InvalidInput(
            f"identity {identity!r} takes its header {header!r} from {value.env}, which is not set",
            hint=f"set {value.env} where the runner starts",
        )
    if not (found.isascii() and found.isprintable()):
        raise InvalidInput(f"{value.env} holds characters that can't stand in a header", hint="use printable ASCII")
    return ResolvedHeader(header, found, secret=True)
