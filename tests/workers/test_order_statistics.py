"""Order statistics from counts in parts of the rows: those of the sorted columns."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spbn.dask import order_statistics
from spbn.numerics.spreads import LEVELS


def gather_from(parts):
    """Passes over parts, each of which is columns × rows."""
    plan = SimpleNamespace(assignment=SimpleNamespace(folds=1))
    blocks = [SimpleNamespace(rows=lambda columns, _, part=part: part[list(columns)]) for part in parts]

    def gather(answer, asked, join):
        return [join([answer(plan, block, one) for block in blocks]) for one in asked]

    return gather


values = st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, -0.0, 1e-300, 1e9])


@pytest.mark.parametrize(("bins", "few"), [(2, 1), (8, 3), (4096, 4096)])
@settings(max_examples=40, deadline=None)
@given(columns=arrays.arrays(np.float64, (2, 37), elements=values), cut=st.integers(1, 36))
def test_they_are_those_of_sorted_columns(bins, few, columns, cut):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_statistics, "BINS", bins)
        patch.setattr(order_statistics, "FEW", few)
        gather = gather_from([columns[:, :cut], columns[:, cut:], columns[:, :0]])
        ranks = np.array([0, 1, 18, 35, 36])
        found = order_statistics.order_statistics(gather, [0, 1], ranks, 37)
    np.testing.assert_array_equal(found, np.sort(columns, axis=1)[:, ranks])


def test_quantiles_of_many_rows_take_few_passes():
    rng = np.random.default_rng(0)
    columns = np.stack([rng.standard_normal(300_000), np.round(rng.standard_normal(300_000))])
    columns[0, 5], passes = 1e12, []
    gather = gather_from(np.array_split(columns, 3, axis=1))

    def counted(*arguments):
        passes.append(arguments[0])
        return gather(*arguments)

    ranks = np.quantile(np.arange(300_000), LEVELS, method="inverted_cdf").astype(int)
    found = order_statistics.order_statistics(counted, [0, 1], ranks, 300_000)
    expected = np.quantile(columns, LEVELS, axis=1, method="inverted_cdf").T
    np.testing.assert_array_equal(found, expected)
    assert len(passes) <= 8
