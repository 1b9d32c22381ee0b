"""The reason is found in logs that Kafka 4.4.0 wrote."""

from __future__ import annotations

import pytest

from forktrail_lab.broker.failure import failure_reason

WRONG_NODE = """\
[2026-11-30 20:23:24,000] INFO Registered signal handlers for TERM, INT, HUP (o.a.k.c.u.LoggingSignalHandler)
[2026-11-30 20:23:24,060] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.lang.RuntimeException: Stored node id 7 doesn't match previous node id 1 in /data/meta.properties.
\tat org.apache.kafka.metadata.properties.MetaPropertiesEnsemble.verify(MetaPropertiesEnsemble.java:503)
\tat kafka.Kafka.main(Kafka.scala)
"""
TAKEN_PORT = """\
[2026-11-30 20:23:28,402] ERROR Unable to start acceptor for PLAINTEXT (kafka.network.DataPlaneAcceptor)
org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:1: Address already in use.
\tat kafka.network.Acceptor.openServerSocket(SocketServer.scala:705)
Caused by: java.net.BindException: Address already in use
\t... 18 more
[2026-11-30 20:23:28,404] ERROR [BrokerServer id=1] Received a fatal error while waiting (kafka.server.BrokerServer)
java.lang.RuntimeException: Unable to start acceptor for PLAINTEXT
\tat kafka.network.SocketServer.$anonfun$enableRequestProcessing$2(SocketServer.scala:230)
Caused by: org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:1: Address already in use.
\t... 16 more
Caused by: java.net.BindException: Address already in use
\t... 18 more
[2026-11-30 20:23:28,500] INFO [BrokerServer id=1] shutting down (kafka.server.BrokerServer)
"""
STRAY_WARNING = """\
[2026-11-30 20:23:26,281] WARN Failed atomic move, retrying with a non-atomic move (org.apache.kafka.common.utils.Utils)
java.nio.file.NoSuchFileException: /data/t-0/leader-epoch-checkpoint.tmp
\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:92)
[2026-11-30 20:23:26,900] INFO Loading logs from log dirs (org.apache.kafka.storage.internals.log.LogManager)
"""
NO_MAIN_CLASS = """\
Error: Could not find or load main class kafka.Kafka
Caused by: java.lang.ClassNotFoundException: kafka.Kafka
"""
UNCAUGHT = """\
Exception in thread "main" java.lang.NoClassDefFoundError: org/slf4j/LoggerFactory
\tat kafka.Kafka.<clinit>(Kafka.scala)
Caused by: java.lang.ClassNotFoundException: org.slf4j.LoggerFactory
\t... 1 more
"""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (WRONG_NODE, "Stored node id 7 doesn't match previous node id 1 in /data/meta.properties."),
        (TAKEN_PORT, "Socket server failed to bind to 127.0.0.1:1: Address already in use."),
        (STRAY_WARNING, "Loading logs from log dirs"),
        (NO_MAIN_CLASS, "Caused by: java.lang.ClassNotFoundException: kafka.Kafka"),
        (UNCAUGHT, "org.slf4j.LoggerFactory"),
        ("[2026-11-30 20:23:24,060] ERROR No node (kafka.Kafka$)\n", "No node"),
        ("", "it said nothing"),
    ],
)
def test_the_reason_in_a_log(log: str, reason: str) -> None:
    assert failure_reason(log) == reason
