"""What `spbn.confidence` finds, and what it costs, where the truth is known.

    python benchmarks/confidence.py [--replicates 100] [--samples 10] [--only arcs ecoli time]

arcs: on the paper's synthetic network, all true arcs should be stronger than the threshold, and no other
pair.
ecoli: on samples of ECOLI70, the averaged network should be closer to the truth than a single search is.
time: replicates, compared with one search on the whole table. The time is that of the processor, all threads
together, so that other work on the machine matters less.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the experiments know the networks

from experiments.sources import gaussian_network

import spbn
from spbn import metrics

from timing import heading, machine

ROWS = 2_000
COLUMNS = 10


def arcs(replicates: int, samples: int) -> None:
    heading(f"The paper's synthetic network: {ROWS:,} rows, {replicates} replicates")
    truth = {frozenset(arc) for arc in spbn.datasets.synthetic_structure().arcs}
    print("seed  weakest true arc  strongest other pair  threshold  separated")
    for seed in range(samples):
        found = spbn.confidence(spbn.datasets.synthetic(ROWS, seed=seed), model="spbn", replicates=replicates)
        strengths = {frozenset(row[:2]): row[2] for row in found.arcs.itertuples(index=False)}
        weakest = min(strengths.get(pair, 0.0) for pair in truth)
        strongest = max((share for pair, share in strengths.items() if pair not in truth), default=0.0)
        good = weakest > found.threshold >= strongest
        print(f"{seed:4}  {weakest:16.2f}  {strongest:20.2f}  {found.threshold:9.2f}  {good}", flush=True)


def ecoli(replicates: int, samples: int) -> None:
    heading(f"ECOLI70: {ROWS:,} rows, GBN by BIC, {replicates} replicates")
    network = gaussian_network("ECOLI70")
    print("distance to the truth of the single search, then of the averaged network")
    print("seed  SHD       SHD of classes  pairs (HMD)")
    distances = []
    for seed in range(samples):
        frame = network.sample(ROWS, seed=seed)
        single = spbn.learn(frame, model="gbn").structure
        averaged = spbn.confidence(frame, replicates=replicates, model="gbn").structure()
        distances.append([_distances(found, network.structure) for found in (single, averaged)])
        _print_distances(str(seed), np.array(distances[-1], dtype=float))
    _print_distances("mean", np.mean(distances, axis=0))


def _distances(found: spbn.Structure, truth: spbn.Structure) -> list[int]:
    classes = metrics.shd(found.dag.to_cpdag(), truth.dag.to_cpdag())
    return [metrics.shd(found, truth), classes, metrics.hmd(found, truth)]


def _print_distances(name: str, found: np.ndarray) -> None:
    print(f"{name:4}", *(f"{a:5.1f} {b:5.1f}   " for a, b in found.T), flush=True)


def times(replicates: int) -> None:
    heading(f"Time on {ROWS:,} × {COLUMNS}, {replicates} replicates, compared with one search")
    frame = _nonlinear(ROWS, COLUMNS)
    spbn.learn(frame[:200], model="spbn")  # compiles
    for model in ("spbn", "blend", "gbn"):
        one = min(_processor_seconds(spbn.learn, frame, model=model) for _ in range(3))
        many = _processor_seconds(spbn.confidence, frame, replicates=replicates, model=model)
        print(
            f"{model:5}  one search {one:6.2f} s   all replicates {many:7.1f} s   {many / one:5.1f} times",
            flush=True,
        )


def _processor_seconds(function: Callable[..., Any], *arguments: Any, **settings: Any) -> float:
    start = time.process_time()
    function(*arguments, **settings)
    return time.process_time() - start


def _nonlinear(rows: int, columns: int) -> pd.DataFrame:
    """Columns that depend on each other in curved ways."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        data[:, j] += np.sin(2 * data[:, j - 1]) + 0.3 * data[:, rng.integers(j)]
    return pd.DataFrame(data, columns=[f"x{j}" for j in range(columns)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument(
        "--only", nargs="+", choices=["arcs", "ecoli", "time"], default=["arcs", "ecoli", "time"]
    )
    options = parser.parse_args()
    print(machine())
    if "arcs" in options.only:
        arcs(options.replicates, options.samples)
    if "ecoli" in options.only:
        ecoli(options.replicates, options.samples)
    if "time" in options.only:
        times(options.replicates)


if __name__ == "__main__":
    main()
