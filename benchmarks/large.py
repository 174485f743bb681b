"""Large data: the spectral engine compared with the exact one in speed and accuracy; a million rows.

    python benchmarks/large.py                 # cross-validation with ten folds, 1 to 3 dimensions
    python benchmarks/large.py --accuracy      # data of all shapes, up to a million rows
    python benchmarks/large.py --queries       # rows against a KDE of a million rows
    python benchmarks/large.py --pruning       # 4 and 5 dimensions
    python benchmarks/large.py --network       # a whole network from a million rows
    python benchmarks/large.py --wide          # a whole network from a million rows of 20 columns

What would take the exact engine over two minutes is computed for some of the rows only,
and the time is extrapolated: such times are marked with ~.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.kernels import exact, pruned, spectral
from spbn.kernels.estimates import Spans
from spbn.numerics import gaussian
from spbn.numerics.moments import Moments, leave_one_out

from timing import best, heading, machine

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
FOLDS = 10
TOO_LONG = 120.0
SAMPLE = 5_000  # rows that represent all where all would take too long
SHAPES = ("normal", "bimodal", "student", "lognormal", "integers", "clusters", "outlier", "collinear")

Arrays = tuple[FloatArray, IntArray, FloatArray, IntArray]


def table(shape: str, d: int, rows: int) -> FloatArray:
    """Columns × rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(d, rows))
    if shape == "bimodal":
        x += np.where(rng.random(rows) < 0.5, -4, 4)
    elif shape == "student":
        x /= np.sqrt(rng.chisquare(2, size=rows) / 2)
    elif shape == "lognormal":
        x = np.exp(x)
    elif shape == "integers":
        x = np.round(3 * x)
    elif shape == "clusters":
        x = 1e-3 * x + rng.normal(size=(d, 30))[:, rng.integers(30, size=rows)]
    elif shape == "outlier":
        x[:, rows // 3] = 1e6
    elif shape == "collinear":
        x[1:] = x[0] + 1e-5 * x[1:]
    return x


def cross_validation(x: FloatArray) -> Arrays:
    """What the engines take: points, columns, whiteners and spans."""
    d, rows = x.shape
    x = np.ascontiguousarray(x - x.mean(axis=1)[:, None])
    cuts = np.linspace(0, rows, FOLDS + 1).astype(int)
    moments = leave_one_out([Moments.of(x[:, a:b]) for a, b in pairwise(cuts)])
    whiteners = [gaussian.whitener(m.count ** (-2 / (d + 4)) * m.covariance) for m in moments]
    spans = Spans(np.array([[a, b, 0, a, b, rows] for a, b in pairwise(cuts)]))
    return x, np.arange(d)[None], np.array(whiteners)[None], spans


def part(arrays: Arrays, wanted: int) -> tuple[Arrays, float]:
    """Cut the queries of every span down, to about `wanted` in all; return the factor."""
    points, columns, whiteners, spans = arrays
    queries = spans.query_counts
    fewer = spans.array.copy()
    fewer[:, 1] = fewer[:, 0] + np.clip(queries * wanted // queries.sum(), 1, queries)
    left = Spans(fewer)
    return (points, columns, whiteners, left), queries.sum() / left.query_counts.sum()


def exact_time(arrays: Arrays, runs: int) -> tuple[float, FloatArray, str]:
    """Return the seconds of the exact engine, its log-densities, and ~ if they are extrapolated."""
    some, ratio = part(arrays, SAMPLE)
    seconds, rows = best(lambda: exact.log_density(*some), runs=1)
    if seconds * ratio > TOO_LONG:
        return seconds * ratio, rows, "~"
    return *best(lambda: exact.log_density(*arrays), runs=runs if seconds * ratio < 5 else 1), ""


def error(found: FloatArray, expected: FloatArray) -> float:
    """Greatest difference of log-densities, where both exist."""
    return float(np.nanmax(np.abs(found - expected)))


def error_of_sum(found: FloatArray, expected: FloatArray) -> float:
    """Relative difference of the sums of log-densities, where both exist."""
    difference, total = np.nansum(found - expected), np.nansum(expected)
    return float(abs(difference / total))


def growth(sizes: list[int], seconds: list[float]) -> float:
    """Exponent of N in the seconds, over the last decade."""
    last = [(n, s) for n, s in zip(sizes, seconds, strict=True) if n >= sizes[-1] / 10]
    return math.log(last[-1][1] / last[0][1]) / math.log(last[-1][0] / last[0][0])


def compare(arrays: Arrays, engine: Callable[..., FloatArray], runs: int) -> tuple[float, float, str, float]:
    """Return the seconds of an engine and of the exact one, ~ if the latter are extrapolated, the error."""
    engine(*part(arrays, 1000)[0])  # compiles
    seconds, found = best(lambda: engine(*arrays), runs=runs)
    exact_seconds, expected, mark = exact_time(arrays, runs)
    return seconds, exact_seconds, mark, error(found, expected)


def speed(runs: int) -> None:
    heading(f"Log-densities of {FOLDS}-fold cross-validation: seconds, best of {runs}")
    print(" d      rows   spectral      exact    ratio   greatest error   growth")
    for d in (1, 2, 3):
        times: list[float] = []
        for number, rows in enumerate(SIZES):
            seconds, exact_seconds, mark, worst = compare(
                cross_validation(table("normal", d, rows)), spectral.log_density, runs
            )
            times.append(seconds)
            exponent = f"N^{growth(list(SIZES), times):.2f}" if number == len(SIZES) - 1 else ""
            print(
                f"{d:2d} {rows:9,d} {seconds:9.3f}s {mark:>2}{exact_seconds:8.2f}s "
                f"{exact_seconds / seconds:7.1f}× {worst:15.1e}   {exponent}",
                flush=True,
            )


def accuracy() -> None:
    heading("Sampled rows: greatest error of a log-density, relative error of their sum, seconds")
    for rows in (20_000, 100_000, 1_000_000):
        for shape in SHAPES:
            print(f"{rows:9,d} {shape:10}", end="")
            for d in (1, 2, 3):
                arrays = cross_validation(table(shape, d, rows))
                seconds, found = best(lambda a=arrays: spectral.log_density(*a), runs=1)
                some, _ = part(arrays, SAMPLE if rows > 20_000 else rows)
                expected = exact.log_density(*some)
                errors = f"{error(found, expected):7.1e} {error_of_sum(found, expected):7.1e}"
                print(f"   d={d} {errors} {seconds:6.2f}s", end="")
            print(flush=True)


def plain_accuracy() -> None:
    heading(f"The same for {SAMPLE:,} rows under a KDE of others; in 4 and 5 dimensions by pruning")
    for rows in (20_000, 100_000, 1_000_000):
        for shape in SHAPES:
            print(f"{rows:9,d} {shape:10}", end="")
            for d in (1, 2, 3, 4, 5):
                engine = spectral if d <= spectral.DIMENSIONS else pruned
                arrays = plain(table(shape, d, rows + SAMPLE), rows)
                found, expected = engine.log_density(*arrays), exact.log_density(*arrays)
                print(f"   d={d} {error(found, expected):7.1e} {error_of_sum(found, expected):7.1e}", end="")
            print(flush=True)


def plain(x: FloatArray, train: int) -> Arrays:
    """What the engines take for the rows after the first `train`, under a KDE of those."""
    d, rows = x.shape
    points = np.ascontiguousarray(x - x[:, :train].mean(axis=1)[:, None])
    whitener = gaussian.whitener(train ** (-2 / (d + 4)) * np.atleast_2d(np.cov(x[:, :train])))
    return points, np.arange(d)[None], np.array([[whitener]]), np.array([[train, rows, 0, train, 0, 0]])


def queries(runs: int) -> None:
    heading("Queries against a KDE of 1,000,000 rows")
    train = 1_000_000
    for d in (1, 2, 3):
        for count in (1_000, 10_000, 100_000, 1_000_000):
            arrays = plain(table("bimodal", d, train + count), train)
            seconds, exact_seconds, mark, worst = compare(arrays, spectral.log_density, runs)
            print(
                f"d={d} {count:9,d} rows: spectral {seconds:7.3f}s, exact {mark}{exact_seconds:.2f}s, "
                f"greatest error {worst:.1e}",
                flush=True,
            )


def pruning() -> None:
    heading(f"Log-densities of {FOLDS}-fold cross-validation in 4 and 5 dimensions, from some of the rows")
    print(" d      rows     pruned      exact    ratio   greatest error")
    for d in (4, 5):
        for rows in (100_000, 300_000, 1_000_000):
            points, columns, whiteners, spans = cross_validation(table("normal", d, rows))
            fold = points, columns, whiteners[:, :1], spans.only([0])  # the others take as long
            seconds, exact_seconds, mark, worst = compare(fold, pruned.log_density, runs=1)
            print(
                f"{d:2d} {rows:9,d} {FOLDS * seconds:9.2f}s {mark:>2}{FOLDS * exact_seconds:8.2f}s "
                f"{exact_seconds / seconds:7.1f}× {worst:15.1e}",
                flush=True,
            )


NETWORK = """
import resource, time
import spbn
from spbn import datasets
data = datasets.synthetic({rows}, seed=0)
spbn.learn(datasets.synthetic(2000, seed=1), model="spbn", patience=0, engine="spectral")  # compiles
start = time.perf_counter()
network = spbn.learn(data, model="spbn", patience=0)
seconds = time.perf_counter() - start
right = network.structure == datasets.synthetic_structure()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of the whole process, in megabytes
print(f"{rows:9,d} rows: {{seconds:6.1f}} s, {{peak:5.0f}} MB, {{len(network.search.steps)}} steps to "
      f"{{'the true structure' if right else 'ANOTHER STRUCTURE'}}")
"""


def network() -> None:
    heading("A whole network: spbn.learn on the synthetic table, 5 columns, start CKDE, patience 0")
    for rows in (100_000, 1_000_000):
        subprocess.run([sys.executable, "-c", NETWORK.format(rows=rows)], check=True)
    same_steps()
    linear_scores()


WIDE = """
import resource, time
import numpy as np, pandas as pd
import spbn
rng = np.random.default_rng(0)
x = rng.normal(size=(20, {rows}))
arcs = set()
for j in range(2, 20):
    for k, parent in enumerate(rng.choice(j, size=1 + j % 2, replace=False)):
        x[j] += 1.5 * np.sin(2.0 * x[parent]) if (j + k) % 3 else 0.8 * x[parent]
        arcs.add(frozenset((f"x{{parent}}", f"x{{j}}")))
    x[j] /= x[j].std()
data = pd.DataFrame(x.T, columns=[f"x{{j}}" for j in range(20)])
del x
spbn.learn(data[:2000], model="spbn", patience=0, max_parents=2, engine="spectral")  # compiles
clock, processor = time.perf_counter(), time.process_time()
network = spbn.learn(data, model="spbn", patience=0, max_parents=2)
clock, processor = time.perf_counter() - clock, time.process_time() - processor
found = {{frozenset(arc) for arc in network.structure.arcs}}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of the whole process, in megabytes
print(f"{rows:9,d} rows: {{clock:6.0f}} s, {{processor:6.0f}} s of processor time, {{peak:5.0f}} MB, "
      f"{{len(network.search.steps)}} steps; "
      f"{{len(found & arcs)}} of {{len(arcs)}} true pairs, {{len(found - arcs)}} others", flush=True)
"""


def wide() -> None:
    heading("20 columns, two thirds of the arcs curved: spbn.learn, max_parents=2, patience 0")
    for rows in (10_000, 100_000, 1_000_000):
        subprocess.run([sys.executable, "-c", WIDE.format(rows=rows)], check=True)


def same_steps() -> None:
    import spbn
    from spbn.datasets import synthetic

    data, start = synthetic(20_000, seed=0), spbn.Structure("ABCDE", types="ckde")
    paths = []
    for engine in ("exact", "spectral"):
        search = spbn.search.hill_climb(
            spbn.scores.ValidatedLikelihood(data, engine=engine), start, patience=0
        )
        paths.append([str(step.operator) for step in search.steps])
    same = "the same" if paths[0] == paths[1] else "OTHER"
    print(f"   20,000 rows: {same} {len(paths[0])} steps with the exact and the spectral engine", flush=True)


def linear_scores() -> None:
    import spbn
    from spbn.datasets import synthetic

    data = synthetic(1_000_000, seed=0)
    prepared, score = best(lambda: spbn.scores.CVLikelihood(data), runs=1)
    asked, _ = best(lambda: score.local("C", ["A", "B"], "lg"), runs=1)
    print(f"Linear Gaussian scores of 1,000,000 rows: {prepared:.2f} s to prepare, {asked:.4f} s each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("accuracy", "queries", "pruning", "network", "wide"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    print(machine())
    if chosen.accuracy:
        accuracy()
        plain_accuracy()
    if chosen.queries:
        queries(chosen.runs)
    if chosen.pruning:
        pruning()
    if chosen.network:
        network()
    if chosen.wide:
        wide()
    if not (chosen.accuracy or chosen.queries or chosen.pruning or chosen.network or chosen.wide):
        speed(chosen.runs)


if __name__ == "__main__":
    main()
