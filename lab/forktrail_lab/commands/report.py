"""`forktrail report`: file a report on a registered test."""

from __future__ import annotations

import argparse

from pydantic import TypeAdapter, ValidationError

from forktrail_lab.console.arguments import add_actor, add_format, add_run, login_name, some_words
from forktrail_lab.console.output import note, print_made
from forktrail_lab.console.session import Speaker, open_session
from forktrail_schemas.errors import ExitCode, NotFound
from forktrail_schemas.events import ReportFiled
from forktrail_schemas.ids import derived_id
from forktrail_schemas.settings import Settings
from forktrail_schemas.values import LINE_LENGTH_MAX, Line

EXAMPLE = "  CASE=$(forktrail report $RUN gateway-routing-context --as rita --summary 'the routing header is believed')"

_LINE: TypeAdapter[str] = TypeAdapter(Line)
_SAID = {
    "case_opened": "{case} waits for approval",
    "case_exists": "kept as a report; {case} stands for this test in this revision",
    "support_missing": "kept as a report; no case was opened, because what the test requires is not met now",
    "budget_exhausted": "kept as a report; no case was opened, because a budget is used up",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare run, test, summary and who reports."""
    add_run(parser)
    parser.add_argument("test", metavar="TEST", help="id of a registered test")
    parser.add_argument(
        "--summary", type=_one_line, metavar="LINE", required=True, help="what was seen, in words, on one line"
    )
    parser.add_argument("--details", metavar="TEXT", default="", help="all else there is to say")
    add_actor(parser, "who reports it (default: your login name); claimed, not signed")
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """File the report, and print the id of the case that stands for the test now.

    A report that opens no case is kept too, and is no error.

    Raises:
        NotFound: the run has no such test; nothing was sent.
    """
    researcher = arguments.actor or login_name()
    with open_session(settings, arguments.run) as session:
        if session.row("TestCase", arguments.test) is None:
            raise NotFound(
                f"{arguments.run} has no test {arguments.test!r}",
                hint=f"forktrail query {arguments.run} 'MATCH (t:TestCase) RETURN t.id, t.title'",
                run=arguments.run,
            )
        written = session.write(
            ReportFiled,
            Speaker("human", researcher),
            test_id=arguments.test,
            summary=arguments.summary,
            details=arguments.details,
        )
        report = session.existing("Report", derived_id("report", written.event_id))
    outcome = str(report["outcome"])
    case = None if report["case_id"] is None else str(report["case_id"])
    facts = written.facts() | {"report_id": report["id"], "outcome": outcome, "case_id": case}
    said = _SAID.get(outcome, "kept as a report; no case was opened").format(case=case)
    print_made(case, f"{outcome}: {said} (offset {written.offset})", facts, arguments.format)
    if outcome == "support_missing":
        note(f"`forktrail why-not {arguments.run} {arguments.test}` names what is missing")
    return ExitCode.OK


def _one_line(text: str) -> str:
    try:
        return _LINE.validate_python(some_words(text))
    except ValidationError:
        raise argparse.ArgumentTypeError(
            f"it is not one line of {LINE_LENGTH_MAX} characters at most: say the rest with --details"
        ) from None
