"""What went wrong once."""

import warnings

import numpy as np
import pandas as pd
import pytest

import spbn
from inference.questions import chain
from spbn.inference import particles

ROWS = {"x": np.linspace(-1.0, 1.0, 40), "y": np.linspace(-1.0, 1.0, 40) ** 3}


@pytest.mark.parametrize("kind", ["lg", "ckde"])
def test_few_draws_that_were_asked_for_are_no_reason_to_warn(kind):
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], kind), ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert network.query({"x": 0.5}, n=20).effective_size == 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ckde", "blend"])
@pytest.mark.parametrize("interval", [(None, 0.3), (0.3, None)])
def test_an_open_interval_of_a_kernel_node_with_parents(kind, interval):
    """An infinite end times a zero of the whitener was NaN, and made the evidence impossible."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    network = spbn.BayesianNetwork.fit(
        spbn.Structure("xy", [("x", "y")], kind), {"x": x, "y": x + 0.5 * rng.normal(size=150)}
    )
    posterior = network.query({"y": interval}, n=4000)
    drawn = network.sample(40_000, seed=1)
    low, high = (-np.inf if interval[0] is None else interval[0]), (interval[1] or np.inf)
    inside = drawn[drawn["y"].between(low, high)]
    assert np.exp(posterior.log_evidence) == pytest.approx(len(inside) / len(drawn), abs=0.02)
    assert posterior.mean()["x"] == pytest.approx(inside["x"].mean(), abs=0.07)
    assert posterior.draws["y"].between(low, high).all()


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", ["lg", "ckde", "blend"])
def test_the_spread_of_values_far_from_zero(kind, margins):
    """The mean of squares minus the square of the mean had lost all digits: a spread of 0, or of 22."""
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 0.5, 200)
    rows = {"x": x, "y": x + rng.normal(0.0, 0.1, 200)}
    structure = spbn.Structure("xy", [("x", "y")], kind)
    near = spbn.BayesianNetwork.fit(structure, rows, margins=margins).query({"y": 0.3})
    moved = {"x": x + 1e9, "y": rows["y"]}
    far = spbn.BayesianNetwork.fit(structure, moved, margins=margins).query({"y": 0.3})
    assert far.std()["x"] == pytest.approx(near.std()["x"], rel=1e-4)
    assert far.std()["x"] == pytest.approx(far.sample(4000, seed=0)["x"].std(), rel=0.1)


def never(smoothing=0.0):
    """A → B, two discrete nodes with a level that never occurs, and a normal one below A."""
    rng = np.random.default_rng(1)
    levels = pd.CategoricalDtype(["a", "b", "never"])
    a = rng.choice(["a", "b"], 60)
    rows = pd.DataFrame(
        {"A": a, "B": np.where(rng.random(60) < 0.2, "a", a), "x": (a == "a") + rng.normal(size=60)}
    ).astype({"A": levels, "B": levels})
    types = {"A": "discrete", "B": "discrete", "x": "lg"}
    structure = spbn.Structure(list(types), [("A", "B"), ("A", "x")], types)
    return spbn.BayesianNetwork.fit(structure, rows, smoothing=smoothing)


def test_what_never_occurs_is_impossible_without_smoothing():
    """Weights of 0 / 0 were drawn from."""
    network = never()
    rows = pd.DataFrame({"A": [None, "a"], "B": ["a", "never"], "x": [0.5, None]})
    with pytest.raises(spbn.errors.ArgumentError, match="evidence is impossible"):
        network.query({"B": "never"})
    logpdf = network.logpdf(rows, missing="integrate")
    assert np.isfinite(logpdf[0])
    assert logpdf[1] == -np.inf
    for ask in (network.impute, lambda data: network.predict(data, ["x"])):
        with pytest.raises(spbn.errors.DataError, match="row 2, counted from 1, is impossible"):
            ask(rows)
    assert np.isfinite(never(smoothing=1.0).query({"B": "never"}).log_evidence)


def test_evidence_beyond_all_numbers_is_refused():
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")]), ROWS)
    with pytest.raises(spbn.errors.ArgumentError, match="too far outside"):
        network.query({"y": -1e300})


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
def test_an_interval_far_outside_the_data_is_warned_of(margins):
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")]), ROWS, margins=margins)
    with pytest.warns(UserWarning, match="the interval of 'x' is far outside"):
        network.query({"x": (1e4, None)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.query({"x": (0.0, 1e-9)})  # narrow, but among the rows
        network.query({"x": (0.5, None)})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([True, True, None], dtype=object), False),
        (pd.Series([True, True, None], dtype="boolean"), False),
        (pd.Categorical(["True", "True", None], categories=["True"]), "False"),
        (pd.Series([None, None, None], dtype="boolean"), False),
        (pd.Series(["True", "True", None]), "False"),
    ],
)
def test_a_level_that_a_column_does_not_have_is_imputed_in_its_kind(column, expected):
    """Categories that the column lacked were NaN, and truth values became text."""
    rng = np.random.default_rng(2)
    b = rng.random(100) < 0.5
    network = spbn.learn({"b": b, "x": 50.0 * b + rng.normal(size=100)}, model="gbn")
    filled = network.impute(pd.DataFrame({"b": column, "x": [50.0, 50.0, 0.0]}))
    assert filled["b"].notna().all()
    assert filled["b"].iloc[2] == expected
    assert type(filled["b"].tolist()[2]) is type(expected)
    assert np.isfinite(network.logpdf(filled)).all()


@pytest.mark.parametrize("kind", ["float64", "float32", "Int64"])
def test_numbers_that_are_levels_are_imputed_as_numbers(kind):
    rng = np.random.default_rng(3)
    k = rng.integers(1, 4, 100)
    network = spbn.learn({"k": k, "x": 50.0 * k + rng.normal(size=100)}, model="gbn", discrete=["k"])
    holes = pd.DataFrame({"k": pd.array([1, 2, None], dtype=kind), "x": [50.0, 100.0, 150.0]})
    filled = network.impute(holes)
    assert filled["k"].tolist() == [1, 2, 3]
    assert pd.api.types.is_numeric_dtype(filled["k"])


@pytest.mark.slow
def test_evidence_that_cannot_be_reached_is_given_up_early(monkeypatch):
    """All steps were taken, which took minutes, to say the same in the end."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    rows = {"x": x, "y": x + rng.normal(size=100)}
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], "ckde"), rows)
    taken = []
    step = particles._next_step
    monkeypatch.setattr(particles, "_next_step", lambda *given: taken.append(1) or step(*given))
    with pytest.raises(spbn.errors.ArgumentError, match="too far outside for any method"):
        network.query({"y": 2000.0}, n=50)
    assert len(taken) == particles.PROBATION
    taken.clear()
    with pytest.warns(UserWarning, match="far outside"), pytest.warns(UserWarning, match="2 independent"):
        assert network.query({"y": 60.0}, n=100).method == "smc"
    assert len(taken) > particles.PROBATION


def test_a_question_needs_a_draw():
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], "ckde"), ROWS)
    with pytest.raises(spbn.errors.ArgumentError, match="n must be 1 or more"):
        network.query({"x": 0.1}, n=0)


@pytest.mark.slow
def test_nothing_is_left_to_ask_if_everything_is_known():
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")]), ROWS)
    posterior = network.query({"x": 0.5, "y": 0.1})
    assert posterior.sample(7, seed=0).shape == (7, 0)
    assert posterior.mean().empty
    assert posterior.cov().empty
    assert posterior.quantile([0.1, 0.9]).empty
    assert posterior.log_evidence == pytest.approx(network.logpdf({"x": [0.5], "y": [0.1]})[0])
    assert posterior._repr_html_()
    posterior.plot()


def test_events_by_a_function_are_truths():
    """What is missing was taken for true, so that half of the draws became all of them."""
    posterior = chain().query({"C": 1.0}, n=400)
    is_high = posterior.draws["A"] > posterior.median()["A"]
    share = posterior.probability({"A": (posterior.median()["A"], None)})
    for truths in (is_high, is_high.astype(int), is_high.astype("boolean"), is_high.tolist()):
        assert posterior.probability(lambda _, truths=truths: truths) == pytest.approx(share, abs=0.1)
    missing = is_high.astype("boolean").where(is_high)
    for wrong in (posterior.draws["A"].where(is_high), posterior.draws["A"], missing, True, is_high[:9]):
        with pytest.raises(spbn.errors.ArgumentError, match="true or false for each of 400 rows"):
            posterior.probability(lambda _, wrong=wrong: wrong)
