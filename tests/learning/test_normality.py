"""Node types by the Shapiro-Wilk test, against scipy and its level against simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.errors import ArgumentError
from spbn.learning.normality import line_residuals, normality_p_value, types_by_normality
from spbn.tables.reader import as_table

from strategies import mixed_frame, nonlinear_frame


def linear_frame(rows, seed, noise="normal"):
    rng = np.random.default_rng(seed)
    draw = {"normal": rng.standard_normal, "laplace": lambda n: rng.laplace(size=n)}[noise]
    a = rng.standard_normal(rows)
    b = 2.0 * a + draw(rows)
    return pd.DataFrame({"a": a, "b": b, "c": a - b + 1e3 + rng.standard_normal(rows)})


ARCS = [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize("parents", [(), ("a",), ("a", "b")])
def test_p_values_are_those_of_scipy(parents):
    frame = nonlinear_frame(200, 3, seed=1)
    design = np.column_stack([np.ones(200), *(frame[parent] for parent in parents)])
    residuals = frame["c"] - design @ np.linalg.solve(design.T @ design, design.T @ frame["c"])
    expected = stats.shapiro(residuals).pvalue
    assert normality_p_value(as_table(frame), "c", parents) == pytest.approx(expected, rel=1e-6)


def test_lines_of_configurations():
    """Every configuration of discrete parents has a line and a variance of its own."""
    frame = mixed_frame(300, seed=2)
    expected = []
    for _, part in frame.groupby(["u", "v"]):
        slope, intercept = np.polyfit(part["a"], part["b"], 1)
        residuals = part["b"] - slope * part["a"] - intercept
        expected.append(residuals / np.sqrt(np.sum(residuals**2) / (len(part) - 2)))
    expected = pd.concat(expected).sort_index()
    found = line_residuals(as_table(frame, levels="infer"), "b", ("a", "u", "v"))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_the_level_is_that_of_all_nodes_together():
    """Gaussian networks: in about 5 % of them any node is not linear Gaussian."""
    structure = spbn.Structure("abc", ARCS)
    wrong = [
        "ckde" in {t.name for t in types_by_normality(structure, linear_frame(60, seed)).types.values()}
        for seed in range(400)
    ]
    assert 0.02 < np.mean(wrong) < 0.09


def test_types_follow_the_noise():
    structure = spbn.Structure("abc", ARCS, "ckde")
    found = types_by_normality(structure, linear_frame(2000, 0, "laplace"))
    assert {node: t.name for node, t in found.types.items()} == {"a": "lg", "b": "ckde", "c": "lg"}
    assert found.dag == structure.dag
    rich = types_by_normality(structure, linear_frame(2000, 0, "laplace"), types=("lg", "ckde", "blend"))
    assert rich.type("b").name == "blend"


def test_many_rows_are_thinned_out():
    frame = linear_frame(12_000, 0)
    frame.loc[:5_999, "a"] *= 3.0  # rows in order: a mixture of two widths
    assert normality_p_value(as_table(frame), "a", ()) < 1e-10
    some = frame["a"].to_numpy()[np.linspace(0, 11_999, 5_000).astype(int)]
    assert normality_p_value(as_table(frame), "a", ()) == pytest.approx(stats.shapiro(some).pvalue, rel=1e-6)


def test_little_to_test():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [2.0, 4.0, 8.0], "c": [1.0, 0.0, 5.0]})
    assert normality_p_value(as_table(frame), "c", ("a", "b")) == 1.0
    assert normality_p_value(as_table(frame), "b", ("a",)) in (1.0, pytest.approx(0.0, abs=1.0))


def test_discrete_nodes_stay_what_they_are():
    frame = mixed_frame(200)
    types = {name: "discrete" if name in "uvw" else "ckde" for name in frame}
    structure = spbn.Structure(frame.columns, [("u", "v"), ("u", "a"), ("a", "b")], types)
    found = types_by_normality(structure, frame)
    assert {found.type(node).name for node in "uvw"} == {"discrete"}
    assert {found.type(node).name for node in "abc"} <= {"lg", "ckde"}


def test_after_pc():
    frame = linear_frame(500, 0, "laplace")
    options = {"model": "spbn", "algorithm": "pc", "test": "plc", "type_selection": "normality"}
    network = spbn.learn(frame, **options)
    structure = spbn.Structure("abc", network.structure.arcs)
    assert network.structure == types_by_normality(structure, frame)
    assert network.type_search is None
    strict = spbn.learn(frame, **options, alpha=1e-9)
    assert strict.structure == types_by_normality(strict.structure, frame, level=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "type_selection='normality' can be given with algorithm='pc' only"),
        (
            {"algorithm": "pc", "model": "gbn"},
            "chooses between 'lg' and another type, and nodes can only be lg",
        ),
        ({"algorithm": "pc", "model": "kdebn"}, "and nodes can only be ckde: leave it out"),
    ],
)
def test_where_there_is_nothing_to_choose(options, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        spbn.learn(linear_frame(50, 0), type_selection="normality", **options)
    assert caught.value.argument == "type_selection"


def test_wrong_arguments():
    frame, structure = linear_frame(50, 0), spbn.Structure("abc")
    with pytest.raises(ArgumentError, match="types must be 'lg' and at least one more"):
        types_by_normality(structure, frame, types=("ckde", "blend"))
    with pytest.raises(ArgumentError, match="level must be between 0 and 1"):
        types_by_normality(structure, frame, level=5)
    with pytest.raises(ArgumentError, match="type_selection must be one of 'score', 'normality'"):
        spbn.learn(frame, type_selection="shapiro")


def test_models_are_compared_with_types_by_a_test():
    table = spbn.compare_models(
        linear_frame(60, 0), folds=2, algorithm="pc", test="plc", type_selection="normality"
    )
    assert set(table["model"]) == {"spbn", "gbn", "kdebn", "blend", "auto"}
