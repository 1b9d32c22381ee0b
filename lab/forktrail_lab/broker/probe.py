"""Asks whether a Kafka answers, and whether a port is free."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

LOOPBACK = "127.0.0.1"
PROBE_TIMEOUT_S = 5.0
STRANGER_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class KafkaView:
    """What a Kafka says about itself.

    Attributes:
        cluster_id: the id of the cluster.
        topics: its topics, but for Kafka's internal ones.
    """

    cluster_id: str
    topics: tuple[str, ...]


def view_kafka(bootstrap_servers: str, timeout_s: float) -> KafkaView | None:
    """What the Kafka at this address says; None if no broker is ready there within `timeout_s` seconds.

    A broker is in its own answer only once it has caught up with its metadata and takes requests.
    """
    client = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 200})
    try:
        metadata = client.list_topics(timeout=timeout_s)
    except KafkaException:
        return None
    if not metadata.brokers:
        return None
    topics = tuple(sorted(name for name in metadata.topics if not name.startswith("__")))
    return KafkaView(str(metadata.cluster_id), topics)


def accepts_connections(port: int) -> bool:
    """True if something listens on this port of loopback."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex((LOOPBACK, port)) == 0


def kafka_of_another(port: int) -> str | None:
    """Address of the Kafka that takes requests on this port of loopback, where the local broker doesn't run.

    None if nothing listens there, or what does isn't a Kafka that answers soon.
    """
    address = f"{LOOPBACK}:{port}"
    return address if accepts_connections(port) and view_kafka(address, STRANGER_TIMEOUT_S) else None


def ways_to_use(address: str) -> str:
    """What to set to use a Kafka that isn't of this home."""
    return f"set FORKTRAIL_HOME to its folder, or FORKTRAIL_BOOTSTRAP_SERVERS={address} to use it"


def port_is_free(port: int) -> bool:
    """True if a server could listen on this port of loopback."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((LOOPBACK, port))
        except OSError:
            return False
        return not accepts_connections(port)


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        return int(server.getsockname()[1])
