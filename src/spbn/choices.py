"""What can be chosen in `learn`, and what the choices stand for: node types, a score, a test, a start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from spbn.errors import ArgumentError, quoted
from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT
from spbn.kernels.bandwidth import BandwidthRule
from spbn.nodes.base import NodeType
from spbn.numerics.random import Seed, generator
from spbn.scores import BIC, BGe, Score, ValidatedLikelihood
from spbn.structure import Structure
from spbn.tables.table import Table

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
    from spbn.distributed.families import spread

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
