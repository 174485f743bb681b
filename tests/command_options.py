"""What the tests of options share: the marker, tables, and ways to see what arrives."""

from contextlib import contextmanager

import numpy as np
import pytest

import spbn
from learning_options import CASES, FRAME
from spbn.cli.command import ARGUMENTS
from spbn.dask import client
from time_series import autoregression

from strategies import nonlinear_frame

option = pytest.mark.option


#: The table of `learning_options`, with a hole.
HOLES = FRAME.mask((FRAME.index == 3)[:, None] & (FRAME.columns == "a"))
SERIES = autoregression(40, series=3).assign(t=np.tile(np.arange(40) * 2.0, 3))


def learning_options(command, *, without=(), names=None):
    """Return the settings of `learn` as parameters of tests, each for the option of a command.

    `names` has the options that are called something else there.
    """
    chosen = [name for name in CASES if name not in without]
    named = {name: (names or {}).get(name, ARGUMENTS[name]) for name in chosen}
    return [pytest.param(name, id=called, marks=option(command, called)) for name, called in named.items()]


def as_options(settings):
    """Write settings of `learn` as options."""
    for name, value in settings.items():
        if name in ("required_arcs", "forbidden_arcs"):
            for source, target in value:
                yield from (ARGUMENTS[name], f"{source}:{target}")
        elif name == "tiers":
            yield from (ARGUMENTS[name], ";".join(map(",".join, value)))
        elif name == "bounds":
            yield from (ARGUMENTS[name], _as_text(value))
        else:
            yield from (
                ARGUMENTS[name],
                ",".join(value) if name in ("discrete", "types", "atoms") else str(value),
            )


def _as_text(bounds):
    return ",".join(f"{name}:{low}:{high}" for name, (low, high) in bounds.items())


@contextmanager
def workers_as_threads():
    """Start workers as threads of this process, and count the clients that commands get."""
    found = []

    def counted(*arguments, **options):
        found.append((arguments, options))
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        original = client.local_workers
        patch.setattr("spbn.cli.options.PROCESSES", False)
        patch.setattr("spbn.dask.client.local_workers", counted)
        yield found


@contextmanager
def scheduler_address():
    """Give the address of a scheduler with a worker."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


def given_to(run, name, *arguments):
    """Return what a command gives to a function of the library, which then does nothing."""
    found = {}

    def take(*_, **options):
        found.update(options)
        raise spbn.SpbnError("taken")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name, take)
        err = run(*arguments)[2]
        assert err.endswith("spbn: taken\n"), err
    return found


def labelled_frame(rows=90, seed=0):
    rng = np.random.default_rng(seed)
    frame = nonlinear_frame(rows, 3, seed=seed)
    frame["few"] = rng.integers(1, 4, size=rows)
    frame["kind"] = np.where(frame["a"] + rng.normal(size=rows) > 0, "yes", "no")
    return frame


def over_time(run, *arguments, table="series.csv", **settings):
    """Learn a model over time, by the command line and by Python: they must be the same."""
    code, _, err = run("learn", table, "--model", "gbn", *arguments, "--out", "time.spbn")
    assert code == 0, err
    expected = spbn.learn_dynamic(settings.pop("frame", SERIES), model="gbn", **settings)
    found = spbn.DynamicNetwork.load("time.spbn")
    assert found == expected
    return found


def learned_over_time(run):
    return over_time(run, "--lags", "1", "--series", "machine", "--time", "t", series="machine", time="t")


def require_passing(run, function, command, options, changed):
    """Require that options of a command change just these arguments of a function of the library."""
    without = given_to(run, function, *command)
    found = given_to(run, function, *command, *options)
    if "bounds" in changed:  # which the library reads
        changed = {**changed, "bounds": _as_text(changed["bounds"])}
    assert {key: value for key, value in found.items() if value != without[key]} == changed


def many_rows(rows, seed=1):
    """Write rows like those of the frame, but more of them, and return them."""
    found = spbn.BayesianNetwork.load("m.spbn").sample(rows, seed=seed)
    found.to_csv("many.csv", index=False)
    return found
