"""Tables as people have them: each is read, or refused with the exact remedy."""

import gzip
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.cli.files import read_as_written, read_table, write_table
from spbn.cli.sources import Source, _extent, place
from spbn.errors import ArgumentError, DataError, PackageError

FRAME = pd.DataFrame({"größe": [1.5, -2.0, 1234.25], "b": [1.0, 5.0, 4.0]})
TEXT = "größe,b\n1.5,1\n-2,5\n1234.25,4\n"
GERMAN = "größe;b\n1,5;1\n-2;5\n1234,25;4\n"


def packed(content):
    """Compress without the time, which would be part of the names of tests: processes must agree on them."""
    return gzip.compress(content, mtime=0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("plain.csv", TEXT.encode(), {}),
        ("bom.csv", TEXT.encode("utf-8-sig"), {}),
        ("named_bom.csv", TEXT.encode("utf-8-sig"), {"encoding": "UTF-8"}),
        ("excel_unicode.csv", TEXT.replace(",", "\t").encode("utf-16"), {}),
        ("windows.csv", TEXT.replace("\n", "\r\n").encode(), {}),
        ("packed.csv.gz", packed(TEXT.encode()), {}),
        ("PACKED.TSV.GZ", packed(TEXT.replace(",", "\t").encode()), {}),
        ("german.csv", GERMAN.encode(), {}),
        ("german_bom.csv", GERMAN.encode("utf-8-sig"), {}),
        ("german.csv.gz", packed(GERMAN.encode()), {}),
        ("german.tsv", GERMAN.replace(";", "\t").encode(), {}),
        ("points.csv", TEXT.replace(",", ";").encode(), {}),
        ("tabs.csv", TEXT.replace(",", "\t").encode(), {}),
        ("pipes.csv", TEXT.replace(",", "|").encode(), {}),
        ("commas.tsv", TEXT.encode(), {}),
        ("quoted.csv", 'größe,b\n"1,5",1\n"-2",5\n"1234,25",4\n'.encode(), {}),
        ("latin.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
        ("german_latin.csv.gz", packed(GERMAN.encode("cp1252")), {"encoding": "cp1252"}),
        ("colons.csv", TEXT.replace(",", ":").encode(), {"sep": ":"}),
        ("tab_by_name.csv", TEXT.replace(",", "\t").encode(), {"sep": "tab"}),
        ("one_more.csv", GERMAN.replace("größe;b", "größe;b").encode(), {"sep": ";", "decimal": ","}),
    ],
)
def test_what_people_have_is_read(folder, name, content, options):
    (folder / name).write_bytes(content)
    frame = read_table(name, **options).reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "latin.csv",
            TEXT.encode("latin-1") + b"\x81",
            {},
            r"not a text file in UTF-8: line 1 has the byte 0xf6\. Give its encoding with encoding=",
        ),
        ("ascii.csv", TEXT.encode(), {"encoding": "ascii"}, "not a text file in the encoding 'ascii'"),
        ("no_mark.csv", TEXT.encode(), {"encoding": "utf-16"}, "not a text file in the encoding 'utf-16'"),
        ("g.csv", b"a;b\n1,234;1\n5,678;2\n", {}, r"'a' has .* group thousands.* '1,234'.* decimal=','"),
        (
            "g.csv",
            b'a,b\n"1,234.5",1\n"7.5",2\n',
            {},
            r"'a' has marks between thousands, as in '1,234.5'\. Save the table with nothing between",
        ),
        (
            "g.csv",
            b"a;b\n1.234,5;1\n7,5;2\n",
            {},
            r"'a' has marks between thousands, as in '1.234,5'\. Save",
        ),
        (
            "m.csv",
            b"a;b\n1,5;1.5\n2,5;2.5\n",
            {},
            r"'a' has decimal commas, as in '1,5', and column 'b' has dec",
        ),
        ("r.csv", b"a;b\n1;2\n3;4;5\n", {}, r"only one name, 'a;b'.* sep=';'"),
        (
            "r.csv",
            b"a\n1,5\n2,5\n",
            {},
            "more fields than there are column names.* If the rows have decimal commas",
        ),
        (
            "zip.csv",
            packed(TEXT.encode()),
            {},
            "it is compressed with gzip. Please name it zip.csv.gz",
        ),
        (
            "g.csv",
            b'a;b\n1,5;1\n"7.5";2\n',
            {},
            r"'a' has numbers that are written in different ways, such as '7.5' and '1,5'\. Save",
        ),
        ("t.csv.gz", TEXT.encode(), {}, r"t.csv.gz is not a gzip file.* not compressed, name it t.csv\."),
        ("t.txt", TEXT.encode(), {}, r"Got 't.txt'\. If it is text with a line of names, name it .csv\."),
        ("t.csv", b"\n\n \n", {}, "nothing but empty lines. The first line must hold the names"),
        ("t.csv", b"a,b,a\n1,2,3\n", {}, "rename the columns that are called 'a'"),
        ("t.csv.gz", packed(TEXT.encode())[:-9], {}, "is not a gzip file, or it is damaged"),
        ("t.csv.gz", packed(b""), {}, "t.csv.gz is empty"),
        ("book.csv", b"PK\x03\x04....", {}, "an Excel file .* name it book.xlsx"),
        ("book.xlsx", TEXT.encode(), {}, "book.xlsx is not an Excel file, or it is damaged"),
        ("book.xls", b"\xd0\xcf", {}, r"Got 'book.xls'. Save it as .xlsx"),
        ("book.gz", packed(TEXT.encode()), {}, r"must end in one of .*\.csv\.gz.* Got 'book.gz'"),
        ("p.csv", b"PAR1....", {}, "a Parquet file. Please name it p.parquet"),
        ("b.csv", b"a,b\n\x00\x01", {}, "holds binary data"),
    ],
)
def test_what_cannot_be_read_has_a_remedy(folder, name, content, options, message):
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(name, **options)


def test_a_decimal_comma_elsewhere_or_an_option_tells_commas_from_thousands(folder):
    (folder / "t.csv").write_text("a;b\n1,234;1,5\n5,678;2\n")
    assert read_table("t.csv")["a"].tolist() == [1.234, 5.678]
    (folder / "t.csv").write_text("a;b\n1,234;1\n5,678;2\n")
    assert read_table("t.csv", decimal=",")["a"].tolist() == [1.234, 5.678]
    (folder / "t.csv").write_text("a;b\n1,5;1\n1,5;2\n2,5;3\n2,5;4\n" + "1,5;5\n" * 20)
    assert read_table("t.csv", decimal=".")["a"].tolist()[:2] == ["1,5", "1,5"]
    assert read_table("t.csv", discrete=["a"])["a"].tolist()[:2] == ["1,5", "1,5"]


def test_missing_values_among_decimal_commas(folder):
    (folder / "t.csv").write_text("a;b\n1,5;1\n?;2\n;3\nNA;4\n-1e-3;5\n,5;6\n")
    np.testing.assert_array_equal(read_table("t.csv")["a"], [1.5, np.nan, np.nan, np.nan, -0.001, 0.5])


def test_options_that_make_no_sense():
    for options, message in (
        ({"sep": ""}, "sep must be one character"),
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"encoding": "hex"}, "encoding must be one that Python knows"),
        ({"encoding": "undefined"}, "encoding must be one that Python knows"),
    ):
        with pytest.raises(ArgumentError, match=message):
            read_table("t.csv", **options)


def test_lines_are_counted_in_packed_tables_with_other_separators(folder):
    (folder / "t.csv.gz").write_bytes(packed(b'a;b\n1;"x\ny"\n\n2,5;oops\n'))
    assert place("t.csv.gz", 2) == "row 2 (line 5)"


def test_what_is_written_again_has_points(folder):
    (folder / "t.csv").write_text("a;note;level\n1,5;x, y;1,5\n;z;2,5\n")
    written = read_as_written("t.csv", discrete=["level"])
    assert written.to_numpy().tolist() == [["1.5", "x, y", "1,5"], ["", "z", "2,5"]]


@pytest.mark.parametrize("kind", ["csv.gz", "tsv.gz", "xlsx"])
def test_other_kinds_are_written_as_well(kind):
    write_table(FRAME, f"t.{kind}")
    frame = read_table(f"t.{kind}").reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)


FORMULAS = pd.DataFrame({"=1+1": [1.0, 2.0, 3.0], "kind": ['=HYPERLINK("x")', "#N/A", "+1"]})


def test_text_in_a_sheet_is_no_formula(folder):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(FORMULAS, "t.xlsx")
    cells = [cell for row in openpyxl.load_workbook("t.xlsx").active.iter_rows() for cell in row]
    texts = [cell for cell in cells if isinstance(cell.value, str)]
    assert [cell.value for cell in texts] == ["=1+1", "kind", '=HYPERLINK("x")', "#N/A", "+1"]
    assert {cell.data_type for cell in texts} == {"s"}
    with zipfile.ZipFile("t.xlsx") as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")
    pd.testing.assert_frame_equal(pd.read_excel("t.xlsx", keep_default_na=False), FORMULAS, check_dtype=False)


def test_text_in_a_text_file_is_written_as_it_is(folder):
    """Programs read it, which would take an apostrophe before an equals sign for a part of the text."""
    write_table(FORMULAS, "t.csv")
    assert (folder / "t.csv").read_text().splitlines()[0] == "=1+1,kind"
    pd.testing.assert_frame_equal(pd.read_csv("t.csv", keep_default_na=False), FORMULAS)


def test_the_same_rows_give_the_same_packed_file(folder):
    for name in ("s.csv.gz", "t.csv.gz"):
        write_table(FRAME, name)
    first, second = ((folder / name).read_bytes() for name in ("s.csv.gz", "t.csv.gz"))
    assert gzip.decompress(first) == gzip.decompress(second) == FRAME.to_csv(index=False).encode()
    assert first[4:8] == second[4:8] == b"\x01\0\0\0"  # not the time


def test_sheets_have_titles_holes_and_text(folder):
    cells = pd.DataFrame([[None] * 3, [None, "a", "kind"], [None, 1.5, "x"], [None, "2,5", "y"], [None] * 3])
    cells = pd.concat([cells, pd.DataFrame([[None, None, "x"], [None, 4, "y"]])])
    with pd.ExcelWriter("t.xlsx") as book:
        cells.to_excel(book, sheet_name="Data", header=False, index=False)
        FRAME.to_excel(book, sheet_name="Other", index=False)
    with pytest.warns(
        UserWarning, match=r"t.xlsx has 2 sheets: only 'Data' is read. For another one, use sheet"
    ):
        frame = read_table("t.xlsx", discrete=["kind"])
    np.testing.assert_array_equal(frame["a"].astype(float), [1.5, 2.5, np.nan, 4.0])
    assert frame["kind"].tolist() == ["x", "y", "x", "y"]
    pd.DataFrame().to_excel("empty.xlsx")
    with pytest.raises(DataError, match="has no table: it is empty"):
        read_table("empty.xlsx")
    pd.DataFrame([["a", "a"], [1, 2]]).to_excel("twice.xlsx", header=False, index=False)
    with pytest.raises(DataError, match="must be distinct"):
        read_table("twice.xlsx")


def test_without_openpyxl_the_message_says_what_to_install(monkeypatch):
    write_table(FRAME, "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    for work in (lambda: read_table("t.xlsx"), lambda: write_table(FRAME, "u.xlsx")):
        with pytest.raises(PackageError, match=r"openpyxl: pip install 'spbn\[excel\]', or save .* CSV"):
            work()


@pytest.mark.parametrize("content", [TEXT.encode(), packed(GERMAN.encode())])
def test_standard_input_is_read_once_and_looked_at_often(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    source = Source("-")
    for _ in range(2):
        pd.testing.assert_frame_equal(read_table(source).reset_index(drop=True), FRAME, check_dtype=False)
    assert place(source, 2) == "row 2 (line 3)"
    with pytest.raises(DataError, match="standard input is empty"):
        read_table("-")


def test_packed_tables_that_would_fill_the_memory_are_refused(folder, monkeypatch):
    text = TEXT.encode() + b"1,2\n" * 1000
    (folder / "t.csv.gz").write_bytes(packed(text))
    assert len(read_table("t.csv.gz")) == 1003
    monkeypatch.setattr("spbn.cli.sources.MOST_BYTES", 0)
    monkeypatch.setattr("spbn.cli.sources.MOST_TIMES", 2)
    with pytest.raises(DataError, match=r"holds more than 2 times its own size.* with gunzip, and give that"):
        read_table("t.csv.gz")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed(text))))
    with pytest.raises(DataError, match=r"standard input holds more than .* write what it holds to a file"):
        read_table("-")


def test_a_packed_table_is_not_unpacked_beyond_the_limit(folder, monkeypatch):
    """Of a megabyte of nothing only some is ever unpacked."""
    monkeypatch.setattr("spbn.cli.sources.MOST_BYTES", 0)
    (folder / "t.csv.gz").write_bytes(packed(b"a,b\n" + b"0" * (1 << 20)))
    seen = 0

    def read_all():
        nonlocal seen
        with Source("t.csv.gz").opened() as stream:
            while piece := stream.read(1000):
                seen += len(piece)

    with pytest.raises(DataError, match="holds more than 100 times its own size"):
        read_all()
    assert seen <= 100 * (folder / "t.csv.gz").stat().st_size


def sheet(*rows):
    """Write an Excel file whose sheet has this XML."""
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_excel("plain.xlsx", index=False)
    with zipfile.ZipFile("plain.xlsx") as plain, zipfile.ZipFile("t.xlsx", "w", zipfile.ZIP_DEFLATED) as book:
        for part in plain.infolist():
            content = plain.read(part)
            if part.filename == "xl/worksheets/sheet1.xml":
                start, end = content.index(b"<sheetData>") + 11, content.index(b"</sheetData>")
                content = content[:start] + "".join(rows).encode() + content[end:]
            book.writestr(part.filename, content)


@pytest.mark.parametrize(
    "rows",
    [
        ['<row r="1"><c r="A1"><v>1</v></c></row>', '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'],
        ['<row r="1048576">' + "<c><v>1</v></c>" * 16384 + "</row>"],  # cells need not say where they are
    ],
)
def test_sheets_that_reach_far_out_are_refused(rows):
    sheet(*rows)
    with pytest.raises(
        DataError, match=r"reaches to row 1,048,576 and column 16,384, .* delete the cells far out"
    ):
        read_table("t.xlsx")


def test_sheets_that_unpack_to_far_more_are_refused(monkeypatch):
    sheet('<row r="1"><c r="A1"><v>1</v></c></row>' + " " * 1_000_000)
    monkeypatch.setattr("spbn.cli.sources.MOST_BYTES", 0)
    with pytest.raises(DataError, match=r"holds more than 100 times its own size.* save the table as CSV"):
        read_table("t.xlsx")


def test_ordinary_sheets_are_measured():
    write_table(pd.DataFrame(np.ones((30, 28))), "t.xlsx")
    with zipfile.ZipFile("t.xlsx") as book, book.open("xl/worksheets/sheet1.xml") as stream:
        assert _extent(stream) == (31, 28)


def test_arrays_are_learned_from_and_scored():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    rows[:, 1] += rows[:, 0]
    named = pd.DataFrame(rows, columns=["0", "1"])
    network = spbn.learn(rows, model="gbn")
    assert network.nodes == ("0", "1")
    assert network == spbn.learn(named, model="gbn") == spbn.learn(pd.DataFrame(rows), model="gbn")
    np.testing.assert_array_equal(network.logpdf(rows), network.logpdf(named))


def test_holes_of_arrays_are_filled():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    rows[:, 1] += rows[:, 0]
    network = spbn.learn(rows, model="gbn")
    rows[3, 0] = np.nan
    expected = network.impute(pd.DataFrame(rows, columns=["0", "1"]))
    assert expected.notna().all(axis=None)
    pd.testing.assert_frame_equal(network.impute(rows), expected)
    numbered = network.impute(pd.DataFrame(rows))
    assert numbered.columns.tolist() == [0, 1]  # as they were
    np.testing.assert_array_equal(numbered, expected)


def test_an_array_for_columns_with_names_is_refused_with_what_to_pass():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    network = spbn.learn(pd.DataFrame(rows, columns=["a", "b"]), model="gbn")
    remedy = r"An array has no names: pass pandas.DataFrame\(array, columns=\['a', 'b'\]\)"
    for work in (network.logpdf, network.impute, lambda data: network.predict(data, ["a"])):
        with pytest.raises(DataError, match=remedy):
            work(rows)
