"""Scoring in production: microseconds per row of a scorer beside its network, and what importing takes.

python benchmarks/scorer.py                     # some minutes
python benchmarks/scorer.py --small             # fewer rows and runs
python benchmarks/scorer.py --other FOLDER      # also how long another version takes to be imported
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import spbn

from timing import best, heading, machine
from versions import measure, versions

NODES = 10
BATCH = 1_000
#: Types of nodes, and how many parents they have at most: narrow kernels need large tables.
PARENTS = {"lg": 2, "ckde": 2, "blend": 1}

IMPORT = """
import json, time
start = time.perf_counter()
import numpy, numba
below = time.perf_counter()
import spbn
imported = time.perf_counter()
print(json.dumps({"numba": below - start, "spbn": imported - below, "seconds": imported - start}))
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


def microseconds(function: Callable[[], object], rows: int, *, runs: int) -> float:
    """Return the time per row, in the best of several runs after a first one."""
    function()
    return 1e6 * best(function, runs=runs)[0] / rows


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
                        microseconds(lambda n=network: n.logpdf(one), 1, runs=20 * runs),
                        microseconds(lambda s=scorer: s.logpdf(row), 1, runs=50 * runs),
                        microseconds(lambda s=scorer: s.score(row), 1, runs=50 * runs),
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
    heading("Seconds in a new process, best of several: importing the package and what it needs")
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(runs):
        for name, version in versions(other).items():
            found.setdefault(name, []).append(measure(IMPORT, version, str(folder / name)))
    for name, results in found.items():
        fastest = min(results, key=lambda result: result["seconds"])
        own = min(result["spbn"] for result in results)
        print(
            f"{name:8s} import spbn {fastest['seconds']:6.2f} s, of which {own:5.2f} s are its own",
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
        model = compare([2_000] if options.small else [2_000, 50_000], folder, runs)
        imports(options.other, model, folder, 3 if options.small else 8)


if __name__ == "__main__":
    main()
