import warnings

import numpy as np
import pytest

import spbn
from spbn import ArgumentError, BayesianNetwork, DataError, Structure
from spbn.datasets import paper_synthetic, synthetic_structure

from strategies import nonlinear_frame

FRAME = nonlinear_frame(150, 3)


@pytest.mark.parametrize(
    ("options", "types"),
    [
        ({"model": "gbn"}, {"lg"}),
        ({"model": "gbn", "score": "bge"}, {"lg"}),
        ({"model": "gbn", "score": "cv"}, {"lg"}),
        ({"model": "kdebn"}, {"ckde"}),
        ({"model": "spbn"}, None),
        ({"model": "spbn", "start": "lg"}, None),
        ({"model": "spbn", "start": Structure("abc", types="ckde")}, None),
    ],
)
def test_every_model_is_learned_and_fitted_on_all_rows(options, types):
    network = spbn.learn(FRAME, **options)
    assert types is None or set(network.structure.types.values()) == types
    assert network.structure == network.search.structure
    assert network == BayesianNetwork.fit(network.structure, FRAME)
    assert network.structure.arcs


def test_the_same_seed_gives_the_same_network():
    first, second = spbn.learn(FRAME, seed=3), spbn.learn(FRAME, seed=3)
    assert first == second
    assert first.search == second.search
    assert first.search != spbn.learn(FRAME, seed=4).search


def test_constraints_reach_the_search():
    network = spbn.learn(
        FRAME, required_arcs=[("c", "a")], forbidden_arcs=[("a", "b"), ("b", "a")], max_parents=1
    )
    assert ("c", "a") in network.structure.arcs
    assert not {("a", "b"), ("b", "a")} & set(network.structure.arcs)


def test_missing_rows_can_be_dropped():
    holes = FRAME.copy()
    holes.loc[4, "b"] = np.nan
    with pytest.raises(DataError, match="missing='drop'"):
        spbn.learn(holes)
    assert spbn.learn(holes, missing="drop") == spbn.learn(FRAME.drop(index=4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "bn"}, "model must be one of"),
        ({"algorithm": "ges"}, "algorithm must be one of"),
        ({"score": "aic"}, "score must be one of"),
        ({"score": "bic"}, "for model='gbn' only"),
        ({"start": "normal"}, "'lg' or 'ckde'"),
        ({"folds": 1}, "folds must be"),
        ({"patience": -1}, "patience must be"),
        ({"test": "chi"}, "test must be one of"),
        ({"algorithm": "pc", "alpha": 7}, "alpha must be"),
        ({"algorithm": "pc", "max_parents": 2}, "max_parents can be given with algorithm='hc' only"),
        ({"algorithm": "pc", "folds": 1}, "folds must be"),
        ({"start": Structure("ab")}, "nodes of start must be the columns"),
        ({"model": "gbn", "start": Structure("abc", types="ckde")}, "all nodes of a gbn are of type lg"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        spbn.learn(FRAME, **options)


@pytest.mark.parametrize("test", ["plc", "rcot"])
@pytest.mark.parametrize("model", ["spbn", "gbn", "kdebn"])
def test_by_tests_of_independence(model, test):
    network = spbn.learn(FRAME, model=model, algorithm="pc", test=test)
    assert isinstance(network.search, spbn.PCResult)
    skeleton = {frozenset(pair) for pair in network.search.pdag.arcs + network.search.pdag.edges}
    assert {frozenset(arc) for arc in network.structure.arcs} == skeleton
    assert skeleton
    only = {"gbn": {"lg"}, "kdebn": {"ckde"}}
    assert model not in only or set(network.structure.types.values()) == only[model]


def test_by_tests_with_knowledge():
    network = spbn.learn(FRAME, algorithm="pc", required_arcs=[("c", "a")], forbidden_arcs=[("a", "b")])
    assert ("c", "a") in network.structure.arcs
    assert ("a", "b") not in network.structure.arcs


@pytest.mark.parametrize("options", [{"model": "gbn", "score": s} for s in ("bic", "bge", "cv")] + [{}])
def test_collinear_columns_are_survived(options):
    frame = FRAME.assign(sum=FRAME["a"] + FRAME["b"], difference=FRAME["a"] - FRAME["b"])
    network = spbn.learn(frame, **options)
    assert np.isfinite(network.logpdf(frame)).all()


def test_an_arc_that_all_rows_together_do_not_bear_is_left_out_with_a_warning():
    """An outlier on a line with all others, in the validation rows only."""
    frame = nonlinear_frame(300, 2)
    frame["w"] = frame["b"] + 0.3 * np.random.default_rng(0).normal(size=300)
    frame.loc[5, ["b", "w"]] = 1e9
    structures = []
    for seed in range(8):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            network = spbn.learn(frame, seed=seed)
        assert np.isfinite(network.logpdf(frame)).all()
        if caught:
            assert "is left out" in str(caught[0].message)
            assert network.structure != network.search.structure
        structures.append(bool(caught))
    assert any(structures)


def test_progress_tells_every_step_and_leaves_standard_output_alone(capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda self, task, description: shown.append(description)
    )
    spbn.learn(FRAME, max_parents=1)  # or else the line would also speak of compiling
    network = spbn.learn(FRAME, progress=True, max_parents=1)
    assert len(shown) == len(network.search.steps) > 0
    for number, (line, step) in enumerate(zip(shown, network.search.steps, strict=True), 1):
        assert line.startswith(
            f"step {number}: score {step.score:.1f}, validation {step.validation_score:.1f}"
        )
        assert line.endswith(str(step.operator))
    assert capsys.readouterr().out == ""
    spbn.learn(FRAME)
    assert capsys.readouterr() == ("", "")


def distances(found):
    truth = synthetic_structure()
    skeletons = [{frozenset(arc) for arc in s.arcs} for s in (found, truth)]
    hamming = len(skeletons[0] ^ skeletons[1])
    turned = sum((b, a) in found.arcs for a, b in truth.arcs)
    return hamming, hamming + turned, sum(found.types[n] != truth.types[n] for n in truth.nodes)


def test_table_1_of_the_paper_at_2000_rows():
    """Published: HMD 2, SHD 2, THMD 0, from one split."""
    results = np.array(
        [distances(spbn.learn(paper_synthetic("2000"), seed=seed).structure) for seed in range(10)]
    )
    assert (results[:, :2] <= 2).all()
    assert np.median(results[:, 2]) == 0
    assert (results[:, 2] <= 1).all()


def test_table_1_of_the_paper_at_10000_rows():
    """Published: the true structure and types. The split decides whether A and D become linear Gaussian."""
    results = np.array(
        [distances(spbn.learn(paper_synthetic("10000"), seed=seed).structure) for seed in range(10)]
    )
    assert (results[:, :2] == 0).all()
    assert np.median(results[:, 2]) == 0
