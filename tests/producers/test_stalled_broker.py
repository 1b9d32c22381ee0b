"""A broker that stands still in the midst of a batch: what is on the log afterwards is the batch's beginning."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.state import BrokerState
from forktrail_producers import producer as producer_module
from forktrail_producers.kafka import Topics
from forktrail_producers.producer import Producer, meta
from forktrail_projectors.reader import LogReader
from forktrail_projectors.record import LogRecord
from forktrail_schemas import events
from forktrail_schemas.errors import LogUnavailable
from forktrail_schemas.events.base import Event
from forktrail_schemas.topics import run_topic_spec
from forktrail_schemas.wire import build, decode
from support.local_broker import ignore

RUN = "run-stalled"
# More than a request holds, so that most wait in the client.
EVENTS = 40_000
PATIENCE_SECONDS = 1.0


@pytest.fixture
def broker(tmp_path: Path, kafka_libs: Path) -> Iterator[BrokerState]:
    layout = BrokerLayout.of(tmp_path / "home", libs=kafka_libs)
    yield control.start(layout, free_port(), ignore).state
    control.stop(layout, ignore)


@pytest.mark.parametrize("stopped_seconds", [1.2, 1.4, 2.0])  # about when the producer gives up
def test_nothing_behind_a_lost_record_is_written(
    broker: BrokerState, monkeypatch: pytest.MonkeyPatch, stopped_seconds: float
) -> None:
    """The first copy of an event decides, so the first copies must stand in the order in which they were sent."""
    monkeypatch.setattr(producer_module, "DELIVERY_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    Topics(broker.bootstrap_servers).make(run_topic_spec(RUN))
    batch = [
        build(events.ReportFiled, {"meta": meta(RUN, "service", "s"), "test_id": "gateway", "summary": str(number)})
        for number in range(EVENTS)
    ]
    goes_on = threading.Timer(stopped_seconds, os.kill, (broker.pid, signal.SIGCONT))

    def told() -> Iterator[tuple[Event, None]]:
        yield from ((event, None) for event in batch)
        goes_on.start()  # all are encoded, and sent from here on

    with Producer(broker.bootstrap_servers) as producer:
        producer.emit(batch[0])
        os.kill(broker.pid, signal.SIGSTOP)
        with suppress(LogUnavailable):
            producer.emit_all(told())
        goes_on.join()
        monkeypatch.undo()
        producer.emit_all((event, None) for event in batch)
    with LogReader(broker.bootstrap_servers, RUN) as reader:
        records = [record for part in reader.read(0, reader.end()) for record in part]
    assert list(dict.fromkeys(event_id(record) for record in records)) == [event.meta.event_id for event in batch]


def event_id(record: LogRecord) -> str:
    event = decode(record.value or b"")
    assert isinstance(event, Event)
    return event.meta.event_id
