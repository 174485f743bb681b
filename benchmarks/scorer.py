"""Scoring in production: microseconds per row of a scorer beside its network, and what importing takes.

python benchmarks/scorer.py                     # some minutes
python benchmarks/scorer.py --small             # fewer rows and runs
python benchmarks/scorer.py --other FOLDER      # also how long another version takes to be imported
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import spbn

from timing import heading, machine
from versions import measure, versions

NODES = 10
BATCH = 1_000
#: Types of nodes, and how many parents they have at most: narrow kernels need large tables.
PARENTS = {"lg": 2, "ckde": 2, "blend": 1}

IMPORT = """
import json, time
start, processor = time.perf_counter(), time.process_time()
import numpy, numba
below = time.process_time()
import spbn
seconds, end = time.perf_counter() - start, time.process_time()
print(json.dumps({"seconds": seconds, "processor": end - processor, "own": end - below}))
"""

LOAD = """
import json, sys, time
start = time.perf_counter()
from spbn import load_scorer
imported = time.perf_counter()
scorer = load_scorer(sys.argv[1])
loaded = time.perf_counter()
scorer.logpdf([0.0] * len(scorer.names))
first = time.perf_counter()
print(json.dumps({"import": imported - start, "load": loaded - imported, "first": first - loaded}))
"""


def table(rows: int, seed: int) -> pd.DataFrame:
    """Return columns that depend on the two before them, in curved ways."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(NODES, rows))
    for k in range(1, NODES):
        columns[k] += np.sin(2.0 * columns[k - 1]) + 0.5 * np.abs(columns[max(0, k - 2)])
    return pd.DataFrame(dict(zip((f"x{k}" for k in range(NODES)), columns, strict=True)))


def network_of(frame: pd.DataFrame, kind: str, margins: str) -> spbn.BayesianNetwork:
    """Fit a network in which every node has up to so many parents."""
    names = list(frame.columns)
    arcs = [(names[k - d], names[k]) for k in range(NODES) for d in range(1, PARENTS[kind] + 1) if k >= d]
    return spbn.BayesianNetwork.fit(spbn.Structure(names, arcs, kind), frame, margins=margins)


def microseconds(function: Callable[[], object], rows: int, *, runs: int, calls: int = 1) -> float:
    """Return the processor time per row, in the best of several runs after a first one.

    Processor time, because batches take long enough for other processes to get in between.
    """
    function()
    seconds = float("inf")
    for _ in range(runs):
        start = time.process_time()
        for _ in range(calls):
            function()
        seconds = min(seconds, time.process_time() - start)
    return 1e6 * seconds / (calls * rows)


def compare(sizes: list[int], folder: Path, runs: int) -> Path:
    """Score the same rows with networks and scorers; return the file of a compact network."""
    asked = table(BATCH, 1)
    array, row = asked.to_numpy(), asked.iloc[0].to_dict()
    one = asked.iloc[:1]
    path = folder / "model.spbn"
    print(f"                                     batches of {BATCH:,} rows          single rows")
    print("     rows  nodes  margins      compact  network   scorer    network   scorer  + blame     error")
    for rows in sizes:
        frame = table(rows, 0)
        for kind in PARENTS:
            for margins in ("none", "yeo-johnson"):
                whole = network_of(frame, kind, margins)
                for small in (False, True):
                    network = whole.compact() if small else whole
                    network.save(path)
                    scorer = spbn.load_scorer(path)
                    times = [
                        microseconds(lambda n=network: n.logpdf(asked), BATCH, runs=runs),
                        microseconds(lambda s=scorer: s.logpdf(array), BATCH, runs=runs),
                        microseconds(lambda n=network: n.logpdf(one), 1, runs=runs, calls=20),
                        microseconds(lambda s=scorer: s.logpdf(row), 1, runs=runs, calls=50),
                        microseconds(lambda s=scorer: s.score(row), 1, runs=runs, calls=50),
                    ]
                    error = np.abs(scorer.logpdf(array) - network.logpdf(asked)).max()
                    print(
                        f"{rows:9,d}  {kind:6s} {margins:12s} {'compact' if small else '-':7s} "
                        f"{times[0]:8.2f} {times[1]:8.2f} {times[2]:10.0f} {times[3]:8.0f} {times[4]:8.0f} "
                        f"{error:9.1e}",
                        flush=True,
                    )
    return path


def imports(other: Path | None, model: Path, folder: Path, runs: int) -> None:
    """Import versions of the package, and load a scorer, in new processes with all code compiled."""
    heading("Importing the package and what it needs, in a new process: the best of several")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(runs + 1):
        for name, version in versions(other).items():
            found.setdefault(name, []).append(measure(IMPORT, version, str(folder / name)))
    for name, results in found.items():
        best = {key: min(result[key] for result in results[1:]) for key in results[0]}
        print(
            f"{name:8s} {best['seconds']:5.2f} s, {best['processor']:5.2f} s of processor time, of which "
            f"{best['own']:5.2f} s are its own",
            flush=True,
        )
    here = versions(None)["this"]
    loads = [measure(LOAD, here, str(folder / "this"), model) for _ in range(runs + 1)][1:]
    parts = {key: min(result[key] for result in loads) for key in loads[0]}
    print(
        f"load_scorer: import {parts['import']:.2f} s, load and prepare {parts['load']:.2f} s, "
        f"first row {1e3 * parts['first']:.2f} ms"
    )


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="fewer rows and runs")
    parser.add_argument("--other", type=Path, help="a checkout of the version to compare with")
    options = parser.parse_args()
    runs = 5 if options.small else 20
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        heading(f"Scoring by networks of {NODES} nodes: microseconds per row")
        model = compare([1_000] if options.small else [1_000, 6_000, 50_000], folder, runs)
        imports(options.other, model, folder, 3 if options.small else 8)


if __name__ == "__main__":
    main()
