"""The panels of nodes that follow a curve."""

import re

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.report import render


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 200))
    town = rng.choice(["Leith", "Portobello"], 200)
    one = np.sin(2 * a) + 0.2 * rng.standard_normal(200)
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "town": town, "one": one, "blend": one + a})
    return frame.assign(two=a * b + one, three=a * b + c + one, level=one + (town == "Leith") * b)


@pytest.fixture(scope="module")
def curves(rows):
    families = {"one": "a", "two": "ab", "three": "abc", "blend": "a", "level": ["b", "town"]}
    arcs = [(parent, node) for node, parents in families.items() for parent in parents]
    types = (
        dict.fromkeys("abc", "lg") | dict.fromkeys(families, "curve") | {"town": "discrete", "blend": "blend"}
    )
    return spbn.BayesianNetwork.fit(spbn.Structure(list(rows), arcs, types), rows)


@pytest.fixture(scope="module")
def panels(curves, rows):
    found = re.findall(r"<article.*?</article>", render(curves, data=rows), flags=re.S)
    return dict(zip(curves.nodes, found, strict=True))


def points(path):
    return np.array([[float(x), float(y)] for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", path)])


def test_the_line_of_a_panel_is_the_curve(panels, curves, rows):
    (path,) = [
        d
        for d, style in re.findall(r'<path d="([^"]*)"[^>]*style="([^"]*)"', panels["one"])
        if "stroke:var(--c1)" in style and len(points(d)) > 20
    ]
    across, down = points(path).T
    low, high = np.quantile(rows["a"], [0.002, 0.998])
    margin = 0.08 * (high - low)
    xs = np.interp(across, across[[0, -1]], [low - margin, high + margin])
    # Pixels grow downwards: they are a falling linear function of the curve.
    means = curves.cpds["one"].mean(xs[None])
    slope, start = np.polyfit(means, down, 1)
    assert slope < 0
    np.testing.assert_allclose(down, start + slope * means, atol=0.01 * np.ptp(down))


def test_captions_say_what_is_drawn(panels):
    expected = {
        "one": "one and two standard deviations around it (bands), and the given rows (dots).",
        "two": "two on the curve, by its parents (lines; the bluer, the higher), with the given rows (dots).",
        "three": "against one parent at a time, with the others at typical values; taken from the given",
        "level": "The curve at levels of one parent (lines), with one standard deviation around it (bands); ",
        "blend": "Density given a (shading), its curve (line), with the given rows (dots).",
        "a": "Density (line) over the given rows (bars).",
    }
    for node, words in expected.items():
        assert words in panels[node]


def test_a_map_is_a_small_image_with_its_heights_written(panels):
    assert panels["two"].count("<image") == 1
    assert len(panels["two"]) < 60_000
    assert re.search(r"<text[^>]*>−?\d+(\.\d+)?</text>", panels["two"])


def test_the_effects_of_parents_can_be_opened(panels, curves):
    assert "<summary>Effect of parents</summary>" in panels["three"]
    table = panels["three"].split("Effect of parents")[1].split("</table>")[0]
    shown = dict(re.findall(r'<td>(\w)</td><td class="num">([^<]*)</td>', table))
    for parent, effect in curves.cpds["three"].effects().items():
        assert float(shown[parent].replace("−", "-")) == pytest.approx(effect, rel=1e-3, abs=1e-4)
