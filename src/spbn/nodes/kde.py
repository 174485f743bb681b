"""A kernel density estimate: points and a bandwidth matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn import kernels
from spbn._base.arrays import FloatArray, IntArray, Seed, generator, require_count
from spbn._base.files import ArrayWriter
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, FitError, quoted, setting
from spbn.kernels import estimates as bandwidths
from spbn.kernels.conditional import WhitenedKernels
from spbn.kernels.estimates import BandwidthRule
from spbn.kernels.multiscale import SCALES
from spbn.numerics import gaussian
from spbn.numerics.gaussian import draw_between
from spbn.numerics.moments import centre_of
from spbn.tables.reader import Missing, as_table


@final
@dataclass(frozen=True, eq=False, repr=False)
class KDE(WhitenedKernels):
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
    def whitener(self) -> FloatArray:  # type: ignore[override]  # computed when it is needed
        """The W with W H Wᵀ = 1, lower triangular."""
        whitener = gaussian.whitener(self.bandwidth)
        if whitener is None:
            raise FitError(
                f"the bandwidth matrix of {quoted(self.names)} is singular or not positive definite. Under a "
                f"named rule that means that a column is constant or a linear combination of others: drop it."
            )
        return whitener

    @cached_property
    def centre(self) -> FloatArray:  # type: ignore[override]  # computed when it is needed
        """What is subtracted from points, so that large offsets cost no digits."""
        return centre_of(self.points)

    @cached_property
    def coordinates(self) -> FloatArray:  # type: ignore[override]  # computed when it is needed
        """The points, centred and whitened: variables × rows."""
        return np.ascontiguousarray(self.whitener @ (self.points - self.centre))

    @property
    def rows(self) -> int:
        """Number of kernels."""
        return self.points.shape[1]

    def logpdf(self, data: Any) -> FloatArray:
        """Log-density of every row."""
        return self.log_density(as_table(data, names=self.names).columns)

    def sample(self, n: int, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows."""
        require_count(n)
        rng = generator(seed)
        centres = self.points[:, rng.integers(self.rows, size=n)]
        noise = np.linalg.solve(self.whitener, rng.standard_normal((len(self.names), n)))
        return pd.DataFrame((centres + noise).T, columns=list(self.names))

    def scaled(self, factor: float) -> KDE:
        """Return the same kernels with a multiple of the bandwidth matrix."""
        return KDE(self.names, self.points, factor * self.bandwidth, self.engine)

    def at_scale(self, k: int) -> KDE:
        """Return the kernels of one of the scales of `SCALES`."""
        return self.scaled(SCALES[k])

    def without(self, kernels: IntArray) -> KDE:
        """Return the estimate without some of its kernels; with all of them if none would be left."""
        points = np.delete(self.points, kernels, axis=1)
        return KDE(self.names, points, self.bandwidth, self.engine) if points.shape[1] else self

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a value of the last variable for every column of those before it.

        A row is drawn with the weight of its kernel at the parents' values, then x from the normal
        distribution that this kernel gives it.
        """
        n: int = parents.shape[1]
        uniforms, noise = rng.random(n), rng.standard_normal(n)
        if not len(parents):
            rows = (uniforms * self.rows).astype(np.int64)
        else:
            rows = self.choose_rows(parents, uniforms)
        # The last row of the whitener standardises x - x_j given the parents: solve it for x.
        *slopes, precision = self.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.points[:-1, rows])
        return self.points[-1, rows] + (noise - shift) / precision

    def log_mass(self, parents: FloatArray, low: float, high: float) -> FloatArray:
        """Return the log-probability of an interval of the last variable, for every column of parents."""
        return self.choose_rows_between(parents, low, high, np.zeros(parents.shape[1]))[1]

    def draw_between(
        self, parents: FloatArray, low: float, high: float, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a value of the last variable in an interval, for every column of parents."""
        n: int = parents.shape[1]
        rows, _ = self.choose_rows_between(parents, low, high, rng.random(n))
        *slopes, precision = self.whitener[-1]
        shift = np.asarray(slopes) @ (parents - self.points[:-1, rows])
        mean, deviation = self.points[-1, rows] - shift / precision, 1.0 / precision
        drawn = draw_between((low - mean) / deviation, (high - mean) / deviation, rng.random(n))
        return np.clip(mean + deviation * drawn, low, high)

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        """Describe the bandwidth and the points as plain data, without the names."""
        return {
            "bandwidth": self.bandwidth.tolist(),
            "columns": [arrays.add(column) for column in self.points],
        }

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
