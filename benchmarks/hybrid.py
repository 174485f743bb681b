"""Hill climbing of an SPBN on mixed tables, compared with PyBNesian on the same rows, folds and start.

    python benchmarks/hybrid.py [--data ../shared/hybrid-data] [--tables Abalone Australian]

Both may use the types LG and CKDE for columns of numbers, stop at the first step that validation rows do not
confirm, have the same bandwidths, and do not smooth their tables. PyBNesian leaves rows out that it cannot
score, so that the structures may differ. Its search takes minutes to an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the experiments know the tables

from experiments.hybrid import peer_network
from experiments.hybrid_tables import hybrid_table

import spbn

from peer import split_of, validated_score
from timing import heading, machine


class Measured(NamedTuple):
    """A result, and how long it took: on the clock, and on the processor, all cores together."""

    result: Any
    clock: float
    processor: float


def measured(function: Callable[[], Any]) -> Measured:
    """Run a function once."""
    clock, processor = time.perf_counter(), time.process_time()
    result = function()
    return Measured(result, time.perf_counter() - clock, time.process_time() - processor)


def compare(data: Path, name: str) -> None:
    """Search with both libraries."""
    frame = hybrid_table(data, name)
    rows, columns = frame.shape
    heading(f"{name}: {rows:,} × {columns}, {frame.select_dtypes('category').shape[1]} discrete")
    score = validated_score(frame)
    split = split_of(score)
    discrete = set(frame.select_dtypes("category").columns)
    start = spbn.Structure(
        list(frame.columns), types={c: "discrete" if c in discrete else "ckde" for c in frame.columns}
    )

    def search() -> spbn.SearchResult:
        mine = spbn.scores.ValidatedLikelihood(
            split.train,
            folds=split.labels,
            validation=split.validation,
            smoothing=0.0,
            bandwidth="silverman",
        )
        return spbn.search.hill_climb(mine, start, types=("lg", "ckde"), patience=0)

    search()  # compiles
    ours = min((measured(search) for _ in range(3)), key=lambda run: run.clock)
    print(_line("spbn", ours, len(ours.result.structure.arcs)), flush=True)
    theirs = measured(lambda: peer_network(split.train, score))
    print(_line("PyBNesian", theirs, len(theirs.result.arcs())))
    shared = set(ours.result.structure.arcs) & {tuple(arc) for arc in theirs.result.arcs()}
    ratios = theirs.clock / ours.clock, theirs.processor / ours.processor
    print(f"{ratios[0]:,.0f} times faster, processor {ratios[1]:,.0f} times; {len(shared)} arcs in common")


def _line(name: str, run: Measured, arcs: int) -> str:
    return f"{name:<10} {run.clock:>10.2f} s   processor {run.processor:>10.2f} s   {arcs} arcs"


def main() -> None:
    """Compare on the tables that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/hybrid-data"))
    parser.add_argument("--tables", nargs="+", default=["Abalone", "Australian"])
    options = parser.parse_args()
    print(machine())
    for name in options.tables:
        compare(options.data, name)


if __name__ == "__main__":
    main()
