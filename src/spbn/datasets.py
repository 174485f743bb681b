"""The synthetic network of the paper: its structure, its density, and rows drawn from it.

    A ~ N(6, 1)
    B ~ ½ N(-2, 1) + ½ N(2, 1)
    C = A·B + N(0, 1)
    D = 10 + 0.8·C + N(0, ½)
    E = 1 / (1 + exp(-D)) + N(0, ½)

The paper prints A ~ N(0, 1), and variance 2 for both components of B; these
are the values that its data were drawn with, and that its tables are based on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, Seed, generator, require_count
from spbn._base.checks import choice
from spbn._base.lazy import pd
from spbn.nodes.base import NodeType
from spbn.structure import Structure
from spbn.tables.reader import as_table

#: Size and seed of the tables behind the paper's Table 1.
_PAPER_TABLES = {"200": (200, 0), "2000": (2_000, 1), "10000": (10_000, 2), "test": (1_000, 3)}


def synthetic_structure() -> Structure:
    """Return the true structure: A → C ← B, C → D → E, with A and D linear Gaussian.

    Examples
    --------
    >>> import spbn
    >>> print(spbn.datasets.synthetic_structure().arcs)
    (('A', 'C'), ('B', 'C'), ('C', 'D'), ('D', 'E'))
    """
    return Structure(
        "ABCDE",
        [("A", "C"), ("B", "C"), ("C", "D"), ("D", "E")],
        {"A": NodeType.LG, "B": NodeType.CKDE, "C": NodeType.CKDE, "D": NodeType.LG, "E": NodeType.CKDE},
    )


def synthetic(n: int, *, seed: Seed = 0) -> pd.DataFrame:
    """Draw n rows of the synthetic network.

    Examples
    --------
    >>> import spbn
    >>> spbn.datasets.synthetic(2, seed=0).round(2)
          A     B      C     D     E
    0  6.13 -2.54 -14.23 -1.88 -0.31
    1  5.87 -1.64  -8.67  2.17  0.93
    """
    require_count(n)
    rng = generator(seed)
    a = rng.normal(6.0, 1.0, n)
    b = rng.normal(np.where(rng.random(n) < 0.5, -2.0, 2.0), 1.0)
    return _descendants(a, b, *rng.standard_normal((3, n)))


def paper_synthetic(table: str) -> pd.DataFrame:
    """Reproduce the rows behind Table 1 of the paper: "200", "2000", "10000" or "test".

    Examples
    --------
    >>> import spbn
    >>> spbn.datasets.paper_synthetic("200").shape
    (200, 5)
    """
    choice("table", table, _PAPER_TABLES)
    n, seed = _PAPER_TABLES[table]
    a = np.random.RandomState(seed).normal(6.0, 1.0, n)  # the paper's generator
    # The authors reseeded for B, with 0 for every table, and went on with that stream.
    stream = np.random.RandomState(0)
    component = stream.uniform(size=n) < 0.5
    b = stream.normal(np.where(component, -2.0, 2.0), 1.0)
    return _descendants(a, b, *(stream.standard_normal(n) for _ in range(3)))


def synthetic_logpdf(data: Any) -> FloatArray:
    """Return the true log-density of every row.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(3, seed=0)
    >>> spbn.datasets.synthetic_logpdf(data).round(1)
    array([-9.2, -5.4, -5.9])
    """
    a, b, c, d, e = as_table(data, names="ABCDE").columns
    log_b = np.logaddexp(_log_normal(b, -2.0, 1.0), _log_normal(b, 2.0, 1.0)) - math.log(2.0)
    return (
        _log_normal(a, 6.0, 1.0)
        + log_b
        + _log_normal(c, a * b, 1.0)
        + _log_normal(d, 10.0 + 0.8 * c, 0.5)
        + _log_normal(e, _sigmoid(d), 0.5)
    )


def _descendants(
    a: FloatArray, b: FloatArray, noise_c: FloatArray, noise_d: FloatArray, noise_e: FloatArray
) -> pd.DataFrame:
    c = a * b + noise_c
    d = 10.0 + 0.8 * c + math.sqrt(0.5) * noise_d
    e = _sigmoid(d) + math.sqrt(0.5) * noise_e
    return pd.DataFrame({"A": a, "B": b, "C": c, "D": d, "E": e})


def _sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-np.maximum(x, -700.0)))  # exp(700) is finite


def _log_normal(x: FloatArray, mean: Any, variance: float) -> FloatArray:
    return -0.5 * ((x - mean) ** 2 / variance + math.log(2.0 * math.pi * variance))
