"""Values that many rows share exactly: they have a probability of their own, everywhere."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import spbn
from spbn import BayesianNetwork, Structure
from spbn.errors import ArgumentError, GraphError, ModelFileError
from spbn.nodes.atoms import WithAtoms
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.tables.reader import as_table
from spbn.transforms import Atoms, find_atoms

MARK = "rain = 0"


def table(rows=600, seed=0):
    """Draw rain, which is 0 more often in summer, and what depends on whether and how much it rains."""
    rng = np.random.default_rng(seed)
    season = np.where(rng.random(rows) < 0.5, "summer", "winter")
    dry = rng.random(rows) < np.where(season == "summer", 0.5, 0.2)
    rain = np.where(dry, 0.0, rng.lognormal(0.0, 0.8, rows))
    flow = np.where(dry, 2.0, np.log(np.maximum(rain, 1e-9))) + rng.normal(0.0, 0.7, rows)
    return pd.DataFrame({"rain": rain, "flow": flow, "season": season})


DATA = table()
TIERS = [["season"], ["rain"], ["flow"]]
NETWORK = spbn.learn(DATA, atoms="rain", tiers=TIERS)


def test_what_is_an_atom():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=400)
    few = np.round(rng.normal(size=400))
    cases = [
        (np.where(np.arange(400) < 40, 0.0, np.abs(numbers)), (0.0,)),
        (np.where(np.arange(400) < 19, 0.0, np.abs(numbers)), ()),  # too few rows
        (np.r_[np.zeros(20), rng.normal(size=400)], ()),  # less than 5 %
        (np.r_[np.zeros(22), rng.normal(size=398)], (0.0,)),
        (np.clip(rng.normal(0.5, 0.4, 400), 0.0, 1.0), (0.0, 1.0)),
        (few, ()),
        (rng.integers(0, 24, 400).astype(float), ()),
        (rng.poisson(1.0, 400).astype(float), ()),
        (np.where(np.arange(400) < 60, 40.0, np.round(rng.normal(40, 12, 400))), (40.0,)),
        (numbers, ()),
    ]
    for column, expected in cases:
        assert find_atoms(column) == expected


def test_a_mark_says_which_atom_a_row_has():
    one, two = Atoms("x", (0.0,)), Atoms("x", (0.0, 1.5))
    assert (one.variable.name, one.variable.levels) == ("x = 0", ("no", "yes"))
    assert (two.variable.name, two.variable.levels) == ("x = 0 or 1.5", ("other", "0", "1.5"))
    np.testing.assert_array_equal(two.codes(np.array([1.5, 0.0, 7.0, np.nan])), [2, 1, 0, np.nan])


def test_the_network_has_a_node_for_the_atom():
    assert (MARK, "rain") in NETWORK.structure.arcs
    assert ("season", MARK) in NETWORK.structure.arcs
    assert [variable.name for variable in NETWORK.variables] == list(DATA)
    assert NETWORK.record.columns == tuple(DATA)
    assert NETWORK.bounds("rain") == (0.0, np.inf)
    found = NETWORK.cpds["rain"]
    assert isinstance(found, WithAtoms)
    assert NETWORK.in_data_units("rain", np.array(found.values)).tolist() == [0.0]


def test_frequencies_are_those_of_the_rows():
    drawn = NETWORK.sample(20_000, seed=1)
    assert list(drawn) == list(DATA)
    for season, rows in DATA.groupby("season"):
        mine = drawn[drawn["season"] == season]["rain"] == 0.0
        # By Laplace's rule, half a row is added to each of the two levels.
        share = ((rows["rain"] == 0.0).sum() + 0.5) / (len(rows) + 1.0)
        counts = [mine.sum(), (~mine).sum()]
        assert stats.chisquare(counts, np.array([share, 1 - share]) * len(mine)).pvalue > 1e-3
    assert (drawn["rain"] >= 0.0).all()
    others = drawn["rain"][drawn["rain"] > 0.0]
    assert stats.ks_2samp(others[:2000], DATA["rain"][DATA["rain"] > 0.0]).pvalue > 1e-3


@pytest.mark.parametrize("model", ["auto", "spbn", "gbn", "kdebn", "blend"])
def test_the_density_sums_and_integrates_to_one(model):
    network = (
        NETWORK
        if model == "auto"
        else spbn.learn(DATA, model=model, atoms=["rain=0"], margins="auto", tiers=TIERS)
    )
    transform = network.margins.columns["rain"]
    z = np.linspace(-40.0, 40.0, 8001)
    xs = transform.inverse(z)
    xs = xs[(xs > 1e-9) & (xs < 1e9)]
    given = {"flow": 0.3, "season": "winter"}
    frame = pd.DataFrame({"rain": np.r_[0.0, xs], **given})
    # All that depends on rain: the sum over it is the density of the rest.
    joint = np.exp(network.logpdf(frame).to_numpy())
    total = joint[0] + integrate.trapezoid(joint[1:], x=xs)
    rest = pd.DataFrame({"rain": [np.nan], **given})
    expected = np.exp(network.logpdf(rest, missing="integrate", seed=0).iloc[0])
    assert total == pytest.approx(expected, rel=0.15)  # by simulation
    nodes = network.logpdf_by_node(frame)
    own = np.exp(nodes[MARK] + nodes["rain"]).to_numpy()
    assert own[0] + integrate.trapezoid(own[1:], x=xs) == pytest.approx(1.0, abs=5e-3)


def test_the_density_at_an_atom_is_a_probability():
    rows = pd.DataFrame({"rain": [0.0, 0.0, 0.4], "flow": 2.0, "season": ["summer", "winter", "winter"]})
    found = NETWORK.logpdf_by_node(rows)
    assert found["rain"].tolist()[:2] == [0.0, 0.0]
    for k, season in enumerate(["summer", "winter"]):
        mine = DATA["season"] == season
        share = ((DATA["rain"] == 0.0)[mine].sum() + 0.5) / (mine.sum() + 1.0)
        assert found[MARK][k] == pytest.approx(np.log(share))
    np.testing.assert_allclose(NETWORK.node_logpdf("rain", rows), found["rain"], rtol=1e-12)
    np.testing.assert_allclose(NETWORK.node_logpdf(MARK, rows), found[MARK], rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_were_not_learned_from_are_predicted_at_least_as_well(seed):
    """With respect to the same measure: at zero, the other density has what it gives to values below 1e-3."""
    frame = table(700, seed)
    train, test = frame[:400], frame[400:]
    with_atoms, without = spbn.learn(train, atoms="auto"), spbn.learn(train)
    dry = (test["rain"] == 0.0).to_numpy()
    small = np.linspace(-1e-3, 1e-3, 201)
    masses = []
    for _, row in test[dry].iterrows():
        rows = pd.DataFrame({"rain": small, "flow": row["flow"], "season": row["season"]})
        masses.append(np.log(integrate.trapezoid(np.exp(without.logpdf(rows)), x=small)))
    other = without.logpdf(test[~dry]).sum() + np.sum(masses)
    assert with_atoms.loglik(test) > other


def test_scores_count_rows_without_atoms():
    """A family's score is that of the same family, without the mark, on the other rows alone."""
    rows = NETWORK.transformed(as_table(DATA, variables=NETWORK.variables))
    folds = np.random.default_rng(0).integers(0, 5, rows.rows)
    every = spbn.scores.CVLikelihood(rows, folds=folds)
    wet = np.flatnonzero(rows.column(MARK) == 0)
    plain = spbn.scores.CVLikelihood(rows.take(wet).select(list(DATA)), folds=folds[wet])
    for parents in ([], ["flow"], ["season"], ["flow", "season"]):
        for node_type in ("lg", "ckde", "curve"):
            expected = plain.local("rain", parents, node_type)
            assert every.local("rain", [*parents, MARK], node_type) == pytest.approx(expected, rel=1e-9)
    by_row = every.rows(spbn.nodes.Family("rain", (MARK, "flow"), spbn.NodeType.LG))
    assert (by_row[rows.column(MARK) == 1] == 0.0).all()
    expected = plain.rows(spbn.nodes.Family("rain", ("flow",), spbn.NodeType.LG))
    np.testing.assert_allclose(by_row[wet], expected, rtol=1e-9)
    store = MemoryRows(Partition.folds(rows, folds))
    assert store.beside_atoms(MARK) is store.beside_atoms(MARK)


def test_evidence_about_a_column_is_evidence_about_its_atom():
    """By Bayes' rule, with the densities of the network."""
    flow = 2.4
    posterior = NETWORK.query({"flow": flow}, n=20_000, seed=0)
    transform = NETWORK.margins.columns["rain"]
    xs = transform.inverse(np.linspace(-30, 30, 4001))
    xs = xs[(xs > 1e-9) & (xs < 1e9)]
    dry = wet = 0.0
    for season in ("summer", "winter"):
        rows = pd.DataFrame({"rain": np.r_[0.0, xs], "flow": flow, "season": season})
        joint = np.exp(NETWORK.logpdf(rows).to_numpy())
        dry, wet = dry + joint[0], wet + integrate.trapezoid(joint[1:], x=xs)
    assert posterior.probabilities(MARK)["yes"] == pytest.approx(dry / (dry + wet), abs=0.02)
    assert posterior.probability({"rain": (None, 0.0)}) == pytest.approx(dry / (dry + wet), abs=0.02)
    assert posterior.probability({"rain": (0.0, None)}) == pytest.approx(1.0)
    assert posterior.probability({"rain": 0.0}) == pytest.approx(dry / (dry + wet), abs=0.02)
    known = NETWORK.query({"rain": 0.0, "season": "winter"})
    assert [variable.name for variable in known.variables] == ["flow"]
    assert known.mean()["flow"] == pytest.approx(2.0, abs=0.2)
    same = NETWORK.query({MARK: "yes", "season": "winter"})
    assert (same.draws["rain"] == 0.0).all()
    assert same.mean()["flow"] == pytest.approx(known.mean()["flow"], abs=0.1)
    within = NETWORK.query({"rain": (0.0, 0.2)}, n=5000)
    inside = DATA["rain"].between(0, 0.2)
    share = (DATA["rain"] == 0.0).sum() / inside.sum()
    assert within.probabilities(MARK)["yes"] == pytest.approx(share, abs=0.05)
    assert within.draws["rain"].between(0.0, 0.2).all()
    for wrong in ({"rain": 0.0, MARK: "no"}, {"rain": 1.0, MARK: "yes"}):
        with pytest.raises(ArgumentError, match=f"contradicts itself: '{MARK}' is"):
            NETWORK.query(wrong)


def test_interventions_set_the_atom_too():
    assert NETWORK.query(do={"rain": 0.0}).mean()["flow"] == pytest.approx(2.0, abs=0.2)
    assert (NETWORK.query(do={MARK: "yes"}).draws["rain"] == 0.0).all()
    assert (NETWORK.query(do={MARK: "no"}).draws["rain"] > 0.0).all()
    with pytest.raises(ArgumentError, match="contradicts itself"):
        NETWORK.query(do={"rain": 0.0, MARK: "no"})


def test_holes_are_filled_with_the_right_share_of_atoms():
    rng = np.random.default_rng(3)
    fresh = table(3000, seed=9)
    holes = fresh.assign(rain=fresh["rain"].mask(rng.random(3000) < 0.7))
    filled = NETWORK.impute(holes, seed=0)
    assert list(filled) == list(fresh)
    mine = holes["rain"].isna()
    counts = pd.crosstab(filled["rain"][mine] == 0.0, fresh["season"][mine])
    truth = pd.crosstab(fresh["rain"][mine] == 0.0, fresh["season"][mine])
    np.testing.assert_allclose(counts / counts.sum(), truth / truth.sum(), atol=0.06)
    assert not np.isnan(NETWORK.logpdf(holes[:200], missing="integrate")).any()
    predicted = NETWORK.predict(fresh[["flow", "season"]][:50], ["rain", MARK])
    assert list(predicted) == ["rain", MARK]
    assert (predicted["rain"] >= 0.0).all()
    certain = NETWORK.predict(pd.DataFrame({"flow": [-3.0], "season": ["winter"]}), [MARK])
    assert certain[MARK].tolist() == ["no"]


def test_every_way_to_score_agrees(tmp_path):
    path = tmp_path / "model.spbn"
    NETWORK.save(path)
    expected = NETWORK.logpdf(DATA).to_numpy()
    assert np.isfinite(expected).all()
    again = BayesianNetwork.load(path)
    assert again == NETWORK
    np.testing.assert_array_equal(again.logpdf(DATA), expected)
    DATA.to_csv(tmp_path / "rain.csv", index=False)
    np.testing.assert_allclose(again.logpdf(pd.read_csv(tmp_path / "rain.csv")), expected, rtol=1e-12)
    scorer = spbn.load_scorer(path)
    found = [scorer.score(dict(row)).logpdf for _, row in DATA[:40].iterrows()]
    np.testing.assert_allclose(found, expected[:40], rtol=1e-12)
    np.testing.assert_allclose(scorer.logpdf(DATA), expected, rtol=1e-12)
    small = NETWORK.compact(others="keep")
    np.testing.assert_allclose(small.logpdf(DATA), expected, atol=1e-5)


def test_a_file_that_makes_no_sense_is_refused():
    import copy

    class Arrays(list):
        def __call__(self, *arguments, **options):
            self.append(arguments)
            return len(self)

    record = NETWORK.cpds["rain"].to_record(Arrays())
    family = {"node": "rain", "parents": list(NETWORK.cpds["rain"].parents)}
    read = lambda inner: NETWORK.cpds["rain"].density  # noqa: E731
    node_type = NETWORK.cpds["rain"].type
    assert WithAtoms.from_record(node_type, {**record, **family}, read) == NETWORK.cpds["rain"]
    for wrong in (
        {"atoms": []},
        {"atoms": ["0"]},
        {"atoms": [1.0, 2.0]},
        {"mark": None},
        {"mark": {"name": "season", "levels": ["a"]}},
        {"mark": {"name": "other", "levels": ["no", "yes"]}},
        {"density": None},
        {"density": {"mark": {}}},
    ):
        with pytest.raises(ModelFileError):
            WithAtoms.from_record(node_type, copy.deepcopy({**record, **family, **wrong}), read)


def test_a_network_with_atoms_needs_what_marks_them():
    types = {"rain": "lg", "flow": "lg"}
    plain = BayesianNetwork.fit(Structure(["rain", "flow"], (), types), DATA)
    with pytest.raises(GraphError, match=f"the atoms of 'rain' must be marked by its parent '{MARK}'"):
        BayesianNetwork(plain.structure, plain.cpds, margins=NETWORK.margins)


def test_what_is_known_beforehand_holds_for_atoms():
    tiers = [["flow"], ["rain", "season"]]
    network = spbn.learn(DATA, atoms="rain", tiers=tiers)
    assert not {("rain", "flow"), (MARK, "flow"), ("season", "flow")} & set(network.structure.arcs)
    network = spbn.learn(DATA, atoms="rain", forbidden_arcs=[("season", "rain")])
    assert not {("season", MARK), ("season", "rain")} & set(network.structure.arcs)


def test_several_atoms():
    rng = np.random.default_rng(4)
    share = np.clip(rng.normal(0.5, 0.4, 500), 0.0, 1.0)
    frame = pd.DataFrame({"share": share, "y": share + rng.normal(0, 0.2, 500)})
    network = spbn.learn(frame, atoms="auto", bounds={"share": (0, 1)})
    assert network.cpds["share"].mark.levels == ("other", "0", "1")
    drawn = network.sample(20_000, seed=0)["share"]
    assert drawn.between(0.0, 1.0).all()
    counts = [(drawn == 0).sum(), (drawn == 1).sum(), ((drawn > 0) & (drawn < 1)).sum()]
    expected = np.array([(share == 0).sum(), (share == 1).sum(), ((share > 0) & (share < 1)).sum()]) + 1 / 3
    assert stats.chisquare(counts, expected / expected.sum() * 20_000).pvalue > 1e-3


def test_counterfactuals_and_blame():
    rows = DATA.iloc[[0, 1, 2]]
    found = NETWORK.counterfactual(rows, {"rain": 0.0}, seed=0).rows
    assert list(found) == list(DATA)
    assert (found["rain"] == 0.0).all()
    wet = DATA[(DATA["rain"] > 0.0) & (DATA["season"] == "summer")][:20]
    same = NETWORK.counterfactual(wet, {"season": "summer"}, seed=0).rows
    pd.testing.assert_frame_equal(same[["rain", "flow"]], wet[["rain", "flow"]])
    dry = DATA[(DATA["rain"] == 0.0) & (DATA["season"] == "summer")][:20]
    other = NETWORK.counterfactual(dry, {"season": "winter"}, seed=0, n=200).rows  # some of them rainy
    assert ((other["rain"] > 0.0) & (other["rain"] < 3.0)).all()
    # A row without rain whose flow says that there was plenty of it.
    odd = pd.DataFrame({"rain": [0.0], "flow": [-6.0], "season": ["winter"]})
    reasons = spbn.RowScorer(NETWORK).score(dict(odd.iloc[0])).blame
    assert {reason.node for reason in reasons} <= set(DATA)
    assert reasons


def test_monitors_judge_rows_with_atoms():
    monitor = spbn.Monitor(NETWORK, DATA)
    fresh = table(200, seed=5)
    found = monitor.update(fresh)
    assert len(found) == 200
    assert np.isfinite(spbn.explain.out_of_fold(NETWORK, DATA)).all()


@pytest.mark.parametrize("node", NETWORK.nodes)
def test_every_node_has_a_picture(node):
    pytest.importorskip("matplotlib")
    ax = spbn.plots.plot_cpd(NETWORK, node, data=DATA)
    if node == "rain":
        assert min(line.get_xdata().min() for line in ax.lines) >= 0.0


def test_pages_show_atoms(tmp_path):
    pytest.importorskip("igraph")
    spbn.report.write_report(NETWORK, tmp_path / "report.html", data=DATA)
    assert MARK in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert MARK in NETWORK._repr_html_()


def test_holes_and_atoms():
    holes = DATA.mask(np.random.default_rng(1).random(DATA.shape) < 0.05).dropna(how="all")
    network = spbn.learn(holes, atoms="rain", missing="impute", tiers=TIERS)
    share = network.query({}).probabilities(MARK)["yes"]
    assert share == pytest.approx((DATA["rain"] == 0.0).mean(), abs=0.03)


@pytest.mark.parametrize("work", [spbn.learn_dynamic, spbn.compare_models, spbn.confidence])
def test_where_there_are_no_atoms_yet(work):
    with pytest.raises(ArgumentError, match="atoms cannot be given here"):
        work(DATA[["rain", "flow"]], atoms="auto")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atoms": "rein"}, "atoms must name columns of numbers: 'rain' and 'flow'. Got 'rein'"),
        ({"atoms": "rain=7.5"}, "no row has rain = 7.5"),
        ({"atoms": "rain", "hidden": 2}, "atoms cannot be given with hidden=2"),
        ({"atoms": "rain", "algorithm": "pc"}, "atoms cannot be given with algorithm='pc'"),
        ({"atoms": "rain", "max_parents": 0}, "atoms cannot be given with max_parents=0"),
        ({"atoms": "rain", "model": "gbn", "score": "bic"}, "atoms cannot be given with score='bic'"),
    ],
)
def test_atoms_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        spbn.learn(DATA, **options)


def test_no_atom_has_a_part_in_the_density_of_other_values():
    rng = np.random.default_rng(7)
    x = rng.normal(2.0, 0.5, 300)
    x[:40], x[40:90] = 0.0, 9.0
    network = spbn.learn({"x": x}, model="gbn", atoms=["x=0", "x=9"], bounds="none")
    drawn, rest = network.cpds["x"].density, x[90:]
    assert drawn.logpdf({"x": [2.5]})[0] == pytest.approx(
        stats.norm.logpdf(2.5, rest.mean(), rest.std(ddof=1)), abs=1e-12
    )
