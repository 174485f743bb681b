"""The spectral engine compared with FINUFFT, a library for non-uniform Fourier transforms, on the same sums.

    python benchmarks/nonuniform.py

Both sides compute the log-densities of ten-fold cross-validation, and both are compared
with the exact kernel on some rows. FINUFFT's side follows the textbook: a transform of every
fold to Fourier modes, their sum less one fold, a Gaussian filter, and back at the fold's rows.
The modes reach as far as the filter is above the tolerance.
"""

from __future__ import annotations

import math

import finufft
import numpy as np

from spbn._base.arrays import FloatArray
from spbn.kernels import exact, spectral
from spbn.kernels.estimates import Spans
from spbn.kernels.spectral import REACH, THRESHOLD

from large import SAMPLE, Arrays, cross_validation, error, part, table
from timing import best, heading, machine

TOLERANCE = 1e-10  # FINUFFT's, of the norm of all modes; less precise than ours where sums are small
FORWARD = {1: finufft.nufft1d1, 2: finufft.nufft2d1, 3: finufft.nufft3d1}
BACKWARD = {1: finufft.nufft1d2, 2: finufft.nufft2d2, 3: finufft.nufft3d2}


def by_finufft(points: FloatArray, columns: FloatArray, whiteners: FloatArray, spans: Spans) -> FloatArray:
    """Return the log-densities; NaN where a sum is so small that the exact kernel would be used."""
    d, rows = points.shape
    whitener = whiteners[0, 0]
    x = whitener @ points
    lengths = np.ptp(x, axis=1) + 2 * REACH
    angles = [
        2 * math.pi * (axis - axis.min() + REACH) / length for axis, length in zip(x, lengths, strict=True)
    ]
    farthest = math.sqrt(-2 * math.log(TOLERANCE))
    modes = tuple(2 * math.ceil(farthest * length / (2 * math.pi)) + 1 for length in lengths)
    frequencies = np.meshgrid(
        *(
            2 * math.pi / length * np.arange(-(m // 2), m // 2 + 1)
            for length, m in zip(lengths, modes, strict=True)
        ),
        indexing="ij",
    )
    spectra = [
        FORWARD[d](*(axis[a:b] for axis in angles), np.ones(b - a, dtype=complex), modes, eps=TOLERANCE)
        for a, b in spans.queries
    ]
    total = sum(spectra)
    out = np.empty(rows)
    for m, (a, b) in enumerate(spans.queries):
        relative = whitener @ np.linalg.inv(whiteners[0, m])  # the root of the fold's bandwidth matrix
        covariance = relative @ relative.T
        exponent = sum(covariance[i, j] * frequencies[i] * frequencies[j] for i in range(d) for j in range(d))
        scale = math.sqrt((2 * math.pi) ** d * np.linalg.det(covariance)) / np.prod(lengths)
        filtered = (total - spectra[m]) * (scale * np.exp(-0.5 * exponent))
        sums = BACKWARD[d](*(axis[a:b] for axis in angles), filtered, eps=TOLERANCE).real
        train = rows - (b - a)
        height = math.log(np.linalg.det(whiteners[0, m])) - 0.5 * d * math.log(2 * math.pi) - math.log(train)
        out[a:b] = np.log(np.where(sums > THRESHOLD * train, sums, np.nan)) + height
    return out


def compare(arrays: Arrays) -> tuple[float, float, float, float]:
    """Return the seconds and the greatest error of both sides."""
    some, _ = part(arrays, SAMPLE)
    expected = exact.log_density(*some)[0]
    spectral.log_density(*some)  # compiles
    ours, found = best(lambda: spectral.log_density(*arrays), runs=3)
    theirs, by_library = best(lambda: by_finufft(*arrays), runs=3)
    return ours, error(found[0], expected), theirs, error(by_library, expected)


def main() -> None:
    print(machine())
    heading("Log-densities of 10-fold cross-validation, normal data: seconds and greatest error")
    print(" d      rows   spectral     error    FINUFFT     error    ratio")
    for d in (1, 2, 3):
        for rows in (30_000, 100_000, 1_000_000):
            ours, our_error, theirs, their_error = compare(cross_validation(table("normal", d, rows)))
            print(
                f"{d:2d} {rows:9,d} {ours:9.3f}s {our_error:9.1e} {theirs:9.3f}s {their_error:9.1e} "
                f"{theirs / ours:7.1f}×",
                flush=True,
            )


if __name__ == "__main__":
    main()
