import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spbn.errors import ArgumentError, DataError
from spbn.independence import RCoT
from spbn.independence.rcot import upper_tail

from strategies import nonlinear_frame


def by_definition(test, x, y, given):
    """The test as Strobl, Zhang and Visweswaran write it, with the features that ours drew."""
    rows = test.rows

    def features(weights, phases, members):
        made = np.cos(2 * np.pi * (weights @ test._columns[members] + phases[:, None]))
        made = made - made.mean(axis=1, keepdims=True)
        return made / made.std(axis=1, ddof=1, keepdims=True)

    number = {name: i for i, name in enumerate(test.names)}
    drawn = test._variables
    left = [features(drawn.weights[i], drawn.phases[i], [i]) for i in (number[x], number[y])]
    if given:
        members = np.array(sorted(number[name] for name in given))
        key = tuple(members.tolist())
        condition, _ = test._conditions([key])[key]
        z = features(condition.weights[0], condition.phases[0], members)
        inverse = np.linalg.inv(z @ z.T / (rows - 1) + 1e-10 * np.eye(len(z)))
        left = [f - (f @ z.T / (rows - 1)) @ inverse @ z for f in left]
    statistic = rows * np.sum((left[0] @ left[1].T / (rows - 1)) ** 2)
    products = (left[0][:, None, :] * left[1][None, :, :]).reshape(-1, rows)
    eigenvalues = np.linalg.eigvalsh(products @ products.T / rows)
    powers = [np.sum(eigenvalues**r) for r in range(1, 9)]
    return upper_tail(np.array([statistic]), np.array([powers]))[0]


@pytest.mark.parametrize("rows", [100, 255, 700])
@pytest.mark.parametrize("given", ["", "c", "de", "cdef"])
def test_agrees_with_the_definition(rows, given):
    test = RCoT(nonlinear_frame(rows, 6), seed=1)
    found = test.pvalue("a", "b", list(given))
    assert found == pytest.approx(by_definition(test, "a", "b", given), rel=1e-5, abs=1e-12)


def test_numbers_of_features():
    frame = nonlinear_frame(1000, 4)
    test = RCoT(frame, features=3, condition_features=17)
    assert test.pvalue("a", "d", ["b"]) == pytest.approx(by_definition(test, "a", "d", ["b"]), rel=1e-5)
    assert RCoT(frame).condition_features == 100
    assert RCoT(frame.head(200)).condition_features == 40  # a fifth of the rows
    for wrong in (0, 2.5, "5"):
        with pytest.raises(ArgumentError, match=r"features must be a count"):
            RCoT(frame, features=wrong)
        with pytest.raises(ArgumentError, match=r"condition_features must be a count"):
            RCoT(frame, condition_features=wrong)


def test_too_few_rows_for_the_condition():
    test = RCoT(nonlinear_frame(12, 5))
    assert 0 <= test.pvalue("a", "b", ["c"]) <= 1
    with pytest.raises(DataError, match=r"condition of 2 variables needs at least 15 rows. Got 12"):
        test.pvalue("a", "b", ["c", "d"])


def test_an_answer_does_not_depend_on_its_batch():
    """To the last bit, with more conditions and questions than one call or one task takes."""
    frame = nonlinear_frame(120, 14)
    names = list(frame)
    questions = [(x, y, ()) for i, x in enumerate(names) for y in names[:i]]
    questions += [(x, y, [z]) for x, y, _ in questions for z in names if z not in (x, y)]
    together = RCoT(frame).pvalues(questions)
    one_by_one = RCoT(frame)
    for i in range(0, len(questions), 37):
        assert one_by_one.pvalue(*questions[i]) == together[i]


def test_forgotten_conditions_come_back_the_same(monkeypatch):
    from spbn.independence import rcot

    frame = nonlinear_frame(60, 6)
    test = RCoT(frame)
    before = test.pvalue("a", "b", ["c"])
    monkeypatch.setattr(rcot, "REMEMBERED", 2)
    for name in "def":
        test.pvalue("a", "b", [name])
    assert len(test._remembered) == 2
    assert test.pvalue("a", "b", ["c"]) == before


def determined(rng, rows):
    """x is a copy of z, w of it in other units, and s a sum; y depends on all of them."""
    z, v, noise = rng.normal(size=(3, rows))
    y = np.sin(z) + v + noise
    return {"x": z, "w": 2e6 * z - 1e9, "s": z - 3 * v, "y": y, "z": z, "v": v}


@pytest.mark.parametrize("rows", [30, 300, 3000])
def test_what_is_a_linear_function_of_the_condition_is_independent_of_all(rows):
    for seed in range(10):
        data = determined(np.random.default_rng(seed), rows)
        test = RCoT(data, seed=seed)
        assert (test.pvalues([("x", "y", ["z"]), ("y", "w", ["z"]), ("y", "x", ["v", "w"])]) == 1.0).all()
        assert test.pvalue("s", "y", ["v", "z"]) == 1.0
        # In the order of the alphabet s comes before y, and z after: either end may be the one.
        assert test.pvalue("y", "z", ["s", "v"]) == 1.0


def test_what_the_condition_leaves_a_little_of_is_tested_as_ever(rng):
    """A thousandth of noise is not nothing: only a linear function is passed over."""
    data = determined(rng, 500)
    data["x"] = data["z"] + 1e-3 * rng.normal(size=500)
    test = RCoT(data)
    assert test.pvalue("x", "y", ["z"]) == pytest.approx(by_definition(test, "x", "y", ["z"]), rel=1e-3)
    assert test.pvalue("x", "y", ["z"]) < 1.0
    assert test.pvalue("s", "y", ["v"]) < 0.05
    assert test.pvalue("s", "y") < 0.05


def test_answers_beside_a_copy_stay_the_same(rng):
    data = determined(rng, 200)
    questions = [("v", "y", ["z"]), ("s", "y", ["v"]), ("v", "x", ["y"])]
    alone = RCoT(data).pvalues(questions)
    asked = [question for pair in zip(questions, [("x", "y", ["z"])] * 3, strict=True) for question in pair]
    together = RCoT(data).pvalues(asked)
    np.testing.assert_array_equal(together[::2], alone)
    assert (together[1::2] == 1.0).all()


@pytest.mark.shared
def test_agrees_in_kind_with_the_reference(shared):
    """Dependent or independent as 60 runs of PyBNesian find, for the median over seeds."""
    frame = pd.read_csv(shared / "paper-data" / "synthetic" / "synthetic_2000.csv")[list("ABCDE")]
    questions = json.loads((shared / "reference" / "rcot_synthetic_2000.json").read_text())
    asked = [(q["x"], q["y"], q["given"]) for q in questions]
    medians = np.median([RCoT(frame, seed=seed).pvalues(asked) for seed in range(7)], axis=0)
    assert [median <= 0.05 for median in medians] == [q["reject_at_5pct"] > 0.5 for q in questions]


def pvalues_of(make, data_sets, given):
    return [
        RCoT(make(np.random.default_rng(seed)), seed=seed).pvalue("x", "y", given)
        for seed in range(data_sets)
    ]


def confounded(rng):
    z = rng.normal(size=500)
    x, y = 0.5 * rng.normal(size=(2, 500))
    return {"x": x + z**2, "y": y + np.cos(2 * z), "z": z}


@pytest.mark.slow
def test_pvalues_are_uniform_under_independence():
    pvalues = pvalues_of(confounded, 300, ["z"])
    assert 0.02 <= np.mean(np.array(pvalues) <= 0.05) <= 0.09
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3
    assert np.mean(np.array(pvalues_of(confounded, 50, ())) <= 0.05) > 0.9  # z hides a clear dependence


def product(rng):
    x, z = rng.normal(size=(2, 500))
    return {"x": x, "y": x * z + 0.5 * rng.normal(size=500), "z": z}


def sine(rng):
    x, z = rng.normal(size=(2, 500))
    return {"x": x, "y": np.sin(2 * x) + z + 0.5 * rng.normal(size=500), "z": z}


def circle(rng):
    angle = rng.uniform(0, 2 * np.pi, 500)
    x, y = np.array([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(2, 500))
    return {"x": x, "y": y, "z": rng.normal(size=500)}


@pytest.mark.parametrize("make", [product, sine, circle])
def test_nonlinear_dependence_is_seen(make):
    assert np.mean(np.array(pvalues_of(make, 50, ["z"])) <= 0.05) > 0.9
