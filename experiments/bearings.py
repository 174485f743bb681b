"""Bearings that wear out: three conditions, a network for each, and the fault that shows in one of them.

To look at other bearings, or other machines, three functions are enough::

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
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import spbn
from experiments.page import table
from spbn.structure import NodeType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDITIONS = ("good", "average", "bad")
#: Rotation, and the frequencies of defects of the outer race, the inner race, the cage and the balls.
FREQUENCIES = ("W", "BPFO", "BPFI", "FTF", "BSF")
#: The bearing whose rows decide what is good, average and bad, and all that networks are learned from.
REFERENCE, TRAINING = "Bearing1_1", ("Bearing1_1", "Bearing1_2")
WORN, FAULTY = "Bearing1_3", "Bearing1_7"
SECONDS_A_ROW = 10
ROWS_A_STEP = 3
#: The paper's curves are means of 30 rows.
STEPS_OF_MEAN = 10


@dataclass(frozen=True)
class Segmentation:
    """A hidden Markov model whose states are conditions, the one with the least amplitudes first."""

    model: Any
    order: tuple[int, ...]

    def conditions(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the condition of every row, from 0; rows must be in the order of time."""
        return np.argsort(self.order)[self.model.predict(rows.to_numpy())]


def segment(
    rows: pd.DataFrame, *, states: int = len(CONDITIONS), variance_prior: float = 1e-2, seed: int = 0
) -> Segmentation:
    """Divide the life of a bearing into conditions.

    Parameters
    ----------
    rows
        Amplitudes of the frequencies, in the order of time, from new to worn out.
    variance_prior
        Squares that are added to those of every state's amplitudes. The default is hmmlearn's,
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
    return spbn.learn(rows, start="lg", patience=0, seed=0)


def condition(networks: Sequence[spbn.BayesianNetwork], rows: pd.DataFrame) -> pd.Series:
    """Return the condition whose network finds each row the most likely."""
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
    """Learn a network, or say how it goes with a bearing: means over the rows of a step."""
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
    """Return everything there is to say about every row of a bearing."""
    rows = read(data, bearing)
    networks = [_network(data, name)[0] for name in CONDITIONS]
    contributions = by_frequency(networks[0].logpdf_by_node(rows))
    return contributions.assign(
        segment=_segmentation(data).conditions(rows), condition=condition(networks, rows)
    )


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Draw the conditions of two bearings, the fault of a third and the network of good rows."""
    import matplotlib.pyplot as plt

    figures = {
        "bearings-condition": draw_conditions(results),
        "bearings-fault": draw_fault(results),
        "bearings-network": draw_network(results, "good"),
    }
    for name, figure in figures.items():
        figure.savefig(out / f"{name}.png", dpi=90)
        plt.close(figure)
    (out / "bearings.md").write_text(f"{_network_table(results)}\n{_fall_table(results)}", encoding="utf-8")


def life(results: pd.DataFrame, bearing: str) -> pd.DataFrame:
    """Return the results of one bearing, by seconds since it was new."""
    steps = results[results["subject"] == bearing].sort_values("step")
    return steps.set_index(SECONDS_A_ROW * ROWS_A_STEP * steps["step"]).drop(columns=["subject", "step"])


def smooth(steps: pd.DataFrame | pd.Series) -> Any:
    """Return means over the five minutes up to a step."""
    return steps.rolling(STEPS_OF_MEAN, min_periods=1).mean()


def structure_of(results: pd.DataFrame, name: str) -> spbn.Structure:
    """Return the structure of the network of a condition."""
    (row,) = results[results["subject"] == name].itertuples()
    arcs = [tuple(arc.split(">")) for arc in str(row.arcs).split()]
    nodes = [f"{f}_{k}" if k else f for k in range(7) for f in FREQUENCIES]
    ckde = set(str(row.ckde).split())
    return spbn.Structure(nodes, arcs, {node: "ckde" if node in ckde else "lg" for node in nodes})


def draw_conditions(results: pd.DataFrame) -> Figure:
    """Draw the segmentation of the reference, and the condition of a bearing that wears out."""
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, figsize=(7.5, 4.6), layout="constrained", height_ratios=(2, 3))
    reference, worn = life(results, REFERENCE), life(results, WORN)
    above.plot(reference.index, reference["segment"].round(), ".", color="#22262b", markersize=2)
    above.set_title(f"{REFERENCE}: states of the hidden Markov model", fontsize=10, loc="left")
    below.plot(worn.index, smooth(worn["condition"]), color="#1f6fb2", linewidth=1.2)
    below.set_title(f"{WORN}: the most likely network, mean of five minutes", fontsize=10, loc="left")
    for ax in (above, below):
        ax.set_yticks(range(len(CONDITIONS)), CONDITIONS)
        ax.set_ylim(-0.15, 2.15)
        ax.spines[["top", "right"]].set_visible(False)
    below.set_xlabel("seconds")
    return figure


def draw_fault(results: pd.DataFrame) -> Figure:
    """Draw the end of the faulty bearing: log-likelihood under the network of good rows, by frequency."""
    import matplotlib.pyplot as plt

    from spbn.plots import plot_contributions

    end = smooth(life(results, FAULTY)[list(FREQUENCIES)]).iloc[-26:]
    figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    plot_contributions(end, ax, nodes=["BPFI", "BPFO", "BSF", "FTF", "W"])
    ax.set_title(f"{FAULTY}: log-likelihood of a good bearing, mean of five minutes", fontsize=10, loc="left")
    ax.set_xlabel("seconds", loc="right")
    return figure


def draw_network(results: pd.DataFrame, name: str) -> Figure:
    """Draw the graph of the network of a condition."""
    from spbn.plots import plot_structure

    return plot_structure(structure_of(results, name)).figure


def _network_table(results: pd.DataFrame) -> str:
    rows = []
    for name in CONDITIONS:
        structure = structure_of(results, name)
        (row,) = results[results["subject"] == name].itertuples()
        types = list(structure.types.values())
        rows.append((name, f"{int(row.rows):,}", len(structure.arcs), types.count(NodeType.CKDE)))
    return table(["network", "rows", "arcs", "CKDE nodes"], rows)


def _fall_table(results: pd.DataFrame) -> str:
    """Return how far every frequency falls below what it was in the first half of the bearing's life."""
    steps = life(results, FAULTY)[list(FREQUENCIES)]
    before = steps.iloc[: len(steps) // 2].mean()
    falls = before - smooth(steps).loc[smooth(steps).sum(axis=1).idxmin()]
    rows = [
        (frequency, f"{before[frequency]:.1f}", f"{fall:,.0f}", f"{fall / falls.sum():.0%}")
        for frequency, fall in falls.sort_values(ascending=False).items()
    ]
    return table(["frequency", "log-likelihood before", "fall", "share of the fall"], rows)
