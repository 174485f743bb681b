"""Two versions of the package in one run: each measured in processes of its own, taking turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def versions(other: Path | None) -> dict[str, Path]:
    """Return this version and perhaps another: checkouts, that is folders with ``src/spbn``."""
    return {"this": HERE} | ({"other": other.resolve()} if other else {})


def measure(code: str, version: Path, cache: str, *arguments: object) -> dict[str, float]:
    """Run a program under a version of the package; its last line is a JSON object of numbers."""
    environment = os.environ | {"PYTHONPATH": str(version / "src"), "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def print_ratio(times: dict[str, float]) -> None:
    """Print how many times as long the other version took."""
    if len(times) > 1:
        ours, other = times.values()
        print(f"   the other version takes {other / ours:.2f} times as long", flush=True)
    else:
        print(flush=True)
