"""The command ``spbn classify``: learn to tell classes apart, and say how well that works."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spbn._base.display import counting_progress, printable
from spbn.cli.command import Answer, answer_options, command, count, note, objects, say, say_lines
from spbn.cli.inputs import busy, require_targets, training_frame, with_all_levels
from spbn.cli.options import (
    MISSING_ROWS,
    TABLE,
    Lesson,
    learning_options,
    out_option,
    report_option,
    table_options,
)
from spbn.cli.sources import Source
from spbn.errors import ArgumentError, DataError, argument, quoted

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from spbn.diagnostics.classification import Predictions
    from spbn.sklearn.estimators import SPBNClassifier

MOST_CLASSES = 0.5  # as a share of the rows


@command
@learning_options(
    but=("folds", "missing"),
    one_table=True,
    model={"default": "blend"},
    margins={"default": "yeo-johnson"},
    test={"flag": "--independence-test"},
)
@click.option("--target", required=True, help="The column with the classes.")
@click.option(
    "--test",
    "new",
    type=TABLE,
    metavar="TABLE",
    help="A table with rows to classify. If it has the classes, the predictions are assessed. Without it the "
    "rows of DATA are predicted by cross-validation.",
)
@click.option(
    "--structure",
    type=click.Choice(["multinet", "augmented"]),
    default="multinet",
    help="One network per class, or one in which the class is a parent of all columns.",
)
@click.option(
    "--calibrate/--no-calibrate", default=True, help="Calibrate the probabilities by cross-validation."
)
@click.option("--folds", type=int, default=5, help="Number of folds for cross-validation, without --test.")
@click.option("--missing", default="error", **MISSING_ROWS)
@out_option("Write the predictions: predictions.csv.")
@report_option
@table_options
@answer_options
def classify(
    answer: Answer,
    lesson: Lesson,
    target: str,
    new: Source | None,
    structure: str,
    calibrate: bool,
    folds: int,
    missing: str,
    out: Path | None,
    report: Path | None,
) -> None:
    """Predict a class from the other columns, with probabilities.

    [dim]spbn classify train.csv --target class --test new.csv --out predictions.csv[/]
    """
    from spbn.sklearn.estimators import SPBNClassifier

    data = lesson.data
    require_targets(report, tables=[out], inputs=[data, new])
    if target in lesson.discrete:
        raise ArgumentError(f"--discrete names the column of the classes, {target!r}: leave it out.")
    chosen = lesson.columns
    if chosen is not None and target not in chosen:
        chosen.append(target)
    _require_target(data, target, lesson.drop)
    frame = training_frame(data, chosen, lesson.drop, [target, *lesson.discrete], missing)
    features, classes = frame.drop(columns=target), _classes(frame[target])
    different = len(set(classes.tolist()))
    if different > MOST_CLASSES * len(classes):  # measurements, dates, or names of the rows
        raise DataError(
            f"{data}: column {target!r} has {different} different values in {len(classes)} rows, so these "
            f"are not classes. Choose another --target; for numbers, use spbn learn and spbn predict."
        )
    if features.shape[1] == 0:
        raise DataError(f"{data} has no column besides {target!r} to predict it from.")
    settings = lesson.settings(list(map(str, features.columns)))
    classifier = SPBNClassifier(
        structure=structure, calibrate=calibrate, score_function=settings.pop("score"), **settings
    )
    if new is None:
        found = cross_validated(classifier, features, classes, folds, lesson.chosen["seed"])
        how = f"Rows of {data.name}, predicted in a cross-validation with {folds} folds."
    else:
        with busy("learning"):
            classifier.fit(features, classes)
        found = predicted(classifier, *_test_rows(new, features, target, lesson.discrete, missing))
        if found.truth is not None and not found.known.all():
            names = sorted({str(name) for name in found.truth[~found.known]})
            note(
                f"{(~found.known).sum()} rows have a class that no training row has ({quoted(names)}): they "
                f"are predicted, but not assessed."
            )
        how = f"Rows of {new.name}, predicted by a model learned from {len(frame)} rows of {data.name}."
    answer.give(lambda: _predictions_document(found), lambda: _show_predictions(found))
    answer.write_rows("out", out, found.frame, "predictions")
    if report is not None:
        from spbn.report.html import write_page
        from spbn.report.pages import render_classification

        write_page(render_classification(found, title=f"{target} of {data.stem}", how=how), report)
        answer.wrote("report", report, f"report written to {report}")


def predicted(
    classifier: SPBNClassifier, features: pd.DataFrame, truth: npt.NDArray[Any] | None
) -> Predictions:
    """Predict rows, and say which features speak for the predictions; `truth` may be unknown."""
    from spbn.diagnostics.classification import Predictions

    return Predictions(
        classifier.classes_, classifier.predict_proba(features), classifier.explain(features), truth
    )


def cross_validated(
    classifier: SPBNClassifier, features: pd.DataFrame, classes: npt.NDArray[Any], folds: int, seed: int
) -> Predictions:
    """Predict every row by a model that was learned without its fold."""
    import numpy as np
    import pandas as pd
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from spbn.diagnostics.classification import Predictions

    names, counts = np.unique(classes, return_counts=True)
    if not 2 <= folds <= counts.max():
        raise ArgumentError(
            f"{argument('folds')} must be between 2 and the rows of the largest class, {counts.max()}. "
            f"Got {folds}."
        )
    features = with_all_levels(features, classifier.discrete)
    probabilities = np.zeros((len(classes), len(names)))
    explanations = []
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with (
        warnings.catch_warnings(),
        counting_progress(sys.stderr.isatty(), "learning", total=folds) as advance,
    ):
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        for train, test in splitter.split(features, classes):
            fitted = clone(classifier).fit(features.iloc[train], classes[train])
            part = predicted(fitted, features.iloc[test], None)
            probabilities[np.ix_(test, np.searchsorted(names, part.classes))] = part.probabilities
            explanations.append(part.explanation)
            advance()
    return Predictions(names, probabilities, pd.concat(explanations).loc[features.index], classes)


def _require_target(source: Source, target: str, drop: list[str]) -> None:
    """Refuse a target that is not there: reading its column as classes would name another option."""
    from spbn.cli.files import column_names

    names = [name for name in column_names(source) if name not in drop]
    if target not in names:
        raise DataError(f"{source} has no column {target!r} to use. Its columns are {quoted(names)}.")


def _classes(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return classes as whole numbers or truth values if they are some, and as text otherwise."""
    array = column.to_numpy()
    return array if array.dtype.kind in "iub" else column.astype(str).to_numpy(dtype=object)


def _test_rows(
    source: Source, features: pd.DataFrame, target: str, discrete: list[str], missing: str
) -> tuple[pd.DataFrame, npt.NDArray[Any] | None]:
    """Read the columns to predict from, and the classes if they are there."""
    from spbn.cli.files import column_names

    names = list(features.columns)
    has_classes = target in column_names(source)
    columns, categories = ([*names, target], [*discrete, target]) if has_classes else (names, discrete)
    frame = training_frame(source, columns, [], categories, missing)
    return frame[names], _classes(frame[target]) if has_classes else None


def _show_predictions(found: Predictions) -> None:
    """Print how good predictions are; if the truth is unknown, how many rows each class gets."""
    import pandas as pd

    assessment = found.assessment
    names = [printable(str(name)) for name in found.classes]
    say(f"{count(found.probabilities, 'row')}, {count(names, 'class', 'classes')}", "")
    if assessment is None:
        counts = found.explanation["predicted"].value_counts().reindex(found.classes, fill_value=0)
        say_lines(pd.DataFrame({"predicted": counts.to_numpy()}, index=names).to_string())
        return
    say(f"accuracy           {assessment.accuracy:.1%}")
    say(f"log loss           {assessment.log_loss:.4f}")
    say(f"Brier score        {assessment.brier:.4f}")
    say(f"calibration error  {assessment.calibration_error:.4f}", "")
    table = pd.DataFrame(assessment.confusion, index=names, columns=names)
    say_lines(table.rename_axis(columns="class").to_string())
    say("", "Confusion: one line per true class, one column per prediction.", style="dim")


def _predictions_document(found: Predictions) -> dict[str, Any]:
    names = ("accuracy", "log_loss", "brier", "calibration_error", "confusion")
    assessment = found.assessment
    return {
        "classes": list(found.classes),
        "rows": len(found.probabilities),
        "predictions": objects(found.frame),
        **({} if assessment is None else {name: getattr(assessment, name) for name in names}),
    }
