import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import spbn
from spbn._base.files import ArrayReader, ArrayWriter
from spbn.errors import FitError, ModelFileError
from spbn.nodes import Blend
from spbn.nodes.base import Interval
from spbn.nodes.families import named_batch
from spbn.nodes.local_lines import LocalLines, local_scorer
from spbn.numerics.student import Component, draw_mixture, log_mass_of_mixture, mixture_cdf
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels

from naive import local_logpdf
from strategies import nonlinear_frame

FRAME = nonlinear_frame(400, 4, seed=3)


def branches(rows, seed=0, noise=0.05):
    """Two branches, each of them bent: neither a line nor a curve."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, rows)
    y = np.where(rng.random(rows) < 0.5, 1, -1) * (0.5 + x**2) + noise * rng.standard_normal(rows)
    return pd.DataFrame({"x": x, "y": y})


def store(frame, labels=None):
    table = as_table(frame)
    labels = fold_labels(table.rows, min(10, table.rows), 0) if labels is None else labels
    return MemoryRows(Partition.folds(table, labels))


def fit(frame, node, parents):
    columns = tuple(list(frame).index(name) for name in (*parents, node))
    return local_scorer(store(frame)).fit(columns)


def score_rows(rows, node, parents):
    names = [variable.name for variable in rows.variables]
    batch = named_batch(names, [spbn.nodes.Family(node, tuple(parents), spbn.NodeType.BLEND)])
    return rows.in_data_order(local_scorer(rows).rows(batch)[0])


def logpdf(lines, frame, node):
    return lines.logpdf_of_columns(frame[[*lines.parents, node]].to_numpy().T)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    parents=st.integers(0, 3),
    rows=st.sampled_from([30, 60, 200, 700]),
    seed=st.integers(0, 999),
    folds=st.integers(2, 6),
    kind=st.sampled_from(["smooth", "odd", "ties", "lumps"]),
)
def test_rows_are_scored_by_mixtures_fitted_without_their_folds(parents, rows, seed, folds, kind):
    frame, rng = nonlinear_frame(rows, 4, seed), np.random.default_rng(seed)
    if kind == "odd":
        frame.loc[rng.integers(rows), "a"] = 1e4
        frame.loc[rng.integers(rows), "b"] = -1e5
    if kind == "ties":
        frame["a"] = frame["a"].where(rng.random(rows) < 0.7, 0.123)
    if kind == "lumps":
        frame += rng.choice([-7.3, 0.0, 9.1], rows)[:, None]
    names = list("bcd")[:parents]
    labels = rng.permutation(np.arange(rows) % folds)
    expected = np.empty(rows)
    for label in range(folds):
        left = labels == label
        expected[left] = local_logpdf(frame[left], frame, "a", names, left_out=left)
    np.testing.assert_allclose(score_rows(store(frame, labels), "a", names), expected, rtol=1e-7, atol=1e-7)
    lines = fit(frame, "a", names)
    expected = local_logpdf(frame, frame, "a", names)
    if lines is None:
        assert (expected == -np.inf).all()
    else:
        np.testing.assert_allclose(logpdf(lines, frame, "a"), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_a_fold_is_forgotten():
    """What its cells tell a mixture is worth nothing: the score is that of mixtures that never saw it."""
    gains = []
    for seed in range(6):
        frame, labels = nonlinear_frame(700, 4, seed), np.arange(700) % 10  # enough rows for all components
        ours = score_rows(store(frame, labels), "c", ["a", "b"])
        scratch = np.empty(700)
        for label in range(10):
            left = labels == label
            lines = fit(frame[~left].reset_index(drop=True), "c", ["a", "b"])
            scratch[left] = logpdf(lines, frame[left], "c")
        gains.append(ours.mean() - scratch.mean())
    assert abs(np.mean(gains)) < 0.005


def test_all_choices_of_the_node_share_a_mixture():
    """So that the densities of x given y and of y agree with those of y given x and of x."""
    table = branches(500)
    x_given_y, y_given_x = fit(table, "x", ["y"]), fit(table, "y", ["x"])
    assert len(x_given_y.logs) == len(y_given_x.logs)
    rows = store(table)
    scorer = local_scorer(rows)
    scorer.fit((0, 1)), scorer.fit((1, 0))
    assert list(scorer._known) == [(0, 1)]
    grid = np.linspace(-4.5, 5.5, 20_001)
    for x, y in ((0.3, 0.6), (-1.2, 2.0)):
        # f(y | x) / f(x | y) is a function of y alone times a function of x alone
        pairs = [(x, y), (x, -y), (-x, y), (-x, -y)]
        frame = pd.DataFrame(pairs, columns=["x", "y"])
        ratio = logpdf(y_given_x, frame, "y") - logpdf(x_given_y, frame, "x")
        assert ratio[0] - ratio[1] - ratio[2] + ratio[3] == pytest.approx(0.0, abs=1e-9)
        density = np.exp(logpdf(y_given_x, pd.DataFrame({"x": x, "y": grid}), "y"))
        assert integrate.simpson(density, x=grid) == pytest.approx(1.0, abs=1e-7)


def test_branches_are_found():
    train, test = branches(2000), branches(2000, seed=9)
    truth = 0.5 * sum(stats.norm.pdf(test["y"], sign * (0.5 + test["x"] ** 2), 0.05) for sign in (1, -1))
    blend = Blend.fit(train, "y", ["x"])
    assert blend.weights["local lines"] > 0.5
    assert logpdf(blend.local, test, "y").mean() > np.log(truth).mean() - 0.35
    without = Blend.fit(train, "y", ["x"]).components
    others = max(
        part.logpdf_of_columns(test[["x", "y"]].to_numpy().T).mean() for k, part in without.items() if k < 7
    )
    assert logpdf(blend.local, test, "y").mean() > others


@pytest.mark.parametrize("parents", [[], ["b"], ["b", "c"]])
def test_cdf_draws_and_masses_are_those_of_the_density(parents):
    lines = fit(FRAME, "a", parents)
    at = {name: FRAME[name].iloc[5] for name in parents}
    grid = np.linspace(-20, 20, 100_001)
    frame = pd.DataFrame({"a": grid, **at})
    density = np.exp(logpdf(lines, frame, "a"))
    below = integrate.cumulative_simpson(density, x=grid, initial=0)
    columns = frame[[*parents, "a"]].to_numpy().T
    np.testing.assert_allclose(lines.cdf_of_columns(columns), below, atol=1e-9)
    given = np.repeat(columns[:-1, :1], 5000, axis=1)
    drawn = lines.draw(given, np.random.default_rng(0))
    assert stats.kstest(lines.cdf_of_columns(np.vstack([given, drawn])), "uniform").pvalue > 0.001
    table = as_table({"z": np.zeros(5000), **dict(zip(reversed(parents), given[::-1], strict=True))})
    for low, high in ((-0.5, 0.7), (0.3, np.inf), (-np.inf, -0.2), (3.0, 4.0)):
        mass = np.interp(min(high, 20), grid, below) - np.interp(max(low, -20), grid, below)
        np.testing.assert_allclose(np.exp(lines.log_mass(Interval(low, high), table)), mass, rtol=1e-4)
        within = lines.draw_within(Interval(low, high), table, np.random.default_rng(1))
        assert ((within >= low) & (within <= high)).all()
        places = (np.interp(within, grid, below) - np.interp(max(low, -20), grid, below)) / mass
        assert stats.kstest(places, "uniform").pvalue > 0.001


def test_weights_of_mixtures_may_depend_on_rows():
    rng = np.random.default_rng(0)
    weight, centre = rng.random(4000), rng.normal(size=4000)
    parts = [
        Component(weight, None, centre, np.full(4000, 0.5)),
        Component(1.0 - weight, 3.0, -centre, np.full(4000, 2.0)),
    ]
    values = rng.normal(size=4000)
    expected = weight * stats.norm.cdf(values, centre, 0.5) + (1 - weight) * stats.t.cdf(
        values, 3, -centre, 2.0
    )
    np.testing.assert_allclose(mixture_cdf(parts, values), expected, atol=1e-12)
    assert stats.kstest(mixture_cdf(parts, draw_mixture(parts, rng)), "uniform").pvalue > 0.001
    ends = [mixture_cdf(parts, np.full(4000, end)) for end in (-1.0, 0.5)]
    np.testing.assert_allclose(np.exp(log_mass_of_mixture(parts, -1.0, 0.5)), ends[1] - ends[0], atol=1e-12)


@pytest.mark.parametrize("column", ["x", "y"])
def test_one_odd_cell_costs_the_other_rows_nothing(column):
    clean, test = branches(500), branches(2000, seed=4)
    odd = pd.concat([clean, pd.DataFrame({"x": [0.0], "y": [0.5], column: [1e6]})], ignore_index=True)
    before, after = (logpdf(fit(frame, "y", ["x"]), test, "y").mean() for frame in (clean, odd))
    assert after == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("distance", [1e3, 1e9, 1e100, 1e300])
def test_rows_far_out_have_a_finite_density(distance):
    lines = fit(FRAME, "a", ["b", "c"])
    far = np.array(np.meshgrid(*[[-distance, 0.0, distance]] * 3)).reshape(3, -1)
    found = lines.logpdf_of_columns(far)
    assert np.isfinite(found).all()
    assert (lines.logpdf_of_columns(far[:, far[2] == 0.0]) > -1e5).all()  # parents are held
    assert np.isfinite(lines.cdf_of_columns(far)).all()
    assert np.isfinite(lines.draw(far[:2], np.random.default_rng(0))).all()


def unusual_tables():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    yield "constant parent", {"x": np.ones(100), "y": y}
    yield "equal parents", {"x": x, "w": x, "y": x + y}
    yield "two-valued parent", {"x": (x > 0) * 1.0, "y": x + y}
    yield "two-valued node", {"x": x, "y": (x + y > 0) * 1.0}
    yield "mostly one value", {"x": np.where(x > 1.5, x, 0.0), "y": np.where(y > 1.5, y, 0.0)}
    yield "few rows", {"x": x[:7], "y": y[:7]}
    yield "large", {"x": 1e150 * x, "y": 1e150 * y}
    yield "small", {"x": 1e-200 * x, "y": 1e-150 * y}
    yield "far from zero", {"x": 1e9 + x, "y": -1e9 + x + y}
    yield "one enormous cell", {"x": x, "y": np.append(y[:-1], 1e140)}
    yield "node twice", {"x": x, "y": x}


@pytest.mark.parametrize(("kind", "columns"), [pytest.param(*case, id=case[0]) for case in unusual_tables()])
def test_unusual_tables_give_a_density_or_none(kind, columns):
    frame = pd.DataFrame(columns)
    parents = [name for name in frame if name != "y"]
    rows = score_rows(store(frame), "y", parents)
    assert np.isfinite(rows).all() or (rows == -np.inf).all()
    lines = fit(frame, "y", parents)
    assert (lines is None) == (kind in ("constant parent", "few rows"))
    if lines is not None:
        assert np.isfinite(logpdf(lines, frame, "y")).all()
    try:
        assert np.isfinite(Blend.fit(frame, "y", parents).logpdf(frame)).all()
    except FitError:
        assert kind in ("constant parent", "equal parents", "node twice")


def test_equal_tables_give_equal_lines_whatever_the_order_of_parents():
    one, other = fit(FRAME, "a", ["b", "c"]), fit(FRAME, "a", ["c", "b"])
    np.testing.assert_allclose(logpdf(one, FRAME, "a"), logpdf(other, FRAME, "a"), rtol=1e-9, atol=1e-9)
    assert one == fit(FRAME, "a", ["b", "c"])
    # and whatever the order of rows, but for rounding
    mixed = FRAME.sample(frac=1, random_state=0).reset_index(drop=True)
    np.testing.assert_allclose(
        logpdf(fit(mixed, "a", ["b", "c"]), FRAME, "a"), logpdf(one, FRAME, "a"), rtol=1e-8, atol=1e-8
    )


def test_units_make_no_difference():
    scaled = FRAME * 2.0**17 + 2.0**24  # medians and widths are rounded to multiples of powers of 2
    before, after = (logpdf(fit(frame, "a", ["b"]), frame, "a") for frame in (FRAME, scaled))
    np.testing.assert_allclose(after + np.log(2.0**17), before, atol=1e-5)


def test_leaving_out_one_row_at_a_time_leaves_out_several(monkeypatch):
    """The mixture that a row is scored with has not seen it, and is not fitted anew for every row."""
    from spbn.nodes import local_lines

    table = as_table(FRAME)
    rows = MemoryRows(Partition.leave_one_out(table, np.arange(len(FRAME))))
    found = score_rows(rows, "a", ["b"])
    assert np.isfinite(found).all()
    blocks = np.arange(len(FRAME)) * 10 // len(FRAME)
    np.testing.assert_allclose(found, score_rows(store(FRAME, blocks), "a", ["b"]), rtol=1e-9, atol=1e-9)
    assert local_lines.MOST_GROUPS == 10


def test_large_tables_are_thinned(monkeypatch):
    monkeypatch.setattr("spbn.nodes.local_lines.MOST_ROWS", 150)
    labels = np.arange(400) % 4
    found = score_rows(store(FRAME, labels), "a", ["b"])
    assert np.isfinite(found).all()
    order = np.argsort(labels, kind="stable")
    rows, starts = store(FRAME, labels).sample(150)
    np.testing.assert_array_equal(rows, FRAME.to_numpy().T[:, order[::3]])
    assert starts.tolist() == [0, 34, 67, 100, 134]


def test_pooled_lines_are_all_lines():
    halves = [
        fit(FRAME.iloc[some].reset_index(drop=True), "a", ["b"]) for some in (slice(200), slice(200, 400))
    ]
    pooled = halves[0].pool(halves[1:])
    assert halves[0].pool(halves[:1]) == halves[0]
    assert len(pooled.logs) == sum(len(lines.logs) for lines in halves)
    grid = np.linspace(-20, 20, 100_001)
    density = np.exp(logpdf(pooled, pd.DataFrame({"b": 0.4, "a": grid}), "a"))
    assert integrate.simpson(density, x=grid) == pytest.approx(1.0, abs=1e-7)
    # the joint density is the mean, and so is, weighted by that of the parent, the density given this
    low, high = (np.exp(logpdf(lines, pd.DataFrame({"b": 0.4, "a": grid}), "a")) for lines in halves)
    share = np.linalg.lstsq(np.stack([low - high]).T, density - high, rcond=None)[0]
    assert 0.2 < share[0] < 0.8
    np.testing.assert_allclose(density, share * low + (1 - share) * high, atol=1e-9)


def record_of(lines):
    arrays = ArrayWriter()
    return {"node": "a", "parents": list(lines.parents), **lines.to_record(arrays)}, arrays


@pytest.mark.parametrize("parents", [[], ["b"], ["b", "c", "d"]])
def test_records_hold_all_of_it(parents):
    lines = fit(FRAME, "a", parents)
    record, arrays = record_of(lines)
    assert LocalLines.from_record(record, ArrayReader(arrays.columns)) == lines


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        ({"bounds": None}, None),
        ({"bounds": [[1.0], [-1.0]]}, None),
        ({"bounds": [[1.0, 2.0], [3.0, 4.0]]}, None),
        ({"bounds": [[float("nan")], [1.0]]}, None),
        ({"lines": []}, None),
        ({"lines": [0, 1, 2, 3, 4]}, None),
        ({"lines": [0, 1, 2, 3, 4, 99]}, None),
        ({}, lambda columns: columns[0].__setitem__(0, np.nan)),
        ({}, lambda columns: columns[2].__setitem__(1, np.inf)),
        ({}, lambda columns: columns[3].__setitem__(0, 0.0)),
        ({}, lambda columns: columns[5].__setitem__(2, -1.0)),
        ({}, lambda columns: columns.__setitem__(slice(None), [np.ones(5000)] * 6)),
        ({}, lambda columns: columns.__setitem__(slice(None), [np.ones(0)] * 6)),
    ],
)
def test_damaged_records_are_refused(change, damage):
    record, arrays = record_of(fit(FRAME, "a", ["b"]))
    columns = [column.copy() for column in arrays.columns]
    LocalLines.from_record(record, ArrayReader(columns))
    if damage is not None:
        damage(columns)
    with pytest.raises(ModelFileError):
        LocalLines.from_record({**record, **change}, ArrayReader(columns))


def test_files_of_networks_with_local_lines(tmp_path):
    frame = branches(300)
    network = spbn.BayesianNetwork.fit(spbn.Structure("xy", ["xy"], "blend"), frame)
    assert network.cpds["y"].weights["local lines"] > 0.1
    for saved in (network, network.compact()):
        saved.save(tmp_path / "model.spbn")
        again = spbn.BayesianNetwork.load(tmp_path / "model.spbn")
        assert again.cpds["y"].local == network.cpds["y"].local
        np.testing.assert_array_equal(again.logpdf(frame), saved.logpdf(frame))


@pytest.mark.parametrize("step", [0.5, 4.0])
def test_no_line_is_narrower_than_what_numbers_are_rounded_to(step):
    """Or ties would gain more than any relation, and parents, with whom there are fewer ties, would lose."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": rng.normal(0.0, 5.0, 2000)})
    frame["a"] = frame["b"] + rng.normal(0.0, 3.0, 2000)
    rounded = (frame / step).round() * step
    alone, given = (logpdf(fit(rounded, "a", parents), rounded, "a").mean() for parents in ([], ["b"]))
    # The peak of a normal density is higher than the uniform one of the same variance by this factor.
    most = np.log(np.sqrt(12.0 / (2.0 * np.pi))) + 0.03
    assert alone < stats.norm.logpdf(rounded["a"], scale=rounded["a"].std()).mean() + most
    assert given > alone + 0.4  # the truth gains 0.67
