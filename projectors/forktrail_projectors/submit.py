"""Writes an event and says what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_producers.producer import Producer
from forktrail_projectors.projection import open_projection
from forktrail_projectors.record import Verdict
from forktrail_projectors.rules.reasons import in_words
from forktrail_projectors.view import Say
from forktrail_schemas.errors import EventVoid
from forktrail_schemas.events.base import Event
from forktrail_schemas.settings import Settings
from forktrail_schemas.signatures import SigningKey


@dataclass(frozen=True)
class Submission:
    """An event on the log with its verdict."""

    offset: int
    verdict: Verdict

    def require_valid(self) -> Submission:
        """Itself, where the event counts.

        Raises:
            EventVoid: with the verdict's reason as its code.
        """
        if not self.verdict.valid:
            raise EventVoid(
                f"{in_words(self.verdict.reason, self.verdict.detail)}; "
                f"{self.verdict.type.rpartition('.')[2]} is {self.verdict.kind} at offset {self.offset}",
                code=self.verdict.reason,
                offset=self.offset,
                event_id=self.verdict.event_id,
            )
        return self


def submit(
    settings: Settings,
    event: Event,
    signing_key: SigningKey | None = None,
    *,
    producer: Producer | None = None,
    say: Say = lambda line: None,
) -> Submission:
    """Emit an event, fold past it, and return its verdict. The log arbitrates between racing writers.

    Raises:
        InvalidEvent: it breaks its schema; nothing was sent.
        NotFound: no such run.
        LogUnavailable: Kafka doesn't answer; submit the same event again, its id keeps it from counting twice.
        GraphError: it is on the log, but its verdict can't be told now.
    """
    if producer is None:
        with Producer(settings.bootstrap_servers) as own:
            offset = own.emit(event, signing_key)
    else:
        offset = producer.emit(event, signing_key)
    with open_projection(settings, event.meta.run, at_least=offset + 1, say=say) as projection:
        return Submission(offset, projection.verdict(offset))
