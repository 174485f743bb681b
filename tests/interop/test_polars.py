"""Polars in, polars out: the same values as from pandas."""

import numpy as np
import pandas as pd
import pytest

import spbn

from strategies import mixed_frame

pl = pytest.importorskip("polars", reason="needs polars")


@pytest.fixture(scope="module")
def frame():
    """Numbers and levels, with a column that the network does not know and holes."""
    frame = mixed_frame(80)
    return frame.assign(note=[f"row {i}" for i in range(len(frame))])


@pytest.fixture(scope="module")
def network(frame):
    return spbn.learn(frame.drop(columns="note"), model="gbn")


@pytest.fixture(scope="module")
def holed(frame):
    rng = np.random.default_rng(0)
    return frame.mask(rng.random(frame.shape) < 0.15).assign(note=frame["note"])


def as_polars(frame):
    text = frame.astype(
        {name: object for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)}
    )
    return pl.DataFrame({name: [None if pd.isna(v) else v for v in text[name]] for name in text})


def agree(ours, expected):
    """Whether a polars frame holds what a pandas frame holds."""
    assert isinstance(ours, pl.DataFrame)
    assert ours.columns == list(expected.columns)
    for name in ours.columns:
        if pd.api.types.is_float_dtype(expected[name].dtype):
            np.testing.assert_allclose(ours[name].to_numpy(), expected[name].to_numpy(), rtol=1e-12)
        else:
            assert [str(v) for v in ours[name].to_list()] == [str(v) for v in expected[name]]


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_and_their_results(network, frame, holed, lazy):
    whole, with_holes = (as_polars(f).lazy() if lazy else as_polars(f) for f in (frame, holed))
    found = network.logpdf(whole)
    assert isinstance(found, pl.Series)
    np.testing.assert_allclose(found.to_numpy(), network.logpdf(frame).to_numpy(), rtol=1e-12)
    agree(network.logpdf_by_node(whole), network.logpdf_by_node(frame))
    targets = [network.nodes[0], network.nodes[-1]]
    agree(network.predict(with_holes, targets), network.predict(holed, targets))
    agree(network.impute(with_holes), network.impute(holed))
    for ours, expected in zip(
        network.imputations(with_holes, n=2), network.imputations(holed, n=2), strict=True
    ):
        agree(ours, expected)


def test_columns_without_holes_keep_their_kind(network, frame):
    given = as_polars(frame).with_columns(pl.Series("when", pd.date_range("2026-01-01", periods=len(frame))))
    first = next(v.name for v in network.variables if not v.is_discrete)
    holed = given.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col(first)).alias(first)
    )
    filled = network.impute(holed)
    assert filled.schema == given.schema
    assert filled.drop(first).equals(given.drop(first))
    assert filled[first].null_count() == 0


def test_classes_of_rows():
    rng = np.random.default_rng(0)
    group = rng.random(200) < 0.4
    data = pd.DataFrame(rng.normal(np.where(group, 6.0, 0.0), 1.0, (2, 200)).T, columns=["x", "y"])
    network = spbn.learn(data, model="gbn", hidden=2)
    agree(network.classes(pl.DataFrame(data.to_dict("list"))), network.classes(data))


def test_the_index_of_a_frame_is_that_of_its_results(network, holed):
    named = holed.set_axis([f"r{i}" for i in range(len(holed))])
    assert network.logpdf(named, missing="integrate").index.equals(named.index)
    assert network.predict(named, [network.nodes[0]]).index.equals(named.index)
    assert network.impute(named).index.equals(named.index)


def test_explanations_of_a_classifier():
    from spbn.sklearn import SPBNClassifier

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    given = pd.DataFrame(x, columns=["x0", "x1"])
    model = SPBNClassifier(model="gbn").fit(given, x[:, 0] > 0)
    agree(model.explain(pl.DataFrame(given.to_dict("list"))), model.explain(given))
