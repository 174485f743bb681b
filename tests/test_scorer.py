"""Scoring in production: the same log-densities as the network's, from plain dicts and arrays."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import spbn
from spbn import BayesianNetwork, RowScorer, Structure
from spbn.errors import ArgumentError, DataError
from spbn.kernels import compressed, compression
from spbn.nodes import LinearGaussian
from spbn.nodes.base import CPD, NodeType
from spbn.transforms import Margins
from time_series import autoregression, mixed

import naive
from strategies import mixed_frame, nonlinear_frame

DATA = mixed_frame(400, rare=3)
NAMES = list(DATA.columns)
#: Discrete parents and children, and families of one to three continuous variables. Few rows have "rare".
ARCS = [("u", "v"), ("v", "w"), ("u", "a"), ("a", "b"), ("v", "b"), ("a", "c"), ("b", "c")]
NARROW = [arc for arc in ARCS if arc != ("a", "c")]  # tables of very narrow kernels take seconds to make
#: Types of continuous nodes, margins, and whether it is compact.
CASES = [
    ("lg", "none", False),
    ("ckde", "none", False),
    ("blend", "none", False),
    ("several", "yeo-johnson", False),
    ("ckde", "none", True),
    ("blend", "none", True),
    ("several", "yeo-johnson", True),
]
LEVELS = {name: sorted(DATA[name].unique()) for name in "uvw"}


@cache
def network(kind, margins, small):
    if small:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compression, "FEW_ROWS", 0)  # tables everywhere
            return network(kind, margins, False).compact()
    kinds = {"several": ("lg", "blend", "ckde")}.get(kind, (kind,) * 3)
    types = dict(zip("abc", kinds, strict=True)) | dict.fromkeys("uvw", "discrete")
    arcs = NARROW if kind == "blend" else ARCS
    return BayesianNetwork.fit(Structure(NAMES, arcs, types), DATA, margins=margins)


@cache
def scorer(kind, margins, small):
    return RowScorer(network(kind, margins, small))


def require_same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 1e-12 * np.maximum(1.0, np.abs(expected))).all()


def codes(frame):
    """The rows as an array, with the places of levels."""
    known = {v.name: v.levels for v in network("lg", "none", False).variables}
    columns = [
        [known[name].index(value) for value in frame[name]] if known[name] else frame[name] for name in NAMES
    ]
    return np.array(columns, dtype=float).T


numbers = st.one_of(st.floats(-4.0, 4.0), st.floats(-60.0, 60.0))
row_of = st.fixed_dictionaries(
    dict.fromkeys("abc", numbers) | {name: st.sampled_from(LEVELS[name]) for name in "uvw"}
)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=12, deadline=None)
@given(rows=st.lists(row_of, min_size=1, max_size=6))
def test_a_scorer_says_what_the_network_says(case, rows):
    """Whatever the types of nodes, however rows come, and together as alone."""
    frame = pd.DataFrame(rows)[NAMES]
    expected, found = network(*case).logpdf_by_node(frame), scorer(*case)
    assert found.nodes == tuple(expected.columns)
    require_same(found.logpdf_by_node(rows), expected)
    for given_as in (frame.to_dict("list"), codes(frame), codes(frame).tolist(), frame):
        require_same(found.logpdf_by_node(given_as), expected)
    require_same(found.logpdf(rows), network(*case).logpdf(frame))
    for row, by_node in zip(rows, expected.to_numpy(), strict=True):
        require_same(found.logpdf_by_node(row)[0], by_node)
        require_same(found.logpdf_by_node(pd.Series(row))[0], by_node)
        score = found.score(row)
        require_same(list(score.by_node.values()), by_node)
        require_same(score.logpdf, by_node.sum())


@pytest.mark.parametrize("kind", ["lg", "ckde"])
def test_log_densities_are_right(kind):
    """Against the formulas, without a network in between."""
    train, rows = nonlinear_frame(120, 3), nonlinear_frame(20, 3, seed=1)
    structure = Structure("abc", [("a", "b"), ("a", "c"), ("b", "c")], kind)
    found = RowScorer(BayesianNetwork.fit(structure, train)).logpdf_by_node(rows.to_numpy())
    for place, node in enumerate("abc"):
        expected = naive.logpdf(rows, train, node, structure.parents(node), kind)
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["lg", "ckde"])
def test_log_densities_of_transformed_columns_are_right(kind):
    """Those of the transforms of scipy, in the units of the data."""
    train, rows = np.exp(nonlinear_frame(120, 3)), np.exp(nonlinear_frame(20, 3, seed=1))
    structure = Structure("abc", [("a", "b"), ("a", "c"), ("b", "c")], kind)
    network = BayesianNetwork.fit(structure, train, margins="yeo-johnson")
    found = RowScorer(network).logpdf_by_node(rows.to_numpy())
    moved, slopes = {}, {}
    for name, margin in network.margins.columns.items():
        z = (rows[name] - margin.centre) / margin.scale
        slopes[name] = (margin.exponent - 1.0) * np.sign(z) * np.log1p(np.abs(z)) - np.log(margin.scale)
        moved[name] = [
            stats.yeojohnson(((frame[name] - margin.centre) / margin.scale).to_numpy(), margin.exponent)
            for frame in (train, rows)
        ]
    train, rows = (pd.DataFrame({name: pair[k] for name, pair in moved.items()}) for k in (0, 1))
    for place, node in enumerate("abc"):
        expected = naive.logpdf(rows, train, node, structure.parents(node), kind) + slopes[node]
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case[2]], ids=str)
def test_many_rows_have_the_same_log_densities_as_few(case, monkeypatch):
    """Compact tables are read in another way if there are many rows, and not at all far out."""
    frame = mixed_frame(300, seed=5)
    frame[["a", "b", "c"]] *= np.where(np.arange(300) % 7, 1.0, 9.0)[:, None]
    few = scorer(*case).logpdf_by_node(frame)
    monkeypatch.setattr(compressed, "FEW_QUERIES", 0)
    many = scorer(*case).logpdf_by_node(frame)
    assert (np.abs(few - many) <= 1e-11 * np.maximum(1.0, np.abs(many))).all()


def test_the_nodes_to_blame():
    network = BayesianNetwork(
        Structure("xy", [("x", "y")]),
        {"x": LinearGaussian("x", (), 0.0, (), 1.0), "y": LinearGaussian("y", ("x",), 0.0, (1.0,), 1.0)},
    )
    scorer = RowScorer(network)
    # Of a normal variable, half of the squares are below the median of a chi-squared one.
    usual = -0.5 * (stats.chi2(1).median() + np.log(2.0 * np.pi))
    assert scorer.typical == pytest.approx({"x": usual, "y": usual}, abs=0.05)
    score = scorer.score({"x": 0.1, "y": 6.1})
    assert [reason.node for reason in score.blame] == ["y"]
    assert score.blame[0].value == 6.1
    assert score.blame[0].drop == pytest.approx(scorer.typical["y"] - stats.norm.logpdf(6.0))
    assert scorer.score({"x": 0.1, "y": 0.2}).blame == ()
    assert [
        [reason.node for reason in score.blame] for score in scorer.scores([[5.0, 5.0], [4.0, -4.0]])
    ] == [
        ["x"],
        ["x"],  # with x = -2, both are plausible; with y = 4, x is still far out
    ]


def test_levels_are_blamed_by_name_and_may_be_impossible():
    frame = pd.DataFrame({"u": ["no"] * 300 + ["yes"] * 20, "v": ["a", "b"] * 160})
    structure = Structure("uv", [("u", "v")], "discrete")
    scorer = RowScorer(BayesianNetwork.fit(structure, frame, smoothing=0.0))
    (reason,) = scorer.score({"u": "yes", "v": "a"}).blame
    assert (reason.node, reason.value) == ("u", "yes")
    frame.loc[300:, "v"] = "a"
    scorer = RowScorer(BayesianNetwork.fit(structure, frame, smoothing=0.0))
    score = scorer.score({"u": "yes", "v": "b"})
    assert score.logpdf == -np.inf
    assert score.blame[0].node == "v"


@pytest.mark.parametrize("lags", [1, 2])
def test_rows_of_a_dynamic_network_come_with_those_before(lags, tmp_path):
    series = autoregression(120)
    dynamic = spbn.learn_dynamic(series, lags=lags, model="gbn")
    dynamic.save(tmp_path / "model.spbn")
    scorer = spbn.load_scorer(tmp_path / "model.spbn")
    assert set(scorer.names) <= {*dynamic.nodes, *(f"{n}[t-{k}]" for n in "ab" for k in range(1, lags + 1))}
    rows = [
        {
            f"{name}[t-{k}]" if k else name: float(series[name][t - k])
            for name in "ab"
            for k in range(lags + 1)
        }
        for t in range(lags, 120)
    ]
    expected = dynamic.logpdf_by_node(series).iloc[lags:]
    require_same(scorer.logpdf_by_node(rows), expected)
    assert scorer.score(rows[0] | {"a": 50.0}).blame[0].node == "a"


def test_what_is_typical_given_inputs_has_to_be_known():
    dynamic = spbn.learn_dynamic(mixed(150), lags=1, model="gbn")
    transition = dynamic.transition
    bare = BayesianNetwork(transition.structure, transition.cpds, margins=transition.margins)
    scorer = RowScorer(bare)
    row = dynamic.lagged(mixed(150)).iloc[5].to_dict()
    require_same(scorer.logpdf(row), RowScorer(dynamic).logpdf(row))
    with pytest.raises(ArgumentError, match=r"typical of .* is not recorded.*learn the network from data"):
        scorer.score(row)


def test_any_density_can_be_scored():
    """A density from elsewhere gets the columns of its family, the node last."""

    @dataclass(frozen=True)
    class Elsewhere(CPD):
        inner: LinearGaussian

        type = NodeType.LG
        node = property(lambda self: self.inner.node)
        parents = property(lambda self: self.inner.parents)
        cdf_of_columns = draw = describe = to_record = None  # which a scorer does not need

        def logpdf_of_columns(self, columns):
            assert columns.shape[0] == 2
            return self.inner.logpdf_of_columns(columns)

    cpds = {"x": LinearGaussian("x", (), 1.0, (), 2.0), "y": LinearGaussian("y", ("x",), 0.5, (3.0,), 1.0)}
    usual = spbn.record.Record(typical={"x": 0.0, "y": 0.0})
    known = RowScorer(BayesianNetwork(Structure("xy", [("x", "y")]), cpds, record=usual))
    cpds["y"] = Elsewhere(cpds["y"])
    other = RowScorer(BayesianNetwork(Structure("xy", [("x", "y")]), cpds, record=usual))
    rows = np.random.default_rng(0).normal(size=(10, 2))
    assert np.array_equal(other.logpdf(rows), known.logpdf(rows))


def test_no_rows_have_no_scores():
    for rows in ([], np.empty((0, 6)), {name: [] for name in NAMES}):
        assert scorer("several", "yeo-johnson", False).logpdf(rows).shape == (0,)
        assert scorer("several", "yeo-johnson", False).logpdf_by_node(rows).shape == (0, 6)
        assert scorer("several", "yeo-johnson", False).scores(rows) == []


ROW = {"a": 0.5, "b": 1.0, "c": -1.0, "u": "x", "v": "no", "w": "k"}


def test_other_values_are_ignored_and_numbers_may_be_of_any_kind():
    known, expected = scorer("several", "none", False), scorer("several", "none", False).logpdf(ROW)
    assert known.logpdf(ROW | {"id": "row 7", "t": None}) == expected
    assert known.logpdf(ROW | {"b": 1, "a": np.float32(0.5), "c": np.int8(-1)}) == expected
    assert known.logpdf(json.loads(json.dumps(ROW))) == expected
    rows = np.array([tuple(ROW.values())], dtype=[(n, "f8" if n in "abc" else "U4") for n in ROW])
    assert known.logpdf(rows) == expected
    frame = pd.DataFrame({"flag": [True, False] * 20, "k": [1, 2, 3, 4] * 10})
    discrete = BayesianNetwork.fit(Structure(["flag", "k"], types="discrete"), frame)
    levels = RowScorer(discrete)
    assert levels.logpdf({"flag": True, "k": 2.0}) == levels.logpdf({"flag": "True", "k": "2"})
    assert (
        levels.logpdf({"flag": [True, False], "k": [2, 3]}).tolist()
        == discrete.logpdf(pd.DataFrame({"flag": [True, False], "k": [2, 3]})).tolist()
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {k: v for k, v in ROW.items() if k not in "bu"},
            "no value for 'b' and 'u'. The variables are 'a', 'b'",
        ),
        (
            ROW | {"u": "q"},
            "'u' has the level 'q', which is unknown. Its levels are 'rare', 'x', 'y' and 'z'",
        ),
        (ROW | {"b": float("nan")}, "column 'b' has 1 missing value .*missing='integrate'"),
        (ROW | {"b": None}, "column 'b' has 1 missing value .*complete the rows"),
        (ROW | {"u": None}, "column 'u' has 1 missing value"),
        (ROW | {"b": float("inf")}, "column 'b' has 1 missing or infinite value"),
        (ROW | {"b": "1.0"}, "'b' must be a number. Got '1.0'"),
        (ROW | {"b": [1.0, 2.0]}, "'a' must be a column, as others are.* Got 0.5"),
        ({k: [v] * (2 if k == "c" else 1) for k, v in ROW.items()}, "same length. Got .*'c': 2"),
        ({k: [v] for k, v in ROW.items() if k != "c"}, "no value for 'c'"),
        ([ROW, ROW | {"u": "q"}], "row 2, counted from 1: 'u' has the level 'q'"),
        ([ROW, {}], "row 2, counted from 1: there is no value for"),
        ([[1.0, 2.0], [3.0]], "a list must hold dicts, or rows of 6 numbers"),
        (np.zeros(5), r"one value for each of 'a'.* Got shape \(5,\)"),
        (np.zeros((2, 7)), r"Got shape \(2, 7\)"),
        (np.zeros((2, 6, 1)), r"Got shape \(2, 6, 1\)"),
        (np.array([0, 0, 0, 4.0, 0, 0]), "'u' is the place of a level, from 0 to 3. Got 4"),
        (np.array([0, 0, 0, 0.5, 0, 0]), "'u' is the place of a level"),
        (np.array([0, np.nan, 0, 0, 0, 0]), "column 'b' has 1 missing value"),
        (np.array([0, np.inf, 0, 0, 0, 0]), "must not hold infinite values"),
        (np.array([["x"] * 6]), "must hold numbers"),
        (7, "data must be a data frame"),
    ],
)
def test_wrong_rows_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        scorer("several", "none", False).logpdf(rows)


def test_a_value_that_a_margin_cannot_transform_is_named():
    known = network("several", "yeo-johnson", False)
    margins = Margins({name: replace(m, low=-np.inf) for name, m in known.margins.columns.items()})
    bent = RowScorer(BayesianNetwork(known.structure, known.cpds, margins=margins))
    bent.logpdf(ROW | {"b": 1e5})
    with pytest.raises(DataError, match=r"margin cannot transform: -1e.308 .row 3"):
        bent.logpdf([ROW, ROW | {"b": 1e308}, ROW | {"b": -1e308}])


def test_score_takes_one_row_and_a_scorer_a_network():
    with pytest.raises(ArgumentError, match=r"score takes one row. Got 2: use scores"):
        scorer("lg", "none", False).score([ROW, ROW])
    with pytest.raises(ArgumentError, match=r"Got str: spbn.load_scorer reads a file"):
        RowScorer("model.spbn")


@pytest.mark.slow
def test_threads_can_share_a_scorer():
    """In which nothing has been computed before."""
    fresh = RowScorer(network("several", "yeo-johnson", True))
    rows = mixed_frame(60, seed=8).to_dict("records")
    expected = [fresh.logpdf(row)[0] for row in rows]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: fresh.score(row).logpdf, rows * 5))
    require_same(found, expected * 5)


SCRIPT = """
import json, sys
from spbn import load_scorer
path, rows = sys.argv[1], json.loads(sys.argv[2])
scorer = load_scorer(path)
columns = {name: [row[name] for row in rows] for name in scorer.names}
found = [scorer.logpdf(rows).tolist(), scorer.logpdf(columns).tolist()]
found.append([scorer.score(row).logpdf for row in rows])
blame = [reason.node for reason in scorer.score(rows[0]).blame]
packages = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([found, blame, packages, "scipy.stats" in sys.modules]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
def test_no_data_frames_are_imported(small, tmp_path):
    """From the file to the blame, with all types of nodes and margins."""
    known = network("several", "yeo-johnson", small)
    known.save(tmp_path / "model.spbn")
    rows = [ROW | {"c": 90.0}, *mixed_frame(20, seed=2).to_dict("records")]
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "model.spbn"), json.dumps(rows)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    scores, blame, packages, has_statistics = json.loads(done.stdout)
    for found in scores:
        require_same(found, known.logpdf(pd.DataFrame(rows)))
    assert blame == ["c"]
    heavy = {
        "pandas",
        "narwhals",
        "sklearn",
        "matplotlib",
        "networkx",
        "igraph",
        "polars",
        "pyarrow",
        "click",
    }
    assert not heavy & set(packages)
    assert not has_statistics
