"""Rows evaluated under parameters fitted to others, against fits from nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spbn import NodeType
from spbn.nodes import Family
from spbn.nodes.families import FamilyScorer, named_batch
from spbn.rows.families import VariableSet
from spbn.rows.memory import MemoryRows, SetDensities
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels

from naive import far_ckde_logpdf, kde_logpdf, logpdf
from strategies import nonlinear_frame


def lopsided(data):
    """A bandwidth that treats the child unlike its parents."""
    return np.diag(np.linspace(0.2, 0.5, data.shape[1])) + 0.05 * np.atleast_2d(np.cov(data.T))


def without_each(frame, rows, node, parents, node_type, **options):
    """Log-density of some rows, each under a fit to all others."""
    return np.concatenate(
        [
            logpdf(frame.iloc[[row]], frame.drop(index=row), node, parents, node_type, **options)
            for row in rows
        ]
    )


def asked(frame, families):
    return named_batch(tuple(frame.columns), families)


ROWS = st.sets(st.integers(0, 29), min_size=1).map(sorted)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    rows=ROWS,
    seed=st.integers(0, 99),
    node_type=st.sampled_from(["lg", "ckde"]),
    parents=st.sampled_from(["", "b", "cb", "bcd"]),
)
def test_leaving_a_row_out_is_a_fit_to_the_others(rows, seed, node_type, parents):
    frame = nonlinear_frame(30, 4, seed)
    bench = FamilyScorer(MemoryRows(Partition.leave_one_out(as_table(frame), np.array(rows))))
    batch = asked(frame, [("a", tuple(parents), node_type)])
    expected = without_each(frame, rows, "a", list(parents), node_type)
    np.testing.assert_allclose(bench.rows(batch)[0], expected, rtol=1e-10, atol=1e-10)
    assert bench.totals(batch)[0] == pytest.approx(expected.sum(), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("rows", [[0], [29], [0, 29], [4, 5, 6], list(range(30))])
@pytest.mark.parametrize("node_type", ["lg", "ckde"])
def test_the_first_the_last_and_neighbours(rows, node_type):
    frame = nonlinear_frame(30, 3) + 1e6
    partition = Partition.leave_one_out(as_table(frame), np.array(rows))
    bench = FamilyScorer(MemoryRows(partition))
    expected = without_each(frame, rows, "b", ["a", "c"], node_type)
    # An offset of a million takes some digits off the reference.
    np.testing.assert_allclose(
        bench.rows(asked(frame, [("b", ("a", "c"), node_type)]))[0], expected, rtol=1e-6
    )
    assert partition.groups == partition.queries == len(rows)
    for group, row in enumerate(rows):
        assert partition.query_rows(group).tolist() == [row]
        assert partition.training_rows(group).tolist() == [i for i in range(30) if i != row]
        assert partition.train.counts[group] == 29


@pytest.mark.parametrize("parents", [(), ("b",)])
def test_engines_agree_on_rows_that_are_left_out(parents):
    frame = nonlinear_frame(300, 3)
    partition = Partition.leave_one_out(as_table(frame), np.array([0, 17, 18, 250, 299]))
    exact, spectral = (
        FamilyScorer(MemoryRows(partition, FitSettings(engine=engine))).rows(
            asked(frame, [("a", parents, "ckde")])
        )
        for engine in ("exact", "spectral")
    )
    np.testing.assert_allclose(spectral, exact, atol=2e-6)


def test_an_outlier_that_is_left_out_leaves_no_trace():
    frame = nonlinear_frame(30, 2)
    frame.loc[11, "a"] = 3e9
    calm = frame.drop(index=11)
    bench = FamilyScorer(MemoryRows(Partition.leave_one_out(as_table(frame), np.array([3, 11, 12]))))
    np.testing.assert_allclose(
        bench.store.train.scatters[1],
        (calm - calm.mean()).T @ (calm - calm.mean()),
        rtol=1e-9,
    )
    batch = asked(frame, [("b", ("a",), "lg")])
    np.testing.assert_allclose(
        bench.rows(batch)[0], without_each(frame, [3, 11, 12], "b", ["a"], "lg"), rtol=1e-6
    )


def test_a_bandwidth_function_leaves_rows_out_too():
    frame = nonlinear_frame(25, 3)
    rows = [0, 7, 8, 24]
    bench = FamilyScorer(
        MemoryRows(Partition.leave_one_out(as_table(frame), np.array(rows)), FitSettings(lopsided))
    )
    batch = asked(frame, [("c", ("a", "b"), "ckde"), ("c", (), "ckde")])
    for found, parents in zip(bench.rows(batch), (["a", "b"], []), strict=True):
        expected = without_each(frame, rows, "c", parents, "ckde", bandwidth=lopsided)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(bench.totals(batch), bench.rows(batch).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("distance", [1e4, 1e7, 1e9])
def test_a_row_whose_parent_is_far_away(distance):
    """The two densities whose quotient it is have no digit left there."""
    frame = nonlinear_frame(25, 2)
    frame.loc[9] = [distance, 3.0]
    others = frame.drop(index=9)
    expected = far_ckde_logpdf(frame.loc[9], others, "b", "a")
    assert np.isfinite(expected)
    for partition in (
        Partition.leave_one_out(as_table(frame), np.array([2, 9])),
        Partition.folds(as_table(frame), np.arange(25)),
        Partition.holdout(as_table(others), as_table(frame)),
    ):
        bench = FamilyScorer(MemoryRows(partition))
        batch = asked(frame, [("b", ("a",), "ckde")])
        found = bench.rows(batch)[0][1 if partition.queries == 2 else 9]
        assert found == pytest.approx(expected, rel=1e-7)
        assert bench.totals(batch)[0] == pytest.approx(bench.rows(batch)[0].sum(), rel=1e-9)


PARTITIONS = {
    "folds": lambda table: Partition.folds(table, fold_labels(table.rows, 4, 1)),
    "holdout": lambda table: Partition.holdout(table.take(np.arange(28)), table.take(np.arange(28, 40))),
    "leave one out": lambda table: Partition.leave_one_out(table, np.array([1, 5, 20, 39])),
}


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_rows_and_totals_of_sets(name, rule):
    """J has the bandwidth of its own dimension, M that of one more."""
    frame = nonlinear_frame(40, 3)
    partition = PARTITIONS[name](as_table(frame))
    sets = [VariableSet((0,), 1), VariableSet((0, 2), 2), VariableSet((0, 2), 3), VariableSet((), 1)]
    sets += [VariableSet((1,), 2), VariableSet((0, 1, 2), 3), VariableSet((0,), 1)]
    prepared = SetDensities(partition, rule, "auto")
    rows = prepared.rows(sets)
    points = partition.table.columns.T
    for found, (columns, dimension) in zip(rows, sets, strict=True):
        if not columns:
            np.testing.assert_array_equal(found, 0.0)
            continue
        expected = []
        for group in range(partition.groups):
            train = points[partition.training_rows(group)][:, columns]
            scale = len(train) ** (-2 / (dimension + 4))
            scale *= (4 / (dimension + 2)) ** (2 / (dimension + 4)) if rule == "silverman" else 1
            matrix = scale * np.atleast_2d(np.cov(train.T))
            expected.append(kde_logpdf(points[partition.query_rows(group)][:, columns], train, matrix))
        np.testing.assert_allclose(found, [np.concatenate(expected)], rtol=1e-10)
    totals, far = prepared.totals(sets)
    np.testing.assert_allclose(totals, rows.sum(axis=2), rtol=1e-12)
    assert not far.any()
    np.testing.assert_array_equal(prepared.rows(sets), rows)
    np.testing.assert_array_equal(SetDensities(partition, rule, "auto").totals(sets)[0], totals)


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("node_type", ["lg", "ckde"])
def test_a_large_offset_costs_no_digits(name, node_type):
    """The numbers are multiples of 1/1024, so that adding a power of two rounds nothing."""
    frame = (nonlinear_frame(40, 3) * 1024).round() / 1024
    moved = frame.add([2.0**30, 0.0, -(2.0**31)])
    plain, offset = (
        FamilyScorer(MemoryRows(PARTITIONS[name](as_table(data)))).rows(
            asked(data, [("b", ("a", "c"), node_type)])
        )
        for data in (frame, moved)
    )
    np.testing.assert_allclose(offset, plain, rtol=1e-10)


def test_totals_say_which_sets_have_rows_far_out():
    frame = nonlinear_frame(30, 2)
    frame.loc[3, "a"] = 1e9
    prepared = SetDensities(Partition.folds(as_table(frame), np.arange(30) % 3), "scott", "auto")
    _, far = prepared.totals([VariableSet((0,), 2), VariableSet((1,), 2), VariableSet((0, 1), 2)])
    assert far.tolist() == [[True], [False], [True]]


def test_singular_sets_are_minus_infinity_throughout():
    frame = nonlinear_frame(30, 2).assign(c=lambda f: f["a"] + f["b"])
    prepared = SetDensities(Partition.folds(as_table(frame), np.arange(30) % 3), "scott", "auto")
    sets = [VariableSet((0, 1, 2), 3), VariableSet((0, 1), 3)]
    totals, _ = prepared.totals(sets)
    assert totals[0] == -np.inf
    assert np.isfinite(totals[1])
    np.testing.assert_array_equal(np.isneginf(prepared.rows(sets)).all(axis=(1, 2)), [True, False])


def test_kept_rows_stay_within_their_bytes():
    frame = nonlinear_frame(50, 6)
    partition = Partition.folds(as_table(frame), np.arange(50) % 5)
    prepared = SetDensities(partition, "scott", "auto", kept_bytes=5 * 50 * 8)
    sets = [VariableSet((i, j), 2) for i in range(6) for j in range(i + 1, 6)]
    expected = SetDensities(partition, "scott", "auto").rows(sets)
    for start in range(0, len(sets), 3):
        np.testing.assert_array_equal(prepared.rows(sets[start : start + 3]), expected[start : start + 3])
        assert sum(rows.nbytes for rows in prepared._rows.values()) <= 5 * 50 * 8
    # More in one call than may be kept: all come back, and some stay.
    np.testing.assert_array_equal(prepared.rows(sets), expected)
    assert len(prepared._rows) == 5
    np.testing.assert_array_equal(prepared.rows(sets[:2]), expected[:2])


def test_kept_rows_are_not_computed_again(monkeypatch):
    frame = nonlinear_frame(50, 3)
    prepared = SetDensities(Partition.folds(as_table(frame), np.arange(50) % 5), "scott", "auto")
    sets = [VariableSet((0,), 1), VariableSet((0, 1), 2)]
    first = prepared.rows(sets)
    monkeypatch.setattr(prepared, "_computed", lambda sets: pytest.fail(f"computed {sets} again"))
    np.testing.assert_array_equal(prepared.rows(sets[::-1]), first[::-1])


def test_rows_come_in_the_order_of_the_data():
    frame = nonlinear_frame(24, 2)
    labels = np.array([2, 0, 1] * 8)
    bench = FamilyScorer(MemoryRows(Partition.folds(as_table(frame), labels)))
    for node_type in (NodeType.LG, NodeType.CKDE):
        rows = bench.rows(asked(frame, [Family("b", ("a",), node_type)]))[0]
        for row in range(24):
            train = frame[labels != labels[row]]
            expected = logpdf(frame.iloc[[row]], train, "b", ["a"], node_type)[0]
            assert rows[row] == pytest.approx(expected, rel=1e-9)


def test_a_table_of_the_rows_of_a_partition_is_centred_and_reordered():
    frame = pd.DataFrame({"a": [5.0, 6.0, 7.0, 9.0], "b": [1.0, 2.0, 4.0, 8.0]})
    partition = Partition.folds(as_table(frame), np.array([1, 0, 1, 0]))
    assert partition.evaluated.tolist() == [1, 3, 0, 2]
    np.testing.assert_array_equal(np.diff(partition.table.columns), [[3, -4, 2], [6, -7, 3]])
    np.testing.assert_array_equal(partition.in_data_order(np.arange(4.0)), [2, 0, 3, 1])
