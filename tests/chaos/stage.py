"""What every scenario is given: a broker, a folder, chance, and somebody to tell what is going on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.broker import Broker, Say
from chaos.rig import Rig
from chaos.schedule import Target


@dataclass(frozen=True)
class Stage:
    """One command's run.

    Attributes:
        folder: takes everything; a scenario's own folder in it bears its name.
        seed: all chance comes from it.
        kills: how often each process is to be killed.
        engine: the graph engine.
    """

    folder: Path
    broker: Broker
    seed: int
    kills: Mapping[Target, int]
    engine: str
    say: Say

    def rig(self, name: str) -> Rig:
        """A run of a scenario's own."""
        return Rig(self.folder / name, self.broker, self.seed, self.say, self.engine)
