"""A hidden class of series: every answer is that of enumeration, over the class of each series as a whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from sklearn.metrics import adjusted_rand_score

import spbn
from spbn.diagnostics.rows import unusual_in_time
from spbn.errors import ArgumentError, DataError, GraphError
from spbn.learning import hidden

LEVELS = ("1", "2")


def machines(number: int = 24, steps: int = 50, seed: int = 0, share: float = 1 / 3) -> pd.DataFrame:
    """Draw series of two kinds of machines, in one of which y follows x, in the other -x."""
    rng = np.random.default_rng(seed)
    slow = np.arange(number) < share * number
    x, y = rng.standard_normal((2, steps, number))
    for t in range(1, steps):
        x[t] += np.where(slow, 0.8, -0.4) * x[t - 1]
        y[t] = np.where(slow, 0.5, -1.0) * x[t] + 0.3 * y[t - 1] + 0.5 * y[t]
    columns = {"machine": np.repeat(np.arange(number), steps), "t": np.tile(np.arange(steps), number)}
    return pd.DataFrame({**columns, "x": x.T.ravel(), "y": y.T.ravel()})


DATA = machines()
TRUTH = np.arange(24) < 8
KEYS = {"series": "machine", "time": "t"}


@pytest.fixture(scope="module", params=[("gbn", 1), ("auto", 2)], ids=["lines", "blends"])
def learned(request) -> spbn.DynamicNetwork:
    model, lags = request.param
    types = {"types": ["lg", "blend"]} if model == "auto" else {"model": "gbn"}
    margins = {"margins": "yeo-johnson"} if model == "auto" else {}
    return spbn.learn_dynamic(DATA, **KEYS, lags=lags, hidden=2, **types, **margins)


def by_class(network: spbn.DynamicNetwork, data: pd.DataFrame) -> np.ndarray:
    """Return the log-density of rows given those before, if all series were of one class: rows × classes."""
    static, transition = (
        spbn.BayesianNetwork(part.structure, part.cpds, margins=part.margins) for part in network.parts
    )
    out, lags = np.empty((len(data), 2)), network.lags
    run = (data["machine"].diff().ne(0) | data["t"].diff().ne(1)).cumsum()
    for _, rows in data.groupby(run):
        for place in range(len(rows)):
            part = transition if place >= lags else static
            now = max(place, lags - 1)  # the row without a lag; of the first ones, earlier ones are scored
            own = now - place
            seen = {
                name_of(name, lag): [rows[name].iloc[now - lag]]
                for name in ("x", "y")
                for lag in range(lags + (place >= lags))
            }
            for k, level in enumerate(LEVELS):
                by_node = part.logpdf_by_node(pd.DataFrame({**seen, "class": [level]}))
                out[rows.index[place], k] = by_node[[name_of("x", own), name_of("y", own)]].sum(axis=1)[0]
    return out


def name_of(name: str, lag: int) -> str:
    return f"{name}[t-{lag}]" if lag else name


@pytest.fixture(scope="module")
def some() -> pd.DataFrame:
    """A few new series, one of which has a gap."""
    rows = machines(6, 12, 5, share=0.5)
    return rows[~((rows["machine"] == 2) & rows["t"].between(5, 6))].reset_index(drop=True)


def test_densities_are_sums_over_the_class_of_a_whole_series(learned, some):
    expected, shares = by_class(learned, some), learned.transition.cpds["class"].probabilities[0]
    logpdf = learned.logpdf(some).to_numpy()
    for _, rows in some.groupby("machine").groups.items():
        joint = np.cumsum(expected[rows], axis=0) + np.log(shares)
        assert np.cumsum(logpdf[rows]) == pytest.approx(logsumexp(joint, axis=1), rel=1e-9)
    found = learned.classes(some)
    joint = np.stack([expected[rows].sum(axis=0) for rows in some.groupby("machine").groups.values()])
    assert found[list(LEVELS)].to_numpy() == pytest.approx(softmax(joint + np.log(shares), axis=1), abs=1e-9)
    assert found.index.name == "machine"
    assert np.allclose(learned.logpdf_by_node(some).sum(axis=1), logpdf, atol=1e-10)


def test_populations_of_series_are_found(learned):
    assert learned.hidden == "class"
    assert adjusted_rand_score(TRUTH, learned.classes(DATA)["class"]) == 1.0
    for part in learned.parts:  # the share of series, not of rows
        assert part.cpds["class"].probabilities[0] == pytest.approx([2 / 3, 1 / 3], abs=0.03)
    alone = spbn.learn_dynamic(DATA, **KEYS, lags=learned.lags, model="gbn")
    new = machines(12, 50, 9)
    assert learned.loglik(new) > alone.loglik(new) + 100.0


def test_auto_finds_two_and_one():
    two = spbn.learn_dynamic(DATA, **KEYS, model="gbn", hidden="auto")
    assert two.transition.class_variable.levels == LEVELS
    one = spbn.learn_dynamic(machines(share=0.0), **KEYS, model="gbn", hidden="auto")
    assert one.hidden is None
    plain = spbn.learn_dynamic(machines(share=0.0), **KEYS, model="gbn")
    assert spbn.learn_dynamic(machines(share=0.0), **KEYS, model="gbn", hidden=1) == plain


def test_long_series_are_divided_by_some_of_their_rows(monkeypatch):
    monkeypatch.setattr(hidden, "MOST_ROWS", 400)
    network = spbn.learn_dynamic(DATA, **KEYS, model="gbn", hidden=2)
    assert adjusted_rand_score(TRUTH, network.classes(DATA)["class"]) == 1.0


def test_the_same_seed_gives_the_same_network():
    first, second = (spbn.learn_dynamic(DATA, **KEYS, model="gbn", hidden=2, seed=3) for _ in range(2))
    assert first == second


def test_samples_and_forecasts_stay_in_a_class(learned):
    drawn = learned.sample(40, n=300, seed=0)
    slopes = drawn.groupby("machine")[["x", "y"]].apply(lambda rows: np.polyfit(rows["x"], rows["y"], 1)[0])
    assert (slopes > 0).mean() == pytest.approx(1 / 3, abs=0.09)
    assert np.abs(slopes).min() > 0.1
    ahead = learned.forecast(DATA, 30, n=50, seed=0)
    for machine in range(24):
        x, y = (ahead.of(name, series=str(machine)).ravel() for name in ("x", "y"))
        assert (np.corrcoef(x, y)[0, 1] > 0) == TRUTH[machine]


def test_a_history_with_a_hole_tells_less_but_something(learned):
    holed = DATA.copy()
    holed.loc[holed["t"] == 20, "x"] = np.nan
    assert adjusted_rand_score(TRUTH, learned.classes(holed)["class"]) == 1.0
    assert len(learned.forecast(holed, 2, n=10).mean()) == 48


def test_files_reports_and_pictures_know_the_class(learned, tmp_path):
    learned.save(tmp_path / "machines.spbn")
    again = spbn.DynamicNetwork.load(tmp_path / "machines.spbn")
    assert again == learned
    assert np.array_equal(again.logpdf(DATA), learned.logpdf(DATA))
    assert "class" in spbn.report.render(learned, data=DATA)
    assert learned.plot() is not None
    found = unusual_in_time(learned, DATA, top=3)
    assert found.contributions == pytest.approx(learned.contributions(DATA))
    small = learned.compact(others="keep")
    assert np.allclose(small.logpdf(DATA), learned.logpdf(DATA), atol=1e-2)


def test_what_judges_rows_one_by_one_refuses_classes_of_series(learned):
    for refuse in (lambda: spbn.Monitor(learned, DATA), lambda: spbn.RowScorer(learned)):
        with pytest.raises(ArgumentError, match="classes of this network are those of whole series"):
            refuse()


def test_networks_must_have_the_same_class(learned):
    alone = spbn.learn_dynamic(DATA, **KEYS, model="gbn", lags=learned.lags)
    with pytest.raises(GraphError, match="the same hidden class"):
        spbn.DynamicNetwork(learned.static, alone.transition, learned.lags)
    with pytest.raises(ArgumentError, match="no hidden class"):
        alone.classes(DATA)


@pytest.mark.parametrize(("number", "series", "got"), [(2, None, 1), (13, "machine", 24), ("auto", None, 1)])
def test_too_few_series_are_refused(number, series, got):
    data = DATA[["machine", "x", "y"]] if series else DATA[["x", "y"]]
    with pytest.raises(DataError, match=f"every series has a class, and at least .* Got {got}"):
        spbn.learn_dynamic(data, hidden=number, series=series)
