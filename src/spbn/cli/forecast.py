"""The command ``spbn forecast``: what may follow the last rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn._base.display import printable
from spbn.cli.command import argument, command
from spbn.cli.conditions import EXAMPLES, conditions_in, in_words, require_intervals
from spbn.cli.inputs import busy, frame_for, load_any_model, require_picture, require_targets
from spbn.cli.options import FILE, TABLE, out_option, seed_option, table_options
from spbn.cli.output import Answer, answer_options, count, say, say_lines, standard_error
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, ModelFileError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn.tables.table import Variable
    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.network import DynamicNetwork

SHARE = 0.9  # of the interval that is shown and written


@command
@argument("model", metavar="MODEL", type=FILE, help="A model written by [bold]spbn learn --lags[/].")
@argument(
    "history",
    metavar="HISTORY",
    type=TABLE,
    help="The rows so far: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input.",
)
@click.option("--steps", type=int, default=10, help="How many rows to look ahead.")
@click.option("-n", type=int, default=1000, help="How many paths to draw.")
@click.option(
    "--event",
    multiple=True,
    help=f"Also print the probability that this happens within the steps, such as {EXAMPLES}. If repeated, "
    "how probable it is that all happen in the same row.",
)
@click.option("--only", help="The series to continue, if there are several. Default: all.")
@click.option(
    "--every", type=float, help="Resample the history to this time step first, in seconds if times are dates."
)
@seed_option
@out_option("Write means and quantiles of every step: ahead.csv.")
@click.option("--paths", type=FILE, help="Write the paths themselves: paths.csv.")
@click.option("--plot", type=FILE, help="Draw fan charts: .png, .svg or .pdf.")
@table_options
@answer_options
def forecast(
    answer: Answer,
    model: Path,
    history: Source,
    steps: int,
    n: int,
    event: Sequence[str],
    only: str | None,
    every: float | None,
    seed: int,
    out: Path | None,
    paths: Path | None,
    plot: Path | None,
) -> None:
    """Forecast what may follow the last rows of a table.

    [dim]spbn forecast pump.spbn history.csv --steps 50 --event "vibration>4" --plot fan.png[/]
    """
    from spbn.timeseries.network import DynamicNetwork

    require_targets(plot, tables=[out, paths], inputs=[model, history])
    require_picture(plot)
    for option, value in (("--steps", steps), ("-n", n)):
        if value < 1:
            raise ArgumentError(f"{option} must be 1 or more. Got {value}.")
    network = load_any_model(model)
    if not isinstance(network, DynamicNetwork):
        raise ModelFileError(f"{model} is not a model over time: learn one with spbn learn --lags.")
    asked = conditions_in("--event", event, network.variables)
    require_intervals(asked, network.variables, "{name}>{value:.12g}")
    rows = _only(network, frame_for(network, history, every=every, with_holes=True), only)
    with busy("drawing paths"):
        ahead = network.forecast(rows, steps, n=n, seed=seed)
    if plot is not None and len(ahead.series) > 1:
        raise ArgumentError(f"--plot draws one series: say which (--only), of {quoted(ahead.series)}.")
    view = ForecastView(ahead, SHARE, event, asked)
    answer.give(view)
    if out is not None:
        answer.write_rows("out", view.table(), out)
    if paths is not None:
        answer.write_rows("paths", ahead.paths, paths)
    if plot is not None:
        from spbn.plots.timelines import save_forecast

        save_forecast(ahead, plot)
        answer.wrote("plot", plot, f"picture written to {plot}")


def _only(network: DynamicNetwork, rows: pd.DataFrame, only: str | None) -> pd.DataFrame:
    """Return the rows of one series."""
    if only is None:
        return rows
    if network.series is None:
        raise ArgumentError("--only is for models that were learned with --series.")
    from spbn.tables.levels import as_text

    names = rows[network.series].map(as_text)  # as a forecast has them
    chosen = rows[names == only]
    if not len(chosen):
        known = quoted(dict.fromkeys(names))
        raise ArgumentError(f"--only names an unknown series: {only!r}. There are {known}.")
    return chosen


@dataclass(frozen=True)
class ForecastView:
    """What is likely of every variable, by series and by step; attributes as of `PosteriorView`."""

    ahead: Forecast
    share: float
    event: Sequence[str]
    conditions: Mapping[str, Any]

    def show(self) -> None:
        """Print some steps: the first ones, and then fewer and fewer."""
        import pandas as pd

        ahead, chances = self.ahead, self._chances()
        series = f", {count(ahead.series, 'series', 'series')}" if ahead.series_name else ""
        say(f"{count(range(ahead.steps), 'step')} ahead, {count(range(ahead.n), 'path')}{series}")
        steps = range(1, ahead.steps + 1)
        shown = [step for step in steps if step == ahead.steps or str(step).rstrip("0") in ("1", "2", "5")]
        heads = {key: head for key, head in self._heads().items() if key != head}
        for variable in ahead.variables:
            found = pd.DataFrame(self._columns(variable))
            found = found.rename(columns=printable if variable.is_discrete else heads)
            rows = found.index.get_level_values(-1).isin(shown)
            shown_rows: pd.DataFrame = found.loc[rows, :].rename(index=_printable_text)
            say()
            say(variable.name, style="bold")
            say_lines(
                shown_rows.reset_index(allow_duplicates=True).to_string(
                    index=False, float_format=lambda value: f"{value:.4g}"
                )
            )
        if chances:
            say()
        for name, (probability, error) in chances.items():
            where = f"{name}: " if ahead.series_name else ""
            chance = f"P({in_words(self.event)} within {ahead.steps} steps)"
            say(f"{where}{chance} = {probability:.4g} ± {error:.2g}")

    def document(self) -> dict[str, Any]:
        """Give one object per series and step."""
        ahead = self.ahead
        columns: dict[str, dict[str, Any]] = {}
        for variable in ahead.variables:
            found = self._columns(variable)
            columns[variable.name] = {"probabilities": found} if variable.is_discrete else found
        index = ahead.mean().index
        steps = []
        for place, entry in enumerate(index):
            where = entry if isinstance(entry, tuple) else (entry,)
            row = {key: _at(values, place) for key, values in columns.items()}
            steps.append({**dict(zip(index.names, where, strict=True)), "variables": row})
        document: dict[str, Any] = {"steps": ahead.steps, "n": ahead.n, "share": self.share, "rows": steps}
        if self.conditions:
            chances = self._chances()
            probability, error = (
                {name: chance[i] for name, chance in chances.items()}
                if ahead.series_name
                else next(iter(chances.values()))[i]
                for i in (0, 1)
            )
            document["event"] = {
                "conditions": self.conditions,
                "probability": probability,
                "standard_error": error,
            }
        return document

    def table(self) -> pd.DataFrame:
        """Return mean, interval and median of every number, and probabilities of levels, by step."""
        frame = self.ahead.mean()[[]].copy()
        heads = self._heads()
        for variable in self.ahead.variables:
            for key, values in self._columns(variable).items():
                is_level = variable.is_discrete
                frame[f"P({variable.name}={key})" if is_level else f"{variable.name} {heads[key]}"] = values
        return frame.reset_index()

    def _heads(self) -> dict[str, str]:
        low, high = 100 * (0.5 - self.share / 2), 100 * (0.5 + self.share / 2)
        return {"mean": "mean", "low": f"{low:.0f} %", "median": "median", "high": f"{high:.0f} %"}

    def _columns(self, variable: Variable) -> dict[str, pd.Series[Any]]:
        """Return what is known of a variable at every step."""
        name, ahead = variable.name, self.ahead
        if variable.is_discrete:
            found = ahead.probabilities(name)
            return {str(level): found[level] for level in variable.levels}
        ends = [0.5 - self.share / 2, 0.5, 0.5 + self.share / 2]
        quantiles = ahead.quantile(ends)
        return {
            "mean": ahead.mean()[name],
            **{key: quantiles[name, end] for key, end in zip(("low", "median", "high"), ends, strict=True)},
        }

    def _chances(self) -> dict[str, tuple[float, float]]:
        """Return the probability of the event in every series, and its standard error."""
        if not self.conditions:
            return {}
        found = {
            str(name): self.ahead.probability(dict(self.conditions), series=name)
            for name in self.ahead.series
        }
        return {name: (p, standard_error(p, self.ahead.n)) for name, p in found.items()}


def _printable_text(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _at(values: Mapping[str, Any], place: int) -> dict[str, Any]:
    return {
        key: _at(inner, place) if isinstance(inner, Mapping) else inner.iloc[place]
        for key, inner in values.items()
    }
