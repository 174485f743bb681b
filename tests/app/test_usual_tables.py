"""Tables with the usual faults, tried as someone would who has just installed spbn: each is read, or refused
with one line that says where the trouble is and what to do.
"""

import re

import numpy as np
import pytest

RNG = np.random.default_rng(0)
A = RNG.normal(10, 2, size=40).round(2)
B = (A + RNG.normal(size=40)).round(2)
C = RNG.normal(size=40).round(2)
ROWS = list(zip(A, B, C, strict=True))


def table(change=lambda row, place, value: str(value), *, names="a,b,c", sep=",", above="", below=""):
    """Write three columns of numbers, some of which are written in another way."""
    rows = [sep.join(change(i, k, value) for k, value in enumerate(row)) for i, row in enumerate(ROWS)]
    return above + "\n".join([names.replace(",", sep), *rows]) + "\n" + below


def first(write):
    """Write the first column in another way."""
    return lambda row, place, value: write(row, value) if place == 0 else str(value)


def once(text):
    """Write one value in another way."""
    return lambda row, place, value: text if (row, place) == (3, 0) else str(value)


def last(write):
    return lambda row, place, value: write(row, value) if place == 2 else str(value)


#: What is wrong; the table; and what is said about it.
REFUSED = {
    "percent signs": (table(first(lambda i, x: f"{x}%")), r"'a' holds numbers with '%' after them: '10.25%'"),
    "currencies": (table(first(lambda i, x: f"${x}")), r"'a' holds numbers with '\$' before them"),
    "units": (table(first(lambda i, x: f"{x} kg")), r"'a' holds numbers with 'kg' after them"),
    "spaces in numbers": (
        table(first(lambda i, x: f"1\u00a0{int(abs(x)):03d}"), sep=";"),
        "numbers with spaces between their digits",
    ),
    "a title": (
        table(above="Measurements of May\n\n"),
        "it is 'Measurements of May': .* delete what is above",
    ),
    "a comment": (table(above="# by logger\n"), "it is '# by logger': .* delete what is above the names"),
    "units below names": (
        table(names="a,b,c\nkg,m,s"),
        "a +'kg' among numbers +'kg' treated as missing",
    ),
    "a sum": (table(below="Total,400,\n"), "'Total' among numbers +'Total' treated as missing"),
    "names again": (table(below="a,b,c\n1,2,3\n"), "'a' among numbers +'a' treated as missing"),
    "a dash": (table(once("-")), "'-' in row 4 .* If it stands for a missing value, leave the field empty"),
    "a word for missing": (table(once("missing")), "'missing' among numbers +'missing' treated as missing"),
    "a word for missing, twice": (
        table(lambda row, place, value: "n.d." if place == 0 and row in (3, 9) else str(value)),
        "'n.d.' among numbers +'n.d.' treated as missing",
    ),
    "a typographic minus": (
        table(last(lambda i, x: str(x).replace("-", "\u2212"))),
        "'c' holds text among numbers.* The minus sign is a typographic one: write a plain hyphen instead",
    ),
    "#N/A": (table(once("#N/A")), r"1 value is missing .* 'a', in row 4 \(line 5\).*--missing drop"),
    "a row too short": (table(below="1,2\n"), r"missing .* column 'c', in row 41 \(line 42\)"),
    "a row too long": (table(below="1,2,3,4\n"), "line 42 has 4 fields, and those above have 3. Remove"),
    "a column without a name": (
        table(first(lambda i, x: f"{7 * i % 11},{x}"), names=",a,b,c"),
        """column 1 has no name.* --drop '""'. \\(pandas""",
    ),
    "commas at the end": (
        table(last(lambda i, x: f"{x},"), names="a,b,c,"),
        r"column 4 has no name.*every line ends with what separates fields",
    ),
    "names of rows": (
        table(first(lambda i, x: f"unit {i}x,{x}"), names="n,a,b,c"),
        "looks like names.*--drop n",
    ),
    "dates": (table(first(lambda i, x: f"2024-01-{i % 28 + 1:02d},{x}"), names="t,a,b,c"), "dates.*--drop t"),
    "an open quote": (table(below='"1,2,3\n'), "quotation mark that opens in line 42 or so is never closed"),
    "a constant": (table(first(lambda i, x: f"7,{x}"), names="k,a,b,c"), r"'k' is constant.*--drop k"),
    "a copy": (table(first(lambda i, x: f"{2 * x},{x}"), names="a2,a,b,c"), r"copy of column 'a2'.*--drop a"),
    "an empty column": (
        table(last(lambda i, x: f"{x},"), names="a,b,c,d"),
        "'d' has no value at all.*--drop d",
    ),
    "spaces between fields": (table(sep=" "), "separated by spaces, use --sep space"),
    "JSON": ('[{"a": 1}]\n', "it holds JSON.* write it as CSV"),
    "a page": ("<!DOCTYPE html>\n<html>404</html>\n", "it holds a web page, or XML"),
    "one row": ("a,b\n1,2\n", "at least 2 rows are needed"),
    "names only": ("a,b\n", "has column names, but no rows"),
}
#: What is odd; the table; options; and a note, or nothing.
READ = {
    "spaces around names": (table(names=" a , b , c "), [], ""),
    "yes and no": (table(first(lambda i, x: f"{'yes' if i % 2 else 'no'},{x}"), names="ok,a,b,c"), [], ""),
    "old line ends": (table().replace("\n", "\r"), [], ""),
    "an index": (
        table(first(lambda i, x: f"{i},{x}"), names=",a,b,c"),
        [],
        "has no name and counts the rows, as pandas writes its index: it is left out",
    ),
    "numbers of rows": (table(first(lambda i, x: f"{i + 1},{x}"), names="id,a,b,c"), [], "use --drop id"),
    "a code for missing": (
        table(once("-999")),
        [],
        "column 'a' has the number -999, far from all its other values. If it stands for a missing value",
    ),
    "no names": (table().split("\n", 1)[1], [], "add a line with names above it"),
    "spaces, said so": (table(sep=" "), ["--sep", "space"], ""),
    "decimal commas": (table(sep=";").replace(".", ","), [], ""),
    "quotes": (table(lambda i, k, x: f'"{x}"'), [], ""),
    "empty lines": (table().replace("\n", "\n\n"), [], ""),
    "holes, dropped": (table(once("")), ["--missing", "drop"], ""),
    "holes, imputed": (table(once("NA")), ["--missing", "impute"], ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_refused_has_the_remedy(fault, folder, run):
    content, message = REFUSED[fault]
    (folder / "t.csv").write_text(content, newline="")
    code, out, err = run("learn", "t.csv", "--model", "gbn")
    assert (code, out) == (2, "")
    *table_of_findings, refusal = err.strip().splitlines()
    assert refusal.startswith("spbn: ")
    assert not table_of_findings or "To have all this done: spbn learn t.csv --model gbn" in refusal
    assert re.search(message, err), err


@pytest.mark.slow
@pytest.mark.filterwarnings("always")  # they are printed
@pytest.mark.parametrize("oddity", READ)
def test_what_is_odd_is_read(oddity, folder, run):
    content, options, note = READ[oddity]
    (folder / "t.csv").write_text(content, newline="")
    code, out, err = run("learn", "t.csv", "--model", "gbn", *options)
    assert code == 0, err
    assert re.search(r"[34] nodes \(", out)
    assert note in err
    assert bool(err) == bool(note)


def test_levels_with_numbers_in_them_are_levels(folder, run):
    sizes = table(first(lambda i, x: f"{5 * (1 + i % 3)} kg,{x}"), names="size,a,b,c")
    (folder / "t.csv").write_text(sizes)
    code, out, err = run("learn", "t.csv", "--model", "gbn")
    assert code == 0, err
    assert "1 discrete" in out
