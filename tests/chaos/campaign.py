"""Kills the processes of a run, one after the other, each while it had something in flight."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from chaos.broker import Say
from chaos.rig import NotInTime, Rig
from chaos.schedule import TARGETS, Draw, Moment, Target, draws, order_of

# What a process has in flight.
UNITS: Mapping[Target, str] = {
    "projector": "unfolded",
    "producer": "unacknowledged",
    "broker": "unacknowledged",
}
REDRAWS_MAX = 50
UP_SECONDS = 90.0
AIM_SECONDS = 20.0
PROGRESS_SECONDS = 15.0
# Acknowledgements that a broker had sent before it died are read within this time.
_SETTLE_SECONDS = 0.05
_LOOK_SECONDS = 0.0003


@dataclass(frozen=True)
class Kill:
    """One kill.

    Attributes:
        at: seconds since the first process was started.
        moment: what the process was at.
        in_flight: events that were unfolded (projector) or unacknowledged (producer, broker) when it died.
        found: what else was seen: of a projector, the cursor of the graph that it left, and the log's end.
        counts: whether anything was in flight.
    """

    target: Target
    at: float
    moment: Moment
    in_flight: int
    found: str
    counts: bool

    def in_words(self) -> str:
        """One line."""
        found = f" ({self.found})" if self.found else ""
        again = "" if self.counts else "; drawn again"
        return f"  {self.at:6.1f} s  {self.target} {self.moment}: {self.in_flight} {UNITS[self.target]}{found}{again}"


class Campaign:
    """The kills of one run. Everything about chance comes from the seed."""

    def __init__(self, rig: Rig, seed: int, counts: Mapping[Target, int], say: Say) -> None:
        self._rig = rig
        self._order = order_of(seed, counts)
        self._draws: dict[Target, Iterator[Draw]] = {target: draws(seed, target) for target in TARGETS}
        self._say = say
        self._began = time.monotonic()
        self._said_at = self._began
        self._record: Path = rig.folder / "kills.jsonl"
        self._end_at_restart: dict[Target, int] = {}
        self.kills: list[Kill] = []

    def run(self) -> None:
        """Kill until each process was killed as often as it should be.

        Raises:
            NotInTime: a process didn't come up again, or was never caught with anything in flight.
        """
        aims = {"projector": self._projector, "producer": self._producer, "broker": self._broker}
        for target in self._order:
            for _ in range(REDRAWS_MAX):
                kill = aims[target](next(self._draws[target]))
                if kill is None:
                    continue
                self.kills.append(kill)
                self._say(kill.in_words())
                with self._record.open("ab") as file:
                    file.write(orjson.dumps(asdict(kill)) + b"\n")
                if kill.counts:
                    break
            else:
                raise NotInTime(f"{REDRAWS_MAX} kills of the {target} in a row found nothing in flight")
            self._progress()

    def counted(self, target: Target) -> list[Kill]:
        """The kills of one process that count."""
        return [kill for kill in self.kills if kill.target == target and kill.counts]

    def _projector(self, draw: Draw) -> Kill | None:
        rig = self._rig
        moment = self._projector_moment(draw)
        rig.journal.update()
        end = rig.journal.end
        if not rig.projector.kill():
            return None
        copy = rig.copy_graph(rig.folder / "autopsy")
        rig.projector.start()
        left = rig.examiner.next_offset(copy)
        unfolded = end - left.next_offset
        found = f"graph at {left.next_offset}, log at {end} or more" if not left.fault else left.fault
        return self._kill("projector", moment, max(0, unfolded), found, counts=bool(left.fault) or unfolded > 0)

    def _projector_moment(self, draw: Draw) -> Moment:
        """Wait for the moment that was drawn; returns what the projector is at."""
        rig = self._rig
        if draw.moment == "opening":
            rig.wait_until(lambda: rig.opening, "the projector's start", UP_SECONDS)
            time.sleep(draw.pause)
            if not rig.serving:
                return "opening"
        rig.wait_until(lambda: rig.serving, "the projector's start", UP_SECONDS)
        if draw.moment == "following":
            rig.wait_until(lambda: rig.committed, "a commit", UP_SECONDS)
        rig.wait(draw.pause)
        end = rig.journal.end
        rig.wait_until(lambda: rig.journal.end > end, "an acknowledgement", UP_SECONDS)
        time.sleep(draw.delay)
        return "following" if draw.moment == "following" else "catching up"

    def _producer(self, draw: Draw) -> Kill | None:
        rig = self._rig
        self._wait_acknowledged("producer")
        rig.wait(draw.pause)
        self._aim(draw)
        left = rig.kill_producer()
        if left is None:
            return None
        return self._kill("producer", "working", left, "" if rig.broker.up else "the broker was down", counts=left > 0)

    def _broker(self, draw: Draw) -> Kill | None:
        rig = self._rig
        rig.wait_until(lambda: rig.broker.up, "the broker's start", UP_SECONDS)
        self._wait_acknowledged("broker")
        rig.wait(draw.pause)
        self._aim(draw)
        rig.journal.update()
        before = rig.journal.in_flight
        rig.broker.kill()
        rig.wait(_SETTLE_SECONDS)
        left = len(before & rig.journal.in_flight)
        rig.broker.begin_start()
        return self._kill("broker", "working", left, "", counts=left > 0)

    def _aim(self, draw: Draw) -> None:
        """Wait until a burst is on its way, and a moment more; it is there for some milliseconds only."""
        journal = self._rig.journal
        deadline = time.monotonic() + AIM_SECONDS
        while not journal.in_flight:
            if time.monotonic() > deadline:
                raise NotInTime(f"something in flight: not within {AIM_SECONDS:.0f} s; {self._rig.state()}")
            time.sleep(_LOOK_SECONDS)
            journal.update()
        time.sleep(draw.delay)

    def _wait_acknowledged(self, target: Target) -> None:
        """Wait until something was acknowledged since a process was killed last."""
        end = self._end_at_restart.get(target, 0)
        self._rig.wait_until(lambda: self._rig.journal.end > end, "an acknowledgement", UP_SECONDS)

    def _kill(self, target: Target, moment: Moment, in_flight: int, found: str, *, counts: bool) -> Kill:
        self._end_at_restart[target] = self._rig.journal.end
        return Kill(target, round(time.monotonic() - self._began, 3), moment, in_flight, found, counts)

    def _progress(self) -> None:
        now = time.monotonic()
        if now - self._said_at < PROGRESS_SECONDS:
            return
        self._said_at = now
        done = ", ".join(
            f"{target} {len(self.counted(target))}/{self._order.count(target)}"
            for target in TARGETS
            if target in self._order
        )
        self._say(f"  {now - self._began:4.0f} s: killed {done}; {self._rig.state()}")
