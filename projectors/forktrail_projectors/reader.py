"""Reads a run topic to an end that is known exactly, never by a timeout."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from forktrail_producers.kafka import LOGGER, REQUEST_TIMEOUT_SECONDS, Topics, client_config, log_error, log_errors
from forktrail_projectors.record import UNREADABLE_HEADERS, LogRecord
from forktrail_schemas.errors import Corruption, ForeignTransaction, LogUnavailable, NotFound
from forktrail_schemas.topics import run_topic

BATCH_RECORDS = 1_000
BATCH_BYTES = 16_777_216
# So many at a time: a record may have megabytes, and all of them are in memory before the first is looked at.
CONSUME_RECORDS = 50
FETCH_WAIT_MS = 10
FOLLOW_SECONDS = 0.2
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_RETRY_SECONDS = 0.1


class LogReader:
    """The log of one run.

    Records come in order and without gaps; a gap raises. One reader serves one thread.
    """

    def __init__(self, bootstrap_servers: str, run: str) -> None:
        """Connect to the run's topic.

        Raises:
            NotFound: the run has no topic.
            Corruption: the topic has several partitions.
            LogUnavailable: Kafka doesn't answer.
        """
        self._bootstrap_servers = bootstrap_servers
        self._run = run
        self._topic = run_topic(run)
        topic = Topics(bootstrap_servers).describe(self._topic)
        if topic is None:
            raise NotFound(f"there is no run {run!r}", hint="`forktrail run list` shows the runs", run=run)
        if topic.partitions != 1:
            raise Corruption(
                f"the topic of {run} has {topic.partitions} partitions; a run has one, or its order is lost",
                code="topic_partitions",
                hint="open a new run, and let nobody add partitions to it",
                run=run,
            )
        self.topic_id = topic.id
        self._consumer = Consumer(
            client_config(bootstrap_servers)
            | {
                "group.id": "forktrail-reader",  # required by the library; nothing is committed
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                # A fetch at the end of the log would hold the next one back for half a second.
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                # A run topic holds no transactions; if one got in, its markers must show as gaps.
                "isolation.level": "read_uncommitted",
            },
            logger=LOGGER,
        )

    def __enter__(self) -> LogReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def end(self) -> int:
        """The offset after the last record there is now.

        Raises:
            LogUnavailable: Kafka doesn't answer.
            Corruption: records at the start of the log are gone.
        """
        low, high = self._watermarks()
        if low > 0:
            raise Corruption(
                f"the log of {self._run} starts at offset {low}: records before it were deleted",
                code="log_truncated",
                run=self._run,
                offset=low,
            )
        return int(high)

    def _watermarks(self) -> tuple[int, int]:
        """The first and the next offset; waits out the moments after a restart in which the partition has no leader."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while True:
            try:
                return self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, 0), timeout=REQUEST_TIMEOUT_SECONDS
                )
            except KafkaException as error:
                if error.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                    raise log_error(error.args[0], self._bootstrap_servers) from error
                time.sleep(_RETRY_SECONDS)

    def read(self, start: int, end: int) -> Iterator[list[LogRecord]]:
        """The records [start, end) in batches of about BATCH_RECORDS, or of fewer and larger ones.

        Raises:
            ForeignTransaction: an offset is missing.
            LogUnavailable: Kafka stopped answering.
        """
        expected = start
        if start >= end:
            return
        with log_errors(self._bootstrap_servers):
            self._consumer.assign([TopicPartition(self._topic, 0, start)])
            batch: list[LogRecord] = []
            size = 0
            while expected < end:
                for message in self._consume(min(CONSUME_RECORDS, end - expected)):
                    expected = self._checked(message, expected)
                    if message.error() is None and expected <= end:
                        batch.append(_log_record(message))
                        size += len(message)
                if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES or expected >= end:
                    yield batch
                    batch, size = [], 0

    def record_at(self, offset: int) -> LogRecord:
        """One record.

        Raises:
            ForeignTransaction: there is none at this offset, though the log goes on.
        """
        for batch in self.read(offset, offset + 1):
            return batch[0]
        raise LogUnavailable(f"offset {offset} of {self._run} gave no record", run=self._run, offset=offset)

    def follow(self, start: int) -> Iterator[list[LogRecord]]:
        """The records from `start` on, for ever, in batches as they come; an empty one where for a moment none does.

        Raises:
            ForeignTransaction: an offset is missing.
            LogUnavailable: Kafka refused. While it doesn't answer, nothing comes.
        """
        expected = start
        with log_errors(self._bootstrap_servers):
            self._consumer.assign([TopicPartition(self._topic, 0, start)])
            while True:
                batch: list[LogRecord] = []
                size = 0
                # The client waits until it has as many as it was asked for, so at first it is asked for one.
                messages = self._consumer.consume(1, timeout=FOLLOW_SECONDS)
                while messages:
                    for message in messages:
                        expected = self._checked(message, expected)
                        if message.error() is None:
                            batch.append(_log_record(message))
                            size += len(message)
                    full = len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES
                    messages = [] if full else self._consumer.consume(CONSUME_RECORDS, timeout=0)
                yield batch

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def _consume(self, count: int) -> list[Message]:
        messages = self._consumer.consume(count, timeout=REQUEST_TIMEOUT_SECONDS)
        if not messages:
            raise LogUnavailable(
                f"Kafka at {self._bootstrap_servers} stopped answering", hint="try again", run=self._run
            )
        return messages

    def _checked(self, message: Message, expected: int) -> int:
        """The next expected offset after a message; also the end-of-partition mark tells of a gap before it."""
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise log_error(error, self._bootstrap_servers)
        offset = message.offset()
        if offset is not None and offset > expected:
            raise ForeignTransaction(
                f"offset {expected} of {self._run} holds no record: its topic was written in a Kafka transaction",
                hint=f"the last good offset is {expected - 1}; open a new run, and write it without transactions",
                run=self._run,
                offset=expected - 1,
            )
        return expected if error is not None else expected + 1


def _log_record(message: Message) -> LogRecord:
    _, timestamp_ms = message.timestamp()
    offset = message.offset()
    assert offset is not None
    return LogRecord(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
    )


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    # The client's types allow what it takes when sending; what it gives is a list of pairs, and bytes.
    try:
        pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        # Where a name isn't UTF-8, the client returns a result with an error left set: depending on how warm this code
        # is, Python raises at the call or at the next step, so that step belongs in here.
        return tuple((name, value) for name, value in pairs)
    except (SystemError, UnicodeDecodeError):
        return UNREADABLE_HEADERS
