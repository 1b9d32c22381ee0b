"""The client other services write events with.

    producer = Producer("127.0.0.1:9092")
    offset = producer.emit(build(ReportFiled, {"meta": meta(run, "service", "scanner-7"), "test_id": …, "summary": …}))

An event is checked before it is sent, and `emit` returns once it is durable. What the event amounts to is decided by
the fold (`forktrail_projectors.submit` returns the verdict).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as KafkaProducer

from forktrail_producers.kafka import (
    LOGGER,
    REQUEST_TIMEOUT_SECONDS,
    client_config,
    log_error,
    log_errors,
    require_listening,
)
from forktrail_schemas.errors import ForktrailError, InvalidEvent, LogUnavailable, NotFound
from forktrail_schemas.events.base import Event
from forktrail_schemas.headers import headers_of
from forktrail_schemas.ids import new_event_id, now_micros
from forktrail_schemas.signatures import SigningKey
from forktrail_schemas.topics import run_topic
from forktrail_schemas.wire import encode

DELIVERY_TIMEOUT_SECONDS = 30.0
LINGER_MS = 5
PARTITION_BY_KEY = -1
UNSIGNED_ROLE = "worker"

RawHeaders = Sequence[tuple[str, bytes | None]]
_POLL_SECONDS = 0.1
_RECORDS_PER_POLL = 100


def meta(
    run: str, actor_kind: str, actor_id: str, *, causes: Iterable[str] = (), goal: str | None = None
) -> dict[str, object]:
    """The `meta` of a new event: a fresh id, now by the wall clock, and who did it."""
    return {
        "event_id": new_event_id(),
        "run": run,
        "occurred_at": now_micros(),
        "actor": {"kind": actor_kind, "id": actor_id},
        "causes": list(causes),
        "goal": goal,
    }


class Producer:
    """Writes events to run topics: idempotent, acknowledged by all replicas, in the order given.

    Not for use by several threads at once. Closing waits for nothing: every `emit` has waited for its own.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._known_topics: set[str] = set()
        self._kafka = self._client()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def emit(self, event: Event, signing_key: SigningKey | None = None) -> int:
        """Write one event; returns its offset once it is durable.

        After LogUnavailable it may or may not be on the log: emit the same event again. Its id makes a second copy
        a duplicate, which changes nothing. Of several, the first so many are on the log, or none.

        Raises:
            InvalidEvent: it breaks its schema, or lacks the signature that its type always needs; nothing was sent.
            NotFound: the run doesn't exist.
            LogUnavailable: Kafka doesn't answer or didn't acknowledge it in time.
        """
        return self.emit_all([(event, signing_key)])[0]

    def emit_all(self, events: Iterable[tuple[Event, SigningKey | None]]) -> list[int]:
        """Write events in order; returns their offsets once all are durable. See `emit` for errors."""
        prepared = [_record_of(event, key) for event, key in events]
        self._write(prepared)
        return [record.offset for record in prepared if record.offset is not None]

    def emit_raw(self, run: str, key: bytes | None, value: bytes | None, headers: RawHeaders) -> int:
        """Append a record as it is to a run, unchecked; returns its offset once it is durable.

        Raises:
            InvalidEvent: it is larger than Kafka takes.
            NotFound: the run doesn't exist.
            LogUnavailable: see `emit`.
        """
        record = _Record(run_topic(run), key, value, headers, now_micros() // 1000)
        self._write([record])
        assert record.offset is not None
        return record.offset

    def emit_keyed(self, topic: str, key: str, value: bytes) -> None:
        """Write a record to a topic that isn't a run's, to the partition of its key; durable on return.

        Raises:
            NotFound: the topic doesn't exist.
            LogUnavailable: see `emit`.
        """
        self._write([_Record(topic, key, value, [], now_micros() // 1000, partition=PARTITION_BY_KEY)])

    def close(self) -> None:
        """Let go of the connection."""
        self._kafka.flush(0)

    def _client(self) -> KafkaProducer:
        settings = {
            "enable.idempotence": True,
            # The client would give up record by record, and write those behind: `_settle` gives up all at once.
            "delivery.timeout.ms": 0,
            # `flush` waits for nothing to gather; without lingering, each record of a batch would wake the client.
            "linger.ms": LINGER_MS,
            "partitioner": "murmur2_random",  # as Java's and Faust's clients place a key
        }
        return KafkaProducer(client_config(self._bootstrap_servers) | settings, logger=LOGGER)

    def _write(self, records: list[_Record]) -> None:
        for topic in dict.fromkeys(record.topic for record in records):
            self._check_topic(topic)
        try:
            for count, record in enumerate(records):
                self._send(record)
                if count % _RECORDS_PER_POLL == 0:
                    self._kafka.poll(0)
            self._settle(records)
        except BaseException:
            self._abandon()
            raise

    def _settle(self, records: list[_Record]) -> None:
        """Wait until all are acknowledged.

        Raises:
            LogUnavailable, NotFound, InvalidEvent: one was refused, or for a while none was acknowledged.
        """
        waited = _Waited()
        while True:
            left = self._kafka.flush(_POLL_SECONDS)  # sends what lingers, and comes back for Ctrl-C
            failed = next((record.error for record in records if record.error is not None), None)
            if failed is not None:
                raise self._failure(failed)
            if all(record.offset is not None for record in records):
                return
            if waited.too_long(left):
                raise self._failure(KafkaError(KafkaError._MSG_TIMED_OUT))

    def _abandon(self) -> None:
        """Write nothing more of what isn't acknowledged: a record behind a lost one would stand before its second copy.

        What lies with the broker already is the beginning of it, in order.
        """
        self._kafka.purge(in_queue=True, in_flight=True)
        self._kafka = self._client()
        self._known_topics.clear()  # a topic may be gone

    def _check_topic(self, topic: str) -> None:
        # librdkafka would wait half a minute for a topic that isn't there.
        if topic in self._known_topics:
            return
        if not self._known_topics:
            require_listening(self._bootstrap_servers)
        with log_errors(self._bootstrap_servers):
            found = self._kafka.list_topics(topic, timeout=REQUEST_TIMEOUT_SECONDS).topics[topic]
        if found.error is not None:
            raise NotFound(f"there is no topic {topic}", hint="`forktrail run list` shows the runs")
        self._known_topics.add(topic)

    def _send(self, record: _Record) -> None:
        waited = _Waited()
        while True:
            try:
                self._kafka.produce(
                    record.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp=record.timestamp_ms,
                    partition=record.partition,
                    on_delivery=record.delivered,
                )
            except BufferError as error:  # the queue is full: let some of it leave
                self._kafka.poll(_POLL_SECONDS)
                if waited.too_long(len(self._kafka)):
                    raise self._failure(KafkaError(KafkaError._MSG_TIMED_OUT)) from error
            except KafkaException as error:  # too large for the client itself, say
                raise self._failure(error.args[0]) from error
            else:
                return

    def _failure(self, error: KafkaError) -> ForktrailError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return InvalidEvent("the record is larger than Kafka takes", hint="put large bytes into the blob store")
        failure = log_error(error, self._bootstrap_servers)
        if isinstance(failure, LogUnavailable):
            failure.hint = "emit the same event again: its id keeps it from counting twice"
        return failure


class _Waited:
    """For how long no record was acknowledged."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._since = time.monotonic()

    def too_long(self, left: int) -> bool:
        """Whether it is longer than anyone should wait; `left` are still to be acknowledged."""
        if left != self._left:
            self._left, self._since = left, time.monotonic()
        return time.monotonic() - self._since > DELIVERY_TIMEOUT_SECONDS


@dataclass(slots=True)
class _Record:
    """One record on its way."""

    topic: str
    key: str | bytes | None
    value: bytes | None
    headers: RawHeaders
    timestamp_ms: int
    partition: int = 0
    offset: int | None = None
    error: KafkaError | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.error = error
        else:
            self.offset = message.offset()


def _record_of(event: Event, signing_key: SigningKey | None) -> _Record:
    # Until its run has a worker's key, a worker writes unsigned; the fold knows whether it has.
    if event.ROLE not in (None, UNSIGNED_ROLE) and signing_key is None:
        raise InvalidEvent(
            f"{event.TYPE} must be signed by a key with the role {event.ROLE}",
            hint="pass its signing key",
            event_id=event.meta.event_id,
        )
    value = encode(event)
    signature = signing_key.sign(value) if signing_key else None
    return _Record(
        topic=run_topic(event.meta.run),
        key=event.subject_id,
        value=value,
        headers=headers_of(event, signature),
        timestamp_ms=event.meta.occurred_at // 1000,
    )
