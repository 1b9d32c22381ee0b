"""What every Kafka client of ours shares: its settings, quiet logs, topics, and errors in our own words."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # public, not in __all__
from confluent_kafka.cimpl import NewTopic

from forktrail_schemas.errors import LogUnavailable, NotFound
from forktrail_schemas.topics import RECORD_BYTES_MAX, TopicSpec

REQUEST_TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 3.0
_SILENCE = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
)
_POLL_SECONDS = 0.05
CONNECT_HINT = "start it with `forktrail broker start`, or set FORKTRAIL_BOOTSTRAP_SERVERS"

# librdkafka would write to stderr by itself; what matters reaches the caller as an error.
LOGGER = logging.getLogger("forktrail.kafka")
LOGGER.addHandler(logging.NullHandler())
LOGGER.propagate = False


Config = dict[str, str | int | float | bool]


def client_config(bootstrap_servers: str) -> Config:
    """Settings that producers, consumers and admin clients share; pass `logger=LOGGER` beside it."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "client.id": "forktrail",
        "message.max.bytes": RECORD_BYTES_MAX,
    }


@contextmanager
def log_errors(bootstrap_servers: str) -> Iterator[None]:
    """Turn Kafka's errors into ours.

    Raises:
        LogUnavailable: Kafka doesn't answer, or refused the request.
        NotFound: the topic doesn't exist.
    """
    try:
        yield
    except KafkaException as error:
        raise log_error(error.args[0], bootstrap_servers) from error


def log_error(error: KafkaError, bootstrap_servers: str) -> LogUnavailable | NotFound:
    """The error to raise for one of Kafka's."""
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return NotFound(f"Kafka has no such topic: {error.str()}", hint="`forktrail run list` shows the runs")
    if error.code() in _SILENCE:
        return LogUnavailable(f"Kafka at {bootstrap_servers} doesn't answer: {error.str()}", hint=CONNECT_HINT)
    return LogUnavailable(f"Kafka at {bootstrap_servers} refused: {error.str()}", hint="try again, or ask its operator")


def require_listening(bootstrap_servers: str) -> None:
    """Fail at once where nothing listens; librdkafka would keep trying until its time is up.

    Raises:
        LogUnavailable: none of the addresses takes a connection.
    """
    problem = "no address is given"
    for address in bootstrap_servers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            problem = str(error)
        else:
            return
    raise LogUnavailable(f"Kafka at {bootstrap_servers} doesn't answer: {problem}", hint=CONNECT_HINT)


@dataclass(frozen=True)
class TopicState:
    """A topic as Kafka has it: its id, which no other topic ever gets, and its partitions."""

    id: str
    partitions: int


class Topics:
    """Looks topics up and makes them."""

    def __init__(self, bootstrap_servers: str) -> None:
        """Connect.

        Raises:
            LogUnavailable: nothing listens there.
        """
        require_listening(bootstrap_servers)
        self._bootstrap_servers = bootstrap_servers
        self._admin = AdminClient(client_config(bootstrap_servers), logger=LOGGER)

    def id_of(self, topic: str) -> str | None:
        """Kafka's id of a topic, or None where there is no such topic; see `describe`."""
        found = self.describe(topic)
        return None if found is None else found.id

    def describe(self, topic: str) -> TopicState | None:
        """A topic as it is, or None where there is no such topic.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        with log_errors(self._bootstrap_servers):
            futures = self._admin.describe_topics(TopicCollection([topic]), request_timeout=REQUEST_TIMEOUT_SECONDS)
            try:
                found = futures[topic].result()
                return TopicState(str(found.topic_id), len(found.partitions))
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return None
                raise

    def make(self, spec: TopicSpec) -> bool:
        """Make a topic and wait until the brokers show it; returns False where it was there already, however made.

        Raises:
            LogUnavailable: Kafka doesn't answer, refused, or doesn't show the topic in time.
        """
        topic = NewTopic(spec.name, num_partitions=spec.partitions, config=spec.config)
        with log_errors(self._bootstrap_servers):
            futures = self._admin.create_topics([topic], request_timeout=REQUEST_TIMEOUT_SECONDS)
            try:
                futures[spec.name].result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return False
                raise
        self._await(spec.name)
        return True

    def config_of(self, topic: str) -> dict[str, str]:
        """The settings that hold for a topic.

        Raises:
            LogUnavailable: Kafka doesn't answer.
        """
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        with log_errors(self._bootstrap_servers):
            futures = self._admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_SECONDS)
            return {name: str(entry.value) for name, entry in futures[resource].result().items()}

    def _await(self, topic: str) -> None:
        """Brokers learn of a topic a moment after the controller has made it."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_SECONDS
        while self.id_of(topic) is None:
            if time.monotonic() > deadline:
                raise LogUnavailable(f"Kafka made {topic} and doesn't show it", hint="try again")
            time.sleep(_POLL_SECONDS)
