"""Sums of Gaussians: the work that learning spends its time on.

An engine takes plain arrays and returns the log-density of every row, fold by
fold (see `exact.log_density` for the arrays). It knows nothing of networks.

``exact``
    Every pair of rows, in compiled loops. Relative error of a density about
    1e-15 in any dimension; the time grows with the square of the rows.
``spectral``
    Through Fourier space, in one to three dimensions; the time grows roughly in proportion to the rows. The
    log-density of every row is within 1e-6 of the exact one. In four and five dimensions, if there are very
    many rows, ``pruned`` takes its place: pairs of rows that are too far apart to matter are left out, within
    the same error. Everything else goes to ``exact``.
``auto``
    ``spectral`` where it is expected to be faster, else ``exact``. With ten folds
    that is beyond about ten thousand rows in one and two dimensions, forty thousand in
    three, 200,000 in four and 500,000 in five. The same goes for queries of many rows
    against a large KDE; a few rows, however large the KDE, are quicker to do exactly.
"""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.checks import choice
from spbn.kernels import exact, multiscale, pruned, spectral
from spbn.kernels.estimates import Spans

ENGINES = ("auto", "exact", "spectral")

# Seconds on two cores of 3 GHz, by dimension (`benchmarks/large.py`). The decision needs
# only their ratios, and those are much the same on other machines.
SECONDS_A_PAIR = {1: 0.23e-9, 2: 0.27e-9, 3: 0.33e-9}
SECONDS_A_SPAN = {1: 1.2e-3, 2: 3e-3, 3: 12e-3}
SECONDS_A_ROW = {1: 0.5e-6, 2: 0.8e-6, 3: 4e-6}
ADVANTAGE = 1.5  # how much faster an engine has to be before `auto` takes it

FEW_PAIRS = 5e6  # below this no grid pays: see the least time of a span

# Rows from which pruning pays, by dimension: see docs/large-data.md.
PRUNING_TRAIN = {4: 200_000, 5: 500_000}
PRUNING_QUERIES = 5_000  # of every span: fewer lie too far apart

# Scales share a grid if their widths differ by less than this factor, by dimension: all four, two and two.
SHARED_GRID = {1: 16.0, 2: 4.0}
ADVANTAGE_OF_SCALES = 3.0  # that a scale has to have over all pairs, which of four scales cost 1.5 times one
NARROW_TRAIN = 20_000  # rows from which narrow kernels are pruned
NARROW_QUERIES = 1_000  # of every span


def require_engine(engine: str) -> None:
    """Refuse unknown engines."""
    choice("engine", engine, ENGINES)


def log_density(
    points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans, *, engine: str = "auto"
) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    The arrays are those of `exact.log_density`.
    """
    require_engine(engine)
    d = columns.shape[1]
    if engine != "exact":
        if d <= spectral.DIMENSIONS and (engine == "spectral" or spectral_pays(d, spans)):
            return spectral.log_density(points, columns, whiteners, spans, thrifty=engine == "auto")
        if pruning_pays(d, spans):
            return pruned.log_density(points, columns, whiteners, spans)
    return exact.log_density(points, columns, whiteners, spans)


def log_density_by_scale(
    points: FloatArray, columns: IntArray, whiteners: FloatArray, spans: Spans, *, engine: str = "auto"
) -> FloatArray:
    """Return the log-density of rows at every scale of `multiscale.SCALES`: sets × scales × rows.

    All scales together where the sums are made pair by pair, and in Fourier space where a grid
    fine enough for the narrowest is small; else the engine is chosen for each. Narrow kernels have
    few rows within their reach, so pruning suits them best.
    """
    require_engine(engine)
    d = columns.shape[1]
    asked = engine == "spectral" and d <= spectral.DIMENSIONS
    pays = spectral_pays(d, spans, ADVANTAGE_OF_SCALES) or pruning_pays(d, spans)
    if engine == "exact" or not (asked or pays):
        return multiscale.log_density(points, columns, whiteners, spans)
    scaled = [whiteners / np.sqrt(scale) for scale in multiscale.SCALES]
    if d in SHARED_GRID:
        repeated, thrifty = np.tile(columns, (len(scaled), 1)), engine == "auto"
        found = spectral.log_density(
            points, repeated, np.concatenate(scaled), spans, thrifty=thrifty, alike=SHARED_GRID[d]
        )
        return found.reshape(len(scaled), len(columns), -1).swapaxes(0, 1)
    by_scale = []
    for scale, narrowed in zip(multiscale.SCALES, scaled, strict=True):
        if scale < 1.0 and narrow_pruning_pays(d, spans):
            by_scale.append(pruned.log_density(points, columns, narrowed, spans))
        elif scale > 1.0 and d > spectral.DIMENSIONS:  # too many rows are within reach of wide kernels
            by_scale.append(exact.log_density(points, columns, narrowed, spans))
        else:
            by_scale.append(log_density(points, columns, narrowed, spans, engine=engine))
    return np.stack(by_scale, axis=1)


def is_exact(d: int, queries: int, train: int, engine: str) -> bool:
    """Tell, quickly, whether `log_density` would compute every pair of one span with so many rows."""
    if engine == "exact":
        return True
    if engine == "spectral" and d <= spectral.DIMENSIONS:
        return False
    if queries * train < FEW_PAIRS:
        return True
    spans = Spans(np.array([[0, queries, 0, train, 0, 0]]))
    return not spectral_pays(d, spans) and not pruning_pays(d, spans)


def spectral_pays(d: int, spans: Spans, advantage: float = ADVANTAGE) -> bool:
    """Tell whether Fourier space is expected to be so much faster than all pairs, by the numbers of rows."""
    if d > spectral.DIMENSIONS:
        return False
    queries, train = spans.query_counts, spans.training_counts
    rows = int(queries.sum() + train.max(initial=0))
    through_grid = SECONDS_A_SPAN[d] * len(spans) + SECONDS_A_ROW[d] * rows / 2
    pair_by_pair = SECONDS_A_PAIR[d] * float((queries * train).sum())
    return advantage * through_grid < pair_by_pair


def pruning_pays(d: int, spans: Spans) -> bool:
    """Tell whether leaving out pairs is expected to save time, by the numbers of rows."""
    if d not in PRUNING_TRAIN:
        return False
    many = (spans.training_counts >= PRUNING_TRAIN[d]) & (spans.query_counts >= PRUNING_QUERIES)
    return bool(many.all())


def narrow_pruning_pays(d: int, spans: Spans) -> bool:
    """Tell whether leaving out pairs is expected to be the quickest way for narrow kernels."""
    many = (spans.training_counts >= NARROW_TRAIN) & (spans.query_counts >= NARROW_QUERIES)
    return spectral.DIMENSIONS <= d <= max(PRUNING_TRAIN) and bool(many.all())
