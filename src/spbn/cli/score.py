"""The command ``spbn score``: how unusual rows are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn._base.display import printable
from spbn.cli.command import command
from spbn.cli.inputs import FILL, busy, frame_for, load_any_model, require_targets
from spbn.cli.options import data_argument, model_argument, out_option, seed_option, table_options
from spbn.cli.output import Answer, answer_options, count, say, say_lines
from spbn.cli.sources import Source
from spbn.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import FloatArray
    from spbn.diagnostics.rows import UnusualRows
    from spbn.network import Network

LARGE = 1e7  # numbers that fit into their column


@command
@model_argument
@data_argument
@click.option("--by-node", is_flag=True, help="Show the contribution of every node, on screen and in --out.")
@click.option("--top", type=int, default=20, help="How many of the most unusual rows to print.")
@click.option(
    "--missing",
    type=click.Choice(["error", "integrate"]),
    default="error",
    help="Rows with missing values: refuse the table, or score what is known.",
)
@seed_option
@out_option(
    "Write the scores of all rows: scores.csv. Their sum is in the column logpdf, or in total_logpdf if "
    "there is a node of that name."
)
@table_options
@answer_options
def score(
    answer: Answer,
    model: Path,
    data: Source,
    by_node: bool,
    top: int,
    missing: str,
    seed: int,
    out: Path | None,
) -> None:
    """Show how unusual rows are, and which nodes are to blame.

    [dim]spbn score wine.spbn new.csv --top 5 --out scores.csv[/]
    """
    require_targets(tables=[out], inputs=[model, data])
    if top < 0:
        raise ArgumentError(f"--top must be 0 or more. Got {top}.")
    network = load_any_model(model)
    if network.is_dynamic and missing == "integrate":
        raise ArgumentError(
            "--missing integrate is not for models over time: what is missing in a row is missing in the "
            "past of the next. Fill what is missing."
        )
    integrates = "Fill in the missing values, or pass --missing integrate to score rows by the others."
    remedy = FILL if network.is_dynamic else integrates
    frame = frame_for(network, data, with_holes=missing == "integrate", remedy=remedy)
    by_name: dict[str, FloatArray] = {}
    import numpy as np

    if not network.is_dynamic and frame.isna().to_numpy().any():
        if by_node:
            raise ArgumentError(
                "--by-node takes complete rows only: the contribution of a node depends on its parents."
            )
        with busy("scoring the rows"):
            logpdf = np.asarray(network.row_network.logpdf(frame, missing="integrate", seed=seed))
        answer.give(ObservedView(logpdf, frame, top))
    else:
        found = _unusual(network, frame, top)
        answer.give(UnusualView(found, frame.index.tolist(), by_node))
        logpdf = found.logpdf
        by_name = dict(zip(network.nodes, found.contributions.T, strict=True)) if by_node else {}
    if out is not None:
        import pandas as pd

        scores = pd.DataFrame({_name_of_total(network.nodes): logpdf, **by_name}, index=frame.index)
        answer.write_rows("out", scores, out, "scores")


def _unusual(network: Network, frame: pd.DataFrame, top: int) -> UnusualRows:
    from spbn.diagnostics import unusual_rows
    from spbn.diagnostics.rows import unusual_in_time
    from spbn.timeseries.network import DynamicNetwork

    with busy("scoring the rows"):
        if isinstance(network, DynamicNetwork):
            return unusual_in_time(network, frame, top=top)
        return unusual_rows(network.row_network, frame, top=top)


def _name_of_total(nodes: Collection[str]) -> str:
    """Return a name that no node has."""
    name = "logpdf"
    while name in nodes:
        name = f"total_{name}"
    return name


@dataclass(frozen=True)
class UnusualView:
    """The least likely rows, and the nodes to blame for them or what every node contributes.

    Attributes
    ----------
    labels
        What the rows are called: they are counted from 1 in a table that was read from a file.
    by_node
        Whether to give what every node contributes.
    """

    found: UnusualRows
    labels: Sequence[object]
    by_node: bool = False

    def show(self) -> None:
        """Print a line per row."""
        found = self.found
        say(f"{count(found.logpdf, 'row')}, mean log-density {_fixed(found.mean, 4)}")
        say()
        if self.by_node:
            self._show_contributions()
        else:
            say(f"{'row':>8} {'log-density':>12}  nodes to blame", style="bold")
            for row in found.rows:
                reasons = ", ".join(f"{reason.node} ({_fixed(-reason.drop, 1)})" for reason in row.reasons)
                blame = reasons or "a little of everything"
                say(f"{self.labels[row.position]!s:>8} {_fixed(row.logpdf, 3):>12}  {blame}")
        brackets = " In brackets: the node's log-density minus that of a typical training row."
        say()
        if found.left_out:
            say(
                f"These are the rows that the network was learned from: each is scored {found.scoring.value}."
            )
        say(f"Rows are counted from 1, without the header.{'' if self.by_node else brackets}", style="dim")

    def _show_contributions(self) -> None:
        import pandas as pd

        found = self.found
        positions = [row.position for row in found.rows]
        columns = {
            printable(node): values[positions]
            for node, values in zip(found.nodes, found.contributions.T, strict=True)
        }
        table = pd.DataFrame(columns, index=[self.labels[position] for position in positions])
        table.insert(0, "log-density", [row.logpdf for row in found.rows], allow_duplicates=True)
        table = table.rename_axis(index=None, columns="row")
        say_lines(table.to_string(float_format=lambda value: f"{value:.3f}"))

    def document(self) -> dict[str, Any]:
        """Give one object per row, with all contributions if they are asked for."""
        found, rows = self.found, []
        for row in found.rows:
            blame = [{"node": r.node, "value": r.value, "drop": r.drop} for r in row.reasons]
            line = {"row": self.labels[row.position], "logpdf": row.logpdf, "blame": blame}
            if self.by_node:
                line["by_node"] = dict(zip(found.nodes, found.contributions[row.position], strict=True))
            rows.append(line)
        return {"rows": len(found.logpdf), "mean": found.mean, "scored": found.scoring.value, "unusual": rows}


def _fixed(number: float, digits: int) -> str:
    """Write a number with so many digits after the point, or with a power of ten if it is very large."""
    return f"{number:.{digits}f}" if abs(number) < LARGE else f"{number:.4g}"


@dataclass(frozen=True)
class ObservedView:
    """The least likely rows of a table with holes, and what is missing in them."""

    logpdf: FloatArray
    frame: pd.DataFrame
    top: int

    def show(self) -> None:
        """Print a line per row."""
        found = self.document()
        say(
            f"{count(self.logpdf, 'row')}, of which {found['incomplete']} with missing values; "
            f"mean log-density {_fixed(float(found['mean']), 4)}"
        )
        say()
        say(f"{'row':>8} {'log-density':>12}  missing", style="bold")
        for row in found["unusual"]:
            absent = ", ".join(row["missing"])
            say(f"{row['row']!s:>8} {_fixed(float(row['logpdf']), 3):>12}  {absent}".rstrip())
        say()
        say(
            "Rows are counted from 1, without the header. A row with missing values is scored by the others: "
            "compare its log-density only with that of rows in which the same columns are missing.",
            style="dim",
        )

    def document(self) -> dict[str, Any]:
        """Give one object per row."""
        holes, rows = self.frame.isna(), []
        for place in self.logpdf.argsort(kind="stable")[: self.top].tolist():
            absent = list(holes.columns[holes.iloc[place]])
            rows.append({"row": self.frame.index[place], "logpdf": self.logpdf[place], "missing": absent})
        return {
            "rows": len(self.logpdf),
            "incomplete": int(holes.any(axis=1).sum()),
            "mean": self.logpdf.mean(),
            "scored": "by what is there",
            "unusual": rows,
        }
