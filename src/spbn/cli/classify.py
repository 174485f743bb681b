"""The command ``spbn classify``: learn to tell classes apart, and say how well that works."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spbn._base.progress import counting_progress
from spbn.cli import documents
from spbn.cli.answers import Answer, answering
from spbn.cli.arguments import MODELS, TESTS, Data, Margins, MissingRows, Report
from spbn.cli.inputs import busy, complete_rows, with_all_levels
from spbn.cli.learning import Lesson, with_learning_options
from spbn.cli.sources import Source, as_source
from spbn.cli.tables import in_file, reading_tables, shown, write_rows, writing_rows
from spbn.cli.targets import require_targets
from spbn.cli.terminal import note, print_assessment
from spbn.errors import ArgumentError, DataError, quoted

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from spbn.diagnostics.classification import Predictions
    from spbn.sklearn.classifier import SPBNClassifier
    from spbn.tables.reader import Missing

MOST_CLASSES = 0.5  # as a share of the rows


@answering
@reading_tables
@writing_rows
@with_learning_options
def classify(
    lesson: Lesson,
    answer: Answer,
    data: Data,
    target: Annotated[str, typer.Option(help="The column with the classes.", show_default=False)],
    new: Annotated[
        Source | None,
        typer.Option(
            "--test",
            parser=as_source,
            metavar="TABLE",
            help="A table with rows to classify. If it has the classes, the predictions are assessed. "
            "Without it the rows of DATA are predicted by cross-validation.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "blend",
    margins: Margins = "yeo-johnson",
    test: Annotated[
        str,
        typer.Option("--independence-test", help=f"Independence test for pc: one of {', '.join(TESTS)}."),
    ] = "rcot",
    structure: Annotated[
        Literal["multinet", "augmented"],
        typer.Option(help="One network per class, or one in which the class is a parent of all columns."),
    ] = "multinet",
    calibrate: Annotated[bool, typer.Option(help="Calibrate the probabilities by cross-validation.")] = True,
    folds: Annotated[int, typer.Option(help="Number of folds for cross-validation, without --test.")] = 5,
    missing: MissingRows = "error",
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write the predictions: predictions.csv.", show_default=False)
    ] = None,
    report: Report = None,
) -> None:
    """Predict a class from the other columns, with probabilities.

    [dim]spbn classify train.csv --target class --test new.csv --out predictions.csv[/]
    """
    from spbn.sklearn.classifier import SPBNClassifier

    require_targets(in_file(out_), report, inputs=[data, new])
    if target in lesson.discrete:
        raise ArgumentError(f"--discrete names the column of the classes, {target!r}: leave it out.")
    if test not in TESTS:  # which learning would call --test
        raise ArgumentError(
            f"--independence-test must be one of {', '.join(map(repr, TESTS))}. Got {test!r} instead."
        )
    chosen = lesson.columns
    if chosen is not None and target not in chosen:
        chosen.append(target)
    _require_target(data, target, lesson.drop)
    frame = _rows(data, chosen, lesson.drop, [target, *lesson.discrete], missing)
    features, classes = frame.drop(columns=target), _classes(frame[target])
    _require_classes(data, target, classes)
    if features.shape[1] == 0:
        raise DataError(f"{data} has no column besides {target!r} to predict it from.")
    settings = lesson.settings(list(map(str, features.columns)))
    # Of the search inside, folds stay as they are; and rows with holes have been dealt with.
    settings = {name: value for name, value in settings.items() if name not in ("folds", "missing")}
    classifier = SPBNClassifier(
        structure=structure, calibrate=calibrate, score_function=settings.pop("score"), **settings
    )
    if new is None:
        found = cross_validated(classifier, features, classes, folds, lesson.given["seed"])
        how = f"Rows of {data.name}, predicted in a cross-validation with {folds} folds."
    else:
        with busy("learning"):
            classifier.fit(features, classes)
        found = predicted(classifier, *_test_rows(new, features, target, lesson.discrete, missing))
        _note_unknown(found)
        how = f"Rows of {new.name}, predicted by a model learned from {len(frame)} rows of {data.name}."
    answer.give(partial(print_assessment, found), partial(documents.of_predictions, found))
    if out_ is not None:
        write_rows(found.frame, out_)
        answer.wrote("out", out_, f"predictions written to {shown(out_)}")
    if report is not None:
        from spbn.report.classification import write_classification_report

        write_classification_report(found, report, title=f"{target} of {data.stem}", how=how)
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
            f"folds must be between 2 and the rows of the largest class, {counts.max()}. Got {folds}."
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


def _note_unknown(found: Predictions) -> None:
    """Mention rows whose classes do not occur in training."""
    if found.truth is not None and not found.known.all():
        names = sorted({str(name) for name in found.truth[~found.known]})
        note(
            f"{(~found.known).sum()} rows have a class that no training row has ({quoted(names)}): they "
            f"are predicted, but not assessed."
        )


def _require_target(source: Source, target: str, drop: list[str]) -> None:
    """Refuse a target that is not there: reading its column as classes would name another option."""
    from spbn.cli.files import column_names

    names = [name for name in column_names(source) if name not in drop]
    if target not in names:
        raise DataError(f"{source} has no column {target!r} to use. Its columns are {quoted(names)}.")


def _require_classes(source: Source, target: str, classes: npt.NDArray[Any]) -> None:
    """Refuse a column whose values hardly ever occur twice: measurements, dates, or names of the rows."""
    different = len(set(classes.tolist()))
    if different > MOST_CLASSES * len(classes):
        raise DataError(
            f"{source}: column {target!r} has {different} different values in {len(classes)} rows, so these "
            f"are not classes. Choose another --target; for numbers, use spbn learn and spbn predict."
        )


def _classes(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return classes as whole numbers or truth values if they are some, and as text otherwise."""
    array = column.to_numpy()
    return array if array.dtype.kind in "iub" else column.astype(str).to_numpy(dtype=object)


def _rows(
    source: Source, columns: list[str] | None, drop: list[str], discrete: list[str], missing: Missing
) -> pd.DataFrame:
    """Read a table; rows with holes are refused or left out."""
    from spbn.cli.files import read_table

    with busy("reading the table"):
        frame = read_table(source, columns, drop=drop, discrete=discrete)
    return complete_rows(source, frame, missing, discrete=discrete)


def _test_rows(
    source: Source, features: pd.DataFrame, target: str, discrete: list[str], missing: Missing
) -> tuple[pd.DataFrame, npt.NDArray[Any] | None]:
    """Read the columns to predict from, and the classes if they are there."""
    from spbn.cli.files import column_names

    names = list(features.columns)
    has_classes = target in column_names(source)
    columns, categories = ([*names, target], [*discrete, target]) if has_classes else (names, discrete)
    frame = _rows(source, columns, [], categories, missing)
    return frame[names], _classes(frame[target]) if has_classes else None
