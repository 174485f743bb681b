"""PC compared with PyBNesian on the same rows.

    python benchmarks/pc.py [--data ../shared/paper-data] [--quick]

RCoT takes PyBNesian about eight minutes; ``--quick`` leaves it out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pybnesian

import spbn

from timing import best, heading, machine


def joins_of_theirs(pdag: Any) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in (*pdag.arcs(), *pdag.edges())}


def joins_of_ours(pdag: spbn.graphs.PDAG) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in (*pdag.arcs, *pdag.edges)}


def compare(
    title: str,
    frame: pd.DataFrame,
    theirs: Callable[[pd.DataFrame], Any],
    ours: Callable[[pd.DataFrame], Any],
) -> None:
    """Run PC with a test of each side, and print the ratio of their times."""
    heading(f"{title}: {len(frame):,} rows, {len(frame.columns)} variables")
    spbn.search.pc(ours(frame.iloc[:, :4]))  # compile
    our_seconds, result = best(lambda: spbn.search.pc(ours(frame)), runs=3)
    joins = joins_of_ours(result.pdag)
    print(
        f"spbn       {our_seconds:8.2f} s   {len(joins)} adjacencies, {sum(result.tests_run):,} tests",
        flush=True,
    )
    their_seconds, pdag = best(lambda: pybnesian.PC().estimate(theirs(frame)), runs=1)
    differing = len(joins ^ joins_of_theirs(pdag))
    print(f"PyBNesian  {their_seconds:8.2f} s   {len(joins_of_theirs(pdag))} adjacencies, {differing} differ")
    print(f"           {their_seconds / our_seconds:8.1f}×", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "paper-data")
    parser.add_argument("--quick", action="store_true", help="leave RCoT out")
    options = parser.parse_args()
    print(machine())

    def table(name: str) -> pd.DataFrame:
        return pd.read_csv(options.data / "GaussianNetworks" / f"{name}.csv")

    compare(
        "Partial correlation",
        table("arth150_2000"),
        pybnesian.LinearCorrelation,
        spbn.independence.PartialCorrelation,
    )
    if not options.quick:
        # Random features differ from run to run on their side, so a few adjacencies do too.
        compare("RCoT", table("magic_niab_2000"), pybnesian.RCoT, spbn.independence.RCoT)


if __name__ == "__main__":
    main()
