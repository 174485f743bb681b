"""Arguments and options that several commands have, and how their text is read.

The options of commands that learn are made from `LearnSettings`, field by field: a new argument of `learn` is
on the command line without a line here.

Conditions are written as people write them: ``E=3.5``, ``5<=D<=7``, ``C>0``, ``sex=F``, ``sex in F,M``. Names
of columns may hold spaces, operators and whatever else. So the text is not taken apart at its operators:
every known name is looked for, the longest first, and the first wins that leaves a condition.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from spbn._base.lazy import nw, pd
from spbn.cli.command import FILE, TABLE, argument, say, say_lines
from spbn.cli.inputs import (
    Axis,
    busy,
    note_peculiar_columns,
    require_least,
    training_frame,
    with_all_levels,
)
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, DataError, SpbnError, quoted
from spbn.graphs.patterns import is_pattern, matching_places
from spbn.learning.settings import OPTIONS, Option

if TYPE_CHECKING:
    from spbn.tables.preparation import Prepared
    from spbn.tables.readings import Preparation
    from spbn.tables.table import Variable

#: Whether workers of this machine are processes of their own; tests do with threads.
PROCESSES = True

#: Conditions on a variable, which is put in for {}.
_ORDER = "<=|>=|<|>|≤|≥"  # people copy the last two from texts
_NUMBER = r"[^\s<>=≤≥]+"
_EQUAL = r"\s*{}\s*==?\s*(.*?)\s*"
_AMONG = r"\s*{}\s+in\s+(.*?)\s*"
_BETWEEN = rf"\s*(?:({_NUMBER})\s*({_ORDER})\s*)?{{}}\s*(?:({_ORDER})\s*({_NUMBER})\s*)?"
_EDGE = r"(?:(?<!\w)|(?!\w))"  # of a word, if the name begins or ends with a letter
EXAMPLES = "'E=3.5', '5<=D<=7', 'C>0', 'sex=F' or 'sex in F,M'"

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class Words(click.types.StringParamType):
    """Text, for which a shell offers some words; others are refused by whoever reads it, with a reason."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


class NumberOr(click.ParamType[Any]):
    """A number, or one of some words, of which "none" stands for None."""

    def __init__(self, words: Collection[str], number: type[int] | type[float] = float) -> None:
        self._words, self._number = words, number
        self.name = number.__name__

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value in self._words:
            return None if value == "none" else value
        try:
            return self._number(value)
        except ValueError:
            words = " or ".join(map(repr, self._words))
            kind = "a whole number" if self._number is int else "a number"
            self.fail(f"{value!r} is neither {kind} nor {words}.", param, ctx)


A_TABLE = "A table: .csv, .tsv, .csv.gz, .parquet or .xlsx; or - for standard input."


def file_option(flag: str, help: str, **attributes: Any) -> Decorator:
    """Return an option for a file that a command writes."""
    return click.option(flag, type=FILE, help=help, **attributes)


def table_option(*names: str, help: str) -> Decorator:
    """Return an option for a table that a command reads."""
    return click.option(*names, type=TABLE, metavar="TABLE", help=help)


model_argument = argument("model", type=FILE, help="A model written by [bold]spbn learn[/].")
table_argument = functools.partial(argument, type=TABLE)
data_argument = table_argument("data", help=A_TABLE)
seed_option = click.option("--seed", type=int, default=0, help=OPTIONS["seed"].flag_help)
do_option = functools.partial(
    click.option,
    "--do",
    multiple=True,
    help="A variable that is set by intervention, which says nothing about its causes: 'A=2'. May be "
    "repeated.",
)
over_option = click.option(
    "--over",
    type=click.Choice(["network", "equivalent"]),
    default="network",
    help="Answer by the network, or by all graphs that open directions allow. These need the training rows.",
)
rows_option = table_option("--data", help="The training rows, for --over equivalent.")
na_option = click.option(
    "--na", multiple=True, help="What stands for a missing value: -999. May be repeated."
)
report_option = file_option("--report", "Write a report: report.html.")
screen_option = file_option("--out", "Write to a file, not to the screen.")
#: What is different about --missing where nothing can be imputed.
MISSING_ROWS: dict[str, Any] = {
    "type": click.Choice(["error", "drop"]),
    "help": "Rows with missing values: refuse the table, or drop these rows.",
}
workers_option = click.option(
    "--workers", type=int, help="Start this many worker processes on this machine. Needs Dask."
)
scheduler_option = click.option(
    "--scheduler", help="Use the workers of this Dask scheduler: tcp://10.0.0.1:8786."
)


def learning_option(known: Option, **changes: Any) -> Decorator:
    """Return the option for an argument of `learn`, as it is or with another default, help or name."""
    declared: dict[str, Any] = {"help": known.flag_help, "default": known.default}
    if known.kind in ("names", "arcs"):
        declared |= {"multiple": True}
    elif known.kind == "tiers":
        declared |= {"type": str, "default": None, "metavar": "TIERS"}
    elif known.kind == "flag":
        declared |= {"is_flag": True}
    elif known.kind == "choice":
        # Where the help names them all, it is the library that refuses others.
        are_named = all(choice in known.flag_help for choice in known.choices)
        declared |= {"type": Words(known.choices) if are_named else click.Choice(known.choices)}
    elif known.words:
        declared |= {"type": NumberOr(known.words, int if known.kind == "int" else float)}
    else:
        declared |= {"type": {"int": int, "float": float}.get(known.kind, str)}
    flag = changes.pop("flag", known.flag)
    return click.option(flag, known.name, **(declared | changes))


def learning_options(
    *, but: Collection[str] = (), one_table: bool = False, **changes: Mapping[str, Any]
) -> Decorator:
    """Give a command a table, and the options that decide what is learned from it: they become a `Lesson`.

    All options `but` those that the command does not have, or has with another meaning; `changes` are what
    is different for this command: for the name of an argument of `learn`, a default, say.
    """
    shared = [known for known in OPTIONS.values() if known.is_shared and known.flag and known.name not in but]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(*, data: Source | tuple[Source, ...], columns: tuple[str, ...], **options: Any) -> None:
            files = (data,) if isinstance(data, Source) else data
            chosen = {known.name: options.pop(known.name) for known in shared}
            for known in shared:
                if known.kind == "names":
                    given = names_in(str(known.flag), chosen[known.name])
                    chosen[known.name] = known.default if given is None else given
            can_impute = "missing" not in (*but, *changes)
            lesson = Lesson(files, names_in("--columns", columns), chosen.pop("drop"), chosen, can_impute)
            command(lesson=lesson, **options)

        wrapped: Callable[..., None] = called
        for known in reversed(shared):
            wrapped = learning_option(known, **changes.get(known.name, {}))(wrapped)
            if known.name == "drop":
                wrapped = click.option(
                    "--columns",
                    multiple=True,
                    help="Columns to use, separated by commas: a,b. May be repeated. Default: all.",
                )(wrapped)
        if one_table:
            return data_argument(wrapped)
        return table_argument("data", nargs=-1, required=True, help=A_TABLE)(wrapped)

    return decorate


@dataclass(frozen=True, eq=False)
class Lesson:
    """What to learn from and how; tables are read only when asked for, after other options were checked."""

    files: tuple[Source, ...]  # what was given as the table
    #: The columns to use, None being all, and those to leave out.
    columns: list[str] | None
    drop: list[str]
    #: The other options. Arcs are as they were given, until the names of the columns are known.
    chosen: Mapping[str, Any]
    can_impute: bool  # whether the command can learn from a table with holes
    fixes: bool = False  # whether a messy table is read as `spbn.prepare` says
    na: tuple[str, ...] = ()  # what stands for missing values

    @property
    def data(self) -> Source:
        """The file, or the first of several."""
        return self.files[0]

    @property
    def discrete(self) -> list[str]:
        """The columns that hold categories, whatever they look like."""
        return self.chosen["discrete"]

    @property
    def is_in_parts(self) -> bool:
        """Whether it is several Parquet files: a list, a folder, or a pattern that no shell has filled in."""
        is_pattern = has_magic(str(self.data)) and not self.data.path.exists()
        return len(self.files) > 1 or self.data.path.is_dir() or is_pattern

    def settings(self, names: Collection[str]) -> dict[str, Any]:
        """Return the settings of `spbn.learn` for a table with columns of these names."""
        found = dict(self.chosen)
        for name, value in found.items():
            if OPTIONS[name].kind == "arcs":
                found[name] = [arc_in(str(OPTIONS[name].flag), text, names) for text in value]
            elif OPTIONS[name].kind == "tiers":
                found[name] = tiers_in(str(OPTIONS[name].flag), value)
        return found

    def read(self, axis: Axis | None = None) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the table and the settings of `spbn.learn`; `axis` says how rows follow each other."""
        from spbn.cli.files import present, read_table, require_complete
        from spbn.tables.lags import lag_name

        if len(self.files) > 1:
            raise ArgumentError(
                f"one table can be given. Got {len(self.files)}: {quoted(map(str, self.files))}."
            )
        data, missing, columns = self.data, self.chosen["missing"], self.columns
        if axis is None:
            if self.fixes:
                _, found = self.prepared()
                say_lines(str(found))
                say()
                settings = self.settings(list(map(str, found.frame)))
                return found.frame, settings | {"prepare": found.preparation, "discrete": ()}
            frame = training_frame(
                data, columns, self.drop, self.discrete, missing, na=self.na, can_impute=self.can_impute
            )
            variables, lags = frame, 0
        else:
            with busy("reading the table"):
                chosen = None if columns is None else [name for name in columns if name not in axis.keys]
                frame = read_table(data, chosen, drop=self.drop, discrete=self.discrete, keys=axis.keys)
                frame = axis.resampled(frame)
            variables, lags = frame.drop(columns=axis.keys), axis.lags
            if missing == "error":
                remedy = (
                    "Fill what is missing, or pass --missing drop to leave out rows that look back on it."
                )
                require_complete(data, variables, remedy)
        whole = present(variables).min(axis=1)
        if whole.any():
            note_peculiar_columns(variables.loc[whole], self.discrete)
        return frame, self.settings([lag_name(str(n), lag) for lag in range(lags + 1) for n in variables])

    def prepared(self) -> tuple[Source, Prepared]:
        """Return where the table is in its file, and how it is read with --fix auto."""
        from spbn.cli.files import read_raw, title_rows_of
        from spbn.tables.columns import known_names
        from spbn.tables.preparation import prepare

        with busy("reading the table"):
            self.data.require_readable()
            data = self.data.skipping(title_rows_of(self.data))
            raw = read_raw(data)
            if self.columns is not None:
                raw = raw[known_names("columns", self.columns, list(map(str, raw)))]
            decimal = data.decimal or ("," if data.is_text and data.separator == ";" else None)
            found = prepare(raw, drop=self.drop, discrete=self.discrete, na=self.na, decimal=decimal)
        place = replace(found.preparation, skip_rows=data.skip_rows or 0, sheet=data.sheet)
        return data, replace(found, preparation=place)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Refuse a table that nothing can be learned from with everything that is wrong, and what to do."""
        from spbn.tables.preparation import BLOCKING

        try:
            yield
        except DataError as error:
            if self.fixes or len(self.files) > 1:
                raise
            refused = error
        else:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = self.prepared()[1]
        except SpbnError:  # nothing can be made of it
            raise refused from None
        how = f"To have all this done: {shlex.join(['spbn', *sys.argv[1:], '--fix', 'auto'])}"
        blocked = {finding.column for finding in found.findings if finding.kind in BLOCKING}
        if len(blocked) < 2 and len(found.findings) < 2:
            raise DataError(f"{refused.message} {how}", argument=refused.argument)
        say_lines(f"{found}\n", stderr=True)
        raise DataError(f"{self.data} cannot be learned from as it is. {how}")

    def read_later(self) -> dict[str, Any]:
        """Return the settings of `spbn.distributed.learn` instead, and leave the rows to others."""
        from spbn.dask.sources import open_source

        only_in_memory = ("test", "alpha")
        refused = {
            "--algorithm pc": self.chosen["algorithm"] == "pc",
            **{f"--{name}": self.chosen[name] != OPTIONS[name].default for name in only_in_memory},
            "--missing impute": self.chosen["missing"] == "impute",
            "--bandwidth cv": self.chosen["bandwidth"] == "cv",
            **{f"--{name}": getattr(self.data, name) is not None for name in ("sep", "decimal", "encoding")},
        }
        unused = [option for option, is_given in refused.items() if is_given]
        if unused:
            raise ArgumentError(
                f"{' and '.join(unused)} cannot be used with several files, whose rows are read a part at a "
                f"time: put them into one file, or leave the option out."
            )
        paths = [source.path for source in self.files]
        source = open_source(paths, drop=self.drop, only=self.columns, discrete=self.discrete)
        settings = self.settings(source.names)
        for name in only_in_memory:
            del settings[name]
        if settings["max_parents"] is None:
            del settings["max_parents"]
        return {**settings, "drop": self.drop, "columns": self.columns}


def as_read(frame: pd.DataFrame, lesson: Lesson) -> Preparation | str:
    """Return how a network reads text, and what stands for missing values, as the command line has."""
    from spbn.tables.columns import categories
    from spbn.tables.readings import Preparation, Reading

    readings = {}
    for name, column in with_all_levels(frame, lesson.discrete).items():
        is_level = column.dtype == "category"
        levels = categories(nw.from_native(column, series_only=True)).levels if is_level else ()
        kind: Any = "level" if is_level else "number"
        readings[str(name)] = Reading(source=str(name), kind=kind, levels=levels, missing=lesson.na)
    if not lesson.na and not any(r.is_level for r in readings.values()) and frame.notna().to_numpy().all():
        return "none"
    return Preparation(readings)


def names_in(option: str, texts: Collection[str]) -> list[str] | None:
    """Read names that are separated by commas; None if nothing is given."""
    if not texts:
        return None
    names = [name for text in texts for name in _fields(text)]
    if not names:
        raise ArgumentError(f"{option} does not name a column: give one or several, separated by commas.")
    return names


def arc_in(option: str, text: str, names: Collection[str]) -> tuple[str, str]:
    """Read an arc, A:B. A name may contain a colon: the one counts that has names on both sides."""
    parts = text.split(":")
    pairs = [(":".join(parts[:i]).strip(), ":".join(parts[i:]).strip()) for i in range(1, len(parts))]
    if not pairs:
        raise ArgumentError(f"{option} takes an arc written A:B, parent first. Got {text!r}.")
    places = list(names)

    def is_known(end: str) -> bool:
        return end in names or (is_pattern(end) and bool(matching_places(end, places)))

    known = [pair for pair in pairs if all(map(is_known, pair))]
    if not known:
        unknown = [name for name in dict.fromkeys(pairs[0]) if not is_known(name)]
        if is_pattern(unknown[0]):
            raise ArgumentError(
                f"{option} {text!r}: the pattern {unknown[0]!r} matches no column. The columns are "
                f"{quoted(names)}."
            )
        raise ArgumentError(
            f"{option} {text!r} names {'an unknown column' if len(unknown) == 1 else 'unknown columns'}: "
            f"{quoted(unknown)}. The columns are {quoted(names)}."
        )
    if len(known) > 1:
        readings = " or ".join(f"{source} → {target}" for source, target in known)
        raise ArgumentError(f"{option} {text!r} can be read as {readings}: rename a column.")
    if known[0][0] == known[0][1] and known[0][0] in names:
        raise ArgumentError(f"{option} takes an arc between two different columns. Got {text!r}.")
    return known[0]


def tiers_in(option: str, text: str | None) -> list[list[str]]:
    """Read tiers: columns separated by commas, and tiers by semicolons, or by the lines of a file.

    A single tier would say nothing, so text without a semicolon is the name of a file.
    """
    if not text:
        return []
    lines = re.findall(r'(?:"[^"]*"|[^;"]|")+', text)
    if ";" not in text:
        try:
            lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise ArgumentError(
                f"{option} takes groups of columns, 'age,sex;dose;outcome', or the name of a text file with "
                f"one group per line. Got {text!r}, which cannot be read as a file "
                f"({getattr(error, 'strerror', None) or error})."
            ) from None
    return [[name for name in _fields(line) if name] for line in lines if line.strip()]


def client_of(workers: int | None, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return the client of workers that are started, or of a scheduler; None if neither is asked for."""
    from spbn.dask.client import connected, local_workers

    if workers is not None and scheduler is not None:
        raise ArgumentError("give --workers or --scheduler, not both: a scheduler has workers of its own.")
    if workers is not None:
        require_least("--workers", workers)
        return local_workers(workers, processes=PROCESSES)
    return nullcontext() if scheduler is None else connected(scheduler)


def conditions_in(option: str, texts: Sequence[str], variables: Sequence[Variable]) -> dict[str, Any]:
    """Read conditions, all of which hold, as the evidence that `BayesianNetwork.query` takes."""
    found: dict[str, Any] = {}
    for text in texts:
        name, value = condition_in(option, text, variables)
        found[name] = _both(option, name, found[name], value) if name in found else value
    return found


def condition_in(option: str, text: str, variables: Sequence[Variable]) -> tuple[str, Any]:
    """Read one condition: the name of a variable, and a value, an interval, or a list of levels."""
    for variable in sorted(variables, key=lambda variable: -len(variable.name)):
        name = re.escape(variable.name)
        equal, among, between = (
            re.fullmatch(pattern.format(name), text, re.DOTALL) for pattern in (_EQUAL, _AMONG, _BETWEEN)
        )
        if variable.is_discrete and (equal or among):
            wanted = [equal[1]] if equal else _fields(among[1]) if among else []
            return variable.name, _levels(f"{option} {text!r}", variable, wanted)
        if not variable.is_discrete and equal:
            number = _number(equal[1])
            if number is None or not math.isfinite(number):
                raise ArgumentError(
                    f"{option} {text!r}: {variable.name!r} is continuous, and {equal[1]!r} is not a number."
                )
            return variable.name, number
        if not variable.is_discrete and between and any(between.groups()):
            return variable.name, _interval(f"{option} {text!r}", variable, between)
    raise ArgumentError(_refusal(option, text, variables))


def event_in(
    texts: Sequence[str], variables: Sequence[Variable], example: str, option: str = "--event"
) -> dict[str, Any]:
    """Read the conditions of an event; none of an empty interval or of one number, which cannot happen.

    `example`: an event that has one, with ``{name}`` in it, and ``{value}``, or ``{low}`` and ``{high}``
    around it.
    """
    from spbn.inference.problem import read_region

    event = conditions_in(option, texts, variables)
    known = {variable.name: variable for variable in variables}
    for name, value in event.items():
        read_region(known[name], value, "the event")
        if not known[name].is_discrete and not isinstance(value, tuple):
            shown = example.format(name=name, value=value, low=value - 0.5, high=value + 0.5)
            raise ArgumentError(
                f"{option}: {name!r} is continuous, so exactly {value:.12g} has probability 0. Ask for "
                f"an interval, such as '{shown}'."
            )
    return event


def _fields(text: str) -> list[str]:
    """Split text at commas; a field with a comma in it is put in double quotes."""
    return [field.strip() for field in next(csv.reader([text], skipinitialspace=True), [])]


def _levels(condition: str, variable: Variable, wanted: Sequence[str]) -> str | list[str]:
    from spbn.tables.columns import level_of

    chosen = [level_of(value, variable.levels) for value in wanted]
    unknown = [value for value, level in zip(wanted, chosen, strict=True) if level not in variable.levels]
    if unknown or not chosen:
        raise ArgumentError(
            f"{condition}: {variable.name!r} has no level {quoted(unknown) or 'of that name'}. "
            f"Its levels are {quoted(variable.levels)}."
        )
    return chosen[0] if len(set(chosen)) == 1 else chosen


def _interval(condition: str, variable: Variable, found: re.Match[str]) -> tuple[float | None, float | None]:
    bounds: dict[bool, float] = {}  # whether it is the upper one
    left, left_sign, right_sign, right = found.groups()
    for text, sign, is_upper in ((left, left_sign, ">≥"), (right, right_sign, "<≤")):
        if text is None:
            continue
        number = _number(text)
        if number is None:
            raise ArgumentError(f"{condition}: {text!r} is not a number.")
        upper = sign[0] in is_upper
        if upper in bounds:
            raise ArgumentError(
                f"{condition} bounds {variable.name!r} twice from the same side: write "
                f"'5<={variable.name}<=7'."
            )
        bounds[upper] = number
    return (bounds.get(False), bounds.get(True))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _both(option: str, name: str, first: Any, second: Any) -> Any:
    """Join two conditions on one variable: two intervals are both true where they overlap."""
    if not (isinstance(first, tuple) and isinstance(second, tuple)):
        raise ArgumentError(f"{option} names {name!r} more than once: give one condition for it.")
    lows, highs = ([end for end in ends if end is not None] for ends in zip(first, second, strict=True))
    return max(lows, default=None), min(highs, default=None)


def _refusal(option: str, text: str, variables: Sequence[Variable]) -> str:
    named = [v for v in variables if re.search(f"{_EDGE}{re.escape(v.name)}{_EDGE}", text)]
    there = max(named, key=lambda variable: len(variable.name), default=None)
    if there is None:
        names = quoted(variable.name for variable in variables)
        return f"{option} {text!r} does not name a variable of the model. Its variables are {names}."
    if there.is_discrete:
        example = f"'{there.name}={there.levels[0]}' or '{there.name} in {','.join(there.levels[:2])}'"
        return f"{option} {text!r} is not a condition on {there.name!r}, which is discrete: write {example}."
    example = f"'{there.name}=3.5', '{there.name}>0' or '5<={there.name}<=7'"
    return f"{option} {text!r} is not a condition on {there.name!r}: write for example {example}."


def in_words(texts: Sequence[str]) -> str:
    """Join conditions as they were written, so that an answer repeats the question."""
    return " and ".join(text.strip() for text in texts)
