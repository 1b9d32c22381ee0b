"""The reason is found in logs that Kafka 4.4.0 and Java 17 wrote, and what to do about it is known."""

from __future__ import annotations

import pytest

from forktrail_lab.broker.failure import failure_reason, known_failure, remedy

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

FULL_DISK = """\
[2026-11-30 23:15:29,048] ERROR Error while appending records to run-0 in dir /data (o.a.k.LogDirFailureChannel)
java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
[2026-11-30 23:15:29,060] WARN Stopping serving replicas in dir /data because the log directory has failed. (kafka.R)
[2026-11-30 23:15:29,100] ERROR Shutdown broker because all log dirs in /data have failed (o.a.k.LogManager)
"""
BAD_CHECKPOINT = """\
[2026-11-30 23:21:50,241] ERROR Error while reading checkpoint file /data/x-checkpoint (o.a.k.LogDirFailureChannel)
java.io.IOException: Malformed line in checkpoint file [/data/x-checkpoint]: garbage
[2026-11-30 23:21:50,300] WARN Error occurred, resetting the recovery checkpoint to 0 (o.a.k.LogManager)
org.apache.kafka.common.errors.KafkaStorageException: Error while reading checkpoint file /data/x-checkpoint
Caused by: java.io.IOException: Malformed line in checkpoint file [/data/x-checkpoint]: garbage
[2026-11-30 23:21:50,474] ERROR Shutdown broker because all log dirs in /data have failed (o.a.k.LogManager)
"""
BAD_QUORUM_STATE = """\
[2026-11-30 23:21:51,905] ERROR Encountered fatal fault: caught exception (o.a.k.ProcessTerminatingFaultHandler)
java.io.UncheckedIOException: Error while reading the Quorum status from the file /data/quorum-state
\tat org.apache.kafka.raft.FileQuorumStateStore.readStateFromFile(FileQuorumStateStore.java:162)
Caused by: java.io.EOFException: File ended prematurely.
"""
NOT_PERMITTED = """\
[2026-11-30 23:21:51,905] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.nio.file.AccessDeniedException: /data/meta.properties
"""
HEALTHY_BUT_KILLED = """\
[2026-11-30 23:12:14,013] ERROR [ControllerApis nodeId=1] Unexpected error handling request (kafka.ControllerApis)
java.util.concurrent.CompletionException: o.a.k.NotControllerException: The active controller appears to be node 1.
[2026-11-30 23:12:14,013] INFO Memory of the heap is plentiful (kafka.Kafka$)
"""
NO_HEAP = """\
Picked up _JAVA_OPTIONS: -Xmx999999g
Error occurred during initialization of VM
Could not reserve enough space for 1048574951424KB object heap
"""
NO_SUCH_HEAP = """\
Invalid maximum heap size: -Xmx99999999999g
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
NO_MEMORY = """\
OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0xe0000000, 89128960, 0) failed; errno=12
#
# There is insufficient memory for the Java Runtime Environment to continue.
# Native memory allocation (mmap) failed to map 89128960 bytes for committing reserved memory.
# An error report file with more information is saved as:
# /home/me/.forktrail/kafka/logs/java-crash-17.log
"""
USED_UP = """\
[2026-11-30 23:12:14,013] INFO Loading logs (o.a.k.LogManager)
Terminating due to java.lang.OutOfMemoryError: Java heap space
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
        (FULL_DISK, "No space left on device"),
        (BAD_CHECKPOINT, "Malformed line in checkpoint file [/data/x-checkpoint]: garbage"),
        (
            BAD_QUORUM_STATE,
            "Error while reading the Quorum status from the file /data/quorum-state: File ended prematurely.",
        ),
        (NOT_PERMITTED, "access denied: /data/meta.properties"),
        (NO_HEAP, "Could not reserve enough space for 1048574951424KB object heap"),
        (NO_SUCH_HEAP, "Invalid maximum heap size: -Xmx99999999999g"),
        (NO_MEMORY, "There is insufficient memory for the Java Runtime Environment to continue."),
        (USED_UP, "Terminating due to java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_the_reason_in_a_log(log: str, reason: str) -> None:
    assert failure_reason(log) == reason


@pytest.mark.parametrize(
    ("log", "hint"),
    [
        (FULL_DISK, "make room"),
        (TAKEN_PORT, "--port"),
        (BAD_CHECKPOINT, "move that file away"),
        (NOT_PERMITTED, "make that writable"),
        (NO_HEAP, "let Java have"),
        (NO_SUCH_HEAP, "let Java have"),
        (NO_MEMORY, "let Java have"),
        (USED_UP, "let Java have"),
    ],
)
def test_what_happens_often_has_a_remedy_and_is_told_of_a_broker_that_is_gone(log: str, hint: str) -> None:
    assert hint in remedy(failure_reason(log))
    assert known_failure(log).startswith(failure_reason(log))
    assert hint in known_failure(log)


@pytest.mark.parametrize("log", [FULL_DISK, TAKEN_PORT, BAD_CHECKPOINT])
def test_what_kafka_says_while_it_shuts_down_hides_no_reason(log: str) -> None:
    longer = log + "[2026-11-30 23:30:00,000] INFO shutting down (kafka.server.KafkaRaftServer)\n"
    assert known_failure(longer) == known_failure(log) != ""


@pytest.mark.parametrize("log", [WRONG_NODE, STRAY_WARNING, HEALTHY_BUT_KILLED, ""])
def test_what_needs_a_person_to_look_has_no_remedy_made_up(log: str) -> None:
    assert remedy(failure_reason(log)) == known_failure(log) == ""
