"""The data check: what came in, how it was read, and what to look at twice."""

from __future__ import annotations

from spbn.diagnostics.data_check import ColumnCheck, DataCheck
from spbn.diagnostics.validation import Source
from spbn.plots.svg import Html, join, tag
from spbn.report.content import Content
from spbn.report.format import MINUS, count, number, plural
from spbn.report.parts import heading, node_link, table

SHOWN = 12
TITLE = "Data check"
LONGEST = 1e9  # whole numbers that are written out


def data_section(content: Content) -> Html:
    """List the columns, those with something to look at first."""
    found = content.data
    if found is None:
        return heading("data", TITLE, "Not shown: no rows were given. Give data to see this.")
    # Stable: otherwise they are in the order of the table.
    columns = sorted(found.columns, key=lambda column: (not column.notes, not column.missing))
    rows = [_row(content, column) for column in columns]
    heads = [
        ("Column", ""),
        ("Read as", ""),
        ("Missing", "num"),
        ("Distinct", "num"),
        ("Lowest, median, highest", ""),
        ("To check", ""),
    ]
    rest = rows[SHOWN:]
    more = tag("details", tag("summary", f"{count(len(rest))} more"), table(heads, rest)) if rest else ""
    return join(
        heading("data", TITLE, _words(content, found)),
        tag("div", table(heads, rows[:SHOWN]), more, class_="card columns"),
    )


def _words(content: Content, found: DataCheck) -> str:
    which = (
        "The rows given" if content.evidence.source is Source.GIVEN else "The training rows that nodes keep"
    )
    words = [f"{which}: {plural(found.rows, 'row')}, {plural(len(found.columns), 'column')}."]
    if found.missing:
        are = "value is" if found.missing == 1 else "values are"
        words.append(
            f"{count(found.missing)} {are} missing, in {plural(found.incomplete, 'row')}; for this report "
            "they were filled once, with likely values."
        )
    else:
        words.append("Nothing is missing.")
    if found.repeated:
        repeat = "repeats" if found.repeated == 1 else "repeat"
        words.append(f"{plural(found.repeated, 'row')} {repeat} an earlier one.")
    if found.unused:
        words.append(f"Not used: {', '.join(found.unused)}.")
    noted = sum(bool(column.notes) for column in found.columns)
    if noted:
        words.append(f"{plural(noted, 'column')} to check, listed first.")
    return " ".join(words)


def _row(content: Content, column: ColumnCheck) -> Html:
    if column.extent is not None:
        extent = ", ".join(map(_written, column.extent))
    elif column.commonest is not None:
        level, share = column.commonest
        extent = f"most often {level} ({100 * share:.0f} %)"
    else:
        extent = ""
    return tag(
        "tr",
        tag("td", node_link(content, column.name)),
        tag("td", column.read_as),
        tag("td", count(column.missing) if column.missing else "–", class_="num missing"),
        tag("td", count(column.distinct), class_="num different"),
        tag("td", extent),
        tag("td", "; ".join(column.notes), class_="look"),
    )


def _written(value: float) -> str:
    is_short = value == round(value) and abs(value) < LONGEST
    return count(round(value)).replace("-", MINUS) if is_short else number(value)
