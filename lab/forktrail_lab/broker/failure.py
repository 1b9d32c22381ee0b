"""Finds in a broker's log why it ended, and knows what to do about what happens often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = re.compile(r"^\[[^\]]+\] (?P<level>[A-Z]+) (?P<text>.*?)(?: \([\w.$]+\))?$")
_UNCAUGHT = re.compile(r'^Exception in thread "[^"]*" ')
_EXCEPTION = re.compile(r"^(?:Caused by: )?[\w.$]*?(?P<name>\w+(?:Exception|Error))(?:: (?P<message>.+))?$")
# Exceptions whose message is a path and nothing else.
_OF_A_PATH = {"AccessDeniedException": "access denied: ", "NoSuchFileException": "there is no "}
# Java's own last lines, which say nothing that the one before them doesn't.
_BOILERPLATE = re.compile(
    r"Error: (Could not create the Java Virtual Machine|A fatal exception has occurred)|#? *An error report file|"
    r"#? */.*\.log$|#$|Picked up |Error occurred during initialization of VM"
)
_OUT_OF_MEMORY = re.compile(r"# There is insufficient memory")
# The end that any trouble with the data folder comes to; the trouble itself was told before.
_CONSEQUENCE = re.compile(r"all log dirs in .* have failed")
_REMEDIES = (
    (r"No space left|Disk quota|File too large", "make room on its disk, then run `forktrail broker start`"),
    (r"Address already in use", "choose another port with --port, or end what listens there"),
    (
        r"OutOfMemoryError|insufficient memory|heap size|Could not (reserve|allocate)",
        "let Java have 1 GB: end other programs, raise `ulimit -v`, or take sizes out of _JAVA_OPTIONS",
    ),
    (r"Malformed line in checkpoint file", "move that file away, and start it again: Kafka makes it anew"),
    (r"access denied|Permission denied|Read-only file system", "make that writable for whoever starts the broker"),
)


@dataclass
class _Trouble:
    """An error of the log, with the messages of the exceptions below it, the outermost first."""

    text: str
    messages: list[str] = field(default_factory=list)

    def reason(self) -> str:
        """The innermost exception's message, as the outermost exception that repeats it words it."""
        if not self.messages:
            return self.text
        last = self.messages[-1]
        found = next(message for message in self.messages if last in message)
        outer = self.messages[-2] if len(self.messages) > 1 else ""
        # A sentence that doesn't repeat its cause says where that happened: of which file, say.
        return f"{outer}: {last}" if found is last and " " in outer else found


def failure_reason(log: str) -> str:
    """What a broker's log says last about why it ended.

    That is the cause of the last error that is no mere consequence: the message of the innermost exception, or the
    error's own text if no exception follows it. A log without errors gives its last telling line.
    """
    troubles, last = _read(log)
    telling = [trouble for trouble in troubles if not _CONSEQUENCE.search(trouble.text)]
    return (telling or troubles)[-1].reason() if troubles else last


def known_failure(log: str) -> str:
    """The last error in a log that has a known remedy, with it, in one line; empty if there is none.

    Kafka logs errors in the best of health, so of a broker that was killed only such an error tells why it ended.
    """
    troubles, last = _read(log)
    reasons = [last, *(trouble.reason() for trouble in reversed(troubles))]
    return next((f"{reason}; {remedy(reason)}" for reason in reasons if remedy(reason)), "")


def remedy(reason: str) -> str:
    """What to do about a reason; empty where that isn't known."""
    return next((hint for pattern, hint in _REMEDIES if re.search(pattern, reason)), "")


def read_log(log_file: Path) -> str:
    """The log of the last start; empty if there is none."""
    try:
        return log_file.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _read(log: str) -> tuple[list[_Trouble], str]:
    """The errors of a log, and its last telling line."""
    troubles: list[_Trouble] = []
    last = "it said nothing"
    in_error = False
    for line in _lines(log):
        record = _RECORD.match(line)
        uncaught = _UNCAUGHT.match(line)
        if record or uncaught:
            in_error = bool(uncaught) or (record is not None and record["level"] in ("ERROR", "FATAL"))
            if in_error:
                troubles.append(_Trouble(record["text"] if record else line))
        exception = _EXCEPTION.match(_UNCAUGHT.sub("", line))
        if in_error and exception and exception["message"]:
            troubles[-1].messages.append(_OF_A_PATH.get(exception["name"], "") + exception["message"])
        last = record["text"] if record else line.strip()
        if _OUT_OF_MEMORY.match(line):
            text = line.removeprefix("# ")
            return [*troubles, _Trouble(text)], text
    return troubles, last


def _lines(log: str) -> Iterable[str]:
    lines = (line.rstrip() for line in log.splitlines())
    return (line for line in lines if line.strip() and not _BOILERPLATE.match(line))
