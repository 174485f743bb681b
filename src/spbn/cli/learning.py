"""The options that all commands which learn have in common: written once, and read here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from glob import has_magic
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from spbn.cli.arguments import (
    MODELS,
    SCORES,
    TESTS,
    Columns,
    Discrete,
    Drop,
    Margins,
    MissingValues,
    Seed,
    Tables,
    arc_in,
    names_in,
)
from spbn.cli.inputs import note_peculiar_columns, training_frame, training_frame_with_holes
from spbn.cli.series import Axis, names_with_lags, series_frame
from spbn.cli.signatures import keyword_only, taking
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, quoted

if TYPE_CHECKING:
    import pandas as pd

    from spbn._base.arrays import BoolArray


def _options(
    data: Tables,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "spbn",
    algorithm: Annotated[str, typer.Option(help="hc (hill climbing) or pc.")] = "hc",
    score: Annotated[
        str | None,
        typer.Option(
            help=f"Score to maximise with hc: one of {', '.join(SCORES)}. Default: bic for gbn, else cv.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[str, typer.Option(help="Type of all nodes at the start: ckde or lg.")] = "ckde",
    folds: Annotated[int, typer.Option(help="Folds of the cross-validated likelihood.")] = 10,
    validation: Annotated[float, typer.Option(help="Fraction of the rows held out for validation.")] = 0.2,
    patience: Annotated[
        int, typer.Option(help="Steps to continue without progress on the validation rows.")
    ] = 5,
    epsilon: Annotated[float, typer.Option(help="Gain that a step must exceed.")] = 0.0,
    max_parents: Annotated[
        int | None,
        typer.Option(help="Maximum number of parents of a node; no limit by default.", show_default=False),
    ] = None,
    test: Annotated[str, typer.Option(help=f"Independence test for pc: one of {', '.join(TESTS)}.")] = "rcot",
    alpha: Annotated[float, typer.Option(help="Significance level of the tests of pc.")] = 0.05,
    require: Annotated[
        list[str] | None,
        typer.Option(help="An arc that is required, A:B. May be repeated.", show_default=False),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(help="An arc that is forbidden, A:B. May be repeated.", show_default=False),
    ] = None,
    bandwidth: Annotated[
        Literal["scott", "silverman", "cv"], typer.Option(help="Rule for the bandwidths of CKDE nodes.")
    ] = "scott",
    margins: Margins = "none",
    columns: Columns = None,
    drop: Drop = None,
    discrete: Discrete = None,
    smoothing: Annotated[
        float,
        typer.Option(help="Rows added to every configuration of a discrete node's parents; 0 for none."),
    ] = 1.0,
    missing: MissingValues = "error",
    seed: Seed = 0,
) -> dict[str, Any]:
    return dict(locals())


@dataclass(frozen=True, eq=False)
class Lesson:
    """What to learn from and how; tables are read only when asked for, after other options were checked.

    Attributes
    ----------
    files
        What was given as the table.
    given
        The options, as they were given.
    can_impute
        Whether the command can learn from a table with holes.
    """

    files: tuple[Source, ...]
    given: Mapping[str, Any]
    can_impute: bool = True

    @property
    def data(self) -> Source:
        """The file, or the first of several."""
        return self.files[0]

    @property
    def table(self) -> Source:
        """The file, where there can be one only."""
        if len(self.files) > 1:
            raise ArgumentError(
                f"one table can be given. Got {len(self.files)}: {quoted(map(str, self.files))}."
            )
        return self.data

    @property
    def is_in_parts(self) -> bool:
        """Whether it is several Parquet files: a list, a folder, or a pattern that no shell has filled in."""
        is_pattern = has_magic(str(self.data)) and not self.data.path.exists()
        return len(self.files) > 1 or self.data.path.is_dir() or is_pattern

    @property
    def columns(self) -> list[str] | None:
        """The columns to use; None if all."""
        return names_in("--columns", self.given["columns"])

    @property
    def drop(self) -> list[str]:
        """The columns to leave out."""
        return names_in("--drop", self.given["drop"]) or []

    @property
    def discrete(self) -> list[str]:
        """The columns that hold categories, whatever they look like."""
        return names_in("--discrete", self.given["discrete"]) or []

    def settings(self, names: Collection[str]) -> dict[str, Any]:
        """Return the settings of `spbn.learn`; arcs are between columns of these names."""
        given = self.given
        return {
            "model": given["model"],
            "algorithm": given["algorithm"],
            "score": given["score"],
            "start": given["start"],
            "folds": given["folds"],
            "validation": given["validation"],
            "patience": given["patience"],
            "epsilon": given["epsilon"],
            "max_parents": given["max_parents"],
            "test": given["test"],
            "alpha": given["alpha"],
            "required_arcs": [arc_in("--require", text, names) for text in given["require"] or ()],
            "forbidden_arcs": [arc_in("--forbid", text, names) for text in given["forbid"] or ()],
            "bandwidth": given["bandwidth"],
            "margins": given["margins"],
            "discrete": self.discrete,
            "smoothing": given["smoothing"],
            "missing": given["missing"],
            "seed": given["seed"],
        }

    def read(self, axis: Axis | None = None) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the table and the settings of `spbn.learn`; `axis` says how rows follow each other."""
        from spbn.cli.files import present, require_complete

        data, missing, categories = self.table, self.given["missing"], self.discrete
        if axis is not None:
            frame = series_frame(data, axis, columns=self.columns, drop=self.drop, discrete=categories)
            if missing == "error":
                require_complete(
                    data,
                    frame.drop(columns=axis.keys),
                    "Fill what is missing, or pass --missing drop to leave out rows that look back on it.",
                )
        elif missing == "impute":
            frame = training_frame_with_holes(data, self.columns, self.drop, categories)
        else:
            remedy = "With --missing impute, a network is learned from the values that are there."
            frame = training_frame(
                data, self.columns, self.drop, categories, missing, remedy=remedy if self.can_impute else ""
            )
        variables = frame if axis is None else frame.drop(columns=axis.keys)
        names = [str(name) for name in variables.columns]
        whole: BoolArray = present(variables).min(axis=1)
        if whole.any():
            note_peculiar_columns(variables.loc[whole], categories)
        return frame, self.settings(names if axis is None else names_with_lags(names, axis.lags))

    def read_later(self) -> dict[str, Any]:
        """Return the settings of `spbn.distributed.learn` instead, and leave the rows to others."""
        given = self.given
        _refuse_for_parts(
            {
                "--algorithm": given["algorithm"] != "hc",
                "--test": given["test"] != "rcot",
                "--alpha": given["alpha"] != 0.05,
                "--missing impute": given["missing"] == "impute",
                "--bandwidth cv": given["bandwidth"] == "cv",
                "--sep": self.data.sep is not None,
                "--decimal": self.data.decimal is not None,
                "--encoding": self.data.encoding is not None,
            }
        )
        from spbn.dask.sources import opened

        paths = [source.path for source in self.files]
        source = opened(paths, drop=self.drop, only=self.columns, discrete=self.discrete)
        settings = self.settings(source.names)
        for name in ("algorithm", "test", "alpha"):
            del settings[name]
        if settings["max_parents"] is None:
            del settings["max_parents"]
        return {**settings, "drop": self.drop, "columns": self.columns}


def _refuse_for_parts(given: dict[str, bool]) -> None:
    """Refuse options that make no difference where rows are in several files, or are not possible there."""
    unused = [option for option, is_given in given.items() if is_given]
    if unused:
        raise ArgumentError(
            f"{' and '.join(unused)} cannot be used with several files, whose rows are read a part at a "
            f"time: put them into one file, or leave the option out."
        )


def with_learning_options(
    command: Callable[..., None] | None = None, *, but: Collection[str] = ()
) -> Callable[..., Any]:
    """Give a command the options above: they reach it as its first argument, a `Lesson`.

    An option that the command declares itself has the help and the default that it has there.

    Parameters
    ----------
    but
        Options that the command does not have.
    """
    if command is None:
        return functools.partial(with_learning_options, but=but)
    (first, *own) = signature(command).parameters.values()
    redeclared = {parameter.name: parameter for parameter in own if parameter.name in _declared()}
    ours = {name: redeclared.get(name, p) for name, p in _declared().items() if name not in but}
    others = [parameter for parameter in own if parameter.name not in redeclared]
    hints = get_type_hints(_options, include_extras=True) | get_type_hints(command, include_extras=True)
    parameters = keyword_only((*ours.values(), *others), hints)
    function = command

    @functools.wraps(function)
    def called(**given: Any) -> None:
        options = _options(**{name: given[name] for name in ours})
        data = options.pop("data")
        files = (data,) if isinstance(data, Source) else tuple(data)
        lesson = Lesson(files, options, can_impute="missing" not in redeclared)
        rest = {name: value for name, value in given.items() if name not in ours or name in redeclared}
        function(**{first.name: lesson}, **rest)

    return taking(parameters, called)


def _declared() -> Mapping[str, Parameter]:
    return signature(_options).parameters
