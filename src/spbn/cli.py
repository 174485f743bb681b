"""The command line: ``spbn learn data.csv --report report.html`` and so on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spbn.cpds import CKDE
from spbn.data import Missing
from spbn.errors import ArgumentError, ModelFileError, SpbnError
from spbn.network import BayesianNetwork
from spbn.search import SearchResult
from spbn.structure import NodeType
from spbn.tables import read_table, write_table

app = typer.Typer(
    name="spbn",
    help="Semiparametric Bayesian networks: learn them from a table, look at them, use them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console(soft_wrap=True, highlight=False)

Data = Annotated[Path, typer.Argument(help="A table: .csv, .tsv or .parquet.", show_default=False)]
Model = Annotated[Path, typer.Argument(help="A model that [bold]spbn learn[/] wrote.", show_default=False)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
MissingRows = Annotated[Missing, typer.Option(help="What to do about rows with missing values.")]
Columns = Annotated[str | None, typer.Option(help="Columns to use, separated by commas; all by default.")]


def _version(asked: bool) -> None:
    if asked:
        import spbn

        out.print(f"spbn {spbn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version)] = False,
) -> None:
    """Semiparametric Bayesian networks: learn them from a table, look at them, use them."""


@app.command()
def learn(
    data: Data,
    model: Annotated[str, typer.Option(help="spbn, gbn or kdebn.")] = "spbn",
    algorithm: Annotated[str, typer.Option(help="hc (hill climbing) or pc.")] = "hc",
    test: Annotated[str, typer.Option(help="For pc: rcot, plc or cmiknn.")] = "rcot",
    start: Annotated[str, typer.Option(help="Node types to start from: ckde or lg.")] = "ckde",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validated likelihood.")] = 10,
    patience: Annotated[int, typer.Option(help="Steps without progress on the validation rows.")] = 5,
    max_parents: Annotated[int | None, typer.Option(help="At most so many parents.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="An arc that must be there, A:B.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="An arc that must not be there, A:B.")] = None,
    columns: Columns = None,
    missing: MissingRows = "error",
    seed: Seed = 0,
    out_: Annotated[Path | None, typer.Option("--out", help="Write the model: model.spbn.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report: report.html.")] = None,
) -> None:
    """Learn a network from a table.

    [dim]spbn learn wine.csv --out wine.spbn --report wine.html[/]
    """
    from spbn.learn import learn as learn_network

    for path in (out_, report):
        _require_folder(path)
    frame = read_table(data, _names(columns))
    network = learn_network(
        frame,
        model=model,
        algorithm=algorithm,
        test=test,
        start=start,
        folds=folds,
        patience=patience,
        max_parents=max_parents,
        required_arcs=[_arc(text) for text in require or ()],
        forbidden_arcs=[_arc(text) for text in forbid or ()],
        missing=missing,
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    _show(network)
    if out_ is not None:
        network.save(out_)
        out.print(f"\nmodel written to {out_}", markup=False)
    if report is not None:
        _write_report(network, report, frame.dropna() if missing == "drop" else frame)


@app.command()
def show(model: Model) -> None:
    """Print a network: nodes, types, parents, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    _show(_load(model), bandwidths=True)


@app.command()
def score(
    model: Model,
    data: Data,
    by_node: Annotated[bool, typer.Option("--by-node", help="Also the contribution of every node.")] = False,
    top: Annotated[int, typer.Option(help="How many of the most unusual rows to print.")] = 20,
    out_: Annotated[Path | None, typer.Option("--out", help="Write all rows: scores.csv.")] = None,
) -> None:
    """Score rows: how unusual is each, and which nodes make it so.

    [dim]spbn score wine.spbn new.csv --top 5 --out scores.csv[/]
    """
    _require_folder(out_)
    network = _load(model)
    contributions = network.logpdf_by_node(read_table(data, network.nodes))
    total = contributions.sum(axis=1)
    typical = contributions.median()
    out.print(f"{len(total)} rows, mean log-density {total.mean():.4f}\n")
    out.print(f"{'row':>8} {'log-density':>12}  nodes that make it so", style="bold")
    for row in total.nsmallest(max(0, top)).index:
        lacking = (typical - contributions.loc[row]).nlargest(3)
        reasons = ", ".join(f"{node} ({-gap:+.1f})" for node, gap in lacking.items() if gap > 1.0)
        out.print(f"{row:>8} {total[row]:12.3f}  {reasons or 'a little of everything'}", markup=False)
    if out_ is not None:
        columns: dict[str, Any] = {"logpdf": total}
        if by_node:
            columns |= {str(node): contributions[node] for node in contributions.columns}
        import pandas as pd

        write_table(pd.DataFrame(columns), out_)
        out.print(f"\nscores written to {out_}", markup=False)


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="How many rows.")] = 1000,
    seed: Seed = 0,
    out_: Annotated[Path | None, typer.Option("--out", help="Write to a file instead of the screen.")] = None,
) -> None:
    """Draw rows from a network.

    [dim]spbn sample wine.spbn -n 1000 --out samples.csv[/]
    """
    _require_folder(out_)
    rows = _load(model).sample(n, seed=seed)
    if out_ is None:
        sys.stdout.write(rows.to_csv(index=False))
    else:
        write_table(rows, out_)
        out.print(f"{n} rows written to {out_}", markup=False)


@app.command()
def compare(
    data: Data,
    folds: Annotated[int, typer.Option(help="Outer folds.")] = 10,
    columns: Columns = None,
    missing: MissingRows = "error",
    seed: Seed = 0,
) -> None:
    """Compare Gaussian, KDE and semiparametric networks on rows they have not seen.

    [dim]spbn compare wine.csv --folds 5[/]
    """
    from spbn.comparison import compare_models

    frame = read_table(data, _names(columns))
    table = compare_models(frame, folds=folds, missing=missing, seed=seed, progress=sys.stderr.isatty())
    out.print(table.to_string(index=False, float_format=lambda value: f"{value:.4f}"), markup=False)


@app.command()
def plot(
    model: Model,
    out_: Annotated[Path, typer.Option("--out", help="graph.svg, .png, .pdf or .dot.", show_default=False)],
) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.pictures import save_structure

    _require_folder(out_)
    save_structure(_load(model).structure, out_)
    out.print(f"graph written to {out_}", markup=False)


@app.command()
def report(
    model: Model,
    out_: Annotated[Path, typer.Option("--out", help="report.html", show_default=False)],
    data: Annotated[Path | None, typer.Option(help="Rows to check the model on.")] = None,
) -> None:
    """Write a report that opens in a browser.

    [dim]spbn report wine.spbn --data wine.csv --out wine.html[/]
    """
    _require_folder(out_)
    network = _load(model)
    _write_report(network, out_, None if data is None else read_table(data, network.nodes))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the model and the report.")] = Path("."),
) -> None:
    """Learn the paper's synthetic network and put its figures beside the published ones.

    [dim]spbn demo[/]
    """
    from spbn.demo import run

    _require_folder(folder / "spbn-demo.html")
    run(folder, out, progress=sys.stderr.isatty())


def main() -> None:
    """Run the command line; what spbn refuses is one line, and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except (SpbnError, OSError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        raise SystemExit(130) from None
    except Exception as error:
        usage = getattr(error, "format_message", None)  # what the parser of the command line refuses
        if usage is None:
            raise
        _fail(usage())
    else:
        if code:  # an interrupt comes back as a number
            raise SystemExit(code)


def _fail(message: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"spbn: {message}", markup=False)
    raise SystemExit(2)


def _show(network: BayesianNetwork, *, bandwidths: bool = False) -> None:
    structure = network.structure
    kernels = sum(node_type is NodeType.CKDE for node_type in structure.types.values())
    out.print(f"{len(structure.nodes)} nodes, {len(structure.arcs)} arcs, {kernels} CKDE nodes\n")
    width = max(map(len, structure.nodes))
    for node in structure.dag.topological_order():
        cpd = network.cpds[node]
        out.print(f"{node:{width}}  {structure.type(node):4}  {cpd!r}", markup=False)
        if bandwidths and isinstance(cpd, CKDE):
            for name, row in zip(cpd.joint.names, cpd.bandwidth, strict=True):
                numbers = " ".join(f"{value:11.4g}" for value in row)
                out.print(f"{'':{width}}        bandwidth {name:{width}} {numbers}", markup=False)
    if isinstance(network.search, SearchResult):
        out.print(f"\n{len(network.search.steps)} steps, stopped: {network.search.stop_reason}")


def _load(path: Path) -> BayesianNetwork:
    if not path.exists():
        raise ModelFileError(f"{path} does not exist.")
    return BayesianNetwork.load(path)


def _write_report(network: BayesianNetwork, path: Path, data: Any) -> None:
    from spbn.report import write_report

    write_report(network, path, data=data)
    out.print(f"report written to {path}", markup=False)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _arc(text: str) -> tuple[str, str]:
    source, colon, target = text.partition(":")
    if not colon:
        raise ArgumentError(f"an arc is written A:B, parent first. Got {text!r}.")
    return source.strip(), target.strip()


def _require_folder(path: Path | None) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise ArgumentError(f"the folder {path.absolute().parent} does not exist: create it first.")
