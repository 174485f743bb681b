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
        ({"model": "spbn"}, {"lg", "ckde"}),
        ({"model": "spbn", "start": "lg"}, {"lg", "ckde"}),
        ({"model": "spbn", "start": Structure("abc", types="ckde")}, {"lg", "ckde"}),
    ],
)
def test_every_model_is_learned_and_fitted_on_all_rows(options, types):
    network = spbn.learn(FRAME, **options)
    assert set(network.structure.types.values()) <= types
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
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        spbn.learn(FRAME, **options)


def test_progress_goes_to_standard_error(capsys):
    spbn.learn(FRAME, progress=True, max_parents=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "misses" in captured.err
    assert "elapsed" not in captured.out
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
