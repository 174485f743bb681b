import math
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spbn.plots.pictures import shortened
from spbn.report.html import Html, clean, join, number, percent, plural, tag


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.values = [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
@given(st.text())
def test_whatever_is_written_stays_text(text):
    reader = Reader()
    reader.feed(tag("p", text, title=text) + "<i></i>")
    assert reader.tags == ["p", "i"]
    assert reader.text == unescape(clean(text).replace("&", "&amp;"))
    assert reader.values == [clean(text)]


def test_html_is_not_escaped_twice():
    assert tag("p", tag("b", "a<b"), "&") == "<p><b>a&lt;b</b>&amp;</p>"
    assert join("<", Html("<br>")) == "&lt;<br>"


def test_attributes():
    assert tag("a", class_="x", aria_label="y", hidden=True, title=None, rx=1.0) == (
        '<a class="x" aria-label="y" hidden rx="1"></a>'
    )


def test_long_names_are_cut():
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (-7.23314, "−7.233"),
        (12345.678, "12,346"),
        (0.0123456, "0.01235"),
        (-1e-7, "−1.000e−7"),
        (3.2e12, "3.200e12"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "–"),
        (9.9999, "10.000"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@given(st.floats(-1e300, 1e300), st.integers(2, 8))
def test_numbers_can_be_read_back(value, digits):
    read = float(number(value, digits).replace(",", "").replace("−", "-"))
    assert read == pytest.approx(value, rel=10.0 ** (1 - digits), abs=1e-6)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (-0.94, "−94 %"),
        (-0.9999, "−>99 %"),
        (0.031, "+3.1 %"),
        (1e-9, "<0.1 %"),
        (math.exp(700), "+>999 %"),
        (0, "0.0 %"),
    ],
)
def test_percents(share, text):
    assert percent(share) == text


def test_plurals():
    assert plural(1, "arc") == "1 arc"
    assert plural(1200, "row") == "1,200 rows"
