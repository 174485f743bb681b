"""Scores of Gaussian networks: BIC and BGe, both from one scatter matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from spbn.errors import ArgumentError, FitError, quoted
from spbn.nodes.base import NodeType
from spbn.nodes.families import Family, FamilyBatch
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.numerics.arrays import FloatArray
from spbn.numerics.moments import Moments
from spbn.numerics.regression import ILL_CONDITIONED, MomentStack, log_likelihoods, log_pivots
from spbn.scores.base import Score
from spbn.tables.frames import Missing, training_table
from spbn.tables.table import Table


@final
class BIC(Score):
    """The Bayesian information criterion of linear Gaussian nodes.

    log-likelihood of the fitted node - log(N)/2 · (|parents| + 2)
    """

    def __init__(self, data: Any, *, missing: Missing = "error") -> None:
        self._table = training_table(data, missing)
        self._moments = MomentStack.of([Moments.of(self._table.columns)])
        super().__init__(self._table.names, [NodeType.LG])

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        log_likelihood, share = log_likelihoods(self._moments, self._moments, batch.members, batch.sizes)
        for f in np.flatnonzero((share < ILL_CONDITIONED) & (log_likelihood > -np.inf)):
            log_likelihood[f] = self._from_rows(batch.families[f])
        return log_likelihood - 0.5 * math.log(self._table.rows) * (batch.sizes + 1)

    def _from_rows(self, family: Family) -> float:
        try:
            return float(
                LinearGaussian.fit(self._table, family.node, family.parents).logpdf(self._table).sum()
            )
        except FitError:
            return -math.inf


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
        table = training_table(data, missing)
        n = len(table.names)
        if not isinstance(iss_mu, int | float) or not 0 < iss_mu < math.inf:
            raise ArgumentError(f"iss_mu must be positive. Got {iss_mu!r} instead.")
        if iss_w is None:
            iss_w = n + 2
        if not isinstance(iss_w, int | float) or not n + 1 < iss_w < math.inf:
            raise ArgumentError(
                f"iss_w must be greater than the number of variables + 1 ({n + 1}). Got {iss_w!r}."
            )
        moments = Moments.of(table.columns)
        prior_scale = iss_mu * (iss_w - n - 1) / (iss_mu + 1)
        shift = np.zeros(n) if nu is None else _prior_mean(nu, table) - moments.mean
        weight = table.rows * iss_mu / (table.rows + iss_mu)
        self._scatter = moments.scatter
        self._posterior_scatter = moments.scatter + prior_scale * np.eye(n) + weight * np.outer(shift, shift)
        self._freedom = iss_w - n  # of the prior, for a block of one variable, minus 1
        self._rows = table.rows
        self._constants = self._constants_by_size(n, iss_mu, prior_scale)
        super().__init__(table.names, [NodeType.LG])

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
