"""Files of networks with discrete nodes: what is damaged is refused, with the reason."""

import numpy as np
import pytest

import spbn
from spbn import BayesianNetwork, Structure
from spbn.errors import ModelFileError
from spbn.io import cpd_from_record, cpd_to_record

from strategies import mixed_frame


class Arrays:
    """Keeps arrays as a file would."""

    def __init__(self):
        self.kept = []

    def add(self, array):
        self.kept.append(np.asarray(array))
        return len(self.kept) - 1


FRAME = mixed_frame(80, 1, rare=1)
TYPES = {**dict.fromkeys("uvw", "discrete"), "a": "lg", "b": "lg", "c": "lg"}
NETWORK = BayesianNetwork.fit(
    Structure(list("abcuvw"), [("u", "v"), ("w", "v"), ("u", "a"), ("b", "a"), ("v", "b")], TYPES), FRAME
)


def record_of(node):
    return cpd_to_record(NETWORK.cpds[node], Arrays())


def read(node, record):
    return cpd_from_record(record, None)


@pytest.mark.parametrize("node", ["a", "b", "u", "v"])
def test_a_record_comes_back_the_same(node):
    cpd = read(node, record_of(node))
    columns = [*cpd.parents, node]
    np.testing.assert_array_equal(cpd.logpdf(FRAME[columns]), NETWORK.cpds[node].logpdf(FRAME[columns]))


DAMAGE = {
    "levels that are numbers": ("v", {"levels": [1, 2]}),
    "no levels": ("v", {"levels": []}),
    "a level twice": ("v", {"levels": ["no", "no"]}),
    "probabilities that do not sum to 1": ("u", {"probabilities": [[0.5, 0.5, 0.5, 0.5]]}),
    "a negative probability": ("u", {"probabilities": [[1.5, -0.5, 0.0, 0.0]]}),
    "too few probabilities": ("u", {"probabilities": [[0.5, 0.5]]}),
    "NaN": ("u", {"probabilities": [[float("nan")] * 4]}),
    "a configuration that there is not": ("a", {"configurations": [0, 1, 99]}),
    "configurations in disorder": ("a", {"configurations": [2, 1, 0]}),
    "a configuration that is true": ("a", {"configurations": [False, True, 2]}),
    "fewer densities than configurations": ("a", {"densities": []}),
    "a density that is a number": ("a", {"densities": [1, 2, 3]}),
    "no density for other configurations": ("a", {"otherwise": None}),
    "a discrete parent that is no parent": ("a", {"given": [{"name": "w", "levels": ["k", "l"]}]}),
    "discrete parents that are no list": ("a", {"given": "u"}),
    "no discrete parent": ("a", {"given": []}),
    "a parent without levels": ("a", {"given": [{"name": "u"}]}),
    "a numeric parent of a discrete node": ("v", {"parents": ["u", "w", "a"]}),
}


@pytest.mark.parametrize(("node", "change"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_records_are_refused(node, change):
    with pytest.raises(ModelFileError):
        read(node, record_of(node) | change)


def test_levels_survive_a_file(tmp_path):
    frame = FRAME.assign(w=FRAME["w"] == "k")
    network = spbn.learn(frame, model="gbn")
    network.save(tmp_path / "model.spbn")
    loaded = BayesianNetwork.load(tmp_path / "model.spbn")
    assert loaded.variables == network.variables
    np.testing.assert_array_equal(loaded.logpdf(frame), network.logpdf(frame))
    assert loaded.sample(50, seed=2).equals(network.sample(50, seed=2))
