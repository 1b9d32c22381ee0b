"""`forktrail query`: ask a run's graph in Cypher, read-only."""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import time
from collections.abc import Mapping

from forktrail_lab.console.arguments import add_format, add_run, split_pair
from forktrail_lab.console.output import Format, counted, note, print_rows
from forktrail_lab.console.work import Work
from forktrail_lab.shell.catalog import read_catalog
from forktrail_lab.shell.faults import fault_lines, fitted
from forktrail_lab.shell.parameters import parameter_value, require_values
from forktrail_lab.shell.tokens import flattened
from forktrail_projectors.graph.parameters import check_values
from forktrail_projectors.graph.protocol import Table
from forktrail_projectors.graph.session import GRACE_SECONDS, out_of_time
from forktrail_projectors.projection import open_projection
from forktrail_projectors.state import Value
from forktrail_projectors.view import RunView
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.settings import Settings

EXAMPLE = """\
  forktrail query $RUN 'MATCH (f:Finding)-[:ENABLES]->(c:Capability) RETURN f.id, f.test, c.id'
  forktrail query $RUN 'MATCH (c:`Case`) WHERE c.status = $status RETURN c.id' --param status=proposed --json
  forktrail query $RUN 'MATCH (f:Finding) RETURN f.id, f.title' --format csv > findings.csv"""

TIMEOUT_SECONDS_MIN = 0.001
TIMEOUT_SECONDS_MAX = 86_400


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run, the statement and its parameters."""
    add_run(parser)
    parser.add_argument("cypher", metavar="CYPHER", help="one statement that only reads")
    parser.add_argument(
        "--param",
        dest="parameters",
        type=split_pair,
        action="append",
        default=[],
        metavar="name=value",
        help="for $name in the statement; a whole number, true, false, null or quoted string, else taken as text",
    )
    parser.add_argument("--no-fold", action="store_true", help="ask the graph as it stands; an error if it is behind")
    parser.add_argument(
        "--timeout",
        type=_milliseconds,
        metavar="SECONDS",
        help="give up on the query after this long, not counting what is folded before it (default: never)",
    )
    add_format(parser, rows=True)
    parser.add_argument(
        "--json", dest="format", action="store_const", const=str(Format.JSON), help="short for --format json"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the statement and print its rows; how many and how long it took goes to stderr.

    Raises:
        InvalidInput: it doesn't parse, writes, touches files or settings, or names a column twice, or a parameter is
            given twice.
        GraphError: the graph is missing, behind or of another log (with `--no-fold`), or it took too long.
    """
    parameters = {name: parameter_value(text) for name, text in arguments.parameters}
    if len(parameters) < len(arguments.parameters):
        raise InvalidInput("a parameter is given twice", hint="give each --param once")
    check_values(arguments.cypher, parameters)
    require_values(arguments.cypher, parameters, lambda name: f"`--param {name}=…` gives it one")
    with open_projection(settings, arguments.run, fold=not arguments.no_fold, steady=False, say=note) as projection:
        began = time.perf_counter()
        try:
            table = _answer(projection, arguments.cypher, parameters, arguments.timeout)
        except InvalidInput as error:
            _tell(projection, error, arguments.cypher)
            return error.exit_code
        milliseconds = (time.perf_counter() - began) * 1000
    if len(set(table.columns)) < len(table.columns):
        raise InvalidInput("two columns have the same name", hint="name them with AS")
    print_rows(table.columns, table.rows, arguments.format)
    note(f"{counted(len(table.rows), 'row')} in {milliseconds:.0f} ms")
    return ExitCode.OK


def _answer(view: RunView, cypher: str, parameters: Mapping[str, Value], timeout_ms: int | None) -> Table:
    """Ask in another thread: the engine hears nothing of Ctrl-C, and not always of the time that it may take."""
    asked = Work(lambda: view.graph.query(flattened(cypher), parameters, timeout_ms=timeout_ms))
    if not asked.wait(None if timeout_ms is None else timeout_ms / 1000 + GRACE_SECONDS):
        raise out_of_time()
    return asked.result()


def _tell(view: RunView, error: InvalidInput, cypher: str) -> None:
    """Say what is wrong with the statement, and show where, as the shell does."""
    catalog = read_catalog(lambda statement: view.graph.query(statement, {}))
    first, *pointed = fault_lines(error, cypher, catalog, view.run, "a query")
    lines = [first.replace("error", f"forktrail query: {error.code}", 1), *pointed]
    for line in fitted(lines, shutil.get_terminal_size().columns) if sys.stderr.isatty() else lines:
        note(line)


def _milliseconds(text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not TIMEOUT_SECONDS_MIN <= seconds <= TIMEOUT_SECONDS_MAX:
        bounds = f"from {TIMEOUT_SECONDS_MIN} to {TIMEOUT_SECONDS_MAX}"
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds {bounds}")
    return round(seconds * 1000)
