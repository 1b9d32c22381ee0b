"""How much memory this process has."""

from __future__ import annotations

import gc
import re
import resource
import subprocess
import sys
from os import getpid
from pathlib import Path

KIBIBYTE = 1_024
MEBIBYTE = KIBIBYTE * 1_024
_STATUS = Path("/proc/self/status")


def resident_bytes() -> int:
    """The resident set now."""
    if _STATUS.exists():
        return _status("VmRSS")
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(getpid())], capture_output=True, text=True, check=True)
    return int(shown.stdout) * KIBIBYTE


def settled_bytes() -> int:
    """The resident set once garbage is collected."""
    gc.collect()
    return resident_bytes()


def peak_bytes() -> int:
    """The largest resident set so far.

    On Linux `getrusage` would start a process at the peak of the one that started it.
    """
    if _STATUS.exists():
        return _status("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * KIBIBYTE


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"the kernel states {field}"
    return int(found[1]) * KIBIBYTE
