import re

import pytest

from spbn import Structure
from spbn.learning.stability import Confidence

pytest.importorskip("igraph")
pytest.importorskip("matplotlib")

from spbn.report.pages import render_confidence, write_confidence_report


def found():
    structures = [
        Structure("abc", [("a", "b"), ("c", "b")], {"a": "lg", "b": "lg", "c": "ckde"}),
        Structure("abc", [("a", "b"), ("c", "b")], "lg"),
        Structure("abc", [("b", "a"), ("c", "b")], "lg"),
        Structure("abc", [("b", "a"), ("a", "c")], "lg"),
    ]
    return Confidence(tuple(structures), {}, 500, "")


def test_arcs_have_their_strengths_and_open_directions_are_explained():
    page = render_confidence(found(), title="<Title>")
    assert "<Title>" not in page
    assert "repeated in 4 replicates, each on a different half of the 500 rows" in page
    assert "more than 25 % of them" in page
    rows = re.findall(
        r"<td>(. → .)</td><td class=\"num\">(\d+ %)</td>.*?<td class=\"num\">(\d+ %)</td>", page
    )
    assert rows == [("a → b", "100 %", "50 %"), ("c → b", "75 %", "100 %"), ("a → c", "25 %", "100 %")]
    assert page.count("replicates disagree</td>") == 1
    assert "1 arc not believed" in page
    assert "75 %" in page
    assert "25 %" in page


def test_widths_and_dashes_in_the_graph():
    page = render_confidence(found(), title="t")
    arcs = re.findall(r"<title>([^<]*)</title><path [^>]*stroke-width=\"([\d.]+)\"([^>]*)>", page)
    widths = {title.split(" (")[0]: float(width) for title, width, _ in arcs}
    dashed = [title for title, _, rest in arcs if "stroke-dasharray" in rest]
    assert widths["a → b"] > widths["c → b"]
    assert dashed == ["a → b (direction open: replicates disagree)"]


def test_no_arc_at_all(tmp_path):
    none = Confidence((Structure("ab"),), {}, 10, "")
    write_confidence_report(none, tmp_path / "r.html", title="t")
    assert "No arc is believed" in (tmp_path / "r.html").read_text()
