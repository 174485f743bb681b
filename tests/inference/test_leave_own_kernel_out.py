"""Rows that a network was learned from are filled without the kernels that sit on them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn.inference.batch import without_themselves
from spbn.learning.structural_em import _refreshed
from spbn.nodes.base import agreeing
from spbn.tables.reader import as_table


@pytest.mark.slow
@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 3))
def test_points_that_agree_with_a_row_are_those_that_a_loop_finds(seed, d):
    rng = np.random.default_rng(seed)
    points = rng.integers(-1, 2, (d, 12)) * 0.5 + np.where(rng.random((d, 12)) < 0.5, 0.0, -0.0)
    rows = rng.integers(-1, 3, (d, 9)) * 0.5
    rows[rng.random((d, 9)) < 0.4] = np.nan
    for row, found in zip(rows.T, agreeing(points, rows), strict=True):
        known = ~np.isnan(row)
        expected = [j for j in range(12) if all(points[known, j] == row[known])]
        assert (found is None) == (not known.any())
        assert found is None or found.tolist() == expected


@pytest.fixture(params=["ckde", "blend"])
def network(request):
    frame = spbn.datasets.synthetic(60, seed=0)[["A", "B", "C"]]
    structure = spbn.Structure("ABC", [("A", "C"), ("B", "C")], types=request.param)
    return spbn.BayesianNetwork.fit(structure, frame, margins="yeo-johnson"), frame


def test_every_row_that_was_learned_from_meets_a_network_without_it(network):
    network, frame = network
    holes = frame.copy()
    holes.loc[::2, "C"] = np.nan
    table = as_table(holes, variables=network.variables, missing="keep")
    seen = []
    for others, rows in without_themselves(network, table):
        left = others.cpds["C"].kept_rows
        moved = network.transformed(as_table(frame, variables=network.variables, missing="keep")).select(
            left.names
        )
        for row in rows:
            assert not (left.columns == moved.columns[:, [row]]).all(axis=0).any()
        assert left.rows == 60 - len(rows)
        seen += rows.tolist()
    assert sorted(seen) == list(range(60))


def test_strange_rows_and_common_values_lose_nothing(network):
    network, frame = network
    strange = frame.assign(A=frame["A"] + 0.001)
    ((others, rows),) = without_themselves(
        network, as_table(strange, variables=network.variables, missing="keep")
    )
    assert others is network
    assert len(rows) == 60
    ties = frame[["C"]].round()
    tied = spbn.BayesianNetwork.fit(spbn.Structure("C", types="ckde"), ties)
    common = ties["C"].value_counts()
    assert common.iloc[0] > 3
    common = pd.DataFrame({"C": common.index[:1]})
    for others, _ in without_themselves(tied, as_table(common, variables=tied.variables, missing="keep")):
        assert others.cpds["C"].rows == 60


def narrow():
    """Kernels so narrow that next to a row's own no other has a say."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"x": x, "y": np.round(x) + rng.normal(0, 1.0, 300)})
    structure = spbn.Structure("xy", [("x", "y")], types="blend")
    blend = spbn.BayesianNetwork.fit(structure, frame)
    cpd = blend.cpds["y"]
    mixture = (1.0, 0, 0, 0, 0, 0, 0, 0)
    cpds = {**blend.cpds, "y": type(cpd)("y", ("x",), cpd.line, cpd.kernels.scaled(0.01), mixture)}
    return spbn.BayesianNetwork(blend.structure, cpds), frame


def test_filling_a_row_again_does_not_repeat_what_it_was_filled_with():
    network, frame = narrow()
    filled = network.impute(frame.assign(y=np.nan), seed=1)["y"]
    assert np.median(np.abs(filled - frame["y"])) > 0.5  # of two independent draws: 0.95


def test_redrawing_a_hole_does_not_repeat_what_it_was_filled_with():
    """While a network is learned: y is a hole in every row, and was filled with what its kernels sit on."""
    network, frame = narrow()
    filled = as_table(frame, variables=network.variables)
    holes = np.repeat([[False], [True]], filled.rows, axis=1)
    steps = []
    for seed in range(5):
        again = _refreshed(network, filled, holes, np.random.default_rng(seed))
        np.testing.assert_array_equal(again.column("x"), frame["x"])
        steps.append(np.abs(again.column("y") - frame["y"]))
    assert np.median(steps) > 0.8  # of two independent draws: 0.95; of draws near themselves: 0.3


def test_rows_of_configurations_are_left_out_too():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"s": rng.choice(["a", "b"], 80), "x": rng.normal(size=80)})
    structure = spbn.Structure("sx", [("s", "x")], types={"s": "discrete", "x": "ckde"})
    network = spbn.BayesianNetwork.fit(structure, frame)
    table = as_table(frame, variables=network.variables, missing="keep")
    for others, rows in without_themselves(network, table):
        left = np.concatenate([density.joint.points[0] for density in others.cpds["x"].densities])
        assert len(left) == 80 - len(rows)
        assert not set(left) & set(table.columns[table.index("x"), rows])
