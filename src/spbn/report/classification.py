"""A report on predictions of classes: how good they are, and which features speak for them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from spbn._base.arrays import IntArray
from spbn.diagnostics.classification import FACTS, Assessment, Predictions
from spbn.plots.svg import Html, tag
from spbn.report.charts import reliability_diagram
from spbn.report.parts import MINUS, assemble_page, card, count, heading, number, page_head, table, write_page


def write_classification_report(
    found: Predictions, path: str | os.PathLike[str], *, title: str, how: str
) -> None:
    """Write the report to a file, which appears whole or not at all; see `render_classification`."""
    write_page(render_classification(found, title=title, how=how), path)


def render_classification(found: Predictions, *, title: str, how: str) -> str:
    """Return the report as the text of an HTML page.

    Parameters
    ----------
    title, how
        The heading, and a sentence on which rows were predicted and how.
    """
    sections: dict[str, tuple[str, Html]] = {}
    assessment = found.assessment
    if assessment is not None:
        sections["confusion"] = ("Confusion", _confusion(found, assessment))
        sections["calibration"] = ("Calibration", _calibration(assessment))
        sections["wrong"] = ("Wrong", _wrong(found))
    sections["uncertain"] = ("Uncertain", _uncertain(found))
    return assemble_page(title, _head(found, assessment, title, how), sections)


def _head(found: Predictions, assessment: Assessment | None, title: str, how: str) -> Html:
    numbers = [("rows", count(len(found.probabilities))), ("classes", count(len(found.classes)))]
    if assessment is not None:
        numbers += [
            ("accuracy", f"{assessment.accuracy:.1%}".replace("%", " %")),
            ("log loss", number(assessment.log_loss)),
            ("Brier score", number(assessment.brier)),
            ("calibration error", number(assessment.calibration_error, 3)),
        ]
    return page_head(title, how, numbers)


def _confusion(found: Predictions, assessment: Assessment) -> Html:
    names = [str(name) for name in found.classes]
    totals = assessment.confusion.sum(axis=1)
    rows = []
    for place, (name, counts, total) in enumerate(zip(names, assessment.confusion, totals, strict=True)):
        cells = [
            tag(
                "td",
                count(int(n)) if n else "·",
                class_="right" if column == place else None,
                style=f"--share: {n / max(1, total):.3f}",
            )
            for column, n in enumerate(counts)
        ]
        right = f"{counts[place] / total:.0%}".replace("%", " %") if total else "–"
        rows.append(tag("tr", tag("th", name, scope="row"), *cells, tag("th", right)))
    heads = [tag("th", text, scope="col") for text in ("", *names, "right")]
    hint = "One line per true class, one column per prediction. Everything off the diagonal is wrong."
    return card(
        "confusion",
        "Confusion",
        hint,
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="confusion"),
            class_="scroll",
        ),
    )


def _calibration(assessment: Assessment) -> Html:
    hint = (
        "How often predictions are right (vertical), by the probability that they were given (horizontal). "
        "On the dashed line, probabilities mean what they say; below it, they are too confident, and above "
        "it, too cautious. Larger circles stand for more rows."
    )
    return card("calibration", "Calibration", hint, reliability_diagram(assessment))


def _wrong(found: Predictions) -> Html:
    rows = found.wrong_rows()
    if not len(rows):
        return heading("wrong", "Wrong predictions", "There are none.")
    hint = (
        "The wrong predictions that seemed most certain, and what spoke for them: how much each feature "
        "raises (+) or lowers the log-odds of the predicted class against the runner-up."
    )
    return card("wrong", "Wrong predictions", hint, _rows(found, rows))


def _uncertain(found: Predictions) -> Html:
    hint = (
        "The rows whose predicted class has the lowest probability, and what speaks for it (+) and against "
        "it, compared with the runner-up, in log-odds before calibration."
    )
    return card("uncertain", "Most uncertain rows", hint, _rows(found, found.uncertain_rows()))


def _rows(found: Predictions, rows: IntArray) -> Html:
    heads = [("Row", ""), ("True class", ""), ("Predicted", ""), ("Runner-up", ""), ("Because of", "")]
    if found.truth is None:
        del heads[1]
    return table(heads, _lines(found, rows))


def _lines(found: Predictions, rows: IntArray) -> Iterable[Html]:
    explanation = found.explanation
    for row in rows.tolist():
        predicted, share, runner_up = (explanation[name].iloc[row] for name in FACTS)
        probability = f"{share:.1%}".replace("%", " %")
        cells = [tag("td", str(explanation.index[row]))]
        if found.truth is not None:
            cells.append(tag("td", str(found.truth[row])))
        cells.append(tag("td", f"{predicted} ", tag("span", probability, class_="small")))
        cells.append(tag("td", str(runner_up)))
        reasons = [_reason(name, ratio) for name, ratio in found.reasons(row)]
        yield tag("tr", *cells, tag("td", tag("ul", *reasons, class_="reasons")))


def _reason(name: str, ratio: float) -> Html:
    sign, kind = ("+", "speaks") if ratio >= 0 else (MINUS, "drop")
    return tag("li", f"{name} ", tag("span", f"{sign}{number(abs(ratio), 3)}", class_=kind))
