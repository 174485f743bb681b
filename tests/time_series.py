"""Series to test with."""

import numpy as np
import pandas as pd


def autoregression(rows, *, seed=0, names=("a", "b"), series=None):
    """Two variables with a linear past; in several series if these are counted."""
    rng = np.random.default_rng(seed)
    matrix = np.array([[0.6, 0.3], [-0.2, 0.5]])
    parts = []
    for number in range(series or 1):
        values = np.zeros((rows, 2))
        for t in range(1, rows):
            values[t] = (
                1.0 + matrix @ values[t - 1] + rng.multivariate_normal([0, 0], [[1.0, 0.4], [0.4, 0.5]])
            )
        frame = pd.DataFrame(values, columns=list(names))
        if series:
            frame.insert(0, "machine", f"m{number}")
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def threshold(rows, *, seed=0):
    """A threshold autoregression of the second lag, and another variable that follows it by one row."""
    rng = np.random.default_rng(seed)
    x, y = np.zeros(rows + 50), np.zeros(rows + 50)
    for t in range(2, rows + 50):
        mean = 0.5 + 0.9 * x[t - 2] if x[t - 2] < 1 else 2.3 - 0.9 * x[t - 2]
        x[t] = mean + 0.4 * rng.standard_normal()
        y[t] = 0.8 * x[t - 1] + 0.3 * rng.standard_normal()
    return pd.DataFrame({"x": x[50:], "y": y[50:]})


def mixed(rows, *, seed=0):
    """A mode that stays for a while, and a number that depends on it and on its own past."""
    rng = np.random.default_rng(seed)
    mode, x = np.zeros(rows, dtype=int), np.zeros(rows)
    for t in range(1, rows):
        mode[t] = mode[t - 1] if rng.random() < 0.9 else 1 - mode[t - 1]
        x[t] = 0.5 * x[t - 1] + 3.0 * mode[t] + rng.standard_normal()
    return pd.DataFrame({"mode": np.where(mode == 1, "on", "off"), "x": x})
