"""Who a test's requests speak as, with values taken from the environment and kept out of all that is stored."""

from __future__ import annotations

import functools
import re
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

    They are found in any letter case (a URL's host comes back in lower case) and percent-encoded (so do captured values
    in a path). A secret that a service sends back in another encoding is not recognised.
    """

    replacements: tuple[tuple[bytes, bytes], ...] = field(repr=False)

    def apply(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets; where it was cut, also without the first part of one at its end."""
        for secret, mark in self.replacements:
            data = mark.join(re.split(_pattern(secret), data))
        if cut:
            for secret, _ in self.replacements:
                data = _without_part_at_end(data, secret)
        return data

    def apply_text(self, text: str) -> str:
        """Return the text (code points up to U+00FF, as in header values) without secrets."""
        return self.apply(text.encode("latin-1")).decode("latin-1")


@functools.lru_cache(maxsize=512)  # a long secret's takes some milliseconds, for every header of an answer
def _pattern(secret: bytes) -> re.Pattern[bytes]:
    """A secret in any letter case, each byte as it is or percent-encoded."""
    return re.compile(b"".join(map(_byte_pattern, secret)), re.IGNORECASE)


def _byte_pattern(byte: int) -> bytes:
    character = bytes((byte,))
    return b"(?:%%%02x|%%%02x|%b)" % (ord(character.lower()), ord(character.upper()), re.escape(character))


def _without_part_at_end(data: bytes, secret: bytes) -> bytes:
    """Drop the longest first part of the secret that the data ends with, and half a percent-encoded byte after it."""
    first = max(0, len(data) - len("%00") * len(secret))
    start = next((start for start in range(first, len(data)) if _is_first_part(data[start:], secret)), len(data))
    return data[:start]


def _is_first_part(data: bytes, secret: bytes) -> bool:
    """Whether a secret may go on where this ends, in the forms that `_pattern` knows."""
    at = 0
    for byte in secret:
        found = _pattern(bytes((byte,))).match(data, at)
        if found is None:
            break
        at = found.end()
    return at > 0 and re.fullmatch(b"(?:%[0-9a-fA-F]?)?", data[at:]) is not None


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
