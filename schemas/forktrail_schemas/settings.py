"""Where things are: read from the environment once, in `main()`, and passed on as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forktrail_schemas.errors import InvalidInput

LOCAL_BROKER_PORT = 9092
GRAPH_ENGINES = ("ladybug", "kuzu")


@dataclass(frozen=True)
class Settings:
    """Everything a process takes from its environment.

    Attributes:
        home: folder of local state (broker data, keys, graphs, blobs); `FORKTRAIL_HOME`, else `.forktrail`.
        bootstrap_servers: Kafka's `host:port[,host:port]`; `FORKTRAIL_BOOTSTRAP_SERVERS`, else the local
            broker's address as its state file gives it, else loopback on `broker_port`.
        external_kafka: True where `FORKTRAIL_BOOTSTRAP_SERVERS` names the Kafka to use.
        graph_engine: `FORKTRAIL_GRAPH_ENGINE`, "ladybug" unless set to "kuzu".
        broker_port: port on which the local broker is started; `FORKTRAIL_BROKER_PORT`, else the default port.
    """

    home: Path
    bootstrap_servers: str
    external_kafka: bool
    graph_engine: str
    broker_port: int = LOCAL_BROKER_PORT

    @property
    def keys_dir(self) -> Path:
        """Private keys, one file each, readable by their owner alone."""
        return self.home / "keys"

    @property
    def graphs_dir(self) -> Path:
        """One graph database and lock file per run, and the graphs that were set aside."""
        return self.home / "graphs"

    @property
    def blobs_dir(self) -> Path:
        """Large bytes by their SHA-256."""
        return self.home / "blobs"

    @property
    def kafka_dir(self) -> Path:
        """The local broker's jars, configuration, data, log and state file."""
        return self.home / "kafka"

    @property
    def lab_dir(self) -> Path:
        """The lab's target file and log."""
        return self.home / "lab"

    @staticmethod
    def from_environment(environ: Mapping[str, str]) -> Settings:
        """Build settings from environment variables.

        Raises:
            InvalidInput: an unknown graph engine, a port that is none, or a broker state file that can't be read or
                isn't JSON.
        """
        home = Path(environ.get("FORKTRAIL_HOME") or ".forktrail").absolute()
        external = environ.get("FORKTRAIL_BOOTSTRAP_SERVERS", "").strip()
        engine = environ.get("FORKTRAIL_GRAPH_ENGINE") or GRAPH_ENGINES[0]
        if engine not in GRAPH_ENGINES:
            raise InvalidInput(f"FORKTRAIL_GRAPH_ENGINE is {engine!r}", hint=f"use one of: {', '.join(GRAPH_ENGINES)}")
        port = _port(environ.get("FORKTRAIL_BROKER_PORT") or str(LOCAL_BROKER_PORT))
        return Settings(
            home=home,
            bootstrap_servers=external or _local_bootstrap_servers(home, port),
            external_kafka=bool(external),
            graph_engine=engine,
            broker_port=port,
        )


def broker_state_file(home: Path) -> Path:
    """The file in which the local broker notes its pid and address while it runs."""
    return home / "kafka" / "broker.json"


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536):
        raise InvalidInput(f"FORKTRAIL_BROKER_PORT is {text!r}", hint="use a number from 1 to 65535")
    return int(text)


def _local_bootstrap_servers(home: Path, port: int) -> str:
    path = broker_state_file(home)
    try:
        return str(json.loads(path.read_text())["bootstrap_servers"])
    except FileNotFoundError:
        return f"127.0.0.1:{port}"
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}", hint="set FORKTRAIL_HOME") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} is not a broker state file: {error}", hint="delete it, then run `forktrail broker start`"
        ) from error
