"""Messy tables: everything that stands in the way of learning, at once, and what is done about it.

`prepare` looks at every column of a table as people have it, decides how it is read, and says why. What it
decides is a `Preparation`, a plain record that new rows go through as well; what it has seen is a list of
`Finding`s, from which errors, notes, ``spbn check`` and ``--fix`` all follow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.lazy import nw, pd
from spbn.errors import DataError, quoted
from spbn.tables.columns import (
    MOST_LEVELS,
    WHOLE,
    Categories,
    as_text,
    categories,
    columns_of,
    is_series,
    known_names,
    seems_named,
)
from spbn.tables.readings import (
    MISSING,
    Finding,
    Order,
    Preparation,
    Reading,
    as_column,
    hours_of,
    is_in_digits,
    moment,
    raw_values,
)
from spbn.tables.table import Table, copied_columns

FEWEST_ROWS = 10  # fewer values are often all different, or few, by chance
FEW_VALUES = 3  # that may be categories
MOST_CODES = 12  # levels of a column of whole numbers whose name says that they are some
NEARLY_EMPTY = 0.8  # share of missing values from which on a column is left out
MOST_WORDS = 3  # different ones among numbers or dates that stand for missing values
MOSTLY = 0.5  # share of numbers from which on text in a column is out of place
MOST_SIZES = 10  # different numbers with a unit that are rather sizes, which are levels
MANY_ZEROS = 0.5  # share of the rows from which on zeros are no mistake
FEW_FAR = 0.001  # share of the rows that rather have a wrong value
FAR_GAP = 5.0  # interquartile ranges between far values and all others
LEVEL_OF_PARTS = 1e-3  # of the tests of whether a month, weekday or hour matters
PART_DAYS = {"month": 540, "weekday": 21, "hour": 3}  # that dates must span for a part of them to be told
MOST_TESTED = 20_000  # rows
LOOKED_AT = 200  # different values, before all are

_INDEX = re.compile(r"|unnamed: ?0|index|level_0|row ?names?|x")
_ID = re.compile(
    r"(.*[\W_])?(ids?|uuid|guid|no|nr|number|index|idx|key|zip|(zip|post|postal)[ _]?code|rownames)"
)
_POSTAL = re.compile(r"(.*[\W_])?(zip|plz|(zip|post|postal)[ _]?code)")
_TIMES = re.compile(
    r"(.*[\W_])?(years?|yr|jahr|date|(date)?time(stamp)?|day|month|quarter|week|t|ts|period|epoch)([\W_].*)?"
)
_CODES = re.compile(
    r"(.*[\W_])?(class|type|kind|cat|category|group|cluster|code|label|target|region|zone|sex|gender|species"
    r"|status|grade|race|origin|occupation|religion|marital|department|dept|country|state|city|district"
    r"|colou?r|brand|method|plan|site|ward|branch|shift|zip|plz|(zip|post|postal)[ _]?code)"
)
#: -9, and numbers of up to twelve nines, such as -999 and 99.9.
_NINES = np.array(
    [-9.0, *(float(f"{s}{'9' * k}e-{d}") for s in ("", "-") for k in range(2, 13) for d in range(k))]
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SIGNS = r"[-+\u2212\u2013]?"
_DRESSED = re.compile(
    rf"[~\u2248]?\(?{_SIGNS}\s*(?P<before>[$€£¥₹₽]|US\$|R\$|USD|EUR|GBP|CHF|Rs\.?|)\s*{_SIGNS}\s*"
    r"(?P<digits>(\d[\d.,'\s\u00a0\u202f\u2009]*|[.,]\d+)([eE][-+]?\d+)?)\s*(?P<after>([^\d\s.,()][^\d()]{0,11}[23]?)?)\)?"
)
_POINTED = re.compile(r"\d{1,3}(\.\d{3})*")
_SLASHED = re.compile(r"(\d{1,2})([-/.])(\d{1,2})[-/.]\d")
_GROUPS = re.compile(r"[1-9]\d{0,2}(,\d{3})+")
#: Truth values; those of a pair go together.
_TRUTHS = tuple(
    tuple(pair.split("/"))
    for pair in (
        "yes/no", "true/false", "y/n", "t/f", "on/off", "1/0", "ja/nein", "oui/non", "si/no", "sí/no", "j/n",
        "wahr/falsch", "vrai/faux",
    )
)  # fmt: skip
_TRUE, _FALSE = (frozenset(pair[k] for pair in _TRUTHS) for k in (0, 1))
_TICKS = frozenset({"x", "✓", "✔", "☑", "*", "•"})
#: Levels that have an order of their own; those of a column are some of one line.
_ORDERS = tuple(
    tuple(line.split("|"))
    for line in (
        "none|trivial|very low|low|medium low|medium|moderate|medium high|high|very high|extreme",
        "very small|tiny|small|medium|mid|large|big|very large|huge",
        "xxs|xs|s|m|l|xl|xxl|xxxl",
        "never|rarely|seldom|sometimes|occasionally|often|frequently|usually|very often|always",
        "terrible|very bad|very poor|bad|poor|fair|average|ok|good|very good|premium|ideal|excellent",
        "strongly disagree|disagree|neutral|neither|agree|strongly agree",
        "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
        "primary|secondary|tertiary",
        "first|second|third|fourth|fifth",
        "young|middle|middle-aged|old",
        "mild|moderate|severe",
        "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
        "january|february|march|april|may|june|july|august|september|october|november|december",
        "mon|tue|wed|thu|fri|sat|sun",
        "mon|tues|wed|thur|thurs|fri|sat|sun",
        "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    )
)
_NUMBERED = re.compile(r"[<>≤≥]?\s*(\d+([.,]\d+)?).*")

#: Why something is done about what was found, by its kind.
REASONS = {
    "index": "pandas writes its index like this; it says nothing about the rows",
    "empty": "there is nothing to learn from",
    "sparse": "too little to learn from: rows are worth more than such a column",
    "constant": "it is the same everywhere, which leaves nothing to learn",
    "same": "it adds nothing to the other column",
    "copy": "it adds nothing to the other column",
    "name": "it identifies rows, and says nothing about them",
    "id": "it identifies rows, and says nothing about them",
    "key": "it identifies rows, and says nothing about them",
    "numbers": "it may only number the rows",
    "code": "it is far from all other values",
    "word": "it stands for a missing value",
    "format": "its values are numbers, written as text",
    "unit": "its values are numbers, with something around them",
    "date": "elapsed time is a number, and a season is a category",
    "spelling": "they mean the same",
    "category": "so few whole numbers are usually labels, not amounts",
    "codes": "the name of the column suggests it",
    "few": "they may stand for categories",
    "order": "the levels have an order",
    "tick": "a tick means yes, and an empty cell means no",
    "objects": "it holds neither numbers nor categories",
    "zeros": "all other values are far above 0: does it stand for a missing value?",
    "far": "it may be a mistake",
    "holes": "known values help to fill in missing ones",
}
#: What nothing can be learned with, if nothing is done about it.
BLOCKING = frozenset({"empty", "constant", "copy", "name", "word", "format", "unit", "date", "holes"})
LEFT_OUT = "left out"


def found(column: str, kind: str, evidence: str, remedy: str) -> Finding:
    """Return a finding, with the reason that its kind has."""
    return Finding(column, kind, evidence, remedy, REASONS[kind])


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that is ready to learn from, what was found in it, and how new rows are read.

    Attributes
    ----------
    frame
        The table: numbers, and categories. Rows without any value are left out.
    findings
        What was found, column by column, and what was done about it.
    preparation
        How columns are read: ``spbn.learn(data, prepare=prepared.preparation)``.

    Examples
    --------
    >>> import spbn
    >>> weights = ["12.5 kg", "80 kg", "75 kg", "61 kg", "70.5 kg", "55 kg"]
    >>> prepared = spbn.prepare({"weight": weights, "age": [3, 41, 37, 19, 66, 23], "note": [""] * 6})
    >>> print(prepared)
    column  looks like                    action                         why
    weight  numbers with 'kg' after them  read as numbers, without 'kg'  its values are numbers, ...
    note    no value in any row           left out                       there is nothing to learn from
    """

    frame: pd.DataFrame
    findings: tuple[Finding, ...]
    preparation: Preparation

    @property
    def missing(self) -> str:
        """What learning does about missing values: "impute" if there are any, "error" otherwise."""
        return "impute" if any(finding.kind == "holes" for finding in self.findings) else "error"

    def __str__(self) -> str:
        if not self.findings:
            return "nothing stands in the way"
        heads = ("column", "looks like", "action", "why")
        rows = [heads, *((f.column or "(rows)", f.evidence, f.remedy, f.reason) for f in self.findings)]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]])
            for row in rows
        )


@dataclass
class _Column:
    """What is decided about one column: how its variables are read, if it is not left out."""

    name: str
    values: Any  # as an array
    readings: dict[str, Reading] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    read_before: dict[str, FloatArray] = field(default_factory=dict)  # dates, which take a while

    def find(self, kind: str, evidence: str, remedy: str) -> None:
        self.findings.append(found(self.name, kind, evidence, remedy))

    def leave_out(self, kind: str, evidence: str) -> None:
        """Leave the column out, which makes everything else that was found pointless."""
        self.readings, self.findings = {}, []
        self.find(kind, evidence, LEFT_OUT)

    def read(self, kind: str = "number", name: str | None = None, **how: Any) -> None:
        self.readings[name or self.name] = Reading(source=self.name, kind=kind, **how)  # type: ignore[arg-type]


def prepare(
    data: Any,
    *,
    drop: str | Sequence[str] = (),
    discrete: str | Sequence[str] = (),
    na: Iterable[object] = (),
    decimal: str | None = None,
) -> Prepared:
    """Look at a table as it is, and decide how its columns are read.

    Parameters
    ----------
    data
        A data frame or a dict of columns. They may hold anything.
    drop
        Columns to leave out.
    discrete
        Columns that hold categories, whatever they look like.
    na
        What stands for missing values: ``[-999, "unknown"]``.
    decimal
        The decimal sign of numbers that are text, where they do not tell.

    Examples
    --------
    >>> import pandas as pd, spbn
    >>> frame = pd.DataFrame({"price": ["$1,200", "$950", "$1,010", "$870", "$2,300", "$999"]})
    >>> spbn.prepare(frame.assign(size=[30, 21, 25, 20, 52, 26])).frame["price"].tolist()
    [1200.0, 950.0, 1010.0, 870.0, 2300.0, 999.0]
    """
    raw = columns_of(data)
    dropped = known_names("drop", drop, raw)
    chosen = known_names("discrete", discrete, raw)
    codes = tuple(code_of(value) for value in ([na] if isinstance(na, str) else na))
    columns = []
    for place, (name, column) in enumerate(raw.items()):
        if name not in dropped:
            columns.append(_looked_at(place, name, column, codes, name in chosen, decimal))
    prepared = _read(columns)
    _leave_out_poor(columns, prepared)
    _find_copies(columns, prepared, chosen)
    _parts_that_matter(columns, prepared)
    findings = [finding for column in columns for finding in column.findings]
    if not prepared:
        raise DataError(
            f"no column is left to learn from: {'; '.join(f'{f.column!r} ({f.evidence})' for f in findings)}."
        )
    readings = {name: reading for column in columns for name, reading in column.readings.items()}
    index = data.index if nw.dependencies.is_pandas_dataframe(data) else None
    frame = pd.DataFrame({n: as_column(r, prepared[n]) for n, r in readings.items()}, index)
    there = frame.notna().to_numpy()
    some = there.any(axis=1)
    frame, whole = frame.iloc[np.flatnonzero(some)], int(there.all(axis=1).sum())
    if whole < len(frame):
        findings.append(
            found(
                "",
                "holes",
                f"{len(frame) - whole:,} of {len(frame):,} rows have missing values",
                "imputed while learning",
            )
        )
    return Prepared(frame, tuple(findings), Preparation(readings, tuple(findings)))


def code_of(value: object) -> str:
    """Return a code for missing values as a level is written, a number as short as possible."""
    text = as_text(value).strip()
    try:
        return as_text(float(text))
    except ValueError:
        return text


def _looked_at(
    place: int, name: str, column: Any, codes: tuple[str, ...], is_chosen: bool, decimal: str | None
) -> _Column:
    """Decide how a column is read, as far as it says so by itself."""
    values = raw_values(name, column)
    it = _Column(name, values)
    if is_series(column) and column.dtype in (nw.Categorical, nw.Enum):
        it.read("level", levels=categories(column).levels, missing=codes)
        return it
    if is_chosen:
        it.read("level", missing=codes)
    elif values.dtype.kind in "biuf" or _are_numbers(values):
        if values.dtype.kind == "b":
            it.read("level", missing=codes)
            return it
        _look_at_numbers(it, place, Reading(source=name, missing=codes).column(values), codes)
    elif values.dtype.kind == "m" or _holds(values, _is_length):
        it.read("days", f"{name}_days", missing=codes)
        it.find("date", "lengths of time", "read as days")
    elif values.dtype.kind == "M":
        _read_dates(it, codes, "ymd", "dates")
    else:
        _look_at_text(it, place, codes, decimal)
    return it


def _are_numbers(values: Any) -> bool:
    return values.dtype.kind == "O" and _holds(values, lambda v: isinstance(v, int | float) and v is not True)


def _is_length(value: object) -> bool:
    return hasattr(value, "total_seconds")


def _holds(values: Any, is_one: Callable[[Any], bool]) -> bool:
    there = _there(values) if values.dtype.kind == "O" else []
    return bool(there) and all(map(is_one, there))


def _there(values: Any) -> list[Any]:
    """Return the values that are not missing."""
    found: list[Any] = values[pd.notna(values)].tolist()
    return found


# Numbers


def _look_at_numbers(it: _Column, place: int, column: FloatArray, codes: tuple[str, ...], **how: Any) -> None:
    """Decide how numbers are read; `how` are what stands around them, if they are text."""
    finite = column[np.isfinite(column)]
    far = missing_codes_of(finite)
    if far:
        codes = (*codes, *map(as_text, far))
        shown = ", ".join(f"{code:g}" for code in far)
        times = int(np.isin(finite, far).sum())
        it.find(
            "code",
            f"{shown}, far from all other values, in {times:,} row{'s' if times > 1 else ''}",
            f"{shown} treated as missing",
        )
        finite = finite[~np.isin(finite, far)]
    it.read("number", missing=codes, **how)
    if len(finite) < 2:
        return
    distinct = np.unique(finite)
    name, rows = _CAMEL.sub("_", it.name).lower().strip(), len(finite)
    whole = bool((finite == np.rint(finite)).all() and np.abs(finite).max() < WHOLE)
    different = whole and len(distinct) == len(finite)
    steps = different and distinct[-1] - distinct[0] == len(distinct) - 1 and distinct[0] in (0.0, 1.0)
    if _is_nameless(it.name) and (counts_rows(column) or (different and rows >= FEWEST_ROWS)):
        counts = "counts the rows" if counts_rows(column) else "has a different whole number in every row"
        it.leave_out("index", f"it {counts}, and has no name")
    elif place == 0 and counts_rows(column) and _INDEX.fullmatch(name):
        it.leave_out("index", "it counts the rows")
    elif len(distinct) >= FEW_VALUES and all(map(is_in_digits, distinct.tolist())):
        it.readings.clear()
        _read_dates(it, codes, "digits", f"dates, such as {distinct[0]:.0f}")
    elif different and rows >= FEWEST_ROWS and not _TIMES.fullmatch(name) and (steps or _ID.fullmatch(name)):
        it.leave_out("id", "a different whole number in every row")
    elif (
        whole
        and _ID.fullmatch(name)
        and len(distinct) > (MOST_LEVELS if _POSTAL.fullmatch(name) else max(20, 0.2 * rows))
    ):
        it.leave_out("key", f"{len(distinct):,} different whole numbers, and a name like an id's")
    elif different and rows >= FEWEST_ROWS and not _TIMES.fullmatch(name):
        it.find("numbers", "a different whole number in every row", "left as it is: please check")
    elif 1 < len(distinct) <= FEW_VALUES and rows >= FEWEST_ROWS:
        shown = ", ".join(f"{value:g}" for value in distinct)
        if whole and not how:
            it.readings.clear()
            it.read("level", missing=codes)
            it.find("category", f"the numbers {shown}", "read as categories")
        else:
            it.find("few", f"the numbers {shown}", "left as it is: please check")
    elif (
        whole
        and not how
        and _CODES.fullmatch(name)
        and len(distinct) <= (MOST_LEVELS if _POSTAL.fullmatch(name) else MOST_CODES)
        and rows >= 5 * len(distinct)
    ):
        it.readings.clear()
        it.read("level", missing=codes)
        it.find(
            "codes",
            f"{len(distinct)} different whole numbers, and a name that suggests categories",
            "read as categories",
        )
    else:
        _find_far(it, finite)


def counts_rows(column: Any) -> bool:
    """Tell whether numbers count the rows, from 0 or 1."""
    rows = np.arange(len(column))
    return column.dtype.kind in "iuf" and any(np.array_equal(column, rows + start) for start in (0, 1))


def _is_nameless(name: str) -> bool:
    return name == "" or name.lower().startswith("unnamed:")


def _find_far(it: _Column, finite: FloatArray) -> None:
    """Flag zeros where all other values are far above 0, and values far from all others."""
    zeros = int((finite == 0.0).sum())
    others = finite[finite != 0.0]
    steps = np.diff(np.unique(others)) if zeros else others
    if 0 < zeros < MANY_ZEROS * len(finite) and others.min() > max(
        0.2 * np.median(others), 3.0 * np.median(steps[: len(steps) // 4 + 1])
    ):
        it.find(
            "zeros",
            f"0 in {zeros:,} row{'s' if zeros > 1 else ''}, and {others.min():g} or more in all others",
            "left as it is: please check",
        )
        finite = others
    if len(finite) < FEWEST_ROWS:
        return
    ordered = np.sort(finite)
    low, high = np.quantile(ordered, [0.25, 0.75])
    most = min(max(3, int(FEW_FAR * len(ordered))), len(ordered) // 4)
    for end, sign in ((ordered[::-1][: most + 1], 1.0), (ordered[: most + 1], -1.0)):
        gaps = sign * (end[:-1] - end[1:])
        rest = np.abs(end[1:] - ordered[0 if sign > 0 else -1])  # how far the others reach
        wide = gaps > np.maximum(FAR_GAP * (high - low), 0.5 * rest)
        if high > low and wide.any():
            count = int(np.flatnonzero(wide)[-1]) + 1
            which = f"{end[0]:g}" if count == 1 else f"{count} values up to {end[0]:g}"
            which = which if sign > 0 or count == 1 else f"{count} values down to {end[0]:g}"
            it.find("far", f"{which}, far from all others", "left as it is: please check")


def missing_codes_of(column: FloatArray) -> list[float]:
    """Return the numbers of nines, such as -999, that stand apart: they may mean "missing"."""
    distinct, counts = np.unique(column, return_counts=True)
    nines = np.isin(distinct, _NINES)
    others = distinct[~nines]
    if len(column) < FEWEST_ROWS or len(others) < 2:
        return []
    extent = others[-1] - others[0]
    return [
        float(code)
        for code, count in zip(distinct[nines], counts[nines], strict=True)
        if (np.abs(others - code).min() > extent and abs(code) > 9)
        or (code < 0 <= others[0] and code == np.rint(code) and (code < -9 or count > 1))
    ]


# Text


def _look_at_text(it: _Column, place: int, codes: tuple[str, ...], decimal: str | None) -> None:
    """Decide how text is read: as dates, numbers or levels; or leave it out, if it names the rows."""
    there = _there(it.values)
    try:
        as_they_are = Counter(there)
    except TypeError:  # lists and the like cannot be counted
        it.leave_out("objects", f"values of type {type(there[0]).__name__}")
        return
    counts = Counter[Any]()
    for value, count in as_they_are.items():
        counts[value.strip() if isinstance(value, str) else _as_text(value)] += count
    dashes = sorted(text for text in counts if isinstance(text, str) and text.casefold() in MISSING - {""})
    gone = {"", *dashes, *codes}
    texts = Counter({text: count for text, count in counts.items() if text not in gone})
    if "-" in dashes and "+" in texts:
        texts["-"] = counts["-"]
    for text in [text for text in dashes if text.casefold() == "none" and texts]:
        texts[text] = counts[text]  # which may well be a level
    if not texts:
        it.read("level")
        return
    if len(texts) == 1 and len(there) < len(it.values) and next(iter(texts)).casefold() in _TICKS:
        tick = next(iter(texts))
        it.read("level", missing=codes, levels=("no", tick), aliases={tick.casefold(): tick}, blank="no")
        it.find("tick", f"{tick!r} or an empty cell", "empty cells read as 'no'")
        return
    if _look_at_dates(it, texts, codes):
        return
    written = None if _are_truths(texts) else number_format(texts, len(it.values), decimal)
    if written is not None:
        how, words = written
        if words:
            shown = f"{quoted(words[:MOST_WORDS])} among numbers"
            it.find("word", shown, f"{quoted(words)} treated as missing")
        reading = replace(_PLAIN, source=it.name, missing=(*codes, *words), **how)
        before, column = len(it.findings), reading.column(it.values)
        _look_at_numbers(it, place, column, (*codes, *words), **how)
        if it.readings.get(it.name) == reading:
            it.read_before[it.name] = column
        if before <= len(it.findings) and it.readings:
            _say_format(it, how, before)
        return
    dashes = [text for text in dashes if text not in texts and text != "?"]
    if dashes:
        it.find("word", f"{quoted(dashes)} among categories", f"{quoted(dashes)} treated as missing")
    there = [v for v in there if not isinstance(v, str) or v.strip() not in dashes]
    if not _look_at_truth(it, texts, there, (*codes, *dashes)):
        _look_at_levels(it, texts, there, (*codes, *dashes))


def _as_text(value: Any) -> Any:
    """Write a value as a level, unless it is a date."""
    return value if hasattr(value, "isoformat") or hasattr(value, "start_time") else as_text(value)


def _say_format(it: _Column, how: Mapping[str, str], place: int) -> None:
    around = how.get("before") or how.get("after")
    marks = []
    if how.get("thousands"):
        mark = {" ": "spaces"}.get(how["thousands"], repr(how["thousands"]))
        marks.append(f"{mark} between thousands")
    if how.get("decimal", ".") != ".":
        marks.append("decimal commas")
    if around:
        side = "before" if how.get("before") else "after"
        text = f"numbers with {around!r} {side} them" + (f", and {' and '.join(marks)}" if marks else "")
        it.findings.insert(place, found(it.name, "unit", text, f"read as numbers, without {around!r}"))
    elif marks:
        it.findings.insert(
            place, found(it.name, "format", f"numbers with {' and '.join(marks)}", "read as numbers")
        )


def number_format(
    texts: Mapping[str, int], rows: int, decimal: str | None = None
) -> tuple[dict[str, Any], list[str]] | None:
    """Return how text writes numbers, and words among them; None if it does not hold numbers.

    Numbers with a unit of which there are few different ones are sizes, rather, and those are levels.
    """
    if not _mostly(texts, _DRESSED.fullmatch):
        return None
    matches = {text: m for text in texts if (m := _DRESSED.fullmatch(text))}
    words = [text for text in texts if text not in matches]
    number = sum(texts[text] for text in matches)
    if number < MOSTLY * sum(texts.values()) or len(words) > MOST_WORDS:
        return None
    befores = {m["before"] for m in matches.values()} - {""}
    afters = {m["after"].strip() for m in matches.values()} - {""}
    if len(befores) > 1 or len({after.casefold() for after in afters}) > 1:
        return None
    before, after = next(iter(befores), ""), next(iter(sorted(afters)), "")
    if (before or after) and len(matches) <= min(MOST_SIZES, 0.2 * rows):
        return None
    digits = [m["digits"].strip() for m in matches.values()]
    how: dict[str, Any] = {"before": before, "after": after, **_marks(digits, decimal)}
    how = {name: value for name, value in how.items() if value != getattr(_PLAIN, name)}
    reading = replace(_PLAIN, **how)
    words += [text for text in matches if reading.parse(text) is None]
    return (how, words) if len(words) <= MOST_WORDS else None


def _mostly(texts: Iterable[Any], is_one: Callable[[Any], object]) -> bool:
    """Tell whether some of the different values, far less than all, are mostly of one kind."""
    some = list(islice(texts, LOOKED_AT))
    return sum(is_one(text) is not None for text in some) >= MOSTLY * len(some) - MOST_WORDS


_PLAIN = Reading(source="")


def _marks(digits: Sequence[str], decimal: str | None) -> dict[str, str]:
    """Return what is between thousands and before decimals."""
    comma, point = (any(mark in text for text in digits) for mark in ",.")
    for mark, written in (("'", "'"), (" ", r"\s")):
        split = [text for text in digits if (mark in text if mark == "'" else len(text.split()) > 1)]
        grouped = re.compile(rf"\d{{1,3}}({written}\d{{3}})+([.,]\d*)?")
        if split and all(map(grouped.fullmatch, split)):
            return {"thousands": mark, "decimal": "," if comma and not point else "."}
    both = next((text for text in digits if "," in text and "." in text), None)
    if both is not None:
        last = max(",.", key=both.rfind)
        return {"decimal": last, "thousands": "." if last == "," else ","}
    if comma and not point:
        are_grouped = all(_GROUPS.fullmatch(text) for text in digits if "," in text)
        return {"thousands": ","} if are_grouped and decimal != "," else {"decimal": ","}
    are_grouped = decimal == "," and all(map(_POINTED.fullmatch, digits))
    if point and (are_grouped or any(text.count(".") > 1 for text in digits)):
        return {"decimal": ",", "thousands": "."}
    return {}


def _are_truths(texts: Iterable[Any]) -> bool:
    """Tell whether all levels are truth values, some of them true and some false."""
    some = list(islice(texts, len(_TRUE | _FALSE) * 4))
    folded = {str(text).casefold() for text in some}
    return bool(folded <= _TRUE | _FALSE and folded & _TRUE and folded & _FALSE) and folded != {"0", "1"}


def _look_at_truth(
    it: _Column, texts: Mapping[str, int], there: Sequence[Any], codes: tuple[str, ...]
) -> bool:
    """Read truth values, however they are spelled; return whether they are some."""
    if not _are_truths(texts):
        return False
    counts = Counter[str]()
    for text, count in texts.items():
        counts[text.casefold()] += count
    pair = max(_TRUTHS, key=lambda p: (set(p) <= set(counts), len(p[0]) > 1, sum(counts[w] for w in p)))
    styles = (str.lower, str.capitalize, str.upper)
    style = max(styles, key=lambda style: sum(texts.get(style(word), 0) for word in pair))
    yes, no = map(style, pair)
    aliases = {text.casefold(): yes if text.casefold() in _TRUE else no for text in texts}
    _read_levels(it, aliases, there, codes, "truth values")
    return True


def _read_levels(
    it: _Column,
    aliases: Mapping[str, str],
    there: Sequence[Any],
    codes: tuple[str, ...],
    what: str,
    levels: tuple[str, ...] = (),
) -> None:
    """Read levels, of which there may be several spellings; the key of a level is in lower case."""
    canonical = set(aliases.values())
    odd = list(dict.fromkeys(as_text(v) for v in there if as_text(v) not in canonical))
    it.read("level", levels=levels, missing=codes, aliases=dict(aliases) if odd else {})
    if odd:
        shown = quoted(odd[:3]) + (", ..." if len(odd) > 3 else "")
        it.find(
            "spelling",
            f"{what} spelled in several ways, such as {shown}",
            f"read as {quoted(sorted(canonical))}",
        )


def _look_at_levels(
    it: _Column, texts: Mapping[str, int], there: Sequence[Any], codes: tuple[str, ...]
) -> None:
    """Read levels, or leave out what tells the rows apart."""
    commonest: dict[str, str] = {}
    styles = Counter[tuple[bool, bool]]()  # whether text is in capitals, or in lower case
    for text, count in texts.items():
        styles[text.isupper(), text.islower()] += count
    for text in sorted(texts, key=lambda t: (-styles[t.isupper(), t.islower()], -texts[t], t)):
        commonest.setdefault(" ".join(text.split()).casefold(), " ".join(text.split()))
    levels = list(dict.fromkeys(commonest.values()))
    named = seems_named(
        Categories(tuple(levels), np.zeros(len(it.values), dtype=np.int64), is_plain_text=True)
    )
    if named:
        it.leave_out("name", named)
        return
    ordered = _ordered(levels)
    _read_levels(it, commonest, there, codes, "levels", ordered)
    if ordered and list(ordered) != sorted(levels):
        it.find("order", f"levels with an order: {', '.join(ordered)}", "read in that order")


def _ordered(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in the order that they have, if there is one."""
    places = {level: level.casefold().replace("_", " ") for level in levels}
    for order in _ORDERS:
        if len(levels) > 2 and set(places.values()) <= set(order):
            return tuple(sorted(levels, key=lambda level: order.index(places[level])))
    matches = {level: _NUMBERED.fullmatch(level) for level in levels}
    if len(levels) > 1 and all(matches.values()):
        return tuple(sorted(levels, key=lambda level: (float(matches[level][1].replace(",", ".")), level)))  # type: ignore[index]
    return ()


# Dates


def _look_at_dates(it: _Column, texts: Mapping[Any, int], codes: tuple[str, ...]) -> bool:
    """Read dates or times; return whether they are some."""
    total = sum(texts.values())
    hours = {text for text in texts if hours_of(text) is not None} if _mostly(texts, hours_of) else set()
    if hours and len(texts) - len(hours) <= MOST_WORDS and sum(texts[t] for t in hours) >= MOSTLY * total:
        words = [str(text) for text in texts if text not in hours]
        it.read("hours", f"{it.name}_hours", missing=(*codes, *words))
        it.find("date", f"times, such as {next(iter(texts))!s}", "read as hours")
        return True
    order = _order_of(texts)
    if not _mostly(texts, lambda text: moment(text, order)):
        return False
    dates = {text for text in texts if moment(text, order) is not None}
    if not dates or len(texts) - len(dates) > MOST_WORDS or sum(texts[t] for t in dates) < MOSTLY * total:
        return False
    words = [str(text) for text in texts if text not in dates]
    if words:
        it.find("word", f"{quoted(words)} among dates", f"{quoted(words)} treated as missing")
    _read_dates(it, (*codes, *words), order, f"dates, such as {next(t for t in texts if t in dates)!s}")
    return True


def _order_of(texts: Iterable[Any]) -> Order:
    """Return the order of day and month; where all are 12 or less, a slash is American."""
    first = second = 0
    slashed = False
    for text in texts:
        parts = _SLASHED.match(text) if isinstance(text, str) else None
        if parts:
            first, second = max(first, int(parts[1])), max(second, int(parts[3]))
            slashed |= parts[2] == "/"
    if not first:
        return "ymd"
    return "dmy" if first > 12 or (second <= 12 and not slashed) else "mdy"


def _read_dates(it: _Column, codes: tuple[str, ...], order: Order, what: str) -> None:
    """Read dates as days since the first one; other parts of them are added where they matter."""
    days = Reading(source=it.name, kind="days", order=order, missing=codes).column(it.values)
    finite = days[np.isfinite(days)]
    origin = int(np.floor(finite.min())) if len(finite) else 0
    it.read("days", f"{it.name}_days", order=order, origin=origin, missing=codes)
    it.read_before[f"{it.name}_days"] = days - origin
    it.find("date", what, f"read as days since {np.datetime64(origin, 'D')}")


def _parts_that_matter(columns: Sequence[_Column], prepared: dict[str, Any]) -> None:
    """Add months, weekdays and hours of dates on which other columns depend, after any trend."""
    others = {
        name: values
        for column in columns
        for name, values in ((n, prepared[n]) for n in column.readings if n in prepared)
        if column.readings[name].kind in ("number", "level")
    }
    for column in columns:
        dated = next((r for r in column.readings.values() if r.kind == "days" and r.origin), None)
        days = None if dated is None else prepared.get(f"{column.name}_days")
        if dated is None or days is None:
            continue
        added = []
        for part, least in PART_DAYS.items():
            reading = replace(dated, kind=part, origin=0)  # type: ignore[arg-type]
            if np.nanmax(days) - np.nanmin(days) < least or (part == "hour" and _are_midnights(days)):
                continue
            if part == "weekday" and _are_months(days + dated.origin):
                continue
            name, step = f"{column.name}_{part}", -(-len(days) // MOST_TESTED)
            if _matters(reading.column(column.values[::step]), days[::step], others, step):
                column.readings[name], prepared[name] = reading, reading.column(column.values)
                added.append(part)
        if added:
            k = next(k for k, finding in enumerate(column.findings) if finding.kind == "date")
            more = f", and its {' and '.join(added)}, which other columns depend on"
            column.findings[k] = replace(column.findings[k], remedy=column.findings[k].remedy + more)


def _are_months(days: FloatArray) -> bool:
    """Tell whether all days since 1970 are the first of a month: they stand for months or quarters."""
    dates = days[np.isfinite(days)].astype("datetime64[D]")
    return bool((dates == dates.astype("datetime64[M]")).all())


def _are_midnights(days: FloatArray) -> bool:
    finite = days[np.isfinite(days)]
    return bool((finite == np.floor(finite)).all())


def _matters(part: Any, when: FloatArray, others: Mapping[str, Any], step: int) -> bool:
    """Tell whether some other column depends on a part of a date, by tests on ranks or counts."""
    from scipy.stats import chi2_contingency, kruskal, rankdata

    codes = pd.factorize(part, use_na_sentinel=True)[0]
    for values in others.values():
        other = values[::step]
        if other.dtype.kind == "O":
            levels = pd.factorize(other, use_na_sentinel=True)[0]
            both = (codes >= 0) & (levels >= 0)
            table = pd.crosstab(codes[both], levels[both]).to_numpy()
            if min(table.shape, default=0) < 2:
                continue
            p_value = chi2_contingency(table).pvalue
        else:
            both = (codes >= 0) & np.isfinite(other) & np.isfinite(when)
            if both.sum() < FEWEST_ROWS or np.ptp(other[both]) == 0.0:
                continue
            ranks = rankdata(other[both])
            trend = (
                np.polynomial.Polynomial.fit(when[both], ranks, 1) if np.ptp(when[both]) else np.zeros_like
            )
            rest = ranks - trend(when[both])
            groups = [rest[codes[both] == code] for code in np.unique(codes[both])]
            if len(groups) < 2:
                continue
            p_value = kruskal(*groups).pvalue
        if p_value < LEVEL_OF_PARTS / max(len(others), 1):
            return True
    return False


# The table


def _read(columns: Sequence[_Column]) -> dict[str, Any]:
    return {
        name: known if (known := column.read_before.get(name)) is not None else reading.column(column.values)
        for column in columns
        for name, reading in column.readings.items()
    }


def _leave_out_poor(columns: Sequence[_Column], prepared: dict[str, Any]) -> None:
    """Leave out columns that are empty, nearly empty, or constant."""
    for column in columns:
        for name in list(column.readings):
            values = prepared[name]
            there = values[pd.notna(values)]
            if not len(there):
                column.leave_out("empty", "no value in any row")
            elif len(there) < (1.0 - NEARLY_EMPTY) * len(values):
                column.leave_out("sparse", f"{len(there):,} of {len(values):,} values are there")
            elif len(set(there.tolist())) == 1:
                column.leave_out("constant", f"always {as_text(there[0])}")
        for name in [name for name in prepared if name not in column.readings and _is_of(column, name)]:
            del prepared[name]


def _is_of(column: _Column, name: str) -> bool:
    return name == column.name or name in (f"{column.name}_days", f"{column.name}_hours")


class _Levels(NamedTuple):
    name: str
    codes: IntArray
    number: int


def _find_copies(columns: Sequence[_Column], prepared: dict[str, Any], chosen: Sequence[str]) -> None:
    """Leave out columns that are copies of earlier ones, rescaled ones, or the same levels by other names."""
    by_name = {name: column for column in columns for name in column.readings}
    for second, first, kind in [*_copied_numbers(prepared), *_copied_levels(prepared)]:
        if first not in prepared or second not in prepared or second in chosen:
            continue
        by_name[second].leave_out("copy" if kind.endswith("copy") else "same", f"{kind} of {first}")
        del prepared[second]


def _copied_numbers(prepared: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    numbers = {name: values for name, values in prepared.items() if values.dtype.kind == "f"}
    if numbers and len(next(iter(numbers.values()))) > 2:
        filled = np.stack([np.where(np.isfinite(v), v, np.nanmedian(v)) for v in numbers.values()])
        holes = {name: np.isfinite(values) for name, values in numbers.items()}
        for second, first, kind in copied_columns(Table(tuple(numbers), filled)):
            if np.array_equal(holes[second], holes[first]):
                yield second, first, kind


def _copied_levels(prepared: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    seen: list[_Levels] = []
    for name, values in prepared.items():
        if values.dtype.kind != "O":
            continue
        codes, distinct = pd.factorize(values, use_na_sentinel=True)
        for other in seen:
            if other.number == len(distinct) and _are_same(codes, other.codes, len(distinct)):
                yield (
                    name,
                    other.name,
                    "the same categories, under other names, as those"
                    if not np.array_equal(values, prepared[other.name])
                    else "a copy",
                )
                break
        else:
            seen.append(_Levels(name, codes, len(distinct)))


def _are_same(first: IntArray, second: IntArray, number: int) -> bool:
    """Tell whether two columns of levels divide the rows alike, and lack the same values."""
    if not np.array_equal(first < 0, second < 0):
        return False
    there = first >= 0
    return len(np.unique(first[there] * number + second[there])) == number
