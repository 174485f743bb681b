"""The window that carries rows to a regular grid and back: a Kaiser-Bessel bump, `WIDTH` cells wide.

    ψ(z) = I₀(β √(1 - (2z/w)²)) / I₀(β),    |z| ≤ w/2,    z in cells of the grid.

Rows are spread with ψ, the grid is filtered in Fourier space, and the result is
read off through ψ again. Dividing the spectrum by the transform of ψ twice takes
the window out, except for aliases: a grid of spacing Δ cannot tell a frequency ω
from ω + 2πm/Δ. Here the filter is a Gaussian, which damps high frequencies
afterwards and their aliases with them. So the spacing can be about twice that of
a non-uniform FFT, which has to be right at every frequency: in three dimensions
an eighth of the cells.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from spbn.kernels.spectral.gridding import DEGREE, WIDTH
from spbn.numerics.arrays import FloatArray

#: Cells to a standard deviation of the narrowest Gaussian, and the window's shape β that suits them.
#: Of a single source's value at distance r, exp(-r²/2), all but 1.7e-7 is right where that value
#: exceeds 1e-7, and the error is below 1.7e-14 farther out (a test measures it). Wider Gaussians fare better.
SPACING = 0.35
SHAPE = 31.8


@cache
def coefficients() -> FloatArray:
    """Return polynomials for ψ, (DEGREE + 1) × WIDTH: ψ(t + k - w/2) = Σ_p coefficients[p, k] t^p, 0 ≤ t ≤ 1.

    All cells that a row reaches share t, so one pass of Horner's rule gives all
    weights in vector instructions. They are right to 1e-14 of the peak.
    """
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    z = 0.5 * (nodes[:, None] + 1.0) + np.arange(WIDTH) - WIDTH / 2
    values = np.i0(SHAPE * np.sqrt(np.maximum(0.0, 1.0 - (2.0 * z / WIDTH) ** 2))) / np.i0(SHAPE)
    chebyshev = np.polynomial.chebyshev
    to_unit_interval = np.polynomial.Polynomial([-1.0, 2.0])
    result: FloatArray = np.zeros((DEGREE + 1, WIDTH))
    for k, column in enumerate(values.T):
        in_nodes = np.polynomial.Polynomial(chebyshev.cheb2poly(chebyshev.chebfit(nodes, column, DEGREE)))
        powers = in_nodes(to_unit_interval).coef  # fewer, where rounding makes the highest one zero
        result[: len(powers), k] = powers
    result.flags.writeable = False
    return result


def transform(angles: FloatArray) -> FloatArray:
    """Return ψ̂ at frequencies in radians per cell, |angle| ≤ π."""
    root = np.sqrt(SHAPE**2 - (0.5 * WIDTH * angles) ** 2)  # 12 π / 2 < 31.8: never zero
    transformed: FloatArray = WIDTH / np.i0(SHAPE) * np.sinh(root) / root
    return transformed
