"""A kernel density estimate: points and a bandwidth matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn import bandwidth as bandwidths
from spbn import cholesky, kernels
from spbn.bandwidth import BandwidthRule
from spbn.data import FloatArray, Missing, Seed, Table, as_table, centre_of, generator, quoted, require_count
from spbn.errors import FitError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class KDE:
    """A kernel density estimate with Gaussian kernels.

    f(x) = 1/N Σ_j N(x; x_j, H)

    Attributes
    ----------
    names
        The variables.
    points
        Variables × rows: the centres of the kernels.
    bandwidth
        The covariance matrix H of a kernel.
    """

    names: tuple[str, ...]
    points: FloatArray
    bandwidth: FloatArray
    engine: str = "auto"

    def __post_init__(self) -> None:
        self.points.flags.writeable = False
        self.bandwidth.flags.writeable = False

    @classmethod
    def fit(
        cls,
        data: Any,
        names: Sequence[str] | None = None,
        *,
        bandwidth: BandwidthRule = "scott",
        missing: Missing = "error",
        engine: str = "auto",
    ) -> KDE:
        """Estimate the joint density of the named columns; of all of them by default."""
        bandwidths.require_rule(bandwidth)
        kernels.require_engine(engine)
        table = as_table(data, names=names, missing=missing, min_rows=2)
        kde = cls(table.names, table.columns, bandwidths.matrix(bandwidth, table.columns), engine)
        kde.whitener  # noqa: B018 -- refuse a singular matrix now, not at the first use
        return kde

    @cached_property
    def whitener(self) -> FloatArray:
        """The W with W H Wᵀ = 1, lower triangular."""
        whitener = cholesky.whitener(self.bandwidth)
        if whitener is None:
            raise FitError(
                f"the bandwidth matrix of {quoted(self.names)} is singular or not positive definite. Under a "
                f"named rule that means that a column is constant or a linear combination of others: drop it."
            )
        return whitener

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.points.shape[1]

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of every row."""
        return self.log_density(as_table(data, names=self.names))

    def log_density(self, table: Table, names: Sequence[str] | None = None) -> FloatArray:
        """Log-density of every row, of all variables or of the first few named, with their block of H."""
        chosen = self.names if names is None else tuple(names)
        d = len(chosen)
        if chosen != self.names[:d]:
            raise ValueError(f"{chosen} are not the first of {self.names}")
        queries = np.stack([table.column(name) for name in chosen])
        rows = np.concatenate([self.points[:d], queries], axis=1) - centre_of(self.points[:d])
        span = np.array([[self.rows, rows.shape[1], 0, self.rows, 0, 0]])
        # The leading block of the whitener whitens the leading block of H.
        whiteners = np.ascontiguousarray(self.whitener[:d, :d])[None, None]
        density = kernels.log_density(rows, np.arange(d)[None], whiteners, span, engine=self.engine)
        return density[0, self.rows :]

    def sample(self, n: int, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows."""
        import pandas as pd

        require_count(n)
        rng = generator(seed)
        centres = self.points[:, rng.integers(self.rows, size=n)]
        noise = np.linalg.solve(self.whitener, rng.standard_normal((len(self.names), n)))
        return pd.DataFrame((centres + noise).T, columns=list(self.names))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KDE)
            and self.names == other.names
            and np.array_equal(self.bandwidth, other.bandwidth)
            and np.array_equal(self.points, other.points)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __repr__(self) -> str:
        return f"KDE of {', '.join(self.names)} ({self.rows} rows)"
