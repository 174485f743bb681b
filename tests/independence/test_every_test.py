"""What holds for every independence test on data."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from spbn.errors import ArgumentError, DataError
from spbn.independence import CMIknn, PartialCorrelation, RCoT
from spbn.independence.base import stream
from spbn.tables.reader import as_table

from strategies import nonlinear_frame

FRAME = nonlinear_frame(150, 5)
QUESTIONS = [
    ("a", "b", ()),
    ("c", "a", ()),
    ("a", "c", ("b",)),
    ("e", "b", ("d", "a")),
    ("d", "e", ("c", "b", "a")),
    ("a", "d", ("b",)),
    ("c", "e", ("b",)),
]
TESTS = {
    "plc": PartialCorrelation,
    "rcot": RCoT,
    "cmiknn": lambda data, **options: CMIknn(data, permutations=40, **options),
    "cmiknn-standardised": lambda data, **options: CMIknn(
        data, permutations=40, transform="standardise", **options
    ),
}
SEEDED = [name for name in TESTS if name != "plc"]
every_test = pytest.mark.parametrize("make", TESTS.values(), ids=TESTS)


@every_test
def test_pvalues_depend_on_the_question_alone(make):
    """Not on the order of x and y, of the condition, of the columns, of the calls, nor on the batch."""
    together = make(FRAME).pvalues(QUESTIONS)
    assert ((together >= 0) & (together <= 1)).all()
    assert len(set(together)) > 4
    swapped = make(FRAME[list("dbeca")])
    for (x, y, given), expected in reversed(list(zip(QUESTIONS, together, strict=True))):
        assert swapped.pvalue(y, x, given[::-1]) == expected


@every_test
def test_rows_may_come_in_any_form(make):
    expected = make(FRAME).pvalue("a", "c", ["b"])
    for data in (FRAME.to_dict("list"), pl.from_pandas(FRAME), as_table(FRAME)):
        assert make(data).pvalue("a", "c", ["b"]) == expected
    assert make(FRAME).pvalue("a", "c", "b") == expected  # one name for a condition of one
    holes = pd.concat([FRAME, pd.DataFrame({name: [np.nan] for name in FRAME})], ignore_index=True)
    with pytest.raises(DataError, match=r"missing='drop'"):
        make(holes)
    assert make(holes, missing="drop").pvalue("a", "c", ["b"]) == expected


@pytest.mark.parametrize("name", SEEDED)
def test_the_seed_fixes_all_that_is_random(name):
    make = TESTS[name]
    expected = make(FRAME, seed=3).pvalues(QUESTIONS)
    assert (make(FRAME, seed=3).pvalues(QUESTIONS) == expected).all()
    assert (make(FRAME, seed=np.random.default_rng(3)).pvalues(QUESTIONS) == expected).all()
    assert (make(FRAME, seed=4).pvalues(QUESTIONS) != expected).any()


@every_test
def test_units_and_offsets_change_nothing_of_note(make):
    scaled = FRAME * [1e-9, 1e9, 3.0, 1.0, 7.0] + [0.0, 1e10, 0.0, 5.0, -2.0]
    np.testing.assert_allclose(make(scaled).pvalues(QUESTIONS), make(FRAME).pvalues(QUESTIONS), atol=0.03)


@every_test
def test_nasty_columns_give_numbers(make, rng):
    """Copies, sums, few values, outliers: a p-value for every question, and never NaN."""
    base = rng.normal(size=(3, 80))
    data = {
        "a": base[0],
        "copy": base[0].copy(),
        "sum": base[0] + base[1],
        "b": base[1],
        "coin": rng.integers(0, 2, 80),
        "spike": (np.arange(80) == 7).astype(float),
        "outlier": np.where(np.arange(80) == 3, 1e12, base[2]),
    }
    test = make(data)
    names = list(data)
    questions = [
        (x, y, [z for z in names[:size] if z not in (x, y)])
        for size in (0, 1, 3, 7)
        for i, x in enumerate(names)
        for y in names[:i]
    ]
    pvalues = test.pvalues(questions)
    assert ((pvalues >= 0) & (pvalues <= 1)).all()
    assert test.pvalue("a", "copy") < 0.05
    assert test.pvalue("a", "b", ["copy"]) > 0.02


@every_test
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (FRAME.assign(c=1.0), "'c' is constant"),
        (FRAME[["a"]], "at least 2 columns"),
        (FRAME.head(2), "at least 3 rows"),
        (FRAME.assign(c="text"), "'c' is constant"),
        (FRAME.assign(c=[f"name {i}" for i in range(150)]), "'c' holds text with 150 different values"),
    ],
)
def test_data_that_no_test_can_use(make, data, message):
    with pytest.raises(DataError, match=message):
        make(data)


@every_test
@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("a", "z", ()), "no variable 'z'. The variables are 'a', 'b', 'c', 'd' and 'e'"),
        (("a", "b", ["z"]), "no variable 'z'"),
        (("a", "a", ()), "must be different variables"),
        (("a", "b", ["b"]), "must be different variables"),
        (("a", "b", ["c", "c"]), "must be different variables"),
    ],
)
def test_questions_that_make_no_sense(make, question, message):
    with pytest.raises(ArgumentError, match=message):
        make(FRAME).pvalue(*question)


@pytest.mark.parametrize("name", SEEDED)
def test_seeds_that_make_no_sense(name):
    with pytest.raises(ArgumentError, match=r"seed must be an int"):
        TESTS[name](FRAME, seed="0")


def test_random_streams_belong_to_purpose_and_names():
    drawn = {
        question: stream(0, *question).integers(2**31)
        for question in [("ties", "a"), ("ties", "b"), ("variable", "a"), ("ties", "a", "b"), ("ties", "ab")]
    }
    assert len(set(drawn.values())) == len(drawn)
    assert drawn["ties", "a"] == 973966837  # on every machine


def test_no_questions_no_answers():
    assert PartialCorrelation(FRAME).pvalues([]).shape == (0,)


@pytest.mark.parametrize("make", [PartialCorrelation, CMIknn])
def test_discrete_columns_are_for_rcot(make):
    with pytest.raises(DataError, match=r"takes continuous columns only. 'c' is discrete: use RCoT"):
        make(FRAME.assign(c=["yes", "no", "no"] * 50))
    with pytest.raises(DataError, match=r"'b' and 'c' are discrete"):
        make(FRAME.assign(c=["yes", "no", "no"] * 50, b=FRAME["b"] > 0))
