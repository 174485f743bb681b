import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn import BayesianNetwork, Structure
from spbn.cli.files import read_table
from spbn.diagnostics import Reason, Scoring, leave_one_out, out_of_fold, reasons, typical, unusual_rows
from spbn.errors import ArgumentError, DataError
from spbn.nodes import LinearGaussian

from strategies import nonlinear_frame

FRAME = nonlinear_frame(120, 3)
STRUCTURE = Structure("abc", [("a", "b")], {"a": "lg", "b": "ckde", "c": "lg"})
NETWORK = BayesianNetwork.fit(STRUCTURE, FRAME)
NEW = nonlinear_frame(60, 3, seed=1)


def without_a_record(network):
    return BayesianNetwork(network.structure, network.cpds)


def test_the_least_likely_rows_come_first():
    frame = NEW.set_axis([f"row {i}" for i in range(60)])
    frame.loc["row 17", "c"] = 40.0
    frame.loc["row 23", "b"] = -9.0
    found = unusual_rows(NETWORK, frame)
    logpdf = pd.Series(NETWORK.logpdf(frame), frame.index)
    assert [row.label for row in found.rows] == list(logpdf.nsmallest(10).index)
    assert [row.position for row in found.rows] == np.argsort(logpdf.to_numpy())[:10].tolist()
    assert repr(found) == "UnusualRows(10 of 60 rows, scored by the network as it is)"
    first, second = str(found).splitlines()[1:3]
    assert first.startswith(f"row 17: {logpdf['row 17']:.1f}, because of c (-")
    assert second.startswith(f"row 23: {logpdf['row 23']:.1f}, because of b (-")
    assert [row.logpdf for row in found.rows] == pytest.approx(logpdf.nsmallest(10).to_list())
    first, second = found.rows[:2]
    assert (first.label, first.reasons[0].node, first.reasons[0].value) == ("row 17", "c", 40.0)
    assert (second.label, second.reasons[0].node, second.reasons[0].value) == ("row 23", "b", -9.0)
    np.testing.assert_allclose(found.contributions, NETWORK.logpdf_by_node(frame))
    np.testing.assert_allclose(found.logpdf, logpdf)
    assert found.median == pytest.approx(logpdf.median())
    assert found.mean == pytest.approx(logpdf.mean())
    assert not found.left_out


@pytest.mark.parametrize("top", [0, 1, 3, 60, 100])
def test_as_many_rows_as_asked_for(top):
    assert len(unusual_rows(NETWORK, NEW, top=top).rows) == min(top, 60)


@pytest.mark.parametrize("top", [-1, 2.5, "3", True, None])
def test_anything_else_is_refused(top):
    with pytest.raises(ArgumentError, match="top must be a whole number"):
        unusual_rows(NETWORK, NEW, top=top)


def test_data_without_a_node_is_refused():
    with pytest.raises(DataError, match="lacks column 'c'"):
        unusual_rows(NETWORK, NEW[["a", "b"]])


def test_no_data_is_refused():
    with pytest.raises(ArgumentError, match="give data"):
        unusual_rows(NETWORK, None)


@pytest.mark.parametrize("network", [NETWORK, without_a_record(NETWORK)])
def test_a_row_has_the_same_reasons_in_whatever_table_it_comes(network):
    """Against the medians of the batch, a row among others like it would have no reasons at all."""
    row = pd.DataFrame({"a": [0.0], "b": [0.5], "c": [9.0]})
    among_new = pd.concat([row, NEW], ignore_index=True)
    among_its_like = pd.concat([row] * 9 + [NEW[:4]], ignore_index=True)
    found = [unusual_rows(network, frame).rows[0] for frame in (row, among_new, among_its_like)]
    assert {seen.position for seen in found} == {0}
    assert found[0].reasons[0].node == "c"
    for other in found[1:]:
        assert [reason.node for reason in other.reasons] == [reason.node for reason in found[0].reasons]
        assert [reason.drop for reason in other.reasons] == pytest.approx(
            [reason.drop for reason in found[0].reasons]
        )


def test_rows_are_measured_against_the_medians_of_training_rows():
    """Medians, not means: a wild training row must not make the others look ordinary."""
    frame = FRAME.copy()
    frame.loc[3, "c"] = 500.0
    network = BayesianNetwork.fit(STRUCTURE, frame)
    folds = pd.DataFrame(out_of_fold(network, frame), columns=list("abc"))
    assert typical(network) == pytest.approx(folds.median().to_dict())
    assert abs(typical(network)["c"] - folds["c"].mean()) > 1
    row = unusual_rows(network, frame.loc[[3]]).rows[0]
    drop = folds["c"].median() - network.cpds["c"].logpdf(frame.loc[[3]])[0]
    assert row.reasons == (Reason("c", 500.0, pytest.approx(drop)),)


def test_without_a_record_rows_drawn_from_the_network_say_what_is_typical():
    """The density of a standard normal node has the median log φ(0.6745)."""
    network = BayesianNetwork(Structure("a"), {"a": spbn.nodes.LinearGaussian("a", (), 0.0, (), 1.0)})
    expected = -0.5 * (0.67449**2 + np.log(2 * np.pi))
    assert typical(network)["a"] == pytest.approx(expected, abs=0.03)
    assert typical(network) == typical(network)


def test_a_node_that_the_record_leaves_out_is_drawn():
    known = spbn.record.Record(typical={"a": -1.0, "b": -2.0})
    found = typical(BayesianNetwork(STRUCTURE, NETWORK.cpds, record=known))
    assert (found["a"], found["b"]) == (-1.0, -2.0)
    assert found["c"] == typical(without_a_record(NETWORK))["c"]


def lines(*arcs, noise=1.0):
    """A network of lines with slope 1 whose typical log-densities are recorded as those of the median."""
    structure = Structure("abcdef", arcs)
    cpds = {}
    for node in "abcdef":
        parents = structure.parents(node)
        cpds[node] = LinearGaussian(node, parents, 0.0, (1.0,) * len(parents), noise**2)
    usual = -0.5 * (stats.chi2(1).median() + np.log(2.0 * np.pi)) - np.log(noise)
    return BayesianNetwork(structure, cpds, record=spbn.record.Record(typical=dict.fromkeys("abcdef", usual)))


def test_the_worst_node_comes_first_and_small_drops_are_no_reasons():
    def blamed(**values):
        row = pd.DataFrame([dict.fromkeys("abcdef", 0.0) | values])
        return [(reason.node, round(reason.drop, 2)) for reason in reasons(lines(), row)[0]]

    usual = 0.5 * stats.chi2(1).median()
    assert blamed(b=14.0, a=8.0, f=5.0, c=1.0) == [
        ("b", round(98 - usual, 2)),
        ("a", round(32 - usual, 2)),
        ("f", round(12.5 - usual, 2)),
    ]
    assert blamed(a=1.3) == []  # less than a nat below what is typical
    # 4 nats below are a reason where nothing is worse, and none beside 98.
    assert [node for node, _ in blamed(d=3.0)] == ["d"]
    assert [node for node, _ in blamed(d=3.0, b=14.0)] == ["b"]
    assert len(blamed(a=9.0, b=9.1, c=9.2, d=9.3)) == 3


def test_the_fewest_cells_are_blamed_that_explain_a_row():
    """One wrong value below two true parents and above two true children, found also between candidates."""
    network = lines(("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), noise=0.01)
    row = {"a": 0.01, "b": -0.01, "c": 0.0, "d": 0.01, "e": -0.01, "f": 0.0}
    for wrong in "abcdef":
        (found,) = reasons(network, pd.DataFrame([row | {wrong: row[wrong] + 0.5}]))
        assert [reason.node for reason in found] == [wrong]
    # Where parents and children agree on another value, its repair undoes nearly all that it costs.
    wrong = pd.DataFrame([row | {"c": 5.0}])
    cost = network.logpdf(pd.DataFrame([row]))[0] - network.logpdf(wrong)[0]
    assert reasons(network, wrong)[0][0].drop == pytest.approx(cost, rel=1e-3)


@pytest.mark.parametrize("hole", "abdef")
def test_in_rows_with_holes_what_is_missing_is_not_to_blame(hole):
    network = lines(("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"))
    row = pd.DataFrame([dict.fromkeys("abcdef", 0.0) | {"c": 9.0, hole: np.nan}])
    assert [reason.node for reason in reasons(network, row)[0]] == ["c"]
    assert reasons(network, pd.DataFrame([dict.fromkeys("abcdef", np.nan)])) == [()]


def test_everything_that_explains_rows_says_the_same():
    """The same nodes and numbers from a table, a scorer and a monitor."""
    network = BayesianNetwork.fit(spbn.datasets.synthetic_structure(), spbn.datasets.synthetic(300, seed=0))
    rows = spbn.datasets.synthetic(60, seed=1)
    rows.loc[3, "C"], rows.loc[7, "A"] = 40.0, -9.0
    monitor, scorer = spbn.Monitor(network, spbn.datasets.synthetic(100, seed=2)), spbn.RowScorer(network)
    found = unusual_rows(network, rows, top=4).rows
    for row in found:
        assert row.reasons
        expected = [Reason(r.node, r.value, pytest.approx(r.drop)) for r in row.reasons]
        assert list(reasons(network, rows)[row.position]) == expected
        assert list(scorer.score(rows.iloc[row.position]).blame) == expected
        assert list(monitor.explain(rows.iloc[row.position])) == expected


def test_a_training_row_is_not_repaired_by_its_own_kernel():
    """Close to its own value, the row's own kernels would make any value look likely."""
    frame = FRAME.copy()
    frame.loc[5, "b"] += 30.0
    network = BayesianNetwork.fit(Structure("abc", [("a", "b"), ("b", "c")], "ckde"), frame)
    row = unusual_rows(network, frame, top=1).rows[0]
    assert (row.position, row.reasons[0].node) == (5, "b")


def test_training_rows_are_left_out_of_the_fit():
    found = unusual_rows(NETWORK, FRAME)
    assert found.left_out
    assert found.scoring is Scoring.LEFT_OUT_ALONE
    np.testing.assert_array_equal(found.contributions, leave_one_out(NETWORK, FRAME))
    assert [row.position for row in found.rows] == np.argsort(found.logpdf)[:10].tolist()


@pytest.mark.parametrize(
    "other",
    [FRAME[:-1], FRAME[::-1], FRAME + 1e-9, FRAME.assign(a=FRAME["a"].where(FRAME.index != 5, 0.0))],
)
def test_any_other_rows_are_scored_as_new_ones(other):
    found = unusual_rows(NETWORK, other)
    assert not found.left_out
    np.testing.assert_allclose(found.logpdf, NETWORK.logpdf(other))


def test_the_training_table_is_known_by_its_numbers(tmp_path):
    """Neither the order of the columns nor further ones matter, nor that they come from a file."""
    NETWORK.save(tmp_path / "m.spbn")
    FRAME[["c", "a", "b"]].assign(z=1.0).to_csv(tmp_path / "t.csv", index=False)
    frame = read_table(tmp_path / "t.csv")
    assert unusual_rows(BayesianNetwork.load(tmp_path / "m.spbn"), frame).left_out


def test_what_cannot_be_fitted_again_is_scored_as_it_is():
    def narrow(rows):
        return 0.1 * np.atleast_2d(np.cov(rows.T))

    network = BayesianNetwork.fit(Structure("ab", types="ckde"), FRAME, bandwidth=narrow)
    assert not unusual_rows(network, FRAME).left_out


@pytest.mark.slow
def test_many_rows_are_left_out_a_tenth_at_a_time():
    frame = nonlinear_frame(1_200, 3)
    network = BayesianNetwork.fit(STRUCTURE, frame)
    found = unusual_rows(network, frame)
    assert found.scoring is Scoring.LEFT_OUT_BY_FOLD
    np.testing.assert_array_equal(found.contributions, out_of_fold(network, frame))
    least = np.argsort(leave_one_out(network, frame).sum(axis=1))[:5]
    assert {row.position for row in found.rows} >= set(least.tolist())


#: What `spbn.learn` finds in the wines: parents of every column, by its place.
WINE = {0: (6, 11, 12), 1: (10,), 2: (0, 3, 4), 3: (0, 10), 4: (9, 12), 6: (5,), 7: (2, 4, 11, 12)}
WINE |= {8: (3, 6, 9), 9: (0, 10, 12), 10: (11,), 11: (6,), 12: (6,)}


def test_the_odd_wine_does_not_hide_behind_its_own_kernel():
    """In sample it is 61st of 178; left out, the first by far."""
    from sklearn.datasets import load_wine

    wine = load_wine(as_frame=True).data
    names = list(wine.columns)
    arcs = [(names[parent], names[child]) for child in WINE for parent in WINE[child]]
    network = BayesianNetwork.fit(Structure(names, arcs, "ckde"), wine)
    in_sample = network.logpdf(wine)
    assert np.sum(in_sample < in_sample[121]) == 60
    first, second = unusual_rows(network, wine).rows[:2]
    assert (first.position, first.reasons[0].node, first.reasons[0].value) == (121, "flavanoids", 5.08)
    assert first.logpdf == pytest.approx(-58.360, abs=1e-3)
    assert second.logpdf > -40


def test_far_away_values_have_finite_numbers():
    found = unusual_rows(NETWORK, FRAME.assign(c=np.where(FRAME.index == 8, 1e200, FRAME["c"])))
    assert found.rows[0].position == 8
    assert np.isfinite(found.logpdf).all()
    assert found.rows[0].reasons[0].node == "c"
