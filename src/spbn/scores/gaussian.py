"""Scores in closed form: BIC of linear Gaussian and discrete nodes, and BGe of linear Gaussian ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.errors import ArgumentError, argument, quoted
from spbn.nodes.base import NodeType
from spbn.nodes.families import FamilyScorer
from spbn.numerics.moments import Moments, log_pivots
from spbn.rows.families import FamilyBatch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RowStore
from spbn.scores.base import Score
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table, Variable, require_continuous


@final
class BIC(Score):
    """The Bayesian information criterion of linear Gaussian and discrete nodes.

    log-likelihood of the fitted node - log(N)/2 · parameters

    A linear Gaussian has a coefficient for every continuous parent, an intercept and a variance; a discrete
    node has one probability fewer than it has levels. Both have them for every configuration of their
    discrete parents, whether it occurs or not.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.BIC(data)
    >>> round(score.local("D", ["C"], "lg"), 1)
    -192.2
    """

    def __init__(self, data: Any, *, missing: Missing = "error") -> None:
        table = as_table(data, training=True, missing=missing)
        self._prepare(MemoryRows(Partition.whole(table), FitSettings(smoothing=0.0)))

    @classmethod
    def of_rows(cls, rows: RowStore) -> BIC:
        """Make the score of rows that may be anywhere: one group, fitted and evaluated at all of them."""
        score = cls.__new__(cls)
        score._prepare(rows)
        return score

    def _prepare(self, rows: RowStore) -> None:
        self._scorer = FamilyScorer(rows)
        self._rows = int(rows.test.counts[0])
        super().__init__(rows.variables, [NodeType.LG, NodeType.DISCRETE])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        penalty = 0.5 * math.log(self._rows) * parameters(batch, self.variables)
        return self._scorer.totals(batch) - penalty

    def further(self, batch: FamilyBatch) -> FloatArray | None:
        totals = self._scorer.further(batch)
        return None if totals is None else totals - 0.5 * math.log(self._rows) * (batch.sizes + 2)[:, None]


def parameters(batch: FamilyBatch, variables: Sequence[Variable]) -> FloatArray:
    """Return the number of parameters of every family of linear Gaussian and discrete nodes."""
    levels = np.array([max(len(variable.levels), 1) for variable in variables])
    discrete = levels > 1
    configurations = np.exp(batch.parents @ np.log(levels)).round()
    numbers = (batch.parents & ~discrete).sum(axis=1) + 2
    return configurations * np.where(discrete[batch.nodes], levels[batch.nodes] - 1, numbers)


@final
class BGe(Score):
    """The Bayesian Gaussian equivalent: marginal likelihood under a normal-Wishart prior.

    Geiger and Heckerman (2002), as corrected by Kuipers, Moffa and Heckerman (2014).

    Parameters
    ----------
    iss_mu
        How many observations the prior mean is worth.
    iss_w
        Degrees of freedom of the Wishart prior, more than the number of variables + 1;
        that number + 2 by default.
    nu
        Prior mean of every variable, as a dict or in column order; the column means by default.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> score = spbn.scores.BGe(data)
    >>> bool(score.local("D", ["C"], "lg") > score.local("D", [], "lg"))
    True
    """

    def __init__(
        self,
        data: Any,
        *,
        iss_mu: float = 1.0,
        iss_w: float | None = None,
        nu: Any = None,
        missing: Missing = "error",
    ) -> None:
        table = as_table(data, training=True, missing=missing)
        require_continuous(table, "BGe", "use BIC, or leave them out")
        n = len(table.names)
        if not isinstance(iss_mu, int | float) or not 0 < iss_mu < math.inf:
            raise ArgumentError(f"{argument('iss_mu')} must be positive. Got {iss_mu!r} instead.")
        if iss_w is None:
            iss_w = n + 2
        if not isinstance(iss_w, int | float) or not n + 1 < iss_w < math.inf:
            raise ArgumentError(
                f"{argument('iss_w')} must be greater than the number of variables + 1 ({n + 1}). "
                f"Got {iss_w!r}."
            )
        moments = Moments.of(table.columns)
        shift = np.zeros(n) if nu is None else _prior_mean(nu, table) - moments.mean
        self._prepare(table.names, moments, iss_mu, iss_w, shift)

    @classmethod
    def of_moments(cls, names: Sequence[str], moments: Moments) -> BGe:
        """Make the score with its default prior from the moments of the rows alone."""
        score = cls.__new__(cls)
        score._prepare(names, moments, 1.0, len(names) + 2.0, np.zeros(len(names)))
        return score

    def _prepare(
        self, names: Sequence[str], moments: Moments, iss_mu: float, iss_w: float, shift: FloatArray
    ) -> None:
        """Take up the moments, and a prior whose mean is that far from theirs."""
        n = len(names)
        prior_scale = iss_mu * (iss_w - n - 1) / (iss_mu + 1)
        weight = moments.count * iss_mu / (moments.count + iss_mu)
        self._scatter = moments.scatter
        self._posterior_scatter = moments.scatter + prior_scale * np.eye(n) + weight * np.outer(shift, shift)
        self._freedom = iss_w - n  # of the prior, for a block of one variable, minus 1
        self._rows = moments.count
        self._constants = self._constants_by_size(n, iss_mu, prior_scale)
        super().__init__(names, [NodeType.LG])

    def _constants_by_size(self, n: int, iss_mu: float, prior_scale: float) -> FloatArray:
        """Return the part of the marginal likelihood of 0 to n variables that does not depend on the data.

        The multivariate gamma functions Γ_d((f + d)/2) are products of Γ((f + m)/2) for m up to d; their
        powers of π cancel.
        """
        gammas = [
            math.lgamma(0.5 * (self._freedom + m + self._rows)) - math.lgamma(0.5 * (self._freedom + m))
            for m in range(1, n + 1)
        ]
        sizes = np.arange(n + 1)
        by_size = -0.5 * self._rows * math.log(math.pi) + 0.5 * math.log(iss_mu / (self._rows + iss_mu))
        prior = 0.5 * (self._freedom + sizes) * math.log(prior_scale)
        return sizes * (by_size + prior) + np.concatenate([[0.0], np.cumsum(gammas)])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        sizes = batch.sizes
        parents, node = log_pivots(self._posterior_scatter, batch.members, sizes).T
        # The prior can make up for what the data lacks, but a network has to be fitted to the data.
        _, fitted = log_pivots(self._scatter, batch.members, sizes).T
        unfit = np.isneginf(node) | np.isneginf(fitted) | (self._rows < sizes + 1)
        # The marginal likelihood of node and parents over that of the parents.
        posterior = self._freedom + self._rows + sizes
        score = self._constants[sizes] - self._constants[sizes - 1] - 0.5 * (posterior * node + parents)
        return np.where(unfit, -np.inf, score)


def _prior_mean(nu: Any, table: Table) -> FloatArray:
    if isinstance(nu, Mapping):
        if set(nu) != set(table.names):
            raise ArgumentError(
                f"nu must give the prior mean of the columns {quoted(table.names)}. Got {nu!r}."
            )
        nu = [nu[name] for name in table.names]
    try:
        mean = np.asarray(nu, dtype=np.float64)
    except (TypeError, ValueError):
        mean = np.array(np.nan)
    if mean.shape != (len(table.names),) or not np.isfinite(mean).all():
        raise ArgumentError(
            f"nu must give the prior mean of each of the {len(table.names)} columns. Got {nu!r}."
        )
    return mean
