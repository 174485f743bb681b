"""Forecasts of nonlinear systems: are the lags found, are intervals honest, and is a straight line beaten?

Three systems with known laws, each with a variable that only follows the first. A network learns from 5,000
rows, and forecasts five steps after each of many stretches of other rows. Printed are the share of what
came that lies in 90 % intervals, and the CRPS (lower is better), beside those of a Gaussian network (which is
the linear autoregression) and of the law itself.

    python benchmarks/forecasts.py [rows]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import spbn

LAGS, STEPS, HISTORIES, SPACING = 3, 5, 1_000, 15
PATHS = 99  # the 5th and the 95th of them have exactly 90 % between them, if the law is right
FloatArray = npt.NDArray[np.float64]

#: By name: the next value of x from the last ones, the newest last, and a standard normal number.
SYSTEMS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "threshold autoregression of lag 2": lambda past, noise: (
        np.where(past[-2] < 1, 0.5 + 0.9 * past[-2], 2.3 - 0.9 * past[-2]) + 0.4 * noise
    ),
    "threshold autoregression of lag 2, with a jump": lambda past, noise: (
        np.where(past[-2] < 0, 1.5 + 0.5 * past[-2], -1.5 - 0.7 * past[-2]) + 0.5 * noise
    ),
    "noisy logistic map": lambda past, noise: 1.0 - 1.7 * np.clip(past[-1], -1.0, 1.0) ** 2 + 0.1 * noise,
}
#: The lag that x depends on.
TRUE_LAG = dict(zip(SYSTEMS, (2, 2, 1), strict=True))
#: A step must gain about what BIC asks of an arc, or chance alone brings in a lag now and then.
MODELS: dict[str, dict[str, Any]] = {
    "spbn": {"model": "spbn", "start": "lg", "epsilon": 4.0},
    "spbn, bandwidth cv": {"model": "spbn", "start": "lg", "epsilon": 4.0, "bandwidth": "cv"},
    "blend": {"model": "blend", "epsilon": 4.0},
    "gbn (linear)": {"model": "gbn"},
}


def simulated(system: str, rows: int, seed: int) -> pd.DataFrame:
    """Draw a series."""
    rng = np.random.default_rng(seed)
    step, warm = SYSTEMS[system], 100
    x, noise = np.zeros(rows + warm), rng.standard_normal((2, rows + warm))
    y = np.zeros(rows + warm)
    for t in range(2, rows + warm):
        x[t] = step(x[t - 2 : t], noise[0, t])
        y[t] = 0.8 * x[t - 1] + 0.3 * noise[1, t]
    return pd.DataFrame({"x": x[warm:], "y": y[warm:]})


def crps(paths: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the continuous ranked probability score of histories × paths × steps: histories × steps."""
    n = paths.shape[1]
    weights = (2 * np.arange(1, n + 1) - n - 1)[None, :, None]
    spread = (weights * np.sort(paths, axis=1)).sum(axis=1) / n**2
    return np.abs(paths - truth[:, None]).mean(axis=1) - spread


def of_the_law(system: str, past: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw x from the law itself after histories × lags: histories × paths × steps."""
    rows = [np.repeat(column[:, None], PATHS, axis=1) for column in past.T]
    for _ in range(STEPS):
        rows.append(SYSTEMS[system](np.stack(rows[-2:]), rng.standard_normal(rows[-1].shape)))
    return np.stack(rows[-STEPS:], axis=2)


def main() -> None:
    """Print a table for every system."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    for system in SYSTEMS:
        train, test = simulated(system, rows, 1), simulated(system, HISTORIES * SPACING, 2)
        stretches = [test.iloc[k * SPACING :][: LAGS + STEPS] for k in range(HISTORIES)]
        histories = pd.concat([part.iloc[:LAGS].assign(series=k) for k, part in enumerate(stretches)])
        past = np.stack([part["x"].to_numpy()[:LAGS] for part in stretches])
        truth = np.stack([part["x"].to_numpy()[LAGS:] for part in stretches])
        print(f"\n{system}: {rows} rows, {LAGS} lags, {HISTORIES} histories, {PATHS} paths")
        print(f"{'':22} {'in 90 % intervals at step 1 to 5':40} {'CRPS at step 1 to 5':35} learned, drawn")
        show("the law itself", of_the_law(system, past, np.random.default_rng(0)), truth, "")
        for name, settings in MODELS.items():
            began = time.process_time()
            dynamic = spbn.learn_dynamic(train, lags=LAGS, **settings)
            dynamic = spbn.DynamicNetwork(dynamic.static, dynamic.transition, LAGS, series="series")
            learned = time.process_time()
            ahead = dynamic.forecast(histories, STEPS, n=PATHS)
            seconds = f"{learned - began:.1f} s, {time.process_time() - learned:.1f} s"
            arcs = set(dynamic.transition.structure.arcs)
            true = {(f"x[t-{TRUE_LAG[system]}]", "x"), ("x[t-1]", "y")}
            found = "true arcs" if arcs == true else f"arcs: {sorted(arcs)}"
            kinds = ", ".join(f"{k} {v}" for k, v in dynamic.transition.structure.types.items())
            show(name, ahead.draws[0], truth, f"{seconds}; {found}; {kinds}")


def show(name: str, paths: FloatArray, truth: FloatArray, note: str) -> None:
    """Print one line."""
    low, high = np.quantile(paths, [0.05, 0.95], axis=1, method="weibull")
    inside = ((low <= truth) & (truth <= high)).mean(axis=0)
    scores = crps(paths, truth).mean(axis=0)
    covered = " ".join(f"{100 * share:6.1f}%" for share in inside)
    print(f"{name:22} {covered:40} {' '.join(f'{score:6.3f}' for score in scores):35} {note}", flush=True)


if __name__ == "__main__":
    main()
