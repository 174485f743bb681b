"""What the command line prints."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spbn.network import BayesianNetwork
from spbn.pc import PCResult
from spbn.search import SearchResult

if TYPE_CHECKING:
    import pandas as pd

out = Console(soft_wrap=True, highlight=False)


def complain(message: str) -> None:
    """Print a line to the error stream."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"spbn: {message}", markup=False)


def show_network(network: BayesianNetwork, *, details: bool = False) -> None:
    """Print the nodes, parents first, with their types and densities; and how they were found."""
    structure = network.structure
    kinds = [str(node_type) for node_type in structure.types.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds, reverse=True)))
    out.print(f"{_count(structure.nodes, 'node')} ({counts}), {_count(structure.arcs, 'arc')}\n")
    width = max(map(len, kinds))
    legends: dict[str, None] = {}
    for node in structure.dag.topological_order():
        cpd = network.cpds[node]
        out.print(f"{structure.type(node):{width}}  {cpd!r}", markup=False)
        description = cpd.describe()
        for table in description.tables if details else ():
            names = max(map(len, table.rows))
            for name, row in zip(table.rows, table.values, strict=True):
                numbers = " ".join(f"{value:11.4g}" for value in row)
                out.print(f"{'':{width}}    {table.title}  {name:{names}} {numbers}", markup=False)
        legends[description.legend] = None
    for legend in filter(None, legends):
        out.print(f"\n{legend}", style="dim")
    if isinstance(network.search, PCResult):
        pdag, tests = network.search.pdag, sum(network.search.tests_run)
        found = f"{_count(pdag.arcs, 'arc')} with a known direction, {_count(pdag.edges, 'edge')} without"
        out.print(f"\nPC: {tests} independence tests; {found}")
    search = network.type_search if isinstance(network.search, PCResult) else network.search
    if isinstance(search, SearchResult):
        what = "node types: " if search is network.type_search else ""
        out.print(f"\n{what}{_count(search.steps, 'step')}, stopped: {search.stop_reason}")


def print_comparison(table: pd.DataFrame) -> None:
    """Print models side by side."""
    formats: dict[str, Callable[[Any], str]] = {
        "log-density": "{:.4f}".format,
        "standard error": "{:.4f}".format,
        "arcs": "{:.1f}".format,
        "CKDE share": "{:.0%}".format,
        "seconds": "{:.1f}".format,
    }
    out.print(table.to_string(index=False, formatters=formats), markup=False)
    out.print("\nMean log-density of a row that was not learned from: greater is better.", style="dim")


def print_unusual(
    contributions: pd.DataFrame, total: pd.Series[float], *, top: int, by_node: bool = False
) -> None:
    """Print the rows with the lowest log-density, and the nodes where they fall furthest below the median."""
    typical = contributions.median()
    worst = total.nsmallest(max(0, top)).index
    out.print(f"{_count(total, 'row')}, mean log-density {total.mean():.4f}\n")
    if by_node:
        table = contributions.loc[worst]
        table.insert(0, "log-density", total.loc[worst], allow_duplicates=True)
        out.print(table.to_string(float_format=lambda value: f"{value:.3f}"), markup=False)
    else:
        out.print(f"{'row':>8} {'log-density':>12}  nodes that make it so", style="bold")
        for row in worst:
            lacking = (typical - contributions.loc[row]).nlargest(3)
            reasons = ", ".join(f"{node} ({-gap:+.1f})" for node, gap in lacking.items() if gap > 1.0)
            out.print(f"{row:>8} {total[row]:12.3f}  {reasons or 'a little of everything'}", markup=False)
    note = "" if by_node else " In brackets: log-density of the node, beside its median."
    out.print(f"\nRow 0 is the first.{note}", style="dim")


def _count(things: Collection[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"
