"""Commands that show a model, or rows as it sees them: ``spbn show``, ``plot``, ``report`` and so on."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import spbn
from spbn._base.display import printable
from spbn._base.lazy import pd
from spbn.cli import inputs, options
from spbn.cli.command import FILE, Answer, argument, command, count, say, say_lines
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from spbn._base.arrays import FloatArray
    from spbn.diagnostics.blame import Reason
    from spbn.diagnostics.model import Strengths
    from spbn.diagnostics.rows import UnusualRows
    from spbn.network import BayesianNetwork, Network
    from spbn.nodes.base import Description

SHOWN_CASES = 24
LARGE = 1e7  # numbers that fit into their column


@command
@options.model_argument
def show(answer: Answer, model: Path) -> None:
    """Print a network: nodes, types, arcs, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    give_network(answer, inputs.load_any_model(model), details=True)


def give_network(answer: Answer, network: Network, *, details: bool = False) -> None:
    """Answer with a network: its nodes, in detail if asked for, how they were found and from what."""
    answer.give(partial(_network_document, network, details), partial(_show_network, network, details))


def _show_network(network: Network, details: bool) -> None:
    model = network.parts[0].record.model
    if model is not None:
        say(model)
    _show_parts(network, details)


def _show_parts(network: Network, details: bool) -> None:
    from spbn.search import PCResult, SearchResult

    if network.is_dynamic:
        before = "row" if network.lags == 1 else f"{network.lags} rows"
        say(f"a row given the {before} before it:")
        _show_parts(network.row_network, details)
        say("", f"the first {before} of a series:")
    network = network.parts[0]
    _show_nodes(network, details)
    search = network.search
    if isinstance(search, PCResult):
        pdag, tests = search.pdag, sum(search.tests_run)
        found = f"{count(pdag.arcs, 'arc')} with a known direction, {count(pdag.edges, 'edge')} without"
        say("", f"PC: {tests} independence tests; {found}")
        if pdag.edges:
            more = f" and {len(pdag.edges) - SHOWN_CASES} more" if len(pdag.edges) > SHOWN_CASES else ""
            edges = [f"{first} — {second}" for first, second in pdag.edges[:SHOWN_CASES]]
            say(f"direction not known from the tests: {', '.join(edges)}{more}")
        search = network.type_search
    if isinstance(search, SearchResult):
        what = "node types: " if search is network.type_search else ""
        say("", f"{what}{count(search.steps, 'step')}, stopped: {search.stop_reason}")


def _show_nodes(network: BayesianNetwork, details: bool) -> None:
    structure = network.structure
    kinds = [str(node_type) for node_type in structure.types.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds, reverse=True)))
    inputs = f", {count(structure.inputs, 'input')}" if structure.inputs else ""
    say(f"{count(structure.nodes, 'node')} ({counts}){inputs}, {count(structure.arcs, 'arc')}", "")
    width = max(map(len, kinds))
    legends: dict[str, None] = {}
    for node in filter(network.cpds.__contains__, network.order):
        cpd = network.cpds[node]
        say(f"{structure.type(node):{width}}  {cpd!r}")
        description = cpd.describe()
        if details:
            _show_details(description, " " * (width + 4))
        legends[description.legend] = None
    for legend in filter(None, legends):
        say("", legend, style="dim")
    if network.margins is not None:
        say("", str(network.margins), style="dim")
    arcs = [f"{source} → {target}" for source, target in network.open_directions()]
    if arcs:
        more = f" and {len(arcs) - SHOWN_CASES} more" if len(arcs) > SHOWN_CASES else ""
        say("", f"direction open: {', '.join(arcs[:SHOWN_CASES])}{more}")


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


def _network_document(network: Network, details: bool) -> dict[str, Any]:
    if network.is_dynamic:
        static, transition = network.parts
        return {
            "lags": network.lags,
            "series": network.series,
            "time": network.time,
            "transition": _network_document(transition, details),
            "static": _network_document(static, details),
        }
    (network,) = network.parts
    structure, record = network.structure, network.record
    nodes = []
    for name in filter(network.cpds.__contains__, network.order):
        cpd = network.cpds[name]
        node = {"name": name, "type": cpd.type.name, "parents": list(structure.parents(name))}
        nodes.append(node | _description_document(cpd.describe(), details))
    return {
        "nodes": nodes,
        "inputs": list(structure.inputs),
        "arcs": [list(arc) for arc in structure.arcs],
        "open_directions": [list(arc) for arc in network.open_directions()],
        "rows": record.rows,
        **({"left_out": record.left_out} if record.left_out else {}),
        "seconds": record.seconds,
        "search": _search_document(network.search),
        "type_search": _search_document(network.type_search),
        **({"settings": record.settings, "versions": record.versions} if details else {}),
    }


def _description_document(description: Description, details: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"formula": description.formula}
    if details and description.tables:
        found["tables"] = [
            {name: getattr(table, name) for name in ("title", "rows", "columns", "values")}
            for table in description.tables
        ]
    if details and description.shares:
        found["weights"] = dict(description.shares)
    if details and description.cases:
        found["cases"] = {name: _description_document(case, True) for name, case in description.cases.items()}
    return found


def _search_document(search: Any) -> dict[str, Any] | None:
    from spbn.search import PCResult, SearchResult

    if isinstance(search, PCResult):
        arcs, edges = ([list(pair) for pair in pairs] for pairs in (search.pdag.arcs, search.pdag.edges))
        return {"tests": sum(search.tests_run), "arcs": arcs, "edges": edges}
    if not isinstance(search, SearchResult):
        return None
    return {
        "score": search.score,
        "validation_score": search.validation_score,
        "steps": len(search.steps),
        "best": search.best,
        "stop_reason": search.stop_reason,
    }


@command
@options.model_argument
@options.file_option("--out", "graph.svg, .png, .pdf or .dot.", required=True)
@click.option(
    "--slices",
    type=int,
    help="For a model over time: how many rows to draw. Default: one more than it has lags.",
)
def plot(answer: Answer, model: Path, out: Path, slices: int | None) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.plots.graphs import save_graph

    inputs.require_targets(out, inputs=[model])
    network = inputs.load_any_model(model)
    if slices is not None and not network.is_dynamic:
        raise ArgumentError(f"--slices is for models over time, and {model} is not one.")
    with inputs.busy("drawing the graph"):
        if isinstance(network, spbn.DynamicNetwork) and out.suffix.lower() != ".dot":
            save_graph(network, out, slices=slices)
        else:
            save_graph(network.row_network, out)
    answer.wrote("out", out, f"graph written to {out}")


@command
@options.model_argument
@options.table_argument("data", required=False, help=f"Rows to check the model on. {options.A_TABLE}")
@options.file_option("--out", "Write the report: report.html.", required=True)
@options.table_option(
    "--confidence",
    help="Which arcs to believe: the table that spbn confidence --out wrote, arcs.csv.",
)
def report(answer: Answer, model: Path, data: Source | None, out: Path, confidence: Source | None) -> None:
    """Write a report that opens in a browser.

    [dim]spbn report wine.spbn wine.csv --out wine.html[/]

    [dim]spbn report wine.spbn wine.csv --confidence arcs.csv --out wine.html[/]
    """
    inputs.require_targets(report=out, inputs=[model, data, confidence])
    network = inputs.load_any_model(model)
    strengths = None if confidence is None else _strengths(network, confidence)
    remedy = inputs.FILL if network.is_dynamic else None
    rows = None if data is None else inputs.frame_for(network, data, remedy=remedy)
    title = network.row_network.record.title or model.stem
    write_report_to(answer, "out", out, network, rows, title, strengths)


def write_report_to(
    answer: Answer,
    option: str,
    path: Path | None,
    network: Network,
    data: Any,
    title: str,
    confidence: Strengths | None = None,
) -> None:
    """Write a report if an option asks for it."""

    def write(path: Path) -> None:
        from spbn.report import write_report

        with inputs.busy("writing the report"):
            write_report(network, path, data=data, title=title, confidence=confidence)

    answer.write(option, path, "report", write)


def _strengths(network: Network, source: Source) -> Strengths:
    from spbn.cli.files import read_as_written
    from spbn.diagnostics.model import Strengths

    if network.is_dynamic:
        raise ArgumentError("--confidence is for models of single rows: leave it out for one over time.")
    try:
        return Strengths.from_table(read_as_written(source), network.nodes)
    except DataError as error:
        raise DataError(f"{source}: {error.message}") from None


@command
@options.model_argument
@options.file_option("--out", "Write the page: explorer.html. Default: MODEL-explorer.html.")
@click.option(
    "-n",
    "--samples",
    "samples",
    type=int,
    help="Rows to draw from the network. Default: as many as fit a small page, up to 20,000.",
)
@options.seed_option
@click.option("--open/--no-open", "opens", default=True, help="Open the page in a browser.")
def explore(
    answer: Answer, model: Path, out: Path | None, samples: int | None, seed: int, opens: bool
) -> None:
    """Ask "what if" with the mouse, in a browser.

    Writes a page that works without an internet connection, and opens it.

    [dim]spbn explore wine.spbn[/]
    """
    from spbn.report import write_explorer

    target = Path(f"{model.stem}-explorer.html") if out is None else out
    inputs.require_targets(target, inputs=[model])
    network = inputs.load_any_model(model)
    with inputs.busy("drawing rows"):
        title = network.row_network.record.title or model.stem
        write_explorer(network, target, n=samples, seed=seed, title=title)
    answer.wrote("out", target, f"explorer written to {target}")
    if opens and not webbrowser.open(target.resolve().as_uri()):
        say("No browser was found: open the file in one.")


@command
@options.model_argument
@options.file_option("--out", "graph.graphml, .dot or .csv; model.bif or .xmlbif.", required=True)
def export(answer: Answer, model: Path, out: Path) -> None:
    """Write a network for other programs.

    .bif and .xmlbif hold all of a network whose nodes are discrete; .graphml, .dot and .csv (the adjacency
    matrix) hold the graph of any.

    [dim]spbn export wine.spbn --out wine.graphml[/]
    """
    from spbn.io import exchange

    inputs.require_targets(out, inputs=[model])
    exchange.require_known(out)
    exchange.export(inputs.load_any_model(model).row_network, out)
    answer.wrote("out", out, f"network written to {out}")


@command
@argument("file", type=FILE, help="A network of discrete nodes: model.bif or .xmlbif.")
@options.file_option("--out", "Write the model: model.spbn.", required=True)
def import_command(answer: Answer, file: Path, out: Path) -> None:
    """Read a network that another program wrote.

    [dim]spbn import alarm.bif --out alarm.spbn[/]
    """
    from spbn.io import exchange

    inputs.require_targets(out, inputs=[file])
    network = exchange.read(file)
    network.save(out)
    give_network(answer, network, details=False)
    answer.wrote("out", out, f"model written to {out}")


@command
@options.model_argument
@options.file_option("--out", "Write the compact model: small.spbn.", required=True)
@click.option("--tolerance", default=1e-6, help="Largest error of the log-density of a node in any row.")
@click.option(
    "--others",
    type=click.Choice(["error", "keep"]),
    default="error",
    help="Nodes too large for a table, such as those with three parents: refuse, or keep rows.",
)
def compact(
    answer: Answer, model: Path, out: Path, tolerance: float, others: Literal["error", "keep"]
) -> None:
    """Replace the training rows in a model with small tables.

    Scoring is then faster, and most training rows are no longer in the file.

    [dim]spbn compact wine.spbn --out small.spbn[/]
    """
    inputs.require_targets(out, inputs=[model])
    network = inputs.load_any_model(model)
    with inputs.busy("making tables"):
        small = network.compact(tolerance, others=others)
    small.save(out)
    before, after = model.stat().st_size, out.stat().st_size
    answer.give(lambda: {"tolerance": tolerance, "bytes": after, "bytes_before": before})
    answer.wrote(
        "out", out, f"compact model written to {out}: {_in_words(after)} instead of {_in_words(before)}"
    )
    if after > before:
        say(
            "It is larger than the model with its rows: tables only save space for many rows. A larger "
            "--tolerance makes them smaller."
        )


def _in_words(size: int) -> str:
    kilobytes = size / 1000
    return f"{kilobytes:.0f} kB" if kilobytes < 1000 else f"{kilobytes / 1000:.1f} MB"


@command
@options.model_argument
@options.data_argument
@click.option("--by-node", is_flag=True, help="Show the contribution of every node, on screen and in --out.")
@click.option("--top", default=20, help="How many of the most unusual rows to print.")
@click.option(
    "--missing",
    type=click.Choice(["error", "integrate"]),
    default="error",
    help="Rows with missing values: refuse the table, or score what is known.",
)
@options.seed_option
@options.file_option(
    "--out",
    "Write the scores of all rows: scores.csv. Their sum is in the column logpdf, or in total_logpdf if "
    "there is a node of that name.",
)
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
    import numpy as np

    from spbn.diagnostics.rows import unusual_in_time, unusual_rows

    inputs.require_targets(tables=[out], inputs=[model, data])
    inputs.require_least("--top", top, 0)
    network = inputs.load_any_model(model)
    if network.is_dynamic and missing == "integrate":
        raise ArgumentError(
            "--missing integrate is not for models over time: what is missing in a row is missing in the "
            "past of the next. Fill what is missing."
        )
    integrates = "Fill in the missing values, or pass --missing integrate to score what is present."
    remedy = inputs.FILL if network.is_dynamic else integrates
    frame = inputs.frame_for(network, data, remedy=None if missing == "integrate" else remedy)
    by_name: dict[str, FloatArray] = {}
    if not network.is_dynamic and frame.isna().to_numpy().any():
        if by_node:
            raise ArgumentError(
                "--by-node takes complete rows only: the contribution of a node depends on its parents."
            )
        with inputs.busy("scoring the rows"):
            logpdf = np.asarray(network.row_network.logpdf(frame, missing="integrate", seed=seed))
        document, left_out = _observed_document(network.row_network, logpdf, frame, top), False
    else:
        with inputs.busy("scoring the rows"):
            if isinstance(network, spbn.DynamicNetwork):
                found = unusual_in_time(network, frame, top=top)
            else:
                found = unusual_rows(network.row_network, frame, top=top)
        document, left_out = _unusual_document(found, frame.index.tolist(), by_node), found.left_out
        logpdf = found.logpdf
        by_name = dict(zip(network.nodes, found.contributions.T, strict=True)) if by_node else {}
    answer.give(lambda: document, lambda: _show_scores(document, list(by_name), left_out))
    total = "logpdf"
    while total in network.nodes:
        total = f"total_{total}"
    answer.write_rows("out", out, pd.DataFrame({total: logpdf, **by_name}, index=frame.index), "scores")


def _show_scores(found: Mapping[str, Any], nodes: list[str], left_out: bool) -> None:
    """Print the least likely rows: what some nodes contribute, or else what is to blame or missing."""
    rows, is_complete = found["unusual"], "incomplete" not in found
    incomplete = "" if is_complete else f"of which {found['incomplete']} with missing values; "
    say(f"{count(range(found['rows']), 'row')}, {incomplete}mean log-density {_fixed(found['mean'], 4)}", "")
    if nodes:
        table = pd.DataFrame([row["by_node"] for row in rows], [row["row"] for row in rows], nodes)
        table = table.rename(columns=printable).rename_axis(columns="row")
        table.insert(0, "log-density", [row["logpdf"] for row in rows], allow_duplicates=True)
        say_lines(table.to_string(float_format=lambda value: f"{value:.3f}"))
    else:
        head = "nodes to blame" if is_complete else "nodes to blame, and what is missing"
        say(f"{'row':>8} {'log-density':>12}  {head}", style="bold")
        for row in rows:
            blame = [f"{reason['node']} ({_fixed(-reason['drop'], 1)})" for reason in row["blame"]]
            why = ", ".join(blame or ["a little of everything"])
            if row.get("missing"):
                why += f"; no {', '.join(row['missing'])}"
            say(f"{row['row']!s:>8} {_fixed(row['logpdf'], 3):>12}  {why}")
    say()
    if left_out:
        say(f"These are the rows that the network was learned from: each is scored {found['scored']}.")
    about = "" if nodes else " In brackets: how many nats of log-density the node's value costs."
    if not is_complete:
        about += (
            " A row with missing values is scored by the values that are present: compare its log-density "
            "only with that of rows in which the same columns are missing."
        )
    say(f"Rows are counted from 1, without the header.{about}", style="dim")


def _unusual_document(found: UnusualRows, labels: Sequence[object], by_node: bool) -> dict[str, Any]:
    rows = []
    for row in found.rows:
        line = {"row": labels[row.position], "logpdf": row.logpdf, "blame": _blame(row.reasons)}
        if by_node:
            line["by_node"] = dict(zip(found.nodes, found.contributions[row.position], strict=True))
        rows.append(line)
    return {"rows": len(found.logpdf), "mean": found.mean, "scored": found.scoring.value, "unusual": rows}


def _blame(reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    return [{"node": reason.node, "value": reason.value, "drop": reason.drop} for reason in reasons]


def _observed_document(
    network: spbn.BayesianNetwork, logpdf: FloatArray, frame: pd.DataFrame, top: int
) -> dict[str, Any]:
    """Describe the least likely rows of a table with holes: what is missing in them, and what is to blame."""
    from spbn.diagnostics.rows import reasons as explain_rows

    holes, least = frame.isna(), logpdf.argsort(kind="stable")[:top].tolist()
    unusual = [
        {
            "row": frame.index[place],
            "logpdf": float(logpdf[place]),
            "missing": list(holes.columns[holes.iloc[place]]),
            "blame": _blame(found),
        }
        for place, found in zip(least, explain_rows(network, frame.iloc[least]), strict=True)
    ]
    return {
        "rows": len(logpdf),
        "incomplete": int(holes.any(axis=1).sum()),
        "mean": float(logpdf.mean()),
        "scored": "by what is there",
        "unusual": unusual,
    }


def _fixed(number: float, digits: int) -> str:
    """Write a number with so many digits after the point, or with a power of ten if it is very large."""
    return f"{number:.{digits}f}" if abs(number) < LARGE else f"{number:.4g}"
