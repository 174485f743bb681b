"""Forecasts of nonlinear systems: are the lags found, are intervals honest, and is a straight line beaten?

Systems with known laws, each with a variable that only follows the first. Networks learn from 5,000 rows,
with several seeds, and forecast five steps after each of many stretches of other rows.

- Intervals reach from the least to the greatest of 19 paths, which leaves one in ten outside if the law of
  the paths is right. Printed is the probability that the true law gives them: what comes is not drawn but
  integrated over, by paths of the law up to the step before. So a few hundred histories are enough.
- The CRPS (lower is better), in the same way a mean over what may come by the true law.

    python benchmarks/forecasts.py [seeds] [names of systems begin with]

"sunspots" is a short series with many lags: 216 years of statsmodels' sunspots with 9 lags, the default model
with several seeds beside statsmodels' AutoReg, one step ahead over the 93 years that follow.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

import spbn

ROWS, LAGS, STEPS, HISTORIES, SPACING = 5_000, 3, 5, 100, 10
PATHS = 19
TRUE_PATHS = 100
FloatArray = npt.NDArray[np.float64]


class System(NamedTuple):
    """The mean of x given the last value and the one before; its noise; and the lag that it depends on."""

    mean: Callable[[FloatArray, FloatArray], FloatArray]
    noise: float
    lag: int


SYSTEMS = {
    "threshold autoregression, 0.9·|x[t-2]|": System(lambda last, before: 0.9 * np.abs(before), 1.0, 2),
    "threshold autoregression around its peak": System(
        lambda last, before: np.where(before < 1, 0.5 + 0.9 * before, 2.3 - 0.9 * before), 0.4, 2
    ),
    "smooth map of lag 2, 2·x·exp(-x²)": System(
        lambda last, before: 2.0 * before * np.exp(-(before**2)), 0.5, 2
    ),
    "threshold autoregression with a jump": System(
        lambda last, before: np.where(before < 0, 1.5 + 0.5 * before, -1.5 - 0.7 * before), 0.5, 2
    ),
    "noisy logistic map": System(lambda last, before: 1.0 - 1.7 * np.clip(last, -1.0, 1.0) ** 2, 0.1, 1),
}
#: A step must gain about what BIC asks of an arc, or chance alone brings in a lag now and then.
MODELS: dict[str, dict[str, Any]] = {
    "spbn": {"model": "spbn", "start": "lg", "epsilon": 4.0},
    "spbn, start ckde": {"model": "spbn", "epsilon": 4.0},
    "spbn, bandwidth cv": {"model": "spbn", "start": "lg", "epsilon": 4.0, "bandwidth": "cv"},
    "blend": {"model": "blend", "epsilon": 4.0},
    "gbn (linear)": {"model": "gbn"},
}


def simulated(system: System, rows: int, seed: int) -> pd.DataFrame:
    """Draw a series."""
    rng = np.random.default_rng(seed)
    warm = 100
    noise = rng.standard_normal((2, rows + warm))
    x, y = np.zeros((2, rows + warm))
    for t in range(2, rows + warm):
        x[t] = system.mean(x[t - 1], x[t - 2]) + system.noise * noise[0, t]
        y[t] = 0.8 * x[t - 1] + 0.3 * noise[1, t]
    return pd.DataFrame({"x": x[warm:], "y": y[warm:]})


def of_the_law(
    system: System, past: FloatArray, rng: np.random.Generator, paths: int
) -> tuple[FloatArray, FloatArray]:
    """Return draws of x from the law itself, and the means they were drawn around.

    Both are histories × paths × steps; the past is histories × lags.
    """
    before, last = (np.repeat(past[:, [k]], paths, axis=1) for k in (-2, -1))
    draws, means = [], []
    for _ in range(STEPS):
        mean = system.mean(last, before)
        before, last = last, mean + system.noise * rng.standard_normal(mean.shape)
        draws.append(last)
        means.append(mean)
    return np.stack(draws, axis=2), np.stack(means, axis=2)


def covered(system: System, paths: FloatArray, means: FloatArray) -> FloatArray:
    """Return the probability of being between the least and the greatest path: histories × steps."""
    low, high = paths.min(axis=1, keepdims=True), paths.max(axis=1, keepdims=True)
    inside = ndtr((high - means) / system.noise) - ndtr((low - means) / system.noise)
    return np.asarray(inside.mean(axis=1))


def crps(paths: FloatArray, truths: FloatArray) -> FloatArray:
    """Return the mean continuous ranked probability score of paths at every step, without bias.

    Both are histories × draws × steps: every draw of the truth is compared with all paths.
    """
    n = paths.shape[1]
    weights = (2 * np.arange(1, n + 1) - n - 1)[None, :, None]
    spread = (weights * np.sort(paths, axis=1)).sum(axis=1) / (n * (n - 1))
    distance = np.mean([np.abs(truths - paths[:, [k]]).mean(axis=1) for k in range(n)], axis=0)
    return np.asarray((distance - spread).mean(axis=0))


def sunspots(seeds: int) -> None:
    """Print how good forecasts of the next year are, and how often 90 % intervals hold it."""
    from statsmodels.datasets import sunspots as source
    from statsmodels.tsa.ar_model import AutoReg

    known, lags, paths = 216, 9, 1_000
    series = source.load_pandas().data["SUNACTIVITY"].to_numpy()
    truth, years = series[known:], range(known, len(series))
    past = [series[year - lags : year] for year in years]
    fitted = AutoReg(series[:known], lags).fit()
    means = fitted.params[0] + np.array(past)[:, ::-1] @ fitted.params[1:]
    deviation = np.sqrt(fitted.sigma2 * known / (known - 2 * lags - 1))
    rng = np.random.default_rng(0)

    def line(name: str, drawn: FloatArray, note: str) -> None:
        low, high = np.quantile(drawn, [0.05, 0.95], axis=1)
        score = crps(drawn[:, :, None], truth[:, None, None])[0]
        held = np.mean((low <= truth) & (truth <= high))
        print(f"{name:20} {score:6.2f} {100 * held:5.1f} %  {note}", flush=True)

    print(f"\nsunspots, {known} years with {lags} lags: CRPS of the next year, in 90 % intervals")
    line("AutoReg", means[:, None] + deviation * rng.standard_normal((len(truth), paths)), "")
    histories = pd.DataFrame({"x": np.concatenate(past), "series": np.repeat(np.arange(len(past)), lags)})
    for seed in range(seeds):
        dynamic = spbn.learn_dynamic(pd.DataFrame({"x": series[:known]}), lags=lags, seed=seed)
        many = spbn.DynamicNetwork(dynamic.static, dynamic.transition, lags, series="series")
        drawn = many.forecast(histories, 1, n=paths, seed=seed).draws[0][:, :, 0]
        line(f"default, seed {seed}", drawn, ", ".join(dynamic.transition.structure.parents("x")))


def main() -> None:
    """Print a table for every system."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    beginning = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{ROWS:,} rows, {LAGS} lags, {seeds} seeds, {HISTORIES} histories each")
    for name, system in SYSTEMS.items():
        if not name.startswith(beginning):
            continue
        print(f"\n{name}")
        print(
            f"{'':20} {'in 90 % intervals at step 1 to 5':40} {'CRPS at step 1 to 5':35} true arcs and types"
        )
        tests = []
        for seed in range(seeds):
            test = simulated(system, HISTORIES * SPACING, 1_000 + seed)
            rows = np.arange(HISTORIES)[:, None] * SPACING + np.arange(LAGS)
            past = test.to_numpy()[rows].transpose(2, 0, 1)  # variables × histories × lags
            tests.append((past, *of_the_law(system, past[0], np.random.default_rng(seed), TRUE_PATHS)))
        rng = np.random.default_rng(1)
        drawn = [of_the_law(system, past[0], rng, PATHS)[0] for past, *_ in tests]
        show("the law itself", system, drawn, tests, "")
        for model, settings in MODELS.items():
            began = time.process_time()
            arcs = types = 0
            drawn = []
            for seed, (past, *_) in enumerate(tests):
                dynamic = spbn.learn_dynamic(simulated(system, ROWS, seed), lags=LAGS, **settings)
                structure = dynamic.transition.structure
                arcs += set(structure.arcs) == {(f"x[t-{system.lag}]", "x"), ("x[t-1]", "y")}
                types += structure.types == {"x": "ckde", "y": "lg"}
                histories = pd.DataFrame(past.reshape(2, -1).T, columns=["x", "y"])
                histories["series"] = np.repeat(np.arange(HISTORIES), LAGS)
                many = spbn.DynamicNetwork(dynamic.static, dynamic.transition, LAGS, series="series")
                drawn.append(many.forecast(histories, STEPS, n=PATHS, seed=seed).draws[0])
            found = f"{arcs} and {types} of {seeds}" if model.startswith("spbn") else f"{arcs} of {seeds}"
            show(model, system, drawn, tests, f"{found}; {time.process_time() - began:.0f} s")
    if "sunspots".startswith(beginning):
        sunspots(seeds)


def show(name: str, system: System, drawn: list[FloatArray], tests: list[Any], note: str) -> None:
    """Print one line."""
    inside = np.concatenate(
        [covered(system, paths, means) for paths, (_, _, means) in zip(drawn, tests, strict=True)]
    )
    scores = np.mean([crps(paths, draws) for paths, (_, draws, _) in zip(drawn, tests, strict=True)], axis=0)
    shares = " ".join(f"{100 * share:5.1f}" for share in inside.mean(axis=0))
    error = 100 * inside.std(axis=0).max() / np.sqrt(len(inside))
    coverage = f"{shares} % (± {error:.1f})"
    print(f"{name:20} {coverage:40} {' '.join(f'{score:6.3f}' for score in scores):35} {note}", flush=True)


if __name__ == "__main__":
    main()
