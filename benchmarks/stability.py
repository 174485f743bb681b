"""How much the graph changes with the rows and the seed: whether single rows decide.

    python benchmarks/stability.py [--data ../shared/paper-data] [--tables NAME ...] [--repeats 100]

For each table, networks are learned from random three quarters of the rows: how many arcs do they have? Then
WineQuality-White, where one row decided in version 0.2: with ten seeds, and from ten random four fifths of
the rows, next to a Gaussian network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import spbn

from timing import heading, machine

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.sources import uci_table

TABLES = ("Iris", "CPU", "Liver", "Ecoli", "Glass", "Wine", "QSAR Aquatic", "QSAR fish toxicity")
WHITE = "WineQuality-White"


def colleges(rows: int = 777, seed: int = 0) -> pd.DataFrame:
    """Draw a table like that of colleges: skewed sizes, percentages, nearly copied columns, odd rows."""
    rng = np.random.default_rng(seed)
    size, wealth = rng.normal(size=(2, rows))
    applied = np.exp(7.3 + 1.0 * size + 0.2 * rng.normal(size=rows))
    accepted = applied * (1.0 / (1.0 + np.exp(-1.2 + 0.5 * wealth + 0.3 * rng.normal(size=rows))))
    enrolled = accepted * np.exp(-1.0 - 0.1 * size + 0.2 * rng.normal(size=rows))
    students = enrolled * np.exp(1.5 + 0.1 * rng.normal(size=rows))
    tuition = 10_000 + 3_500 * wealth + 1_500 * rng.normal(size=rows)
    board = 4_300 + 0.15 * (tuition - 10_000) + 700 * rng.normal(size=rows)
    spending = np.exp(9.0 + 0.35 * wealth + 0.2 * rng.normal(size=rows))
    graduates = np.clip(65 + 10 * wealth + 13 * rng.normal(size=rows), 10, 118).round()
    doctors = np.clip(72 + 12 * wealth + 12 * rng.normal(size=rows), 8, 103).round()
    frame = pd.DataFrame(
        {
            "applied": applied.round(),
            "accepted": accepted.round(),
            "enrolled": enrolled.round(),
            "students": students.round(),
            "tuition": tuition.round(),
            "board": board.round(),
            "spending": spending.round(),
            "graduates": graduates,
            "doctors": doctors,
        }
    )
    odd = rng.choice(rows, 6, replace=False)
    for row, column in zip(
        odd, ["applied", "students", "spending", "board", "accepted", "enrolled"], strict=True
    ):
        frame.loc[row, column] = frame[column].max() * 3
    return frame


def parts_of(title: str, frame: pd.DataFrame, repeats: int) -> bool:
    """Learn from random parts of a table, and tell whether the number of arcs holds still."""
    rng = np.random.default_rng(0)
    arcs = []
    for _ in range(repeats):
        rows = np.sort(rng.choice(len(frame), round(0.75 * len(frame)), replace=False))
        arcs.append(len(spbn.learn(frame.iloc[rows]).structure.arcs))
    least, median, most = min(arcs), float(np.median(arcs)), max(arcs)
    spread = float(np.std(arcs) / median)
    within = float(np.mean([abs(count - median) < 0.3 * median for count in arcs]))
    print(
        f"{title:22} arcs {least} to {most}, median {median:g}; "
        f"spread {spread:.0%}, within 30 % of the median in {within:.0%}",
        flush=True,
    )
    return least >= 0.5 * median and within == 1.0


def white_wine(frame: pd.DataFrame) -> None:
    """Learn with ten seeds, and from ten random parts, next to a Gaussian network."""
    heading(f"{WHITE}: ten seeds, and ten random 80 % of the rows")
    rng = np.random.default_rng(1)
    for title, parts in (
        ("seeds", [np.random.default_rng(0).permutation(len(frame))] * 10),
        ("parts", [rng.permutation(len(frame)) for _ in range(10)]),
    ):
        arcs, densities, gains = [], [], []
        for seed, order in enumerate(parts):
            cut = round(0.8 * len(frame))
            train, test = frame.iloc[np.sort(order[:cut])], frame.iloc[order[cut:]]
            network = spbn.learn(train, seed=seed if title == "seeds" else 0)
            density, gaussian = (
                float(np.mean(found.logpdf(test))) / frame.shape[1]
                for found in (network, spbn.learn(train, model="gbn"))
            )
            arcs.append(len(network.structure.arcs))
            densities.append(density)
            gains.append(density - gaussian)
            print(f"{title} {seed}: {arcs[-1]} arcs, {density:.4f}, {gains[-1]:+.4f}", flush=True)
        print(
            f"{title}: {min(arcs)} to {max(arcs)} arcs; log-density per row and variable "
            f"{min(densities):.3f} to {max(densities):.3f}, standard deviation {np.std(densities):.4f}, "
            f"difference {np.ptp(densities):.4f}; above the Gaussian network by {min(gains):.3f} at least",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "paper-data")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--tables", nargs="*", default=[*TABLES, "colleges", "diabetes", "synthetic", WHITE])
    options = parser.parse_args()
    print(machine())
    if options.tables != [WHITE]:
        heading(f"Arcs learned from {options.repeats} random 75 % of the rows")
    made = {
        "colleges": colleges,
        "diabetes": lambda: load_diabetes(as_frame=True).data.drop(columns="sex"),
        "synthetic": lambda: spbn.datasets.synthetic(500, seed=0),
    }
    for name in options.tables:
        if name != WHITE:
            parts_of(name, made[name]() if name in made else uci_table(options.data, name), options.repeats)
    if WHITE in options.tables:
        white_wine(uci_table(options.data, WHITE))


if __name__ == "__main__":
    main()
