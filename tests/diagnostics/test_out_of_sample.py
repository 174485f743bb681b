import numpy as np
import pandas as pd
import pytest

import spbn
from spbn import BayesianNetwork, Structure
from spbn.diagnostics import leave_one_out, out_of_fold
from spbn.errors import ArgumentError, DataError
from spbn.tables.splits import fold_labels

import naive
from strategies import nonlinear_frame

FRAME = nonlinear_frame(40, 4) * [1.0, 50.0, 0.01, 1.0] + [0.0, 1e4, -3.0, 0.5]
MIXED = Structure(
    "abcd",
    [("a", "b"), ("a", "c"), ("b", "c"), ("d", "b")],
    {"a": "ckde", "b": "ckde", "c": "lg", "d": "lg"},
)


def slowly(network, frame, rows):
    """Fit every node again without the row, and evaluate it there."""
    out = np.empty((len(rows), len(network.nodes)))
    for k, row in enumerate(rows):
        rest, alone = frame.drop(index=frame.index[row]), frame.iloc[[row]]
        for i, family in enumerate(network.structure.families()):
            out[k, i] = naive.logpdf(alone, rest, family.node, family.parents, family.type)[0]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("types", ["lg", "ckde", dict(MIXED.types)])
def test_every_row_is_scored_as_if_it_had_not_been_there(types):
    network = BayesianNetwork.fit(Structure("abcd", MIXED.arcs, types), FRAME)
    np.testing.assert_allclose(
        leave_one_out(network, FRAME), slowly(network, FRAME, range(40)), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("rows", [[0], [39], [3, 17, 18, 39], [18, 3, 3], []])
def test_some_rows_in_any_order(rows):
    network = BayesianNetwork.fit(MIXED, FRAME)
    found = leave_one_out(network, FRAME, np.array(rows, dtype=int))
    np.testing.assert_allclose(found, slowly(network, FRAME, rows), rtol=1e-9, atol=1e-9)


def test_a_far_row_takes_no_digits_from_the_others():
    frame = FRAME.copy()
    frame.iloc[7] = [40.0, 2e6, 5.0, -80.0]
    network = BayesianNetwork.fit(MIXED, frame)
    rows = [6, 7, 8]
    np.testing.assert_allclose(
        leave_one_out(network, frame, rows), slowly(network, frame, rows), rtol=1e-8, atol=1e-8
    )


def test_the_bandwidth_is_the_one_of_the_fit():
    network = BayesianNetwork.fit(Structure("a", types="ckde"), FRAME, bandwidth="silverman")
    train = FRAME[["a"]].drop(index=5)
    matrix = (4 / 3) ** (2 / 5) * naive.scott(train.to_numpy())
    expected = naive.kde_logpdf(FRAME.loc[[5], ["a"]].to_numpy(), train.to_numpy(), matrix)
    np.testing.assert_allclose(leave_one_out(network, FRAME, [5])[:, 0], expected)


def test_a_bandwidth_function_has_to_be_given_again():
    def narrow(rows):
        return 0.1 * np.atleast_2d(np.cov(rows.T))

    network = BayesianNetwork.fit(Structure("ab", types="ckde"), FRAME, bandwidth=narrow)
    with pytest.raises(ArgumentError, match="bandwidth rule of this network is not on record"):
        leave_one_out(network, FRAME)
    with pytest.raises(ArgumentError, match="bandwidth rule of this network is not on record"):
        out_of_fold(network, FRAME)
    rest = FRAME.drop(index=2)[["a"]].to_numpy()
    expected = naive.kde_logpdf(FRAME.loc[[2], ["a"]].to_numpy(), rest, narrow(rest))
    np.testing.assert_allclose(leave_one_out(network, FRAME, [2], bandwidth=narrow)[:, 0], expected)


def test_a_row_that_cannot_be_left_out_is_scored_by_the_network():
    """Without row 4 the column is constant; all other rows are left out as usual."""
    frame = FRAME.assign(a=np.where(np.arange(40) == 4, 1.0, 0.0))
    network = BayesianNetwork.fit(Structure("ad"), frame)
    found = leave_one_out(network, frame)
    assert found[4, 0] == pytest.approx(network.logpdf_by_node(frame)["a"][4])
    others = [0, 3, 5, 39]
    np.testing.assert_allclose(found[others], slowly(network, frame, others), rtol=1e-9, atol=1e-9)
    assert np.isfinite(out_of_fold(network, frame)).all()


def test_folds_are_scored_by_the_other_nine():
    network = BayesianNetwork.fit(MIXED, FRAME)
    labels = fold_labels(40, 10, 0)
    for found, family in zip(out_of_fold(network, FRAME).T, MIXED.families(), strict=True):
        expected = naive.cv_rows(FRAME, labels, family.node, family.parents, family.type)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [[40], [-1], [0.5], [[1]], ["a"]])
def test_wrong_rows_are_refused(rows):
    network = BayesianNetwork.fit(MIXED, FRAME)
    with pytest.raises(ArgumentError, match="row numbers from 0 to 39"):
        leave_one_out(network, FRAME, rows)


def test_two_rows_are_too_few():
    network = BayesianNetwork.fit(MIXED, FRAME)
    with pytest.raises(DataError, match="at least 3 rows"):
        leave_one_out(network, FRAME[:2])


def test_a_network_from_a_file_does_the_same(tmp_path):
    network = spbn.learn(FRAME, folds=3)
    network.save(tmp_path / "m.spbn")
    loaded = BayesianNetwork.load(tmp_path / "m.spbn")
    np.testing.assert_array_equal(leave_one_out(loaded, FRAME), leave_one_out(network, FRAME))
    np.testing.assert_array_equal(
        leave_one_out(loaded, pd.DataFrame(FRAME)[::-1])[::-1].round(9),
        leave_one_out(network, FRAME).round(9),
    )
