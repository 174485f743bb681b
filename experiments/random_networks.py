"""Random networks whose graph is known: how parents act, what the noise is like, and rows drawn from them.

Every column is standardised as soon as it is drawn: neither its scale nor its variance says where it stands
in the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import spbn

NOISES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "Laplace": lambda rng, n: rng.laplace(0.0, np.sqrt(0.5), n),
    "bimodal": lambda rng, n: (rng.normal(0.0, 0.4, n) + rng.choice([-0.9, 0.9], n)) / np.hypot(0.4, 0.9),
}
MECHANISMS = ("linear", "additive", "multiplicative", "post-nonlinear", "heteroscedastic")
SIGNAL = 1.5  # standard deviation of what parents do, where that of the noise is 1
WAVES = 5  # cosines that a smooth function is made of


@dataclass(frozen=True)
class RandomNetwork:
    """A random graph, and how its nodes come about."""

    nodes: int
    degree: int  # mean number of neighbours
    mechanism: str
    noise: str
    seed: int

    @property
    def dag(self) -> spbn.DAG:
        """The graph: every pair of nodes is joined with the same probability, in a random order."""
        rng = np.random.default_rng([self.seed, self.nodes, self.degree])
        names = [f"x{i + 1}" for i in range(self.nodes)]
        order = rng.permutation(self.nodes)
        joined = np.triu(rng.random((self.nodes, self.nodes)) < self.degree / (self.nodes - 1), 1)
        return spbn.DAG(names, [(names[order[i]], names[order[j]]) for i, j in np.argwhere(joined)])

    def sample(self, rows: int) -> pd.DataFrame:
        """Draw rows; the columns come in the order of the names."""
        dag = self.dag
        rng = np.random.default_rng([self.seed, self.nodes, self.degree, rows])
        columns: dict[str, np.ndarray] = {}
        for name in dag.topological_order():
            parents = [columns[parent] for parent in dag.parents(name)]
            noise = NOISES[self.noise](rng, rows)
            values = self._combine(parents, noise, rng) if parents else noise
            columns[name] = (values - values.mean()) / values.std()
        return pd.DataFrame({name: columns[name] for name in dag.nodes})

    def _combine(self, parents: list[np.ndarray], noise: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.mechanism == "linear":
            weights = rng.uniform(0.5, 1.5, len(parents)) * rng.choice([-1, 1], len(parents))
            return _scaled(weights @ np.array(parents)) + noise
        curves = [_smooth(parent, rng) for parent in parents]
        if self.mechanism == "multiplicative":
            return _scaled(np.prod([1.0 + curve for curve in curves], axis=0)) + noise
        signal = _scaled(np.sum(curves, axis=0))
        if self.mechanism == "additive":
            return signal + noise
        if self.mechanism == "post-nonlinear":
            return np.sinh(0.7 * (signal + noise))
        widths = np.exp(0.6 * _scaled(np.sum([_smooth(parent, rng) for parent in parents], axis=0)) / SIGNAL)
        return signal + widths * noise


def _scaled(values: np.ndarray) -> np.ndarray:
    return SIGNAL * (values - values.mean()) / values.std()


def _smooth(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random smooth function of a standardised column, with a variance of about one."""
    frequencies, phases = rng.standard_normal(WAVES), rng.uniform(0, 2 * np.pi, WAVES)
    waves = np.cos(np.outer(values, frequencies) + phases) @ rng.standard_normal(WAVES)
    return (waves - waves.mean()) / waves.std()
