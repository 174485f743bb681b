import pytest

from spbn.cli.options import condition_in, conditions_in, in_words
from spbn.errors import ArgumentError
from spbn.tables.table import Variable

VARIABLES = (
    Variable("C"),
    Variable("D"),
    Variable("D in mm"),
    Variable("x<=5"),
    Variable("x"),
    Variable("a=b"),
    Variable("a"),
    Variable("sex", ("F", "M")),
    Variable("sold in", ("May", "June, July", "a<b")),
    Variable("sold", ("yes", "no")),
    Variable("rooms", ("1", "2", "10")),
    Variable("garden", ("False", "True")),
)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("C=3.5", "C", 3.5),
        (" C == -1e-3 ", "C", -0.001),
        ("5<=D<=7", "D", (5.0, 7.0)),
        ("5 < D < 7", "D", (5.0, 7.0)),
        ("7>=D>5", "D", (5.0, 7.0)),
        ("C>0", "C", (0.0, None)),
        ("C<=-2", "C", (None, -2.0)),
        ("0<C", "C", (0.0, None)),
        ("0>=C", "C", (None, 0.0)),
        ("5≤D≤7", "D", (5.0, 7.0)),
        # Names that hold what conditions are made of.
        ("D in mm=4", "D in mm", 4.0),
        ("1<D in mm<=4", "D in mm", (1.0, 4.0)),
        ("x<=5", "x", (None, 5.0)),
        ("x<=5=3", "x<=5", 3.0),
        ("x<=5<=6", "x<=5", (None, 6.0)),
        ("a=b>2", "a=b", (2.0, None)),
        ("a=2", "a", 2.0),
        ("sex=F", "sex", "F"),
        ("sex in F,M", "sex", ["F", "M"]),
        ("sex in M", "sex", "M"),
        ("sold in=May", "sold in", "May"),
        ('sold in in May, "June, July"', "sold in", ["May", "June, July"]),
        ("sold in=a<b", "sold in", "a<b"),
        ("sold in yes,no", "sold", ["yes", "no"]),
        ("rooms=10.0", "rooms", "10"),
        ("rooms in 1,2.0", "rooms", ["1", "2"]),
        ("garden=true", "garden", "True"),
    ],
)
def test_conditions_are_read_as_people_mean_them(text, name, value):
    assert condition_in("--given", text, VARIABLES) == (name, value)
    assert condition_in("--given", text, VARIABLES[::-1]) == (name, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "w=3",
            r"--given 'w=3' does not name a variable of the model\. Its variables are 'C', 'D'",
        ),
        ("Cx=3", "does not name a variable"),
        ("C", r"is not a condition on 'C': write for example 'C=3\.5', 'C>0' or '5<=C<=7'"),
        ("C in 1,2", "is not a condition on 'C'"),
        ("C=high", "'C' is continuous, and 'high' is not a number"),
        ("C=nan", "'nan' is not a number"),
        ("C=inf", "'inf' is not a number"),
        ("C<much", "'much' is not a number"),
        ("5<=C>=7", r"bounds 'C' twice from the same side: write '5<=C<=7'"),
        ("5=C", "is not a condition on 'C'"),
        ("5<=C=7", "is not a condition on 'C'"),
        ("sex", "is not a condition on 'sex', which is discrete: write 'sex=F' or 'sex in F,M'"),
        ("sex>F", "which is discrete"),
        ("3<sex", "which is discrete"),
        ("sex=X", r"'sex' has no level 'X'\. Its levels are 'F' and 'M'"),
        ("sex=", "has no level ''"),
        ("sex in F,X,Y", "has no level 'X' and 'Y'"),
    ],
)
def test_what_is_no_condition_is_refused_with_an_example(text, message):
    with pytest.raises(ArgumentError, match=message):
        condition_in("--given", text, VARIABLES)


def test_several_conditions():
    texts = ["C>0", "C>1", "sex=F", "C<=4", "C<9", "C>=-3"]
    for given in (texts, texts[::-1]):
        assert conditions_in("--given", given, VARIABLES) == {"C": (1.0, 4.0), "sex": "F"}
    assert conditions_in("--given", [], VARIABLES) == {}
    for texts in (["C=1", "C=2"], ["C=1", "C<2"], ["sex=F", "sex in F,M"]):
        with pytest.raises(ArgumentError, match=r"--do names .* more than once"):
            conditions_in("--do", texts, VARIABLES)


def test_conditions_are_repeated_as_they_were_written():
    texts = ["C<1234567.25", " 5 < D ≤ 7 ", 'sex in F,"M"']
    assert in_words(texts) == 'C<1234567.25 and 5 < D ≤ 7 and sex in F,"M"'
