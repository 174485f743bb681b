import warnings

import numpy as np
import pandas as pd
import pytest

import spbn

HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'c&d</svg></style>",
    "price in $ or $",
    "zero\x00and\x07bell",
    "a name that is much longer than any label in a graph ought to be",
]


@pytest.fixture(scope="session")
def frame():
    """The paper's five variables, with names that try to get out of the page."""
    return spbn.datasets.synthetic(150, seed=1).set_axis(HOSTILE, axis=1)


@pytest.fixture(scope="session")
def network(frame):
    return spbn.learn(frame, folds=3, seed=1)


@pytest.fixture(scope="session")
def plain_frame():
    rng = np.random.default_rng(0)
    a = rng.normal(size=120)
    return pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.3 * rng.normal(size=120), "c": rng.normal(size=120)})


@pytest.fixture(scope="session")
def plain_network(plain_frame):
    structure = spbn.Structure("abc", [("a", "b")], {"a": "lg", "b": "ckde", "c": "lg"})
    return spbn.BayesianNetwork.fit(structure, plain_frame)


@pytest.fixture(scope="session")
def rendered(network, frame):
    from spbn.report import render

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return render(network, data=frame, title="Report & <b>title</b>")
