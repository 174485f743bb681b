"""How variables are read from columns as people write them: "12 kg", "1.234,5", "31/1/2024", " Male".

A `Reading` is a plain record of one variable, and a `Preparation` of all, which is saved with a network. The
same function reads single values and whole columns, so that a row means the same wherever it comes from.
Values that are numbers or levels already stay as they are: what a network draws can be scored by it.

Single rows need no package for data frames.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from spbn._base.checks import is_whole
from spbn._base.files import refuse
from spbn._base.lazy import nw, pd
from spbn.errors import DataError
from spbn.tables.columns import as_array, as_text, columns_of, is_series

Kind = Literal["number", "level", "days", "hours", "month", "weekday", "hour"]
Order = Literal["ymd", "dmy", "mdy", "digits"]

#: How missing numbers are written, besides what a reading adds.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "."})
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: The levels of parts of dates, in order.
PARTS: Mapping[str, tuple[str, ...]] = {
    "month": MONTHS,
    "weekday": WEEKDAYS,
    "hour": tuple(map(str, range(24))),
}
SPACES = " \u00a0\u202f\u2009"
EPOCH = datetime.date(1970, 1, 1).toordinal()
DAY = 86_400_000_000  # microseconds
FIRST_DIGITS = 19_000_101  # the first date that is written so; elapsed days are never as many
CENTURY = 69  # two digits of a year from which on they are those of the last century
#: Limits on what a file may declare.
MOST_COLUMNS, MOST_ALIASES, LONGEST = 1 << 12, 1 << 16, 1 << 12

_DIGITS = frozenset(".0123456789")
_CLOCK = r"(?P<h>\d{1,2}):(?P<m>\d{2})(:(?P<s>\d{2})([.,](?P<f>\d{1,9}))?)?\s*(?P<half>[AaPp])?\.?([Mm]\.?)?"
_WEEKDAY = r"([A-Za-z]{2,9}\.?,?\s+)?"
_AT = rf"([T ,]\s*{_CLOCK}\s*(Z|UTC|GMT|[+-]\d{{2}}:?\d{{2}})?)?"
_TIME = re.compile(_CLOCK)
_DATES = (
    re.compile(rf"(?P<y>\d{{4}})[-/.](?P<mo>\d{{1,2}})([-/.](?P<d>\d{{1,2}}))?{_AT}"),
    re.compile(rf"{_WEEKDAY}(?P<a>\d{{1,2}})([-/.])(?P<b>\d{{1,2}})\3(?P<y>\d{{4}}|\d{{2}}){_AT}"),
    re.compile(
        rf"{_WEEKDAY}"
        r"(?P<d>\d{1,2})(st|nd|rd|th)?[-/. ]\s*(?P<name>[A-Za-z]{3,9})\.?[-/., ]\s*(?P<y>\d{4}|\d{2})" + _AT
    ),
    re.compile(rf"{_WEEKDAY}(?P<name>[A-Za-z]{{3,9}})\.?\s+(?P<d>\d{{1,2}})(st|nd|rd|th)?,?\s+(?P<y>\d{{4}}){_AT}"),
    re.compile(r"(?P<name>[A-Za-z]{3,9})\.?[-/ ](?P<y>\d{4}|\d{2})"),
    re.compile(r"(?P<y>\d{4})[-/ ]?[Qq](?P<q>[1-4])"),
    re.compile(r"[Qq](?P<q>[1-4])[-/ ]?(?P<y>\d{4})"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How one variable is read from a column.

    Attributes
    ----------
    source
        The name of the column.
    kind
        "number"; "level"; "days" since the `origin` of a date, or of a length of time; "hours" of a time of
        day; or the "month", "weekday" or "hour" of a date, as a level.
    decimal, thousands
        What is written before the decimals of a number, and between its thousands.
    before, after
        A sign or a unit around it.
    missing
        What stands for a missing value.
    order
        In which order day, month and year are written where all are numbers; "digits" for 20241231.
    origin
        The day that days are counted from, as its number since 1970.
    levels
        The levels, in order, if the column says so.
    aliases
        Other spellings of levels, in lower case.
    blank
        The level that an empty cell stands for, beside a tick; "" if it stands for what is missing.

    Examples
    --------
    >>> from spbn.tables.readings import Reading
    >>> price = Reading(source="price", thousands=",", before="$", missing=("-999",))
    >>> print(price.value("$1,250.50"), price.value("-999"))
    1250.5 nan
    """

    source: str
    kind: Kind = "number"
    decimal: str = "."
    thousands: str = ""
    before: str = ""
    after: str = ""
    missing: tuple[str, ...] = ()
    order: Order = "ymd"
    origin: int = 0
    levels: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    blank: str = ""

    @property
    def is_level(self) -> bool:
        return self.kind == "level" or self.kind in PARTS

    @property
    def is_plain(self) -> bool:
        """Whether numbers and levels are what the column holds, as it is written."""
        return self.kind in ("number", "level") and self == Reading(
            source=self.source, kind=self.kind, levels=self.levels
        )

    def value(self, value: Any) -> Any:
        """Read one value: a number, NaN being missing, or a level, None being missing."""
        if type(value) is str and self.kind == "number" and value.strip() not in self._missing:
            number = self.parse(value)
            if number is not None:
                return number
        nothing = self.blank or None if self.is_level else math.nan
        if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
            return nothing
        if self._missing and as_text(value).strip() in self._missing:
            return nothing
        if self.kind == "level":
            return self._level(value) or nothing
        if isinstance(value, str) and value.strip().casefold() in MISSING:
            return nothing
        return self._number(value) if self.kind == "number" else self._time(value)

    def column(self, values: Any) -> npt.NDArray[Any]:
        """Read an array of values: numbers, or an array of objects with levels."""
        kind = values.dtype.kind
        if self.kind == "number" and kind in "biuf":
            found = values.astype(np.float64)
            if self.thousands == "." and kind == "f":
                self._require_whole(found)
            codes = [float(code) for code in self._missing if _is_float(code)]
            return np.where(np.isin(found, codes) | np.isinf(found), np.nan, found)
        known: dict[Any, Any] = {}
        out = np.empty(len(values), dtype=object if self.is_level else np.float64)
        for place, raw in enumerate(_objects(values)):
            key = raw if type(raw) is str else (type(raw), raw)  # 1 is not True
            try:
                out[place] = known[key]
            except KeyError:
                out[place] = known[key] = self.value(raw)
            except TypeError:  # it has no hash: a list, say
                raise DataError(
                    f"column {self.source!r} holds a value of type {type(raw).__name__}, where a number or "
                    f"text is expected: {raw!r:.60}."
                ) from None
        return out

    def _require_whole(self, numbers: npt.NDArray[np.float64]) -> None:
        """Refuse numbers that were read elsewhere as if the points between thousands were decimal points."""
        parts = numbers[np.isfinite(numbers) & (numbers != np.rint(numbers))]
        if len(parts) and (np.abs(parts) < 1000).all() and not (np.abs(parts) * 1000 % 1).round(9).any():
            raise DataError(
                f"column {self.source!r} has points between thousands, and numbers such as {parts[0]:g} were "
                f"read as if these were decimal points: read the file with thousands='.' and decimal=','."
            )

    @cached_property
    def _missing(self) -> frozenset[str]:
        return frozenset(self.missing)

    def _level(self, value: Any) -> str | None:
        text = as_text(value)
        if text in self.levels:
            return text
        text = " ".join(text.split())
        if text in ("", "?"):
            return None
        return self.aliases.get(text.casefold(), text)

    def _number(self, value: Any) -> float:
        if isinstance(value, Real):
            return float(value) if abs(value) < math.inf else math.nan  # type: ignore[operator]
        number = self.parse(as_text(value))
        if number is None:
            raise DataError(
                f"column {self.source!r} must be a number{self._as_written()}. Got {value!r:.60}."
            )
        return number

    def _as_written(self) -> str:
        written = f"{self.before}1{self.thousands}234{self.decimal}5{' ' if self.after else ''}{self.after}"
        return "" if written == "1234.5" else f", such as {written}"

    def parse(self, text: str) -> float | None:
        """Read text as a number; None if it is not one."""
        return _parsed(text, self.decimal, self.thousands, self.before, self.after)

    def _time(self, value: Any) -> Any:
        if self.order == "digits" and isinstance(value, Real) and abs(value) >= FIRST_DIGITS:  # type: ignore[operator]
            value = as_text(value)
        if (self.kind == "days" and isinstance(value, Real)) or (self.is_level and value in PARTS[self.kind]):
            return float(value) if self.kind == "days" else value  # as a network draws it
        if self.kind == "hours":
            hours = float(value) if isinstance(value, Real) else hours_of(value)
            if hours is None:
                raise DataError(f"column {self.source!r} must be a time of day. Got {value!r:.60}.")
            return hours
        length = _length(value)
        if length is not None and self.kind == "days":
            return length
        found = moment(value, self.order)
        if found is None:
            raise DataError(f"column {self.source!r} must be a date{self._example()}. Got {value!r:.60}.")
        day, microseconds = found
        if self.kind == "days":
            return (day - self.origin) + microseconds / DAY
        if self.kind == "hour":
            return str(microseconds // (DAY // 24))
        date = datetime.date.fromordinal(day + EPOCH)
        return MONTHS[date.month - 1] if self.kind == "month" else WEEKDAYS[date.weekday()]

    def _example(self) -> str:
        return {
            "ymd": "",
            "digits": ", such as 20241231",
            "dmy": ", such as 31/12/2024",
            "mdy": ", such as 12/31/2024",
        }[self.order]


@dataclass(frozen=True)
class Finding:
    """Something about a column that should be looked at, and what would be done about it.

    Attributes
    ----------
    column
        The name of the column; "" for the rows.
    kind
        What it is: "index", "unit", "dates", "empty" and so on.
    evidence
        What it looks like.
    remedy
        What would be done.
    reason
        Why.

    Examples
    --------
    >>> import spbn
    >>> weights = ["12.5 kg", "80 kg", "75 kg", "61 kg", "70.5 kg", "55 kg"]
    >>> found = spbn.prepare({"weight": weights, "age": [3, 41, 37, 19, 66, 23]}).findings
    >>> print(found[0].column, found[0].kind, "->", found[0].remedy)
    weight unit -> read as numbers, without 'kg'
    """

    column: str
    kind: str
    evidence: str
    remedy: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Preparation:
    """How a network's variables are read from tables, and what was found where that was decided.

    It is data, never code: it is saved with the network, and read again within limits.

    Attributes
    ----------
    readings
        How each variable is read, by its name.
    findings
        What was found.
    skip_rows, sheet
        How many lines of the file are above its names, and the sheet of an Excel file.

    Examples
    --------
    >>> import spbn
    >>> weights = ["12.5 kg", "80 kg", "75 kg", "61 kg", "70.5 kg", "55 kg"]
    >>> prepared = spbn.prepare({"weight": weights, "age": [3, 41, 37, 19, 66, 23]})
    >>> prepared.preparation.readings["weight"].value("1.5 kg")
    1.5
    """

    readings: Mapping[str, Reading]
    findings: tuple[Finding, ...] = ()
    skip_rows: int = 0
    sheet: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether any table is read as it would be without."""
        return all(name == r.source and r.is_plain for name, r in self.readings.items()) and not (
            self.skip_rows or self.sheet
        )

    @property
    def keeps_columns(self) -> bool:
        """Whether every variable is a column of the same name, without anything around its numbers."""
        return not (self.skip_rows or self.sheet) and all(
            name == r.source and r.kind in ("number", "level") and not (r.before or r.after or r.thousands)
            for name, r in self.readings.items()
        )

    def frame(self, data: Any) -> pd.DataFrame:
        """Return the variables of a table, as they are read."""
        return prepared_frame(data, self.readings)

    def to_plain(self) -> dict[str, Any]:
        """Describe it as plain data."""
        default = Reading(source="")
        return {
            "columns": {
                name: {
                    k: list(v) if isinstance(v, tuple) else v
                    for k, v in asdict(reading).items()
                    if v != getattr(default, k)
                }
                for name, reading in self.readings.items()
            },
            "findings": [list(asdict(finding).values()) for finding in self.findings],
            "skip_rows": self.skip_rows,
            "sheet": self.sheet,
        }

    @classmethod
    def from_plain(cls, document: Any) -> Preparation:
        """Read what `to_plain` wrote; anything else is a `ModelFileError`."""
        if not isinstance(document, dict) or set(document) != {"columns", "findings", "skip_rows", "sheet"}:
            refuse(f"its preparation makes no sense: {document!r:.200}.")
        columns, findings = document["columns"], document["findings"]
        if not isinstance(columns, dict) or not 0 < len(columns) <= MOST_COLUMNS:
            refuse(f"its preparation must describe between 1 and {MOST_COLUMNS} columns.")
        if not isinstance(findings, list) or len(findings) > 8 * MOST_COLUMNS:
            refuse("the findings of its preparation make no sense.")
        for finding in findings:
            if not isinstance(finding, list) or len(finding) != 5 or not all(map(_is_text, finding)):
                refuse(f"its preparation has a finding that makes no sense: {finding!r:.200}.")
        sheet = document["sheet"]
        if not is_whole(document["skip_rows"], 0) or not (sheet is None or _is_text(sheet)):
            refuse("its preparation does not say in which rows of a file the table is.")
        readings = {name: _reading(name, record) for name, record in columns.items()}
        return cls(readings, tuple(Finding(*f) for f in findings), document["skip_rows"], sheet)


def is_in_digits(number: float) -> bool:
    """Tell whether a number is a date, such as 20241231."""
    return FIRST_DIGITS <= number < 22_000_000 and moment(as_text(number), "digits") is not None


def moment(value: Any, order: Order) -> tuple[int, int] | None:
    """Return the day since 1970 of a date, by the clock on its wall, and the microseconds of that day."""
    if isinstance(value, datetime.datetime):
        clock = value.replace(tzinfo=None).time()
        seconds = clock.hour * 3600 + clock.minute * 60 + clock.second
        return value.toordinal() - EPOCH, seconds * 1_000_000 + clock.microsecond
    if isinstance(value, datetime.date):
        return value.toordinal() - EPOCH, 0
    if isinstance(value, np.datetime64):
        day = value.astype("datetime64[D]")
        return int(day.astype(np.int64)), int((value - day) / np.timedelta64(1, "us"))
    if hasattr(value, "start_time"):  # a period of pandas
        return moment(value.start_time, order)
    return _written(value.strip(), order) if isinstance(value, str) else None


@lru_cache(maxsize=1 << 16)  # a column is looked at several times
def _parsed(text: str, decimal: str, thousands: str, before: str, after: str) -> float | None:
    sign, text = "", text.strip()
    if not text[:1].isdigit():
        text = text.lstrip("~\u2248")  # about so much
        if text[:1] == "(" and text[-1:] == ")":  # as accountants write what is negative
            sign, text = "-", text[1:-1].strip()
        for _ in range(2):  # a sign may be on either side of a currency
            if text[:1] in ("+", "-", "\u2212", "\u2013") and not sign:
                sign, text = ("" if text[0] == "+" else "-"), text[1:].lstrip()
            if before and text.startswith(before):
                text = text[len(before) :].lstrip()
    if after and (text.endswith(after) or text.casefold().endswith(after.casefold())):
        text = text[: -len(after)].rstrip()
    for mark in SPACES if thousands == " " else thousands:
        text = text.replace(mark, "")
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    if "_" in text or text[:1] not in _DIGITS:  # which Python allows, or allows for infinity
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isinf(number) else -number if sign else number


@lru_cache(maxsize=1 << 16)  # a column is looked at several times
def _written(text: str, order: Order) -> tuple[int, int] | None:
    if order == "digits" and len(text) == 8 and text.isdecimal():
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        if "a" in parts:
            day, month = (parts["a"], parts["b"]) if order != "mdy" else (parts["b"], parts["a"])
        elif "q" in parts:
            day, month = "1", str(3 * int(parts["q"]) - 2)
        else:
            day = parts.get("d") or "1"
            month = parts.get("mo") or str(_month(parts["name"]))
        year = int(parts["y"])
        if len(parts["y"]) == 2:
            year += 2000 if year < CENTURY else 1900
        microseconds = _clock(parts) if parts.get("h") else 0
        try:
            return datetime.date(year, int(month), int(day)).toordinal() - EPOCH, microseconds
        except ValueError:
            return None
    return None


def _month(name: str) -> int:
    short = name[:3].capitalize()
    return MONTHS.index(short) + 1 if short in MONTHS else 0


def _clock(parts: Mapping[str, str | None]) -> int:
    """Return the microseconds since midnight."""
    hour, minute, second = (int(parts[key] or 0) for key in "hms")
    half = (parts["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    fraction = int(((parts["f"] or "") + "000000")[:6])
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


def hours_of(value: Any) -> float | None:
    """Return the hours since midnight of a time of day; None if it is not one."""
    if isinstance(value, datetime.time):
        value = value.isoformat()
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if found is None else _clock(found.groupdict()) / (DAY / 24)


def _length(value: Any) -> float | None:
    """Return a length of time in days; None if it is not one."""
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(days=1)
    return float(value / np.timedelta64(1, "D")) if isinstance(value, np.timedelta64) else None


def _objects(values: Any) -> list[Any]:
    """Return values as Python has them: dates to the microsecond, not in nanoseconds."""
    if values.dtype.kind in "Mm":
        values = values.astype(f"{values.dtype.kind}8[us]")
    found: list[Any] = values.tolist()
    return found


def _is_float(text: str) -> bool:
    if "_" in text:  # which Python allows in numbers
        return False
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "source": _is_text,
    "kind": lambda value: value in get_args(Kind),
    "decimal": lambda value: value in (".", ","),
    "thousands": lambda value: value in ("", ",", ".", " ", "'"),
    "before": _is_text,
    "after": _is_text,
    "missing": lambda value: _are_texts(value, LONGEST),
    "order": lambda value: value in get_args(Order),
    "origin": lambda value: is_whole(value) and abs(value) < 1 << 24,
    "blank": _is_text,
    "levels": lambda value: _are_texts(value, MOST_ALIASES),
    "aliases": lambda value: (
        isinstance(value, dict) and _are_texts([*value, *value.values()], MOST_ALIASES)
    ),
}  # fmt: skip


def _are_texts(value: Any, most: int) -> bool:
    return isinstance(value, list) and len(value) <= most and all(map(_is_text, value))


def _reading(name: str, record: Any) -> Reading:
    """Read the record of one variable."""
    if not _is_text(name) or not isinstance(record, dict) or "source" not in record:
        refuse(f"its preparation has a column that makes no sense: {name!r:.200}.")
    for key, value in record.items():
        if key not in _CHECKS or not _CHECKS[key](value):
            refuse(f"{key!r} of column {name!r} in its preparation makes no sense. Got {value!r:.200}.")
    texts = {key: tuple(record[key]) for key in ("missing", "levels") if key in record}
    found = Reading(**{**record, **texts})
    if found.decimal == found.thousands:
        refuse(f"column {name!r} in its preparation has the same sign for decimals and thousands.")
    return found


assert set(_CHECKS) == {known.name for known in fields(Reading)}


def source_of(reading: Reading | None, name: str, there: Any) -> str | None:
    """Return the name of the column that a variable is read from: its source, or its own; None if absent."""
    names = (name,) if reading is None else (reading.source, name)
    exact = next((name for name in names if name in there), None)
    if exact is not None or reading is None:
        return exact
    stripped = [name.strip() for name in names]
    return next((name for name in there if isinstance(name, str) and name.strip() in stripped), None)


def read_columns(
    columns: Mapping[str, Any], readings: Mapping[str, Reading | None], values: Callable[[str, Any], Any]
) -> dict[str, Any]:
    """Return the columns of variables that have a reading as these say, and all others as they are.

    `values`: makes an array of a column.
    """
    found = dict(columns)
    for name, reading in readings.items():
        source = source_of(reading, name, columns)
        if reading is not None and source is not None:
            found[name] = reading.column(values(source, columns[source]))
    return found


def raw_values(name: str, column: Any) -> Any:
    """Return a column as an array: of numbers or dates, or of whatever else it holds."""
    if not is_series(column):
        return as_array(name, column)
    if column.dtype.is_numeric():
        return column.cast(nw.Float64).to_numpy().astype(np.float64)
    if isinstance(column.dtype, nw.Datetime) and column.dtype.time_zone is None:
        return column.to_numpy()
    found = np.empty(len(column), dtype=object)
    found[:] = column.to_list()
    return found


def prepared_frame(data: Any, readings: Mapping[str, Reading | None]) -> pd.DataFrame:
    """Return the variables of a table as they are read, those that it has."""
    given = columns_of(data)
    columns = read_columns(given, readings, raw_values)
    found = {}
    for name, reading in readings.items():
        if source_of(reading, name, given) is not None:
            values = columns[name]
            if reading is not None:
                found[name] = as_column(reading, values)
            else:
                found[name] = values.to_native() if is_series(values) else values
    return pd.DataFrame(found, index=data.index if nw.dependencies.is_pandas_dataframe(data) else None)


def as_column(reading: Reading, values: Any) -> Any:
    """Return what was read as a column of a frame: numbers, or categories in their order."""
    if not reading.is_level:
        return values
    there = set(values.tolist()) - {None}
    levels: Sequence[str] = reading.levels or PARTS.get(reading.kind, ())
    if not there <= set(levels):
        levels = sorted(there, key=_as_sorted)
    elif reading.kind in PARTS:
        levels = [level for level in levels if level in there]
    return pd.Categorical(values, categories=pd.Index(list(levels)))


def _as_sorted(level: str) -> tuple[bool, float, str]:
    """Sort levels that are numbers as numbers."""
    return (False, float(level), level) if _is_float(level) else (True, 0.0, level)
