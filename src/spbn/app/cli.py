"""The command line: ``spbn learn data.csv --report report.html`` and so on."""

from __future__ import annotations

import csv
import os
import signal
import sys
import threading
import warnings
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spbn.app.progress import working
from spbn.app.terminal import complain, out, print_comparison, print_unusual, show_network
from spbn.drawing.packages import require_plot_packages
from spbn.errors import ArgumentError, ModelFileError, SpbnError
from spbn.network import BayesianNetwork
from spbn.tables.files import read_table, require_complete, require_table_name, write_table
from spbn.tables.frames import Missing

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    name="spbn",
    help="Semiparametric Bayesian networks: learn them from a table, look at them, use them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A table: .csv, .tsv or .parquet.", show_default=False)
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model that [bold]spbn learn[/] wrote.", show_default=False),
]
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
        _require_target(path)
    if report is not None:
        require_plot_packages()
    frame = _training_frame(data, columns, missing)
    network = learn_network(
        frame,
        model=model,
        algorithm=algorithm,
        test=test,
        start=start,
        folds=folds,
        patience=patience,
        max_parents=max_parents,
        required_arcs=[_arc(text, frame.columns) for text in require or ()],
        forbidden_arcs=[_arc(text, frame.columns) for text in forbid or ()],
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    show_network(network)
    _warn_of_far_rows(network, frame)
    if out_ is not None or report is not None:
        out.print()
    if out_ is not None:
        network.save(out_)
        out.print(f"model written to {out_}", markup=False)
    if report is not None:
        _write_report(network, report, frame, data.stem)


@app.command()
def show(model: Model) -> None:
    """Print a network: nodes, types, parents, equations, bandwidths.

    [dim]spbn show wine.spbn[/]
    """
    show_network(_load(model), details=True)


@app.command()
def score(
    model: Model,
    data: Data,
    by_node: Annotated[
        bool, typer.Option("--by-node", help="Every node's contribution, on screen and in --out.")
    ] = False,
    top: Annotated[int, typer.Option(help="How many of the most unusual rows to print.")] = 20,
    out_: Annotated[Path | None, typer.Option("--out", help="Write all rows: scores.csv.")] = None,
) -> None:
    """Score rows: how unusual is each, and which nodes make it so.

    [dim]spbn score wine.spbn new.csv --top 5 --out scores.csv[/]
    """
    _require_target(out_)
    if out_ is not None:
        require_table_name(out_)
    network = _load(model)
    frame = _frame_for(network, data)
    with _working("scoring the rows"):
        contributions = network.logpdf_by_node(frame)
    total = contributions.sum(axis=1)
    print_unusual(contributions, total, top=top, by_node=by_node)
    if out_ is not None:
        import pandas as pd

        columns: dict[str, Any] = {"logpdf": total}
        if by_node:
            columns |= {str(node): contributions[node] for node in contributions.columns}
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
    _require_target(out_)
    if out_ is not None:
        require_table_name(out_)
    network = _load(model)
    with _working("drawing rows"):
        rows = network.sample(n, seed=seed)
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
    from spbn.app.comparison import compare_models

    frame = _training_frame(data, columns, missing)
    table = compare_models(frame, folds=folds, seed=seed, progress=sys.stderr.isatty())
    print_comparison(table)


@app.command()
def plot(
    model: Model,
    out_: Annotated[Path, typer.Option("--out", help="graph.svg, .png, .pdf or .dot.", show_default=False)],
) -> None:
    """Draw the graph of a network.

    [dim]spbn plot wine.spbn --out graph.svg[/]
    """
    from spbn.drawing.pictures import save_structure

    _require_target(out_)
    network = _load(model)
    with _working("drawing the graph"):
        save_structure(network.structure, out_)
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
    _require_target(out_)
    network = _load(model)
    _write_report(network, out_, None if data is None else _frame_for(network, data), model.stem)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the model and the report.")] = Path("."),
) -> None:
    """Learn the paper's synthetic network and put its figures beside the published ones.

    [dim]spbn demo[/]
    """
    from spbn.app.demo import run

    for name in ("spbn-demo.spbn", "spbn-demo.html"):
        _require_target(folder / name)
    run(folder, out, progress=sys.stderr.isatty())


def main() -> None:
    """Run the command line; what spbn refuses is one line, and exit code 2."""
    warnings.showwarning = _warn
    if threading.current_thread() is threading.main_thread():
        # As with Ctrl-C, files that are being written are taken away.
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _stop)
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except SpbnError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except MemoryError:
        _fail("there is not enough memory for that: ask for fewer rows.")
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
    if message:  # there is none where the help was shown instead
        complain(message)
    raise SystemExit(2)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"warning: {message}")


def _stop(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _working(title: str) -> AbstractContextManager[None]:
    return working(sys.stderr.isatty(), title)


def _warn_of_far_rows(network: BayesianNetwork, frame: pd.DataFrame) -> None:
    from spbn.explain.early_stops import early_stop
    from spbn.tables.frames import as_table

    found = early_stop(network.search, as_table(frame))
    if found is not None:
        rows = ", ".join(f"row {frame.index[far.row]} ({far.node})" for far in found.rows)
        _warn(f"{found}; look at {rows}. Leave wrong ones out, or try --start lg or another --seed.")


def _load(path: Path) -> BayesianNetwork:
    if not path.exists():
        raise ModelFileError(f"{path} does not exist.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model.")
    with _working("reading the model"):
        return BayesianNetwork.load(path)


def _training_frame(data: Path, columns: str | None, missing: Missing) -> pd.DataFrame:
    """Read the rows to learn from, and leave out those with holes if that is asked for."""
    with _working("reading the table"):
        frame = read_table(data, _names(columns))
    if missing == "drop":
        import numpy as np

        whole = np.isfinite(frame.to_numpy(dtype=float, na_value=np.nan)).all(axis=1)
        if not whole.all():
            out.print(f"{(~whole).sum()} of {len(whole)} rows have missing values and are left out\n")
        frame = frame.loc[whole]
    require_complete(data, frame, "Fill what is missing, or pass --missing drop to leave such rows out.")
    return frame


def _frame_for(network: BayesianNetwork, data: Path) -> pd.DataFrame:
    """Read the columns that a network needs."""
    with _working("reading the table"):
        frame = read_table(data, network.nodes)
    require_complete(data, frame, "Fill what is missing, or leave such rows out.")
    return frame


def _write_report(network: BayesianNetwork, path: Path, data: Any, title: str) -> None:
    from spbn.report import write_report

    with _working("writing the report"):
        write_report(network, path, data=data, title=title)
    out.print(f"report written to {path}", markup=False)


def _names(text: str | None) -> list[str] | None:
    """Split names at commas; one that has a comma itself stands in double quotes."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [""])]


def _arc(text: str, names: Collection[str]) -> tuple[str, str]:
    """Read A:B. Names may hold colons: then the one counts that has names on both sides."""
    parts = text.split(":")
    pairs = [(":".join(parts[:i]).strip(), ":".join(parts[i:]).strip()) for i in range(1, len(parts))]
    if not pairs:
        raise ArgumentError(f"an arc is written A:B, parent first. Got {text!r}.")
    return next((pair for pair in pairs if set(pair) <= set(names)), pairs[0])


def _require_target(path: Path | None) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ArgumentError(f"the folder {folder} does not exist: create it first.")
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder: give the name of a file to write.")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"nothing may be written to the folder {folder}.")
