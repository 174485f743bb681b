"""What curves cost, compared with kernels, with blends of another version, and on a million rows.

    python benchmarks/curve.py [--other FOLDER] [--only families searches large growth million]

FOLDER is a checkout of another version, with ``src/spbn``: whole searches over its blends are measured beside
those over the blends of this one, which have a curve.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import spbn

from timing import best, heading, machine
from versions import measure, print_ratio, versions

MILLION = 1_000_000
MANY = 250_000

SEARCH = """
import json, sys, time
import spbn
rows, kind, runs = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
frame = spbn.datasets.synthetic(rows, seed=1)
start = spbn.Structure(list(frame.columns), types=kind)

def search():
    return spbn.search.hill_climb(spbn.scores.CVLikelihood(frame), start, types=(kind,))

search()
seconds = []
for _ in range(runs):
    began = time.perf_counter()
    search()
    seconds.append(time.perf_counter() - began)
print(json.dumps({"best": min(seconds)}))
"""

LARGE = """
import json, sys, time
import spbn
spbn.learn(spbn.datasets.synthetic(3000, seed=1), model="blend", patience=0, max_parents=2)  # compiles
data = spbn.datasets.synthetic(int(sys.argv[1]), seed=0)
began = time.perf_counter()
spbn.learn(data, model="blend")
print(json.dumps({"best": time.perf_counter() - began}))
"""

LEARN = """
import resource, time
import spbn
spbn.learn(spbn.datasets.synthetic(2000, seed=1), model="spbn", types=("lg", "curve"))  # compiles
data = spbn.datasets.synthetic({rows}, seed=0)
start = time.perf_counter()
network = spbn.learn(data, model="spbn", types=("lg", "curve"))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
types = ", ".join(f"{{name}}: {{network.structure.type(name)}}" for name in data)
print(f"{{seconds:6.1f}} s, {{peak:,.0f}} MiB; {{len(network.structure.arcs)}} arcs; {{types}}")
"""


def curved(rows: int) -> pd.DataFrame:
    """Return columns of which the last depends on the others in curved ways."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((5, rows))
    columns[4] = np.sin(2 * columns[0]) + columns[1] * columns[2] + 0.3 * columns[4]
    return pd.DataFrame(dict(zip("ABCDE", columns, strict=True)))


def families() -> None:
    """Score single families as curve and as CKDE, in turns, each with caches that hold nothing yet."""
    heading("Ten-fold scores of a family: milliseconds, best of 7 each, in turns")
    print("   rows  parents      CKDE     curve   ratio")
    for rows in (500, 2_000, 20_000):
        frame = curved(rows)
        for parents in range(1, 5):
            given = list("ABCD"[:parents])
            seconds = {"ckde": math.inf, "curve": math.inf}
            for _ in range(7 if rows < 20_000 else 2):
                for node_type in seconds:
                    score = spbn.scores.CVLikelihood(frame)
                    score.local("A", [], "lg")  # prepares what does not depend on the family
                    taken, _ = best(lambda s=score, t=node_type, p=given: s.local("E", p, t), runs=1)
                    seconds[node_type] = min(seconds[node_type], taken)
            kernels, curve = (1e3 * taken for taken in seconds.values())
            print(f"{rows:7,d} {parents:8d} {kernels:9.2f} {curve:9.2f} {curve / kernels:7.2f}", flush=True)


def searches(other: Path | None) -> None:
    """Measure whole searches over CKDEs, curves and blends, and over the blends of another version."""
    heading("Hill climbing on five columns by cross-validation: seconds, best of several, in turns")
    with TemporaryDirectory() as folder:
        here = versions(None)["this"]
        for rows, runs in ((2_000, 10), (20_000, 2)):
            times = dict.fromkeys(("ckde", "curve"), math.inf)
            for _ in range(3):
                for kind in times:
                    found = measure(SEARCH, here, f"{folder}/this", rows, kind, runs)
                    times[kind] = min(times[kind], found["best"])
            print(
                f"{rows:7,d} rows: CKDE {times['ckde']:7.3f}   curve {times['curve']:7.3f}   "
                f"{times['curve'] / times['ckde']:.2f} times as long"
            )
        for rows, runs in ((500, 10), (10_000, 3)):
            times = {}
            for _ in range(3):
                for version, path in versions(other).items():
                    found = measure(SEARCH, path, f"{folder}/{version}", rows, "blend", runs)
                    times[version] = min(times.get(version, math.inf), found["best"])
            shown = "   ".join(f"{version} {seconds:7.3f}" for version, seconds in times.items())
            print(f"{rows:7,d} rows: blends of {shown}", end="")
            print_ratio(times)


def large(other: Path | None) -> None:
    """Learn a network of blends from many rows, with this version and another one, in turns of two."""
    heading(f"A network of blends from {MANY:,} × 5 rows: seconds, best of two")
    times: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for _ in range(2):
            for version, path in versions(other).items():
                found = measure(LARGE, path, f"{folder}/{version}", MANY)
                times[version] = min(times.get(version, math.inf), found["best"])
    print("   ".join(f"{version} {seconds:7.1f}" for version, seconds in times.items()), end="")
    print_ratio(times)


def growth() -> None:
    """Show how the time of a score grows with the rows."""
    heading(
        "Ten-fold score of a curve with two parents: seconds, and the power of the rows that they grow by"
    )
    before = first = None
    for rows in (10_000, 100_000, MILLION):
        frame = curved(rows)
        seconds = math.inf
        for _ in range(3):
            score = spbn.scores.CVLikelihood(frame)
            score.local("A", [], "lg")
            seconds = min(seconds, best(lambda s=score: s.local("E", ["A", "B"], "curve"), runs=1)[0])
        power = "" if before is None else f"   N^{math.log10(seconds / before):.2f}"
        print(f"{rows:9,d} {seconds:8.3f}{power}", flush=True)
        before, first = seconds, first or seconds
    print(f"from the first to the last: N^{math.log10(seconds / first) / 2:.2f}")


def million() -> None:
    """Learn from a million rows in a process of its own."""
    heading("A network of lines and curves from 1,000,000 × 5 rows: time, peak of memory")
    subprocess.run([sys.executable, "-c", LEARN.format(rows=MILLION)], check=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--only", nargs="+", choices=("families", "searches", "large", "growth", "million"))
    options = parser.parse_args()
    print(machine())
    parts = {
        "families": families,
        "searches": lambda: searches(options.other),
        "large": lambda: large(options.other),
        "growth": growth,
        "million": million,
    }
    for name, part in parts.items():
        if not options.only or name in options.only:
            part()


if __name__ == "__main__":
    main()
