"""What `learn` is asked to do: its arguments, checked, and the rows, read and transformed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from spbn._base.arrays import Seed, generator
from spbn.errors import ArgumentError, quoted
from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT
from spbn.kernels.estimates import BandwidthRule
from spbn.nodes.admission import impossible_arcs, refuse_impossible
from spbn.nodes.base import FitSettings, NodeType
from spbn.record import plain_settings
from spbn.scores import BIC, BGe, Score, ValidatedLikelihood
from spbn.search.operators import require_seconds
from spbn.structure import Structure
from spbn.tables.completions import Completions
from spbn.tables.frames import Missing, require_distinct, training_table
from spbn.tables.splits import Split
from spbn.tables.table import Table
from spbn.transforms import Margins, require_kind
from spbn.transforms import fitted as fitted_margins


@dataclass(frozen=True)
class Task:
    """What a search needs to know, once all arguments of `learn` have been checked.

    Attributes
    ----------
    given
        The arguments of `learn`, with arcs as lists.
    settings
        The same as plain data, for the record.
    began
        When learning began, by the clock of `time.perf_counter`.
    choices
        The types that nodes may have.
    original, table
        All rows in the units of the data, and transformed by the margins.
    completions
        Other fillings of the holes that the table had, transformed too.
    begin
        Where the search starts.
    climbed
        The rows that a cross-validated search looks at: all, or those of a split that are not for validation.
    likelihood
        The arguments of `ValidatedLikelihood`.
    """

    given: dict[str, Any]
    settings: dict[str, Any]
    began: float
    choices: tuple[NodeType, ...]
    fit_settings: FitSettings
    original: Table
    margins: Margins | None
    table: Table
    completions: tuple[Table, ...]
    begin: Structure
    climbed: Table
    likelihood: dict[str, Any]


def prepared_task(given: dict[str, Any], inputs: Sequence[str] = (), split: Split | None = None) -> Task:
    """Refuse what cannot be learned, and read and transform the rows."""
    began = time.perf_counter()
    settings = settings_of(given)
    require_choice("missing", given["missing"], MISSING)
    require_seconds(given["max_seconds"])
    require_choice("model", given["model"], tuple(MODELS))
    require_choice("algorithm", given["algorithm"], ALGORITHMS)
    require_choice("test", given["test"], tuple(TESTS))
    # Arcs may come from a generator, and are needed more than once.
    given = given | {name: list(given[name]) for name in ("required_arcs", "forbidden_arcs")}
    fit_settings = FitSettings(given["bandwidth"], given["engine"], given["smoothing"])
    require_kind(given["margins"])
    choices = node_types(given["model"], given["types"])
    require_use(given["bandwidth"], choices)
    original, completions = _rows(given)
    margins = fitted_margins(given["margins"], original)
    table = original
    if margins is not None:
        table = margins.transformed(original)
        completions = tuple(map(margins.transformed, completions))
    begin = start_structure(table, given["model"], choices, given["start"], inputs)
    refuse_impossible(impossible_arcs(table.variables), given["required_arcs"])
    shared = ("folds", "validation", "seed", "bandwidth", "engine", "smoothing")
    likelihood = {name: given[name] for name in shared} | {"missing": _for_complete_rows(given)}
    climbed = table
    if split is not None:
        climbed = table.take(split.training)
        likelihood |= {"folds": split.folds, "validation": table.take(split.validation)}
    return Task(
        given=given,
        settings=settings,
        began=began,
        choices=choices,
        fit_settings=fit_settings,
        original=original,
        margins=margins,
        table=table,
        completions=completions,
        begin=begin,
        climbed=climbed,
        likelihood=likelihood,
    )


def _rows(given: dict[str, Any]) -> tuple[Table, tuple[Table, ...]]:
    """Return the table to learn from, and other fillings of its holes."""
    data = given["data"]
    completions = data.others if isinstance(data, Completions) else ()
    data = data.table if isinstance(data, Completions) else data
    table = training_table(data, _for_complete_rows(given), drop=given["drop"], discrete=given["discrete"])
    require_distinct(table)
    return table, completions


def _for_complete_rows(given: dict[str, Any]) -> Missing:
    return "drop" if given["missing"] == "drop" else "error"


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `learn` as plain data, for the record."""
    settings = plain_settings(given | {"data": None})
    del settings["data"], settings["progress"], settings["checkpoint"], settings["client"]
    return settings


# ----------------------------------------------------------------------------------------------------
# What can be chosen in `learn`, and what the choices stand for: node types, a score, a test, a start.


#: The models, and the types that their nodes may have.
MODELS = {
    "spbn": (NodeType.LG, NodeType.CKDE),
    "gbn": (NodeType.LG,),
    "kdebn": (NodeType.CKDE,),
    "blend": (NodeType.BLEND,),
}
ALGORITHMS = ("hc", "pc")
TESTS = {"plc": PartialCorrelation, "rcot": RCoT, "cmiknn": CMIknn}
SCORES = ("cv", "bic", "bge")
MISSING = ("error", "drop", "impute")


def node_types(model: str, types: Iterable[NodeType | str] | None) -> tuple[NodeType, ...]:
    """Return the types that nodes may have."""
    if types is None:
        return MODELS[model]
    if model != "spbn":
        raise ArgumentError(f"types can be given with model='spbn' only. Got model={model!r}.")
    chosen = tuple(dict.fromkeys(map(NodeType.parse, (types,) if isinstance(types, str) else types)))
    if not chosen:
        raise ArgumentError("types must name at least one node type.")
    return chosen


def require_use(bandwidth: BandwidthRule, choices: tuple[NodeType, ...]) -> None:
    """Refuse to choose the scale of CKDE nodes where there will be none."""
    if bandwidth == "cv" and NodeType.CKDE not in choices:
        types = " or ".join(node_type.label for node_type in choices)
        raise ArgumentError(
            f"bandwidth='cv' chooses the scale of CKDE nodes, and all nodes will be {types}: leave it out."
        )


def start_structure(
    table: Table,
    model: str,
    choices: tuple[NodeType, ...],
    start: NodeType | str | Structure,
    inputs: Sequence[str],
) -> Structure:
    """Return the structure that a search starts from: without arcs, unless another one is given."""
    if not isinstance(start, Structure):
        first = NodeType.parse(start)
        if first not in (*choices, NodeType.CKDE):  # CKDE is the default, and stands for the only choice too
            raise ArgumentError(
                f"start must be a type that nodes of a {model} can have: "
                f"{' or '.join(choice.name for choice in choices)}. Got {first.name!r} instead."
            )
        common = first if first in choices else choices[0]
        nodes = [variable for variable in table.variables if variable.name not in inputs]
        types = {v.name: NodeType.DISCRETE if v.is_discrete else common for v in nodes}
        return Structure(types, types=types, inputs=inputs)
    if set(start.nodes) != set(table.names) - set(inputs) or set(start.inputs) != set(inputs):
        raise ArgumentError(
            f"the nodes of start must be the columns of the data. Got {quoted(start.nodes)}, "
            f"and the columns {quoted(table.names)}."
        )
    given = {start.type(v.name) for v in table.variables if not v.is_discrete and v.name not in inputs}
    if len(choices) == 1 and given - set(choices):
        raise ArgumentError(f"all nodes of a {model} are of type {choices[0]}, but start has other types.")
    return start


def prepared_score(
    client: Any, table: Table, recipe: Callable[..., Score], likelihood: dict[str, Any]
) -> Score:
    """Make a score of a table from the settings of likelihoods; workers compute it if there is a client."""
    if client is None:
        return recipe(table, likelihood=likelihood)
    from spbn.dask.families import spread

    if likelihood["seed"] is None:
        likelihood = likelihood | {"seed": generator(None)}  # all workers have to deal the rows alike
    copy = deepcopy(likelihood)  # making a score takes something from a generator
    return spread(client, table, recipe(table, likelihood=likelihood), partial(recipe, likelihood=copy))


def score_of(table: Table, model: str, score: str | None, likelihood: dict[str, Any]) -> Score:
    """Make the score that hill climbing maximises."""
    chosen = chosen_score(model, score)
    require_choice("score", chosen, SCORES)
    if chosen == "cv":
        return ValidatedLikelihood(table, **likelihood)
    if model != "gbn":
        raise ArgumentError(f"score={chosen!r} is for model='gbn' only. Got model={model!r}: use score='cv'.")
    return BIC(table) if chosen == "bic" else BGe(table)


def validated_likelihood(table: Table, likelihood: dict[str, Any]) -> Score:
    """Make the cross-validated score, with a validation set."""
    return ValidatedLikelihood(table, **likelihood)


def chosen_score(model: str, score: str | None) -> str:
    """Return the name of the score: the one that was asked for, or that of the model."""
    return score or ("bic" if model == "gbn" else "cv")


def independence_test(test: str, table: Table, seed: Seed) -> IndependenceTest:
    """Make the test of independence that PC asks."""
    return PartialCorrelation(table) if test == "plc" else TESTS[test](table, seed=seed)


def refuse_for_pc(*, start: object, **given: object) -> None:
    """Refuse arguments that only hill climbing uses, instead of ignoring them."""
    unused = [name for name, value in given.items() if value is not None]
    if isinstance(start, Structure):
        unused.append("start (as a structure)")
    if unused:
        raise ArgumentError(f"{' and '.join(unused)} can be given with algorithm='hc' only, not with 'pc'.")


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")
