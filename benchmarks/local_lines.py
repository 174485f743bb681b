"""What local lines add to blends: log-densities of test rows, and the time of a search, with and without.

    python benchmarks/local_lines.py [--data FOLDER] [--only densities searches] [--tables NAME ...]

FOLDER has the data of the paper. Both sides are this version: without local lines, no table has enough rows
for one. `benchmarks/curve.py --other` compares whole searches with those of another version.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

import spbn

from timing import heading, machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from experiments.densities import without_ties
from experiments.sources import outer_folds, uci_table

TABLES = (
    *("Breast_tissue", "CPU", "Ecoli", "Glass", "Iris", "Liver", "QSAR Aquatic", "QSAR fish toxicity"),
    *("Vehicle", "Vowel", "Wine", "WineQuality-Red", "Yeast"),
)


@contextmanager
def without_local_lines() -> Iterator[None]:
    """Make blends as if there were never enough rows for local lines."""
    with mock.patch("spbn.numerics.local_mixtures.component_count", return_value=0):
        yield


def learn(frame: pd.DataFrame) -> tuple[spbn.BayesianNetwork, float]:
    """Learn a network of blends; return it and the seconds that took."""
    start = time.perf_counter()
    network = spbn.learn(frame, model="blend", margins="yeo-johnson")
    return network, time.perf_counter() - start


def densities(data: Path, names: list[str]) -> None:
    """Print the log-density of test rows under networks learned without, fitted with, and learned with."""
    heading("Test log-density per row and variable, 1 of 10 folds, columns without ties, margins Yeo-Johnson")
    print(f"{'table':20s} rows columns   without      same graph      learned      arcs      seconds")
    gains = []
    for name in names:
        frame = without_ties(uci_table(data, name), name)
        train, test = (frame.iloc[rows].reset_index(drop=True) for rows in outer_folds(len(frame))[0])
        with without_local_lines():
            before, seconds = learn(train)
        fitted = spbn.BayesianNetwork.fit(before.structure, train, margins="yeo-johnson")
        after, with_seconds = learn(train)
        base, same, learned = (
            float(np.asarray(network.logpdf(test)).mean()) / frame.shape[1]
            for network in (before, fitted, after)
        )
        gains.append((same - base, learned - base))
        print(
            f"{name:20s} {len(train):4d} {frame.shape[1]:7d} {base:9.4f}  {same:9.4f} {same - base:+.4f}"
            f" {learned:9.4f} {learned - base:+.4f} {len(before.structure.arcs):4d}"
            f" {len(after.structure.arcs):3d} {seconds:6.1f} {with_seconds:5.1f}",
            flush=True,
        )
    mean, least = np.mean(gains, axis=0), np.min(gains, axis=0)
    print(f"mean gain: same graph {mean[0]:+.4f}, learned {mean[1]:+.4f}")
    print(f"least:     same graph {least[0]:+.4f}, learned {least[1]:+.4f}")


def searches() -> None:
    """Print the seconds of hill climbing over blends, in turns."""
    heading("Hill climbing on five columns by cross-validation: seconds, best of several, in turns")
    for rows, runs in ((500, 7), (2_000, 5), (10_000, 3)):
        frame = spbn.datasets.synthetic(rows, seed=1)
        start = spbn.Structure(list(frame.columns), types="blend")

        def search(frame: pd.DataFrame = frame, start: spbn.Structure = start) -> float:
            began = time.perf_counter()
            spbn.search.hill_climb(spbn.scores.CVLikelihood(frame), start, types=("blend",))
            return time.perf_counter() - began

        search()  # compiles
        with_lines = without = math.inf
        for _ in range(runs):
            with_lines = min(with_lines, search())
            with without_local_lines():
                without = min(without, search())
        print(
            f"{rows:7,d} rows: without {without:7.3f}   with {with_lines:7.3f}   "
            f"{with_lines / without:.2f} times as long",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/paper-data"), help="the paper's data")
    parser.add_argument("--only", choices=("densities", "searches"))
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine())
    if options.only != "densities":
        searches()
    if options.only != "searches":
        densities(options.data, options.tables)


if __name__ == "__main__":
    main()
