"""Which behaviors a run has, in the order of their registration, and which of them this process has the code of."""

from __future__ import annotations

from dataclasses import dataclass

from forktrail_behaviors.behavior import Behavior
from forktrail_behaviors.pack import Pack
from forktrail_schemas.events import BehaviorRegistered


@dataclass(frozen=True)
class Registered:
    """A behavior as its run knows it."""

    name: str
    version: str
    code_sha256: str
    offset: int


class Registrations:
    """The registrations up to some offset; a later one of the same name takes the place of the earlier."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._current: dict[str, Registered] = {}
        self._all: dict[tuple[str, str], Registered] = {}

    def add(self, event: BehaviorRegistered, offset: int) -> None:
        """Take in a valid registration; it holds for what comes after it."""
        registered = Registered(event.name, event.version, event.code_sha256, offset)
        self._current.pop(event.name, None)
        self._current[event.name] = self._all[event.name, event.version] = registered

    def active(self, offset: int) -> list[Behavior]:
        """The behaviors that react to the event at an offset, as far as their code is loaded."""
        found = (self.loaded(one.name, one.version) for one in self._current.values() if one.offset < offset)
        return [behavior for behavior in found if behavior is not None]

    def loaded(self, name: str, version: str) -> Behavior | None:
        """The code that was registered under a name and version; None where this process has other code, or none."""
        behavior = self._pack.behaviors_by_name.get(name)
        registered = self._all.get((name, version))
        if behavior is None or registered is None:
            return None
        same = (behavior.version, behavior.code_sha256) == (version, registered.code_sha256)
        return behavior if same else None

    def missing(self) -> list[Registered]:
        """The current registrations whose code isn't loaded, or differs."""
        return [one for one in self._current.values() if self.loaded(one.name, one.version) is None]

    def all(self) -> list[Registered]:
        """Every registration that there was."""
        return list(self._all.values())

    def code_of(self, name: str) -> str | None:
        """The digest of the code that this process has under a name; None where it has none."""
        behavior = self._pack.behaviors_by_name.get(name)
        return behavior.code_sha256 if behavior else None
