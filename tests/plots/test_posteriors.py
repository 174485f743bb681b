import matplotlib
import numpy as np
import pytest

import spbn
from mixed import mixed_network
from spbn.plots.figures import AFTER, KNOWN, MOST_LEVELS

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def panels(figure):
    return {ax.get_title(loc="left"): ax for ax in figure.axes if ax.get_visible()}


def bars(ax, colour):
    """Return the places and heights of the bars of a colour."""
    found = [bar for bar in ax.patches if matplotlib.colors.to_hex(bar.get_facecolor()) == colour]
    return {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in found}


@pytest.mark.slow
@pytest.mark.parametrize("given", ["Leith", ["Leith"], {"Leith"}])
def test_levels_before_and_after(given):
    posterior = mixed_network("lg").query({"town": given, "x": (0, None)}, do={"z": 1.0})
    drawn = panels(posterior.plot())
    assert list(drawn) == ["town", "size", "x", "y", "z"]
    assert bars(drawn["town"], KNOWN) == {0: 1.0}
    assert bars(drawn["town"], AFTER) == {}
    shares = posterior.probabilities("size").to_dict()
    assert bars(drawn["size"], AFTER) == pytest.approx({0: shares["large"], 1: shares["small"]})
    assert [text.get_text() for text in drawn["size"].get_xticklabels()] == ["large", "small"]


def test_only_some_of_many_levels_are_drawn():
    levels = np.resize([f"level {i:02}" for i in range(MOST_LEVELS + 5)], 200)
    rows = {"many": levels, "x": np.random.default_rng(0).normal(size=200)}
    network = spbn.BayesianNetwork.fit(
        spbn.Structure(["many", "x"], types={"many": "discrete", "x": "lg"}), rows
    )
    drawn = panels(network.query({"many": f"level {MOST_LEVELS + 2}"}, n=50).plot())
    assert len(drawn["many"].get_xticks()) == MOST_LEVELS
    assert bars(drawn["many"], KNOWN) == {}


@pytest.mark.slow
def test_chosen_variables_only():
    posterior = mixed_network("lg").query({"x": 1.0}, n=50)
    assert list(panels(posterior.plot(["y", "x"]))) == ["y", "x"]
    with pytest.raises(
        spbn.errors.ArgumentError, match=r"variables must name nodes of the network\. Got 'w'"
    ):
        posterior.plot(["w"])
