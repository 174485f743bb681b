"""What the command line prints.

Names come from files, and files from anywhere: every line goes through `say` or `complain`, which write
control characters as escapes instead of sending them to the terminal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spbn._base.progress import printable

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import FloatArray
    from spbn.diagnostics.classification import Predictions
    from spbn.diagnostics.unusual import UnusualRows
    from spbn.inference import Posterior
    from spbn.learning.stability import Confidence
    from spbn.network import BayesianNetwork
    from spbn.nodes.base import Description
    from spbn.timeseries.forecast import Forecast
    from spbn.timeseries.network import DynamicNetwork

SHOWN_CASES = 24
LARGE = 1e7  # numbers that fit into their column
_PLAIN: dict[str, Any] = {"soft_wrap": True, "highlight": False, "markup": False, "emoji": False}
_out = Console(**_PLAIN)


def say(line: str = "", *, style: str | None = None) -> None:
    """Print one line."""
    _out.print(printable(line), style=style)


def complain(message: str) -> None:
    """Print one line to the error stream."""
    Console(stderr=True, **_PLAIN).print(printable(f"spbn: {message}"))


def warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning of the library; this can take the place of `warnings.showwarning`."""
    from spbn.cli.wording import in_options

    complain(f"warning: {in_options(str(message))}")


def note(message: str) -> None:
    """Print to the error stream what is worth knowing, and not wrong."""
    complain(f"note: {message}")


def show_network(network: BayesianNetwork | DynamicNetwork, *, details: bool = False) -> None:
    """Print the nodes, parents first, with their types and densities; and how they were found."""
    from spbn.search import PCResult, SearchResult
    from spbn.timeseries.network import DynamicNetwork

    if isinstance(network, DynamicNetwork):
        say(f"a row given the {'row' if network.lags == 1 else f'{network.lags} rows'} before it:")
        show_network(network.transition, details=details)
        say()
        say(f"the first {'row' if network.lags == 1 else f'{network.lags} rows'} of a series:")
        network = network.static
    _show_nodes(network, details=details)
    if isinstance(network.search, PCResult):
        pdag, tests = network.search.pdag, sum(network.search.tests_run)
        found = f"{_count(pdag.arcs, 'arc')} with a known direction, {_count(pdag.edges, 'edge')} without"
        say()
        say(f"PC: {tests} independence tests; {found}")
    search = network.type_search if isinstance(network.search, PCResult) else network.search
    if isinstance(search, SearchResult):
        what = "node types: " if search is network.type_search else ""
        say()
        say(f"{what}{_count(search.steps, 'step')}, stopped: {search.stop_reason}")


def _show_nodes(network: BayesianNetwork, *, details: bool) -> None:
    structure = network.structure
    kinds = [str(node_type) for node_type in structure.types.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds, reverse=True)))
    inputs = f", {_count(structure.inputs, 'input')}" if structure.inputs else ""
    say(f"{_count(structure.nodes, 'node')} ({counts}){inputs}, {_count(structure.arcs, 'arc')}")
    say()
    width = max(map(len, kinds))
    legends: dict[str, None] = {}
    for node in network.order:
        if node not in network.cpds:
            continue
        cpd = network.cpds[node]
        say(f"{structure.type(node):{width}}  {cpd!r}")
        description = cpd.describe()
        if details:
            _show_details(description, " " * (width + 4))
        legends[description.legend] = None
    for legend in filter(None, legends):
        say()
        say(legend, style="dim")


def _show_details(description: Description, indent: str) -> None:
    """Print the tables of a density, and its cases: one line for each."""
    for table in description.tables:
        names, title = max(map(len, table.rows)), table.title
        widths = [max(11, len(column)) for column in table.columns]
        if table.of_probabilities:
            heads = " ".join(f"{name:>{width}}" for name, width in zip(table.columns, widths, strict=True))
            say(f"{indent}{title}  {'':{names}} {heads}")
            title = " " * len(title)
        for name, row in zip(table.rows, table.values, strict=True):
            numbers = " ".join(f"{value:{width}.4g}" for value, width in zip(row, widths, strict=True))
            say(f"{indent}{title}  {name:{names}} {numbers}")
    shown = dict(islice(description.cases.items(), SHOWN_CASES))
    longest = max(map(len, shown), default=0)
    for name, case in shown.items():
        say(f"{indent}{name:{longest}}  {case.formula}")
    if len(description.cases) > len(shown):
        say(f"{indent}and {len(description.cases) - len(shown)} more")


def print_rows(rows: pd.DataFrame) -> None:
    """Print rows as CSV."""
    if sys.stdout.isatty():  # what goes into a pipe or a file stays as it is
        rows = rows.rename(columns=printable)
    sys.stdout.write(rows.to_csv(index=False))


def print_posterior(posterior: Posterior, share: float) -> None:
    """Print what is likely of every unknown variable, and how far that can be trusted."""
    numbers = posterior.interval(share)
    names = [variable.name for variable in posterior.variables]
    width = max([len(printable(name)) for name in names], default=0)
    if len(numbers):
        numbers.insert(0, "median", posterior.median())
        numbers.insert(0, "mean", posterior.mean())
        heads = ["mean", "median", f"{50 * (1 - share):.0f} %", f"{50 * (1 + share):.0f} %"]
        say(f"{'':{width}} {' '.join(f'{head:>12}' for head in heads)}", style="bold")
    for name, row in numbers.iterrows():
        cells = " ".join(_with_digits_of(row["high"] - row["low"], value) for value in row)
        say(f"{printable(str(name)):{width}} {cells}")
    for variable in posterior.variables:
        if variable.is_discrete:
            shares = posterior.probabilities(variable.name)
            cells = ", ".join(f"{level} {share:.3f}" for level, share in shares.items())
            say(f"{printable(variable.name):{width}}   {cells}")
    say()
    draws, worth = len(posterior.weights), f"{posterior.effective_size:.0f}"
    drawn = "" if all(map(posterior.is_exact, names)) else f", {draws} draws worth {worth} independent ones"
    say(f"method: {posterior.method}{drawn}")
    if posterior.evidence:
        error = posterior.log_evidence_error
        say(f"log-evidence: {posterior.log_evidence:.3f}{f' ± {error:.3f}' if error else ''}")


def _with_digits_of(width: float, value: float) -> str:
    """Write a value so that three digits of a width are seen, however far from zero it is."""
    if abs(value) < 1e9:
        return f"{value:12.{_decimals(width)}f}"
    digits = 5 if not width > 0 else math.floor(math.log10(abs(value))) - math.floor(math.log10(width)) + 3
    return f"{value:12.{min(max(digits, 5), 17)}g}"


def _decimals(width: float) -> int:
    """Return how many digits after the point show three digits of a width."""
    return 3 if not width > 0 else min(max(2 - math.floor(math.log10(width)), 0), 9)


def print_forecast(forecast: Forecast, share: float) -> None:
    """Print what is likely of every variable at some steps: the first ones, and then fewer and fewer."""
    import pandas as pd

    series = f", {_count(forecast.series, 'series', 'series')}" if forecast.series_name else ""
    say(f"{_count(range(forecast.steps), 'step')} ahead, {_count(range(forecast.n), 'path')}{series}")
    shown = [s for s in range(1, forecast.steps + 1) if s == forecast.steps or _is_round(s)]
    ends = [0.5 - share / 2, 0.5, 0.5 + share / 2]
    means, quantiles = forecast.mean(), forecast.quantile(ends)
    for variable in forecast.variables:
        if variable.is_discrete:
            found = forecast.probabilities(variable.name).rename(columns=printable)
        else:
            heads = ("mean", f"{100 * ends[0]:.0f} %", "median", f"{100 * ends[2]:.0f} %")
            numbers = (means[variable.name], *(quantiles[variable.name, end] for end in ends))
            found = pd.DataFrame(dict(zip(heads, numbers, strict=True)))
        rows = found.index.get_level_values(-1).isin(shown)
        shown_rows: pd.DataFrame = found.loc[rows, :].rename(index=_printable_text)
        say()
        say(variable.name, style="bold")
        say_lines(
            shown_rows.reset_index(allow_duplicates=True).to_string(
                index=False, float_format=lambda value: f"{value:.4g}"
            )
        )


def _is_round(number: int) -> bool:
    """Tell whether a number is 1, 2 or 5, or one of these with zeros after it."""
    return str(number).rstrip("0") in ("1", "2", "5")


def _printable_text(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def print_comparison(table: pd.DataFrame) -> None:
    """Print models side by side."""
    import pandas as pd

    shares = [name for name in table.columns if name.endswith(" share")]
    shown = pd.DataFrame(
        {
            "model": table["model"],
            "margins": table["margins"],
            "log-density": _with_error(table["log-density"], table["standard error"]),
            "difference": _with_error(table["difference"], table["difference error"]),
            "arcs": table["arcs"].map("{:.1f}".format),
            "nodes": [_in_words(row) for _, row in table[shares].iterrows()],
            "seconds": table["seconds"].map("{:.1f}".format),
        }
    )
    shown.loc[shown.index[0], "difference"] = ""
    say_lines(shown.to_string(index=False))
    say()
    say(
        "Mean log-density of an unseen row, and its difference from that of the best model, each ± its "
        "standard error. Higher is better.",
        style="dim",
    )


def _with_error(values: pd.Series, errors: pd.Series) -> list[str]:
    return [f"{value:.4f} ± {error:.4f}" for value, error in zip(values, errors, strict=True)]


def _in_words(shares: pd.Series) -> str:
    """Say which part of the nodes is of which type, the largest part first."""
    found = shares[shares > 0].sort_values(ascending=False, kind="stable")
    return ", ".join(f"{share:.0%} {str(name).removesuffix(' share')}" for name, share in found.items())


def print_unusual(found: UnusualRows, labels: Sequence[object], *, by_node: bool = False) -> None:
    """Print the least likely rows, and the nodes to blame for them or what every node contributes.

    Parameters
    ----------
    labels
        What the rows are called: they are counted from 1 in a table that was read from a file.
    """
    say(f"{_count(found.logpdf, 'row')}, mean log-density {_fixed(found.mean, 4)}")
    say()
    if by_node:
        _print_contributions(found, labels)
    else:
        say(f"{'row':>8} {'log-density':>12}  nodes to blame", style="bold")
        for row in found.rows:
            reasons = ", ".join(f"{reason.node} ({_fixed(-reason.drop, 1)})" for reason in row.reasons)
            blame = reasons or "a little of everything"
            say(f"{labels[row.position]!s:>8} {_fixed(row.logpdf, 3):>12}  {blame}")
    notes = "" if by_node else " In brackets: the node's log-density minus that of a typical training row."
    say()
    if found.left_out:
        say(f"These are the rows that the network was learned from: each is scored {found.scoring.value}.")
    say(f"Rows are counted from 1, without the header.{notes}", style="dim")


def _fixed(number: float, digits: int) -> str:
    """Write a number with so many digits after the point, or with a power of ten if it is very large."""
    return f"{number:.{digits}f}" if abs(number) < LARGE else f"{number:.4g}"


def print_observed(logpdf: FloatArray, frame: pd.DataFrame, *, top: int) -> None:
    """Print the least likely rows of a table with holes, and what is missing in them."""
    holes = frame.isna()
    count = int(holes.any(axis=1).sum())
    say(
        f"{_count(logpdf, 'row')}, of which {count} with missing values; mean log-density "
        f"{_fixed(float(logpdf.mean()), 4)}"
    )
    say()
    say(f"{'row':>8} {'log-density':>12}  missing", style="bold")
    for position in logpdf.argsort(kind="stable")[:top].tolist():
        absent = ", ".join(holes.columns[holes.iloc[position]])
        say(f"{frame.index[position]!s:>8} {_fixed(float(logpdf[position]), 3):>12}  {absent}".rstrip())
    say()
    say(
        "Rows are counted from 1, without the header. A row with missing values is scored by the others: "
        "compare its log-density only with that of rows in which the same columns are missing.",
        style="dim",
    )


def _print_contributions(found: UnusualRows, labels: Sequence[object]) -> None:
    import pandas as pd

    positions = [row.position for row in found.rows]
    columns = {
        printable(node): values[positions]
        for node, values in zip(found.nodes, found.contributions, strict=True)
    }
    table = pd.DataFrame(columns, index=[labels[position] for position in positions])
    table.insert(0, "log-density", [row.logpdf for row in found.rows], allow_duplicates=True)
    table = table.rename_axis(index=None, columns="row")
    say_lines(table.to_string(float_format=lambda value: f"{value:.3f}"))


def print_assessment(found: Predictions) -> None:
    """Print how good predictions are, if the truth is known; otherwise how many rows each class gets."""
    import pandas as pd

    names = [printable(str(name)) for name in found.classes]
    say(f"{_count(found.probabilities, 'row')}, {_count(names, 'class', 'classes')}")
    say()
    assessment = found.assessment
    if assessment is None:
        counts = found.explanation["predicted"].value_counts().reindex(found.classes, fill_value=0)
        say_lines(pd.DataFrame({"predicted": counts.to_numpy()}, index=names).to_string())
        return
    say(f"accuracy           {assessment.accuracy:.1%}")
    say(f"log loss           {assessment.log_loss:.4f}")
    say(f"Brier score        {assessment.brier:.4f}")
    say(f"calibration error  {assessment.calibration_error:.4f}")
    say()
    table = pd.DataFrame(assessment.confusion, index=names, columns=names)
    say_lines(table.rename_axis(columns="class").to_string())
    say()
    say("Confusion: one line per true class, one column per prediction.", style="dim")


def print_confidence(found: Confidence) -> None:
    """Print the arcs that are believed, with the reasons why a direction is open, and those that are not."""
    believed, notes = set(found.structure().arcs), found.open_directions()
    arcs = list(found.arcs.itertuples(index=False, name=None))
    say(
        f"{_count(found.structures, 'replicate')}, {_count(found.nodes, 'node')}; "
        f"arcs stronger than {found.threshold:.2f} are believed"
    )
    for is_believed, title in ((True, "believed"), (False, "not believed")):
        chosen = [line for line in arcs if (line[:2] in believed) == is_believed]
        if not chosen:
            continue
        say()
        width = max(len(title), *(len(printable(f"{source} → {target}")) for source, target, *_ in chosen))
        say(f"{title:{width}}  strength  direction", style="bold")
        for source, target, strength, direction in chosen[: None if is_believed else SHOWN_CASES]:
            note = notes.get((source, target), "")
            line = f"{printable(f'{source} → {target}'):{width}}  {strength:8.2f}  {direction:9.2f}"
            say(f"{line}  {f'open: {note}' if note else ''}".rstrip())
    say()
    say(
        "Strength: the share of replicates that join the two nodes. Direction: the share of these in which "
        "the arc points this way.",
        style="dim",
    )


def say_lines(text: str) -> None:
    """Print text of several lines."""
    for line in text.split("\n"):
        say(line)


def _count(things: Collection[Any], word: str, words: str | None = None) -> str:
    return f"{len(things)} {word if len(things) == 1 else words or f'{word}s'}"
