"""The producer of a chaos run: sends what its plan says, at a pace, and keeps a journal; started again, it goes on.

    python -m chaos.producer --plan FILE --journal FILE --bootstrap-servers ADDRESS --seed N

It ends once the plan has ended and all of it is acknowledged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from chaos.journal import Content, Journal, JournalWriter, Sent
from chaos.plan import Planned, PlanReader, signing_keys
from forktrail_producers.producer import Producer
from forktrail_schemas.errors import LogUnavailable
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.wire import decode

BURST_EVENTS_MAX = 30
PAUSE_SECONDS = 0.28
RETRY_SECONDS = 0.2
_LOOK_SECONDS = 0.01


class Emitter:
    """Sends planned events through the client that services use, each noted before and after.

    Attributes:
        next_number: the first event that wasn't sent yet; those before it are sent again.
    """

    def __init__(
        self, producer: Producer, journal: JournalWriter, say: Callable[[str], None], next_number: int = 0
    ) -> None:
        self._producer = producer
        self._journal = journal
        self._say = say
        self._keys = signing_keys()
        self.next_number = next_number

    def send(self, planned: Sequence[Planned]) -> None:
        """Send events in this order, until all are acknowledged."""
        self._journal.sending(self._new(planned))
        signed = [(_event(one), self._keys[one.signer] if one.signer else None) for one in planned]
        while True:
            try:
                offsets = self._producer.emit_all(signed)
            except LogUnavailable as error:
                self._say(f"{len(signed)} events from {planned[0].number} on: {error}")
                time.sleep(RETRY_SECONDS)
            else:
                self._journal.acknowledged([one.number for one in planned], offsets)
                return

    def _new(self, planned: Sequence[Planned]) -> Iterator[Sent]:
        for one in planned:
            if one.number >= self.next_number:
                self.next_number = one.number + 1
                yield sent_of(one, self._keys)


def sent_of(planned: Planned, keys: Mapping[str, SigningKey]) -> Sent:
    """What the journal holds of an event: the record that it must be on the log."""
    event = _event(planned)
    signature = keys[planned.signer].sign(planned.value) if planned.signer else None
    content = Content(
        event.meta.occurred_at // 1000,
        event.subject_id.encode(),
        planned.value,
        tuple((name, value) for name, value in headers_of(event, signature)),
    )
    return Sent(planned.number, event.meta.event_id, content, planned.expected)


def main() -> None:
    """Send until the plan ends."""
    arguments = _arguments()
    journal = Journal(arguments.journal)
    with JournalWriter(arguments.journal) as writer, Producer(arguments.bootstrap_servers) as producer:
        journal.update()
        left = journal.unacknowledged()
        emitter = Emitter(producer, writer, _say, len(journal.sent))
        # All that has no acknowledgement is the end of what was sent: a burst is waited for before the next.
        plan = PlanReader(arguments.plan, left[0].number if left else len(journal.sent))
        if left:
            emitter.send(plan.take(len(left)))
        chance = Random(arguments.seed + len(journal.sent))
        while not plan.ended:
            burst = plan.take(chance.randint(1, BURST_EVENTS_MAX))
            if burst:
                emitter.send(burst)
                time.sleep(chance.expovariate(1 / PAUSE_SECONDS))
            else:
                time.sleep(_LOOK_SECONDS)


def _event(planned: Planned) -> Event:
    event = decode(planned.value)
    assert isinstance(event, Event)
    return event


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos.producer")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--seed", type=int, required=True)
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
