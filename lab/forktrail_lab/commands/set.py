"""`forktrail set`: show or change the settings of a run."""

from __future__ import annotations

import argparse

from forktrail_lab.console.arguments import ADMIN_KEY, add_format, add_key, add_run, split_pair
from forktrail_lab.console.output import print_result, print_rows
from forktrail_lab.console.run_summary import SETTING_COLUMNS, setting_rows
from forktrail_lab.console.session import open_session
from forktrail_projectors.rules.log import NAMED_SETTINGS, SETTINGS
from forktrail_schemas.errors import ExitCode, InvalidInput
from forktrail_schemas.events import SettingChanged
from forktrail_schemas.settings import Settings

EXAMPLE = "  forktrail set $RUN\n  forktrail set $RUN same-person-may-review=true"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the run and its new settings."""
    add_run(parser)
    parser.add_argument(
        "pairs", type=split_pair, nargs="*", metavar="name=value", help=f"{_known()}; without any, all are shown"
    )
    add_key(parser, ADMIN_KEY)
    add_format(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Show the settings, or change some, in the order given.

    Raises:
        InvalidInput: an unknown setting or value; nothing was sent.
        EventVoid: the key may not; those before it were changed.
    """
    for name, value in arguments.pairs:
        _check(name, value)
    with open_session(settings, arguments.run) as session:
        if not arguments.pairs:
            print_rows(SETTING_COLUMNS, setting_rows(session), arguments.format)
            return ExitCode.OK
        speaker = session.person(arguments.key)
        for name, value in arguments.pairs:
            written = session.write(SettingChanged, speaker, name=name, value=value)
            facts = written.facts() | {"setting": name, "value": value}
            print_result(f"{name} is {value} from offset {written.offset}", facts, arguments.format)
    return ExitCode.OK


def _check(name: str, value: str) -> None:
    if name not in SETTINGS:
        raise InvalidInput(f"there is no setting {name!r}", hint=f"known: {_known()}")
    if name not in NAMED_SETTINGS and value not in SETTINGS[name]:
        raise InvalidInput(f"{name} can't be {value!r}", hint=f"use one of: {', '.join(SETTINGS[name])}")


def _known() -> str:
    more = dict.fromkeys(NAMED_SETTINGS, "|NAME")
    return ", ".join(f"{name}={'|'.join(values)}{more.get(name, '')}" for name, values in SETTINGS.items())
