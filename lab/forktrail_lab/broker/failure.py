"""Finds in a broker's log why it ended."""

from __future__ import annotations

import re

_RECORD = re.compile(r"^\[[^\]]+\] (?P<level>[A-Z]+) (?P<text>.*?)(?: \([\w.$]+\))?$")
_UNCAUGHT = re.compile(r'^Exception in thread "[^"]*" ')
_EXCEPTION = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error)(?:: (?P<message>.+))?$")


def failure_reason(log: str) -> str:
    """What a broker's log says last about why it ended.

    That is the cause of the last error: the message of the innermost exception, as the outermost exception that
    repeats it words it, or the error's own text if no exception follows it. A log without errors gives its last
    line.
    """
    error = ""
    messages: list[str] = []
    last = "it said nothing"
    in_error = False
    for line in (line.rstrip() for line in log.splitlines() if line.strip()):
        record = _RECORD.match(line)
        uncaught = _UNCAUGHT.match(line)
        if record or uncaught:
            in_error = bool(uncaught) or (record is not None and record["level"] in ("ERROR", "FATAL"))
            if in_error:
                error, messages = (record["text"] if record else line), []
        exception = _EXCEPTION.match(_UNCAUGHT.sub("", line))
        if in_error and exception and exception["message"]:
            messages.append(exception["message"])
        last = record["text"] if record else line.strip()
    if not messages:
        return error or last
    return next(message for message in messages if messages[-1] in message)
