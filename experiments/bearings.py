"""Bearings that wear out: three conditions, a network for each, and the fault that shows in one of them.

For other bearings, or other machines, three functions are enough::

    segmentation = segment(run_to_failure)                     # good, average and bad rows
    networks = train([run_to_failure, another], segmentation)  # a network for each condition
    condition(networks, new_rows).rolling(30).mean().plot()    # rises as the bearing wears out

and ``by_frequency(networks[0].logpdf_by_node(new_rows))`` tells which frequencies are unlike those
of a good bearing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spbn
from spbn.nodes.base import NodeType

CONDITIONS = ("good", "average", "bad")
#: Rotation, and the defect frequencies of the outer race, the inner race, the cage and the balls.
FREQUENCIES = ("W", "BPFO", "BPFI", "FTF", "BSF")
#: The bearing whose rows decide what is good, average and bad, and all that networks are learned from.
REFERENCE, TRAINING = "Bearing1_1", ("Bearing1_1", "Bearing1_2")
WORN, FAULTY = "Bearing1_3", "Bearing1_7"
SECONDS_A_ROW = 10
ROWS_A_STEP = 3


@dataclass(frozen=True)
class Segmentation:
    """A hidden Markov model whose states are conditions, the one with the smallest amplitudes first."""

    model: Any
    order: tuple[int, ...]

    def conditions(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the condition of every row, from 0; rows must be in order of time."""
        return np.argsort(self.order)[self.model.predict(rows.to_numpy())]


def segment(
    rows: pd.DataFrame, *, states: int = len(CONDITIONS), variance_prior: float = 1e-2, seed: int = 0
) -> Segmentation:
    """Divide the life of a bearing into conditions.

    Parameters
    ----------
    rows
        Amplitudes of the frequencies, in order of time, from new to worn out.
    variance_prior
        A sum of squares added to that of every state's amplitudes. The default is hmmlearn's,
        and so the paper's; it keeps states from following noise, and should grow with the
        square of the unit of the amplitudes.
    """
    from hmmlearn.hmm import GaussianHMM

    model = GaussianHMM(states, covars_prior=variance_prior, n_iter=100, random_state=seed)
    model.fit(rows.to_numpy())
    return Segmentation(model, tuple(np.argsort(model.means_.mean(axis=1)).tolist()))


def rows_of(bearings: Sequence[pd.DataFrame], segmentation: Segmentation, condition: int) -> pd.DataFrame:
    """Return the rows of all bearings that are in one condition."""
    return pd.concat([rows[segmentation.conditions(rows) == condition] for rows in bearings])


def train(bearings: Sequence[pd.DataFrame], segmentation: Segmentation) -> list[spbn.BayesianNetwork]:
    """Learn a network from the rows of each condition."""
    return [learn(rows_of(bearings, segmentation, condition)) for condition in range(len(segmentation.order))]


def learn(rows: pd.DataFrame) -> spbn.BayesianNetwork:
    """Learn a network as the paper does: from linear Gaussian nodes, stopping at the first miss."""
    return spbn.learn(rows, model="spbn", start="lg", patience=0, seed=0)


def condition(networks: Sequence[spbn.BayesianNetwork], rows: pd.DataFrame) -> pd.Series:
    """Return, for each row, the condition whose network finds it the most likely."""
    likelihoods = np.stack([network.logpdf(rows) for network in networks])
    return pd.Series(likelihoods.argmax(axis=0), index=rows.index)


def by_frequency(contributions: pd.DataFrame) -> pd.DataFrame:
    """Sum what nodes contribute to the log-density over the harmonics of a frequency."""
    return contributions.T.groupby(lambda node: node.split("_")[0]).sum().T


def read(data: Path, bearing: str) -> pd.DataFrame:
    """Read the amplitudes of a bearing, such as "Bearing1_3"."""
    number = bearing.removeprefix("Bearing").replace("_", "")
    path = data / "BearingsDegradation" / f"atrium{number}.csv"
    return pd.read_csv(path).filter(regex="|".join(FREQUENCIES))


@dataclass(frozen=True)
class Cell:
    """A network, by its condition, or half a minute in the life of a bearing."""

    subject: str
    step: int = 0


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return the networks, and then the bearings from beginning to end."""
    return [Cell(name) for name in CONDITIONS] + [
        Cell(bearing, step)
        for bearing in (REFERENCE, WORN, FAULTY)
        for step in range(0, -(-len(read(data, bearing)) // ROWS_A_STEP), 20 if quick else 1)
    ]


def batch(cell: Cell) -> str:
    """All cells need the same networks."""
    return "bearings"


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn a network, or describe a step in the life of a bearing: means over its rows."""
    if cell.subject in CONDITIONS:
        network, rows = _network(data, cell.subject)
        return _columns(
            rows=rows,
            ckde=" ".join(n for n in network.nodes if network.structure.type(n) is NodeType.CKDE),
            arcs=" ".join(f"{a}>{b}" for a, b in network.structure.arcs),
        )
    begin = cell.step * ROWS_A_STEP
    step = _life(data, cell.subject).iloc[begin : begin + ROWS_A_STEP]
    return _columns(rows=len(step), **step.mean().round(2).to_dict())


def _columns(**values: float | int | str) -> dict[str, float | int | str]:
    names = ("rows", "segment", "condition", *FREQUENCIES, "ckde", "arcs")
    return {name: values.get(name, "") for name in names}


@cache
def _segmentation(data: Path) -> Segmentation:
    return segment(read(data, REFERENCE))


@cache
def _network(data: Path, name: str) -> tuple[spbn.BayesianNetwork, int]:
    bearings = [read(data, bearing) for bearing in TRAINING]
    rows = rows_of(bearings, _segmentation(data), CONDITIONS.index(name))
    return learn(rows), len(rows)


@cache
def _life(data: Path, bearing: str) -> pd.DataFrame:
    """Return everything that is measured about every row of a bearing."""
    rows = read(data, bearing)
    networks = [_network(data, name)[0] for name in CONDITIONS]
    contributions = by_frequency(networks[0].logpdf_by_node(rows))
    return contributions.assign(
        segment=_segmentation(data).conditions(rows), condition=condition(networks, rows)
    )


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Draw the conditions of two bearings, the fault of a third and the network of good rows."""
    from experiments.figures.bearings import draw

    draw(results, out)
