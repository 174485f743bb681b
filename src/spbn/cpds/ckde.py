"""CKDE: the conditional density that a kernel density estimate of node and parents implies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn.bandwidth import BandwidthRule
from spbn.cpds.base import parent_columns
from spbn.data import FloatArray, Missing, Seed, as_table, centre_of, generator
from spbn.kde import KDE
from spbn.kernels.conditional import FAR, choose_rows, conditional_cdf, conditional_log_density


@dataclass(frozen=True, repr=False)
class CKDE:
    """The conditional kernel density estimate of a node given its parents.

    f(x | pa) = f_H(x, pa) / f_H⁻(pa), where H⁻ is the block of H that belongs
    to the parents: a bandwidth chosen anew for them would give a function of x
    that does not integrate to one.

    Attributes
    ----------
    node, parents
        The family.
    joint
        The kernel density estimate of the parents, and the node behind them.
    """

    node: str
    parents: tuple[str, ...]
    joint: KDE

    @classmethod
    def fit(
        cls,
        data: Any,
        node: str,
        parents: Sequence[str] = (),
        *,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
    ) -> CKDE:
        """Place a kernel on every row."""
        child_first = KDE.fit(data, [node, *parents], bandwidth=bandwidth, missing=missing, engine=engine)
        order = [*range(1, len(parents) + 1), 0]
        joint = KDE(
            (*parents, node),
            np.ascontiguousarray(child_first.points[order]),
            np.ascontiguousarray(child_first.bandwidth[np.ix_(order, order)]),
            engine,
        )
        return cls(node, tuple(parents), joint)

    @property
    def bandwidth(self) -> FloatArray:
        """The bandwidth matrix H, parents first and the node last."""
        return self.joint.bandwidth

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.joint.rows

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of the node given its parents, for every row."""
        table = as_table(data, names=self.joint.names)
        density = self.joint.log_density(table)
        if not self.parents:
            return density
        parents = self.joint.log_density(table, self.parents)
        far = parents < FAR
        density = np.where(far, 0.0, density) - np.where(far, 0.0, parents)
        if far.any():
            rows = conditional_log_density(*self._whitened(table.columns[:, far]))
            density[far] = rows + math.log(self.joint.whitener[-1, -1])
        return density

    def cdf(self, data: Any) -> FloatArray:
        """P(X ≤ x | parents), for every row."""
        train, queries = self._whitened(as_table(data, names=self.joint.names).columns)
        return conditional_cdf(train, queries)

    def sample(self, n: int, *, given: Any = None, seed: Seed = None) -> FloatArray:
        """Draw n values; `given` holds the parents' values, a row for each.

        A training row is drawn with the weight of its kernel at the parents'
        values, then x from the normal distribution that this kernel gives it.
        """
        parents = parent_columns(self.node, self.parents, n, given)
        rng = generator(seed)
        uniforms, noise = rng.random(n), rng.standard_normal(n)
        if not self.parents:
            rows = (uniforms * self.rows).astype(np.int64)
        else:
            rows = choose_rows(*self._whitened(np.vstack([parents, np.zeros(n)])), uniforms)
        # The last row of the whitener standardises x - x_j given the parents: solve it for x.
        *slopes, precision = self.joint.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.joint.points[:-1, rows])
        return self.joint.points[-1, rows] + (noise - shift) / precision

    def _whitened(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Training rows and queries in the coordinates in which every kernel is a standard normal."""
        centre = centre_of(self.joint.points)
        whitener = self.joint.whitener
        return whitener @ (self.joint.points - centre), whitener @ (columns - centre)

    def __repr__(self) -> str:
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        return f"{self.node}{given} ~ CKDE ({self.rows} rows)"
