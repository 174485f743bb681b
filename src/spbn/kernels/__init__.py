"""Sums of Gaussians: the work that learning spends its time on.

An engine takes plain arrays and returns the log-density of every row, fold by
fold (see `exact.log_density` for the arrays). It knows nothing of networks.

``exact``
    Every pair of rows, in compiled loops. Relative error of a density about
    1e-15 in any dimension; the time grows with the square of the rows.
"""

from __future__ import annotations

from spbn.data import FloatArray, IntArray
from spbn.errors import ArgumentError
from spbn.kernels import exact

ENGINES = ("auto", "exact")


def require_engine(engine: str) -> None:
    """Refuse names of engines that there are not."""
    if engine not in ENGINES:
        raise ArgumentError(f"engine must be one of {', '.join(map(repr, ENGINES))}. Got {engine!r} instead.")


def log_density(
    points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: IntArray, *, engine: str = "auto"
) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    The arrays are those of `exact.log_density`.
    """
    require_engine(engine)
    return exact.log_density(points, columns, whiteners, spans)
