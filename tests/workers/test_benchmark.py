"""The benchmark of rows over workers, on few rows: what it finds, not how long it takes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]


def test_what_rows_were_drawn_from_is_found_by_workers_with_little_memory(tmp_path):
    command = [sys.executable, "benchmarks/workers.py", "--small", "--only", "tree", "synthetic"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the tree is found: True" in done.stdout
    assert "SHD 0, types that differ 0" in done.stdout
    limits = {"tree": 700.0, "synthetic": 2000.0}
    peaks = re.findall(r"peaks: workers (\d+), (\d+) MB", done.stdout)
    assert len(peaks) == len(limits)
    for workers, limit in zip(peaks, limits.values(), strict=True):
        assert all(0.0 < float(peak) < limit for peak in workers)
