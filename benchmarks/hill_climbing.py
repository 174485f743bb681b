"""Hill climbing compared with PyBNesian on the same rows, folds and start; scaling; memory.

    python benchmarks/hill_climbing.py [--data ../shared/paper-data] [--quick]

The largest comparison takes PyBNesian about six minutes; ``--quick`` leaves it out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from spbn.datasets import paper_synthetic, synthetic

from timing import best, heading, machine, peak_megabytes


def compare(name: str, frame: pd.DataFrame, *, start: str = "ckde", patience: int = 0) -> None:
    """Learn an SPBN with both, check that they end in the same network, and print the ratio."""
    import peer

    nodes = list(frame.columns)

    def theirs() -> tuple[spbn.Structure, peer.Split]:
        score = peer.validated_score(frame)
        return peer.structure_of(peer.climb(score, nodes, start, patience)), peer.split_of(score)

    their_seconds, (expected, split) = best(theirs, runs=1)

    def ours() -> spbn.SearchResult:
        score = spbn.scores.ValidatedLikelihood(split.train, folds=split.labels, validation=split.validation)
        return spbn.search.hill_climb(score, spbn.Structure(nodes, types=start), patience=patience)

    our_seconds, result = best(ours, runs=5)
    same = "same network" if result.structure == expected else "NOT THE SAME NETWORK"
    print(
        f"{name:12} {len(frame):6d} × {len(nodes):<3d} PyBNesian {their_seconds:8.2f} s   "
        f"spbn {our_seconds:7.3f} s   {their_seconds / our_seconds:6.0f}×   {same}",
        flush=True,
    )


def compare_gaussian(frame: pd.DataFrame) -> None:
    """Learn a Gaussian network with both. Equivalent arcs may differ, so the scores are compared."""
    import pybnesian

    import peer

    nodes = list(frame.columns)
    sides = [("BIC", pybnesian.BIC, spbn.scores.BIC), ("BGe", pybnesian.BGe, spbn.scores.BGe)]
    for name, their_score, our_score in sides:
        their_seconds, network = best(lambda s=their_score: peer.climb_gaussian(s(frame), nodes), runs=3)
        our_seconds, result = best(
            lambda s=our_score: spbn.search.hill_climb(s(frame), spbn.Structure(nodes)), runs=5
        )
        their_total = our_score(frame).total(peer.structure_of(network))
        print(
            f"{name:12} {len(frame):6d} × {len(nodes):<3d} PyBNesian {their_seconds:8.2f} s   "
            f"spbn {our_seconds:7.3f} s   {their_seconds / our_seconds:6.1f}×   "
            f"score {their_total:.2f} and {result.score:.2f}",
            flush=True,
        )


def nonlinear(rows: int, columns: int) -> pd.DataFrame:
    """Columns that each depend on one or two earlier ones, half of them nonlinearly."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        parent, other = data[:, rng.integers(j)], data[:, rng.integers(j)]
        data[:, j] += np.sin(2 * parent) + 0.3 * other if j % 2 else 0.8 * parent - 0.4 * other
    return pd.DataFrame(data / data.std(axis=0), columns=[f"x{j}" for j in range(columns)])


def growth() -> None:
    """Seconds of our search alone as the table grows."""

    def seconds(frame: pd.DataFrame) -> tuple[float, int]:
        def run() -> spbn.SearchResult:
            score = spbn.scores.ValidatedLikelihood(frame)
            return spbn.search.hill_climb(score, spbn.Structure(frame.columns, types="ckde"), patience=0)

        elapsed, result = best(run, runs=2)
        return elapsed, len(result.steps)

    heading("Growth in rows: the synthetic table, 5 columns")
    for rows in (1_000, 2_000, 5_000, 10_000, 20_000):
        elapsed, steps = seconds(synthetic(rows))
        print(f"{rows:7d} rows {elapsed:9.3f} s   {steps} steps", flush=True)
    heading("Growth in columns: 2,000 rows")
    for columns in (5, 10, 20, 40):
        elapsed, steps = seconds(nonlinear(2_000, columns))
        print(f"{columns:7d} columns {elapsed:9.3f} s   {steps} steps", flush=True)


def memory() -> None:
    heading("Memory: a search over 40 columns and 5,000 rows")
    used = peak_megabytes(f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import spbn
from hill_climbing import nonlinear
frame = nonlinear(5_000, 40)
spbn.learn(frame[:200], model="spbn", max_parents=1)
mark()
score = spbn.scores.ValidatedLikelihood(frame)
spbn.search.hill_climb(score, spbn.Structure(frame.columns, types="ckde"), patience=0)
""")
    print(f"{used['before'] + used['added']:.0f} MB at the peak, {used['added']:.0f} MB above the start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "paper-data"
    )
    parser.add_argument("--quick", action="store_true", help="leave out what takes PyBNesian minutes")
    arguments = parser.parse_args()

    print(machine())
    spbn.learn(synthetic(300), model="spbn", patience=0)  # compiles
    heading("SPBN by hill climbing: start CKDE, patience 0, 10 folds")
    compare("synthetic", paper_synthetic("2000"))
    if arguments.data.is_dir():
        (vowel,) = (arguments.data / "UCI data" / "data" / "Vowel").glob("*.csv")
        compare("Vowel", pd.read_csv(vowel).drop(columns="class").astype(float))
    if not arguments.quick:
        compare("synthetic", paper_synthetic("10000"))
    if arguments.data.is_dir():
        heading("Gaussian networks by hill climbing: arth150_2000")
        compare_gaussian(pd.read_csv(arguments.data / "GaussianNetworks" / "arth150_2000.csv"))
    growth()
    memory()


if __name__ == "__main__":
    main()
