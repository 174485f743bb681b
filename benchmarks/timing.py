"""How the benchmarks measure: the best of several runs, and the memory of a separate process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def best(function: Callable[[], Any], *, runs: int = 5) -> tuple[float, Any]:
    """Return the seconds of the fastest run, the one least disturbed, and its result."""
    seconds, result = float("inf"), None
    for _ in range(runs):
        start = time.perf_counter()
        result = function()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def peak_megabytes(code: str) -> dict[str, float]:
    """Run code in a separate process; it must call `mark()` just before what is to be measured.

    Returns
    -------
    Megabytes in use at the mark, and by how much the later peak exceeded that (Linux).
    """
    program = f"""
import json
def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
marks = []
def mark():
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")  # the peak starts anew
    marks.append(status("VmRSS"))
{code}
print(json.dumps({{"before": marks[0], "added": status("VmHWM") - marks[0]}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def machine() -> str:
    """Describe the machine."""
    import numba

    versions = f"Python {platform.python_version()}, numba {numba.__version__}"
    return f"{os.cpu_count()} cores, {platform.machine()}, {versions}"


def heading(text: str) -> None:
    """Print a title."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)
