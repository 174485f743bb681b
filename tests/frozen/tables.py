"""Small tables that results are frozen on. Nothing here may change, or all results do."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

import spbn


@cache
def table(name):
    """Return a table by its name."""
    return TABLES[name]()


def _iris():
    frame = load_iris(as_frame=True).frame
    kinds = np.array(["setosa", "versicolor", "virginica"])[frame["target"]]
    columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    frame = frame.iloc[:, :4].set_axis(columns, axis=1).assign(kind=kinds)
    return frame.iloc[::2].reset_index(drop=True)


def _wine():
    frame = load_wine(as_frame=True).frame[["alcohol", "malic_acid", "flavanoids", "hue", "proline"]]
    return frame.iloc[::2].reset_index(drop=True)


def _towns():
    rng = np.random.default_rng(7)
    rows = 120
    town = rng.choice(["Leith", "Portobello", "Stockbridge"], rows, p=[0.5, 0.3, 0.2])
    size = np.where(rng.random(rows) < np.where(town == "Leith", 0.8, 0.3), "small", "large")
    x = rng.normal(size=rows) + 2.0 * (town == "Leith")
    y = np.where(size == "small", x, -x) + (town == "Portobello") + 0.5 * rng.normal(size=rows)
    z = np.exp(0.5 * x + 0.3 * rng.normal(size=rows))
    return pd.DataFrame({"town": town, "size": size, "x": x, "y": y, "z": z})


def _codes():
    """Three columns of categories, one of them as numbers, and a number."""
    rng = np.random.default_rng(8)
    rows = 150
    grade = rng.integers(1, 4, rows)
    passed = rng.random(rows) < grade / 4.0
    colour = np.where(passed, rng.choice(["red", "blue"], rows), "green")
    return pd.DataFrame(
        {"grade": grade, "passed": passed, "colour": colour, "w": grade + rng.normal(size=rows)}
    )


def _holes(source, share, seed):
    frame = table(source).copy()
    rng = np.random.default_rng(seed)
    for column in frame.columns:
        frame.loc[rng.random(len(frame)) < share, column] = np.nan
    return frame


def _skewed():
    rng = np.random.default_rng(9)
    a = rng.exponential(size=100)
    b = np.exp(0.7 * a + 0.3 * rng.normal(size=100))
    return pd.DataFrame({"a": a, "b": b, "c": rng.standard_t(3, size=100) + np.sqrt(b)})


def _series(rows, count, seed):
    rng = np.random.default_rng(seed)
    matrix = np.array([[0.6, 0.3], [-0.2, 0.5]])
    parts = []
    for number in range(count):
        values = np.zeros((rows, 2))
        for t in range(1, rows):
            noise = rng.normal(size=2) * (1.0, 0.5)
            values[t] = 1.0 + matrix @ values[t - 1] + noise + 0.3 * np.sin(values[t - 1, ::-1])
        parts.append(
            pd.DataFrame(
                {"machine": f"m{number}", "t": np.arange(rows) * 2.0, "a": values[:, 0], "b": values[:, 1]}
            )
        )
    return pd.concat(parts, ignore_index=True)


def _modes():
    """A mode that stays for a while, and a number that depends on it and on its own past."""
    rng = np.random.default_rng(10)
    mode, x = np.zeros(120, dtype=int), np.zeros(120)
    for t in range(1, 120):
        mode[t] = mode[t - 1] if rng.random() < 0.9 else 1 - mode[t - 1]
        x[t] = 0.5 * x[t - 1] + 3.0 * mode[t] + rng.standard_normal()
    return pd.DataFrame({"mode": np.where(mode == 1, "on", "off"), "x": x})


TABLES = {
    "synthetic": lambda: spbn.datasets.synthetic(150, seed=0),
    "few": lambda: spbn.datasets.synthetic(40, seed=1)[["A", "B", "C"]],
    "many": lambda: spbn.datasets.synthetic(1200, seed=2)[["A", "B", "C"]],
    "iris": _iris,
    "iris-numbers": lambda: table("iris").drop(columns="kind"),
    "wine": _wine,
    "towns": _towns,
    "codes": _codes,
    "holes": lambda: _holes("synthetic", 0.06, 11),
    "holes-towns": lambda: _holes("towns", 0.06, 12),
    "skewed": _skewed,
    "series": lambda: _series(50, 2, 13),
    "one-series": lambda: _series(90, 1, 14)[["a", "b"]],
    "modes": _modes,
}
