"""The thread of an owner that publishes dead letters, each at least once, whatever ends when.

How far it has come stands in a small file beside the graph, written after the letters are durable. A letter has the key
of its offset, so that the same one twice is one.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from forktrail_producers.dead_letter_topic import DeadLetterTopic
from forktrail_producers.producer import Producer
from forktrail_projectors import merkle
from forktrail_projectors.dead_letters import dead_verdicts, letter_of
from forktrail_projectors.owner.messages import OwnerGone
from forktrail_projectors.owner.owned import Owned
from forktrail_projectors.projection import Projection
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import Verdict
from forktrail_projectors.view import Say
from forktrail_schemas.errors import ForktrailError, GraphError
from forktrail_schemas.events import DeadLetter
from forktrail_schemas.ids import now_micros

# How often it tries again where Kafka doesn't take letters, and otherwise writes down how far it is.
AGAIN_SECONDS = 30.0
# Offsets that are looked through before the file is written.
PAGE_OFFSETS = 10_000
STOP_SECONDS = 0.5


@dataclass(frozen=True)
class Place:
    """How far letters are published.

    Attributes:
        record_hash: hex RFC 6962 leaf hash of the record before next_offset; "" at offset 0.
    """

    topic_id: str
    next_offset: int
    record_hash: str

    @staticmethod
    def read(path: Path) -> Place | None:
        """The place that a file names; None where it doesn't."""
        try:
            found = json.loads(path.read_text())
            return Place(str(found["topic_id"]), int(found["next_offset"]), str(found["record_hash"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        temporary = path.with_suffix(f"{path.suffix}.new")
        with temporary.open("w") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


class LetterWriter:
    """Publishes the dead letters of an owned run as they are folded, and those that an earlier owner left."""

    def __init__(self, bootstrap_servers: str, owned: Owned, path: Path, say: Say) -> None:
        """Do nothing yet.

        Args:
            path: of the file that says how far letters are published.
        """
        self._bootstrap_servers = bootstrap_servers
        self._owned = owned
        self._path = path
        self._say = say
        self._place: Place | None = None
        self._producer: Producer | None = None
        self._said = False
        self._stopping = False
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._work, name="forktrail-letters", daemon=True)

    def start(self) -> None:
        """Begin with what an earlier owner left."""
        self._thread.start()

    def folded(self, verdicts: list[Verdict]) -> None:
        """Look into it, if one of these may be on a dead letter."""
        if any(verdict.kind not in ("valid", "duplicate") for verdict in verdicts):
            self._wanted.set()

    def stop(self) -> None:
        """Stop after the letter at hand; what is left waits for the next owner."""
        self._stopping = True
        self._wanted.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def _work(self) -> None:
        while not self._stopping:
            self._wanted.clear()
            try:
                self._publish(self._owned.projection())
                self._said = False
            except OwnerGone:
                return
            except GraphError:  # it is being opened anew; whoever folds says so
                pass
            except ForktrailError as error:
                self._tell(error)
            self._wanted.wait(AGAIN_SECONDS)

    def _publish(self, projection: Projection) -> None:
        until = projection.next_offset
        if self._place is not None and self._place.next_offset == until:
            return
        with LogReader(self._bootstrap_servers, self._owned.run) as reader:
            place = self._checked(self._place or Place.read(self._path), reader)
            while place.next_offset < until and not self._stopping:
                after = min(until, place.next_offset + PAGE_OFFSETS)
                self._send(reader, list(dead_verdicts(projection.graph, place.next_offset, after)))
                if self._stopping:
                    return
                place = Place(reader.topic_id, after, merkle.record_hash(reader.record_at(after - 1)))
                place.write(self._path)
                self._place = place

    def _checked(self, place: Place | None, reader: LogReader) -> Place:
        """The place, if it is one of this log; else the log's beginning, since what lies before it was of another."""
        if place is not None and place.topic_id == reader.topic_id and place.next_offset <= reader.end():
            if place.next_offset == 0:
                return place
            if merkle.record_hash(reader.record_at(place.next_offset - 1)) == place.record_hash:
                return place
        return Place(reader.topic_id, 0, "")

    def _send(self, reader: LogReader, verdicts: list[Verdict]) -> None:
        if not verdicts:
            return
        if self._producer is None:
            self._producer = Producer(self._bootstrap_servers)
        DeadLetterTopic(self._bootstrap_servers).publish(self._letters(reader, verdicts), self._producer)

    def _letters(self, reader: LogReader, verdicts: list[Verdict]) -> Iterator[DeadLetter]:
        by_offset = {verdict.offset: verdict for verdict in verdicts}
        for batch in reader.read(verdicts[0].offset, verdicts[-1].offset + 1):
            for record in batch:
                if self._stopping:
                    return
                if verdict := by_offset.get(record.offset):
                    yield letter_of(self._owned.run, record, verdict, now_micros())

    def _tell(self, error: ForktrailError) -> None:
        if not self._said and not self._stopping:
            self._said = True
            self._say(f"dead letters of {self._owned.run} wait until Kafka takes them: {error}")
