"""The exact kernel compared with scipy and scikit-learn, and with the best the machine could do."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from sklearn.neighbors import KernelDensity

import spbn
from spbn._base.jit import REORDER, compiled, run_tasks
from spbn.kernels.inner_loop import exp2_negative

from timing import best, heading, machine, peak_megabytes

ROWS = 10_000
LANES = 4


@compiled(fastmath=REORDER)
def _exp_alone(numbers, repeats):
    """Nothing but the exponential, on numbers that stay in the cache; as many lanes as the kernel has."""
    total = 0.0
    for repeat in range(repeats):
        s0 = s1 = s2 = s3 = 0.0
        shift = repeat * 1e-9
        for j in range(len(numbers)):
            q = numbers[j] + shift
            s0 += exp2_negative(q)
            s1 += exp2_negative(q + 0.25)
            s2 += exp2_negative(q + 0.5)
            s3 += exp2_negative(q + 0.75)
        total += s0 + s1 + s2 + s3
    return total


def peak_rate() -> float:
    """Exponentials per second, in units of 10⁹, on all cores."""
    numbers = np.random.default_rng(0).uniform(0, 20, 1024)
    workers, repeats = 16, 20_000
    _exp_alone(numbers, 1)
    seconds, _ = best(lambda: run_tasks(_exp_alone, [(numbers, repeats)] * workers), runs=7)
    return workers * repeats * len(numbers) * LANES / seconds / 1e9


def main() -> None:
    print(machine())
    rng = np.random.default_rng(0)
    peak = peak_rate()
    heading(f"Log-density of {ROWS:,} rows under a KDE of {ROWS:,} rows")
    print(f"The exponential alone: {peak:.2f} · 10⁹ per second\n")
    titles = ("d", "spbn", "scipy", "sklearn", "×scipy", "×sklearn", "10⁹ pairs/s", "of peak")
    print("{:>2} {:>9} {:>9} {:>9} {:>8} {:>9} {:>12} {:>8}".format(*titles))
    for d in (1, 2, 3, 5):
        names = [f"x{k}" for k in range(d)]
        train, test = rng.normal(size=(2, ROWS, d))
        kde = spbn.nodes.KDE.fit(dict(zip(names, train.T, strict=True)), engine="exact")
        queries = dict(zip(names, test.T, strict=True))
        kde.logpdf(queries)
        ours, density = best(lambda kde=kde, queries=queries: kde.logpdf(queries), runs=7)

        reference = stats.gaussian_kde(train.T)
        theirs, expected = best(lambda r=reference, test=test: r.logpdf(test.T), runs=2)
        np.testing.assert_allclose(density, expected, rtol=1e-9)

        # scikit-learn's kernels are round: in whitened coordinates that is the same density up to a constant.
        whitener = np.linalg.inv(np.linalg.cholesky(kde.bandwidth))
        tree = KernelDensity(bandwidth=1.0).fit(train @ whitener.T)
        others, expected = best(lambda t=tree, x=test @ whitener.T: t.score_samples(x), runs=1)
        np.testing.assert_allclose(density, expected + math.log(np.linalg.det(whitener)), rtol=1e-6)

        rate = ROWS * ROWS / ours / 1e9
        print(
            f"{d:2d} {ours:8.3f}s {theirs:8.2f}s {others:8.2f}s {theirs / ours:7.0f}× {others / ours:8.0f}× "
            f"{rate:12.2f} {rate / peak:7.0%}",
            flush=True,
        )

    heading("One row at a time: a CKDE of 1,000 rows, arrays in and out")
    for d in (1, 2, 3, 4):
        names = [f"x{k}" for k in range(d)]
        frame = dict(zip(names, rng.normal(size=(d, 1000)), strict=True))
        kernels = spbn.nodes.CKDE.fit(frame, names[-1], names[:-1]).kernels
        query = rng.normal(size=(d, 1))
        kernels.conditional_log_density(query)
        seconds, _ = best(lambda k=kernels, q=query: k.conditional_log_density(q), runs=2000)
        print(f"{d - 1} parents: {1e6 * seconds:5.0f} µs per row", flush=True)

    heading("Memory: 200,000 rows under a KDE of 20,000 rows, 2 dimensions")
    used = peak_megabytes("""
import numpy as np, spbn
rng = np.random.default_rng(0)
kde = spbn.nodes.KDE.fit({"a": rng.normal(size=20_000), "b": rng.normal(size=20_000)}, engine="exact")
queries = {"a": rng.normal(size=200_000), "b": rng.normal(size=200_000)}
kde.logpdf({"a": [0.0], "b": [0.0]})
mark()
kde.logpdf(queries)
""")
    print(f"{used['added']:.0f} MB above the start; an array of all pairs would take 32,000 MB")


if __name__ == "__main__":
    main()
