"""Finds the broker's pom and configuration and fills in the template."""

from __future__ import annotations

from pathlib import Path
from string import Template

from forktrail_schemas.errors import BrokerError


def config_folder() -> Path:
    """The folder of pom.xml, server.properties and log4j2.properties.

    It is `kafka/` beside this module in an installed wheel and `compose/kafka` in a checkout.

    Raises:
        BrokerError: neither is there (`config_missing`).
    """
    here = Path(__file__).resolve()
    for folder in (here.parent / "kafka", here.parents[3] / "compose" / "kafka"):
        if (folder / "pom.xml").is_file():
            return folder
    raise BrokerError("the broker's pom.xml is missing", code="config_missing", hint="install forktrail again")


def compose_file() -> Path | None:
    """The Docker Compose file, if this installation has one."""
    folder = config_folder()
    candidates = (folder / "docker-compose.yml", folder.parent / "docker-compose.yml")
    return next((path for path in candidates if path.is_file()), None)


def check_paths(data: Path, libs: Path) -> None:
    """Refuse paths that can't be written where they have to stand.

    Raises:
        BrokerError: Kafka would split the data folder at a comma, or Java the class path at a colon
            (`path_unusable`).
    """
    for path, separator, name in ((data, ",", "comma"), (libs, ":", "colon")):
        if separator in str(path):
            raise BrokerError(
                f"the broker can't use a path with a {name}: {path}", code="path_unusable", hint="set FORKTRAIL_HOME"
            )


def server_properties(template: str, *, port: int, controller_port: int, data: Path) -> str:
    """Fill in the template of server.properties."""
    return Template(template).substitute(PORT=port, CONTROLLER_PORT=controller_port, DATA=_properties_value(str(data)))


def _properties_value(text: str) -> str:
    """Escape a value for java.util.Properties, which reads ISO-8859-1."""
    utf16 = text.replace("\\", "\\\\").encode("utf-16-be")
    units = (int.from_bytes(utf16[i : i + 2], "big") for i in range(0, len(utf16), 2))
    return "".join(chr(unit) if unit < 128 else f"\\u{unit:04x}" for unit in units)
