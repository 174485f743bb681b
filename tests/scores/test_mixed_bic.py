"""BIC of mixed families: by hand, and pgmpy's."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.scores import BIC

from strategies import mixed_frame

BY_HAND = pd.DataFrame(
    {
        "x": [1.0, 3.0, 2.0, 6.0, 4.0, 8.0],
        "s": ["f", "f", "f", "m", "m", "m"],
        "t": ["p", "q", "q", "q", "p", "q"],
    }
)


def test_a_table_by_hand():
    score = BIC(BY_HAND.astype({"s": "category", "t": "category"}))
    half_log = np.log(6) / 2
    # In each half, the mean is 2 or 6 and the squares sum to 2 or 8: variances 1 and 4.
    likelihood = -3 * np.log(2 * np.pi) - 1.5 * np.log(1.0) - 1.5 * np.log(4.0) - 0.5 * (2 / 1 + 8 / 4)
    assert score.local("x", ["s"], "lg") == pytest.approx(likelihood - 4 * half_log, rel=1e-14)
    # t given s: one of three is p, in both halves.
    likelihood = 2 * np.log(1 / 3) + 4 * np.log(2 / 3)
    assert score.local("t", ["s"], "discrete") == pytest.approx(likelihood - 2 * half_log, rel=1e-14)
    assert score.local("t", [], "discrete") == pytest.approx(likelihood - half_log, rel=1e-14)
    assert score.local("s", [], "discrete") == pytest.approx(6 * np.log(0.5) - half_log, rel=1e-14)


@pytest.mark.parametrize("continuous", [[], ["b"], ["b", "c"]])
@pytest.mark.parametrize("levels", [["v"], ["u"], ["u", "v"]])
def test_a_regression_for_every_configuration(continuous, levels):
    frame = mixed_frame(300, 2)
    likelihood = 0.0
    for _, part in frame.groupby(levels):
        design = np.column_stack([np.ones(len(part)), *(part[name] for name in continuous)])
        residuals = part["a"] - design @ np.linalg.lstsq(design, part["a"], rcond=None)[0]
        variance = (residuals**2).sum() / (len(part) - design.shape[1])
        likelihood += stats.norm.logpdf(residuals, scale=np.sqrt(variance)).sum()
    parameters = frame.groupby(levels).ngroups * (len(continuous) + 2)
    expected = likelihood - np.log(300) / 2 * parameters
    assert BIC(frame).local("a", [*continuous, *levels], "lg") == pytest.approx(expected, rel=1e-12)


def test_configurations_that_do_not_occur_cost_parameters_all_the_same():
    frame = mixed_frame(60, 3).astype({"u": "category"})
    wider = frame.assign(u=frame["u"].cat.add_categories(["absent"]))
    fewer, more = BIC(frame), BIC(wider)
    half_log = np.log(60) / 2
    assert fewer.local("a", ["u", "b"], "lg") - more.local("a", ["u", "b"], "lg") == pytest.approx(
        3 * half_log
    )
    assert fewer.local("v", ["u"], "discrete") - more.local("v", ["u"], "discrete") == pytest.approx(half_log)


@pytest.fixture
def theirs():
    scores = pytest.importorskip("pgmpy.structure_score")
    return scores.BICCondGauss


def local_score(make, frame, node, parents):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(frame.astype(dict.fromkeys("uvw", "category"))).local_score(node, tuple(parents))


@pytest.mark.slow
@pytest.mark.parametrize(("node", "parents"), [("u", ""), ("u", "v"), ("u", "vw"), ("a", "u"), ("a", "uv")])
def test_agrees_with_pgmpy(theirs, node, parents):
    frame = mixed_frame(400, 1)
    kind = "discrete" if node == "u" else "lg"
    expected = local_score(theirs, frame, node, parents)
    assert BIC(frame).local(node, list(parents), kind) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("continuous", ["b", "bc"])
def test_pgmpy_divides_by_other_degrees_of_freedom(theirs, continuous):
    """Its variance of what a regression leaves is RSS / (n - 1), ours RSS / (n - 1 - parents)."""
    frame, parents = mixed_frame(400, 1), len(continuous)
    frame[["b", "c"]] = frame[["b", "c"]].clip(-2.5, 2.5)  # it raises small densities of parents to 1e-8
    n = frame.groupby(["u", "v"]).size().to_numpy()
    difference = np.sum(0.5 * parents - 0.5 * n * np.log((n - 1) / (n - 1 - parents)))
    expected = local_score(theirs, frame, "a", f"uv{continuous}") + difference
    assert BIC(frame).local("a", [*"uv", *continuous], "lg") == pytest.approx(expected, rel=1e-11)


def test_learning_with_bic_ends_in_a_network_that_scores_every_row():
    frame = mixed_frame(150, 5, rare=1)
    network = spbn.learn(frame, model="gbn")
    assert np.isfinite(network.logpdf(frame)).all()
