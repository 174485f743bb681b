"""The first minute with the package, and a search on a busy machine, compared with another version.

    python benchmarks/first_minute.py [--other FOLDER] [--runs 3]

The other version is a checkout: a folder with ``src/spbn``. Every run is a process of its own; the versions
take turns, and the best run of each counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from timing import heading, machine
from versions import measure, print_ratio, versions

FIRST = """
import json, time
from sklearn.datasets import load_iris
frame = load_iris(as_frame=True).data
start = time.perf_counter()
import spbn
imported = time.perf_counter()
spbn.learn(frame, model="spbn")
learned = time.perf_counter()
print(json.dumps({"import": imported - start, "learn": learned - imported}))
"""

SEARCH = """
import json, sys, time
import spbn
from spbn.datasets import synthetic
rows, runs = map(int, sys.argv[1:])
frame = synthetic(rows)

def search():
    score = spbn.scores.ValidatedLikelihood(frame)
    return spbn.search.hill_climb(score, spbn.Structure(list(frame.columns), types="ckde"))

search()
seconds = []
for _ in range(runs):
    start = time.perf_counter()
    search()
    seconds.append(time.perf_counter() - start)
seconds.sort()
print(json.dumps({"best": seconds[0], "median": seconds[len(seconds) // 2]}))
"""


def first_learn(versions: dict[str, Path], runs: int) -> None:
    """Learn on iris with nothing compiled, and once more in a new process with all compiled."""
    found: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in versions}
    for _ in range(runs):
        for name, version in versions.items():
            with tempfile.TemporaryDirectory() as cache:
                found[name].append((measure(FIRST, version, cache), measure(FIRST, version, cache)))
    best = {}
    print(f"{'':10} {'import':>8} {'first learn':>12} {'learn in the next process':>26}")
    for name, results in found.items():
        imported = min(later["import"] for _, later in results)
        best[name] = min(first["learn"] for first, _ in results)
        again = min(later["learn"] for _, later in results)
        print(f"{name:10} {imported:7.2f}s {best[name]:11.2f}s {again:25.2f}s")
    print_ratio(best)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy with processes that only loop."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        time.sleep(0.2)
        yield


def searches(versions: dict[str, Path], runs: int) -> None:
    """Search on synthetic data, first on a quiet machine, then alongside as many busy processes as cores."""
    with tempfile.TemporaryDirectory() as folder:
        for rows, repeats in ((200, 20), (2000, 10), (10_000, 2)):
            print(f"{rows:,} rows")
            found: dict[tuple[str, str], list[dict[str, float]]] = {}
            for state, processes in (("quiet", 0), ("busy", os.cpu_count() or 1)):
                for _ in range(runs):
                    for name, version in versions.items():
                        with busy(processes):
                            result = measure(SEARCH, version, f"{folder}/{name}", rows, repeats)
                        found.setdefault((state, name), []).append(result)
            for state, column in (("quiet", "best"), ("busy", "median")):
                times = {name: min(result[column] for result in found[state, name]) for name in versions}
                shown = "   ".join(f"{name} {seconds:7.3f}s" for name, seconds in times.items())
                print(f"  {state:6} {shown}", end="")
                print_ratio(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    compared = versions(options.other)
    print(machine())
    heading("Iris (150 × 4): the first learn, with nothing compiled")
    first_learn(compared, options.runs)
    heading("Hill climbing from CKDE nodes, on a quiet machine (best) and alongside busy processes (median)")
    searches(compared, options.runs)


if __name__ == "__main__":
    main()
