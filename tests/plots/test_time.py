"""Pictures of networks over time and of forecasts."""

from dataclasses import replace

import pytest

import spbn
from time_series import autoregression, mixed

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _screen():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_slices():
    from matplotlib.patches import FancyArrowPatch

    dynamic = spbn.learn_dynamic(autoregression(200), lags=2, model="gbn")
    arcs = dynamic.transition.structure.arcs
    for slices, times in ((None, 1), (5, 3)):
        ax = dynamic.plot(slices=slices)
        arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
        assert len(arrows) == times * len(arcs)
        shown = [text.get_text() for text in ax.texts]
        assert shown.count("a") == shown.count("b") == (slices or 3)
        assert {"t − 2", "t − 1", "t"} <= set(shown)
        assert ("t + 2" in shown) == (slices == 5)
    with pytest.raises(spbn.errors.ArgumentError, match="slices must be a whole number, 3 or more"):
        dynamic.plot(slices=2)
    assert dynamic._repr_svg_().startswith("<?xml")


def test_open_directions_within_a_row_are_dashed():
    from matplotlib.patches import FancyArrowPatch

    dynamic = spbn.learn_dynamic(autoregression(200), model="gbn", required_arcs=[("a", "b")])
    for arcs in ((), (("a", "b"),)):
        open_ones = replace(dynamic.transition.record, open_directions=arcs)
        shown = spbn.DynamicNetwork(dynamic.static, dynamic.transition.replace(record=open_ones), 1)
        ax = shown.plot(slices=3)
        lines = [patch.get_linestyle() for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
        assert len([line for line in lines if line not in ("-", "solid")]) == 2 * len(arcs)
        assert (ax.get_legend() is not None) == bool(arcs)


def test_fans():
    frame = mixed(100)
    ahead = spbn.learn_dynamic(frame, model="gbn").forecast(frame, 5, n=200)
    figure = ahead.plot()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["mode", "x"]
    line = max(figure.axes[1].lines, key=lambda line: line.get_linewidth())
    assert line.get_ydata()[1:] == pytest.approx(ahead.quantile(0.5)["x"][0.5].to_numpy())
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert ahead.probabilities("mode")["on"].iloc[-1] == pytest.approx(heights[-1])
    assert len(ahead.plot(["x"]).axes) == 1


def test_fans_are_explained_once_also_below_levels():
    frame = mixed(60).assign(y=lambda rows: rows["x"].shift(fill_value=0.0) ** 2)
    figure = spbn.learn_dynamic(frame, model="gbn").forecast(frame, 4, n=20).plot()
    legends = [
        [text.get_text() for text in ax.get_legend().texts] if ax.get_legend() else [] for ax in figure.axes
    ]
    assert legends == [["off", "on"], ["90 % of the paths", "50 % of the paths", "median", "history"], []]
