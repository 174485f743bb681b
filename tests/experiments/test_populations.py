"""The tables of the experiment on populations."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiments.figures.populations import draw, per_row_and_variable
from experiments.populations import METHODS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "populations.md"


@pytest.fixture
def results() -> pd.DataFrame:
    """Return made results: the first table gains 0.5, the second loses 0.02, and the third lacks a method."""
    gains = {"one": 0.5, "two": -0.02, "three": 0.0, "four": 0.004}
    rows = []
    for name, gain in gains.items():
        for fold in (0, 1):
            for place, method in enumerate(METHODS):
                value = {"hidden class": gain, "without a class": 0.0}.get(method, -1.0 - place)
                row = {
                    "data": name,
                    "fold": fold,
                    "method": method,
                    "rows": 10,
                    "nodes": 2,
                    "classes": 1 + fold,
                }
                density = method not in ("k-means", "HDBSCAN")
                rows.append(row | {"loglik": 20 * value if density else np.nan, "rand": 0.1 * place})
    found = pd.DataFrame(rows)
    return found[~((found["data"] == "three") & (found["method"] == "Gaussian mixture"))]


def test_values_are_means_per_row_and_variable(results):
    values = per_row_and_variable(results)
    assert list(values.columns) == list(METHODS[:-2])
    assert values.loc["one", "hidden class"] == pytest.approx(0.5)
    assert np.isnan(values.loc["three", "Gaussian mixture"])


def test_the_page_has_a_place_for_every_table_and_picture(results, tmp_path):
    draw(results, tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    for path in tmp_path.glob("*.md"):
        assert f"<!-- {path.stem} -->" in page
        assert f"<!-- /{path.stem} -->" in page
    assert set(re.findall(r"populations/([\w-]+\.svg)", page)) == {p.name for p in tmp_path.glob("*.svg")}
    table = (tmp_path / "populations-densities.md").read_text(encoding="utf-8")
    assert "better, or equal to 0.01: 3 of 4" in table
    assert "| one | 1, 2 | 0.00 | **0.50** |" in table
    assert "**0.60**" in (tmp_path / "populations-rand.md").read_text(encoding="utf-8")
