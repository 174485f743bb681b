"""A kernel density estimate: points and a bandwidth matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn import kernels
from spbn._base.arrays import FloatArray, Seed, generator, require_count
from spbn.errors import ArgumentError, FitError, quoted, setting
from spbn.kernels import estimates as bandwidths
from spbn.kernels.estimates import BandwidthRule
from spbn.kernels.whitened import PreparedKernels
from spbn.numerics import gaussian
from spbn.tables.reader import Missing, as_table

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

    Examples
    --------
    >>> import spbn
    >>> kde = spbn.nodes.KDE.fit({"x": [0.0, 1.0, 3.0]})
    >>> kde.logpdf({"x": [1.0]}).round(3)
    array([-1.538])
    """

    names: tuple[str, ...]
    points: FloatArray
    bandwidth: FloatArray
    engine: str = "auto"

    def __post_init__(self) -> None:
        for name in ("points", "bandwidth"):
            array = getattr(self, name)
            if array.flags.writeable:  # the caller's own, who may go on writing to it
                array = array.copy()
                array.flags.writeable = False
                object.__setattr__(self, name, array)

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
        if bandwidth == "cv":
            raise ArgumentError(
                f"{setting('bandwidth', 'cv')} is for CKDE nodes, whose density given parents is what it "
                f"maximises. Use 'scott', 'silverman' or a function."
            )
        kernels.require_engine(engine)
        table = as_table(data, names=names, missing=missing, min_rows=2)
        kde = cls(table.names, table.columns, bandwidths.matrix(bandwidth, table.columns), engine)
        kde.whitener  # noqa: B018 -- refuse a singular matrix now, not at the first use
        return kde

    @cached_property
    def whitener(self) -> FloatArray:
        """The W with W H Wᵀ = 1, lower triangular."""
        whitener = gaussian.whitener(self.bandwidth)
        if whitener is None:
            raise FitError(
                f"the bandwidth matrix of {quoted(self.names)} is singular or not positive definite. Under a "
                f"named rule that means that a column is constant or a linear combination of others: drop it."
            )
        return whitener

    @cached_property
    def prepared(self) -> PreparedKernels:
        """The kernels, ready to be queried."""
        return PreparedKernels.of(self.points, self.whitener, self.engine)

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.points.shape[1]

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of every row."""
        return self.prepared.log_density(as_table(data, names=self.names).columns)

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
