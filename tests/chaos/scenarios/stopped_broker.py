"""Stopped broker: the broker answers nothing for 20 s (SIGSTOP); producer and projector wait, and go on.

Meanwhile the producer is killed once, so that what it had sent may arrive twice: from the broker's buffers, and again.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from chaos.checker import Check
from chaos.exam import examine
from chaos.stage import Stage

BEFORE_SECONDS = 4.0
STOPPED_SECONDS = 20.0
AFTER_SECONDS = 4.0
# Clients ask again at growing intervals, up to their request timeout.
BACK_SECONDS = 60.0
LIVES_ON = "the projector lives through it"
STOOD_STILL = "nothing is acknowledged meanwhile, and things go on afterwards"


def play(stage: Stage) -> Iterator[Check]:
    """Stop the broker under load, let it go on, and look at what is there."""
    with stage.rig("stopped_broker") as rig:
        rig.start()
        rig.wait_until(lambda: rig.serving, "the projector's start")
        rig.wait(BEFORE_SECONDS)
        lives = rig.projector.lives
        # Stopped in the midst of a burst, so that somebody waits.
        rig.wait_until(lambda: bool(rig.journal.in_flight), "something in flight")
        stage.broker.signal(signal.SIGSTOP)
        try:
            rig.wait(1.0)  # what had been acknowledged before is read
            end = rig.journal.end
            rig.kill_producer()
            rig.wait(STOPPED_SECONDS - 1.0)
            meanwhile = rig.journal.end - end
        finally:
            stage.broker.signal(signal.SIGCONT)
        began = time.monotonic()
        rig.wait_until(lambda: rig.journal.end > end, "an acknowledgement after SIGCONT", BACK_SECONDS)
        back = time.monotonic() - began
        rig.wait(AFTER_SECONDS)
        looked_at = f"stopped for {STOPPED_SECONDS:.0f} s, the first acknowledgement {back:.1f} s after"
        yield Check(STOOD_STILL, looked_at, (f"{meanwhile} events acknowledged",) if meanwhile else ())
        died = rig.projector.lives - lives
        yield Check(LIVES_ON, f"{STOPPED_SECONDS:.0f} s", (f"it ended {died} times",) if died else ())
        rig.rest()
        yield from examine(rig)
