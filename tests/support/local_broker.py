"""A local broker of a test's own, written to and read back with the bare client, and started by commands."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from forktrail_lab.broker import control
from forktrail_lab.broker.layout import BrokerLayout
from forktrail_lab.broker.probe import free_port
from forktrail_lab.broker.process import birth_mark

TIMEOUT_S = 20.0


def bare_environment(home: Path) -> dict[str, str]:
    """Settings of a home whose broker is its own, on a port of its own."""
    return {
        "FORKTRAIL_HOME": str(home),
        "FORKTRAIL_BOOTSTRAP_SERVERS": "",
        "FORKTRAIL_BROKER_PORT": str(free_port()),
    }


def ignore(line: str) -> None:
    """Take a line of progress and drop it."""


def new_topic(bootstrap_servers: str) -> str:
    """Make a topic with one partition; returns its name."""
    topic = f"test-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_S)
    return topic


def produce(bootstrap_servers: str, topic: str, values: list[bytes]) -> None:
    """Write records; fails where one isn't acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    producer.list_topics(topic, timeout=TIMEOUT_S)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0


def consume_all(bootstrap_servers: str, topic: str) -> list[bytes]:
    """The values of all records that a topic has."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "test", "enable.auto.commit": False})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < end:
        messages = consumer.consume(end - len(values), timeout=TIMEOUT_S)
        assert messages, f"{len(values)} of {end} records"
        for message in messages:
            assert message.error() is None
            values.append(message.value() or b"")
    consumer.close()
    return values


def forktrail(environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    """Start a `forktrail` command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "forktrail_lab", *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended; fails where it doesn't."""
    deadline = time.monotonic() + TIMEOUT_S
    while birth_mark(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def one_line(text: str) -> str:
    """The text, which must be one line with its end."""
    assert text.count("\n") == 1, text
    return text


def values_after_a_start(layout: BrokerLayout, topic: str) -> list[bytes]:
    """The values of a topic's records once the broker is started."""
    return consume_all(control.start(layout, free_port(), ignore).state.bootstrap_servers, topic)
