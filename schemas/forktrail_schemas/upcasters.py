"""What makes one version of a record of the version before, where Avro's own defaults, aliases and promotions can't.

An upcaster is a pure function from a record of the earlier class to the fields of the next. It takes every record that
the earlier class allows to one that the next allows. Each has examples in `schemas/upcasts/`, which the tests run and
`python -m forktrail_schemas.compatibility --check` asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from forktrail_schemas.events import ReportFiledV1
from forktrail_schemas.record import Record
from forktrail_schemas.values import LINE_LENGTH_MAX

# The argument is a record of the class under which the upcaster stands.
Upcaster = Callable[[Any], dict[str, object]]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def report_in_one_line(report: ReportFiledV1) -> dict[str, object]:
    """Version 2 has a summary of one line, and details: what is no such line is kept whole as details."""
    summary, details = report.summary, ""
    if len(summary) > LINE_LENGTH_MAX or _CONTROL.search(summary):
        summary, details = _first_line(report.summary), report.summary
    return {"meta": report.meta, "test_id": report.test_id, "summary": summary, "details": details}


def _first_line(text: str) -> str:
    """The first line that isn't blank, without control characters; as much of it as a line may have."""
    lines = (_CONTROL.sub(" ", line).strip(" ") for line in re.split(r"[\r\n]", text))
    return next((line for line in lines if line), "")[:LINE_LENGTH_MAX]


UPCASTERS: Mapping[type[Record], Upcaster] = {ReportFiledV1: report_in_one_line}
"""By the class of the earlier version."""
