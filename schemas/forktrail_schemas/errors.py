"""The one tree of errors, each named for the decision its catcher makes.

    ForktrailError                 exit 1
    ├── InvalidInput               exit 2   the caller's words or file are wrong; nothing was sent
    │   ├── InvalidEvent                    an event breaks its schema; nothing was sent
    │   └── InvalidSchema                   a text is no schema that a run could declare
    ├── NotFound                   exit 3   no such run, case, key, test or finding
    ├── Corruption                 exit 4   stored bytes contradict their digest, signature or order
    │   ├── EvidenceMissing                 a blob that an event names is not in the store
    │   └── ForeignTransaction              the log has a gap: written inside a Kafka transaction
    ├── ApprovalRequired           exit 7   a person has to decide first
    ├── EventVoid                  exit 1   the log holds the event and its rules refused it
    ├── EventUnreadable            exit 1   a record that can't be decoded; the fold keeps a verdict
    ├── LogUnavailable             exit 1   Kafka doesn't answer; retry
    ├── BrokerError                exit 1   the local broker can't be started, stopped or found
    └── GraphError                 exit 1   the graph can't be asked; never read as an empty answer
        ├── GraphUnavailable                there is no graph, or it doesn't open
        ├── GraphBehind                     it lacks records that the log has
        ├── GraphMismatch                   it was folded from another topic
        ├── GraphBusy                       another process holds it
        ├── GraphDiskFull                   its disk has no room for what is to be folded; nothing is damaged
        ├── GraphHung                       a query in it doesn't end; end the process
        └── GraphCatalogMismatch            it contradicts the test registry

Each error has one of three fates: `retry` the same call later, `dead-letter` the record and go on, or `crash`:
stop and let a person look.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """What the command line returns, for every command alike."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CORRUPTION = 4
    DIVERGENCE = 5
    DIFFERENCE = 6
    APPROVAL_REQUIRED = 7


class Fate(StrEnum):
    """What whoever catches the error should do with the work at hand."""

    RETRY = "retry"
    DEAD_LETTER = "dead-letter"
    CRASH = "crash"


class ForktrailError(Exception):
    """Base of everything Forktrail raises on purpose.

    Attributes:
        code: the stable reason code, lower case with underscores.
        hint: what to do next, one sentence, may be empty.
        run: run id concerned, if one is.
        offset: offset in that run, if one is concerned.
        event_id: event concerned, if one is.
    """

    code = "error"
    exit_code = ExitCode.ERROR
    fate = Fate.CRASH

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        run: str | None = None,
        offset: int | None = None,
        event_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.run = run
        self.offset = offset
        self.event_id = event_id
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class InvalidInput(ForktrailError):
    """A value, file or argument from the caller is wrong; nothing was sent or changed."""

    code = "invalid_input"
    exit_code = ExitCode.USAGE


class InvalidEvent(InvalidInput):
    """An event breaks its schema; it was not sent."""

    code = "invalid_event"


class InvalidSchema(InvalidInput):
    """A text is no schema that a run could declare; the message says the same on every version of Python."""

    code = "invalid_schema"


class NotFound(ForktrailError):
    """The named run, case, key, test or finding doesn't exist."""

    code = "not_found"
    exit_code = ExitCode.NOT_FOUND


class Corruption(ForktrailError):
    """Stored bytes contradict the digest, signature or order they were stored under."""

    code = "corruption"
    exit_code = ExitCode.CORRUPTION


class EvidenceMissing(Corruption):
    """A blob named by an event is not in the store; never read as empty."""

    code = "evidence_missing"


class ForeignTransaction(Corruption):
    """A run topic has a gap in its offsets: somebody wrote it inside a Kafka transaction.

    `offset` is the last good one; fork from there.
    """

    code = "foreign_transaction"


class ApprovalRequired(ForktrailError):
    """Nothing may run before a person approves it."""

    code = "approval_required"
    exit_code = ExitCode.APPROVAL_REQUIRED


class EventVoid(ForktrailError):
    """The event is on the log and its rules refused it; `code` is the reason code."""

    code = "void"


class EventUnreadable(ForktrailError):
    """A record's bytes can't be decoded as an event; `code` says why."""

    code = "unreadable"
    fate = Fate.DEAD_LETTER


class LogUnavailable(ForktrailError):
    """Kafka doesn't answer or refused the request; the same call may succeed later."""

    code = "log_unavailable"
    fate = Fate.RETRY


class BrokerError(ForktrailError):
    """The local broker can't be started, stopped or found."""

    code = "broker_error"


class GraphError(ForktrailError):
    """The graph can't answer; never to be read as an empty answer."""

    code = "graph_error"


class GraphUnavailable(GraphError):
    """There is no graph of this run, or its file doesn't open."""

    code = "graph_unavailable"


class GraphBehind(GraphError):
    """The graph lacks records that the log has."""

    code = "graph_behind"
    fate = Fate.RETRY


class GraphMismatch(GraphError):
    """The graph was folded from another topic than the one this run has now."""

    code = "graph_mismatch"


class GraphBusy(GraphError):
    """Another process holds the graph's lock."""

    code = "graph_busy"
    fate = Fate.RETRY


class GraphDiskFull(GraphError):
    """The graph's disk has no room for a commit, which wasn't begun; the graph is whole, as of the one before."""

    code = "disk_full"
    fate = Fate.RETRY


class GraphHung(GraphError):
    """A query runs on though it was interrupted, so that the graph can't be closed.

    Its file is free once the process ends. Nothing is lost by ending that at once: a query only reads.
    """

    code = "graph_hung"


class GraphCatalogMismatch(GraphError):
    """The graph and the test registry contradict each other."""

    code = "graph_catalog_mismatch"
