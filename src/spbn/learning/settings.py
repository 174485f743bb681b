"""The arguments of `learn`: each is declared here, once, with everything that others need to know about it.

`learn` takes the fields of `LearnSettings` as its arguments. So do `confidence`, `learn_dynamic` and
`compare_models`; the estimators for scikit-learn have them as parameters, and the command line as options.
All of them read `OPTIONS`, so that a new argument is one more field::

    depth: int = option(3, "How deep to look.")

This module imports nothing that takes time, since the help of the command line waits for it.
"""

from __future__ import annotations

import difflib
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from dataclasses import replace as replace_fields
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar, cast, get_args, get_origin

from spbn.errors import ArgumentError, argument, setting

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt
    from numpy.random import Generator

    from spbn._base.arrays import FloatArray
    from spbn.graphs.dag import Arc
    from spbn.nodes.base import NodeType
    from spbn.rows.store import FitSettings
    from spbn.structure import Structure
    from spbn.tables.reader import RowsLike, TableLike
    from spbn.tables.readings import Preparation
    from spbn.transforms import Bounds, MarginsPlan

    Arcs = Iterable[Arc]
    Names = str | Sequence[str]
    Types = Iterable[NodeType | str]
    Tiers = Sequence[Names]
    BandwidthFunction = Callable[[FloatArray], FloatArray]
    Ends = Mapping[str, tuple[float | None, float | None]]

Model = Literal["spbn", "gbn", "kdebn", "blend", "auto"]
Algorithm = Literal["hc", "boss", "pc"]
Test = Literal["plc", "rcot", "cmiknn"]
ScoreName = Literal["cv", "bic", "bge"]
Bandwidth = Literal["scott", "silverman", "cv"]
MarginsName = Literal["none", "yeo-johnson", "auto"]
MissingValues = Literal["error", "drop", "impute"]
TypeSelection = Literal["score", "normality"]
Engine = Literal["auto", "exact", "spectral"]
Fix = Literal["none", "auto"]

#: The models, and the types that their continuous nodes may have.
MODELS: dict[Model, tuple[str, ...]] = {
    "spbn": ("lg", "ckde"),
    "gbn": ("lg",),
    "kdebn": ("ckde",),
    "blend": ("blend",),
    "auto": ("lg", "curve", "blend"),  # simple types first
}
#: Those of the paper.
PUBLISHED: tuple[Model, ...] = ("spbn", "gbn", "kdebn")
#: The types that come first where a simple type is preferred; types of one's own come after lines.
SIMPLICITY = {"lg": 0, "curve": 2, "ckde": 3, "blend": 4}
CENTRES = 2_000  # of kernels, at most, while the score chooses node types
TESTS: tuple[Test, ...] = get_args(Test)
SCORES: tuple[ScoreName, ...] = get_args(ScoreName)

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., object])

#: What the text of an option on the command line stands for: "names" are words, "arcs" pairs of columns, and
#: "tiers" groups of them.
Kind = Literal["choice", "int", "float", "flag", "text", "names", "arcs", "tiers", "object"]
_KINDS: dict[str, Kind] = {
    "int": "int",
    "float": "float",
    "bool": "flag",
    "str": "text",
    "Names": "names",
    "Types": "names",
    "Arcs": "arcs",
    "Tiers": "tiers",
}


@dataclass(frozen=True)
class Option:
    """What is known about an argument of `learn`."""

    name: str
    default: object
    annotation: str
    help: str  # what it means, for those who read Python
    flag: str | None  # on the command line, by default the name with dashes; None if it is for Python alone
    flag_help: str  # what it means there, by default `help`
    kind: Kind  # of the values that it takes
    choices: tuple[str, ...]  # those of a `Literal`
    words: tuple[str, ...] = ()  # that the command line takes besides numbers; "none" stands for None
    implies: Model | None = None  # the model that is meant by whoever gives it, and names none
    is_shared: bool = True  # whether every command that learns has this flag, or those that declare it
    only_for: tuple[Algorithm, ...] | None = None  # the algorithms that use it; None if all do
    is_recorded: bool = True  # whether a network's record has it ...
    has_default_recorded: bool = True  # ... and has it also where it is the default
    affects_result: bool = True  # whether another value may lead to another network, given the time
    in_estimators: bool = True  # whether the estimators for scikit-learn have it as a parameter

    @property
    def parameter(self) -> inspect.Parameter:
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=self.annotation
        )


def option(default: T, help: str, flag_help: str = "", **further: object) -> T:
    """Declare a field of `LearnSettings`, and whatever else an `Option` has that is unusual in this one."""
    return field(default=default, metadata={"help": help, "flag_help": flag_help or help, **further})


@dataclass(frozen=True, kw_only=True)
class LearnSettings:
    """How to learn: the arguments of `learn`, checked.

    Parameters
    ----------
    {options}

    Examples
    --------
    >>> from spbn.learning.settings import LearnSettings
    >>> settings = LearnSettings(model="gbn")
    >>> settings.replace(max_parents=2).plain()["max_parents"]
    2
    """

    model: Model | None = option(
        None,
        'Types of the continuous nodes. "auto", the default: every node is a line, a curve or a blend, '
        "whichever predicts it best given its parents, simple ones first, and no rows are held out. "
        '"spbn": the paper\'s, in which every node is linear Gaussian or a CKDE. "gbn": all are linear '
        'Gaussian. "kdebn": all are CKDE. "blend": all are blends. Without a model, arguments of the '
        'paper\'s search (`start`, `validation`, `patience`, `epsilon`, `bandwidth`) stand for "spbn", and '
        'the scores "bic" and "bge" for "gbn".',
        f"One of {', '.join(MODELS)}. Default: auto, unless other options are about another model.",
    )
    algorithm: Algorithm | None = option(
        None,
        '"hc": hill climbing on a score. "boss": best order score search, which finds better graphs. "pc": '
        "independence tests for the graph, then a search for the node types. By default "
        '"boss" for the model "auto", and "hc" for all others.',
        "hc (hill climbing), boss (order search) or pc. Default: boss for auto, else hc.",
    )
    test: Test = option(
        "rcot",
        'For "pc": "plc" (partial correlation), "rcot" or "cmiknn".',
        f"Independence test for pc: one of {', '.join(TESTS)}.",
        only_for=("pc",),
    )
    start: str | NodeType | Structure = option(
        "ckde",
        'Type of all nodes at the start of a search that changes types step by step, as that of "spbn" does, '
        "or a structure to start from. Where "
        'no node can be a CKDE: "blend", "curve", or else the first of the types.',
        "Type of all nodes at the start: ckde or lg.",
        implies="spbn",
    )
    types: Types | None = option(
        None,
        'For "auto" and "spbn": the node types to choose from, instead of the model\'s own. For example '
        '``("lg", "curve")``, or ``("lg", "ckde", "laplace")`` with a type of your own.',
        "Node types to choose from, instead of the model's own: lg,curve,blend.",
    )
    score: ScoreName | None = option(
        None,
        'For "hc" and "boss": "cv" (cross-validated likelihood), the default; for a GBN also "bic", the '
        'default there, and "bge".',
        f"Score to maximise with hc or boss: one of {', '.join(SCORES)}. Default: bic for gbn, else cv.",
        only_for=("hc", "boss"),
    )
    type_selection: TypeSelection = option(
        "score",
        'How node types are chosen: "score" takes those that score best. "normality", for "pc", takes '
        '"lg" unless a Shapiro-Wilk test rejects that the residuals of the line are normal, at the level '
        "`alpha` divided by the number of nodes, and otherwise the richest type (see "
        "`spbn.learning.types_by_normality`).",
        "How node types are chosen: score, or, after pc, normality (of the residuals of the line).",
        only_for="pc",
    )
    folds: int | npt.ArrayLike = option(
        10,
        "Folds of the cross-validated likelihood: how many, or a label for every training row.",
        "Folds of the cross-validated likelihood.",
    )
    validation: float | TableLike | None = option(
        0.2,
        "The fraction of the rows that the search is validated with; or a table, in which case all rows of "
        "the data are for training. None: the search is not validated, and every arc has to gain the "
        '`penalty` instead, on all rows. "boss" and "auto" never hold out rows.',
        "Fraction of the rows held out for validation, or none. boss and auto hold out none.",
        words=("none",),
        implies="spbn",
    )
    penalty: float | Literal["auto"] = option(
        "auto",
        "What every arc costs, in nats, where there are no validation rows: a number, or "
        '"auto", which depends on the numbers of rows and columns (see `spbn.scores.CVLikelihood`). '
        "A more complex node type costs the same again.",
        "What every arc costs without validation rows: a number of nats, or auto.",
        words=("auto",),
    )
    patience: int = option(
        5,
        "How many steps the search continues without progress on the validation rows.",
        "Steps to continue without progress on the validation rows.",
        implies="spbn",
    )
    epsilon: float = option(0.0, "Gain that a step of hill climbing must exceed.", implies="spbn")
    max_seconds: float | None = option(
        None,
        'For "hc" and "boss": stop the search after the first step that ends later than this many seconds, '
        "and fit the best structure found so far.",
        "Stop hc or boss after the first step that ends later than this; the best network so far is kept.",
        is_shared=False,
        only_for=("hc", "boss"),
        affects_result=False,
    )
    alpha: float = option(
        0.05,
        'For "pc": significance level of the tests.',
        "Significance level of the tests of pc.",
        only_for=("pc",),
    )
    max_parents: int | None = option(
        None,
        'For "hc" and "boss": maximum number of parents of a node; no limit by default.',
        "Maximum number of parents of a node; no limit by default.",
        only_for=("hc", "boss"),
    )
    required_arcs: Arcs = option(
        (),
        "Arcs that the network must have: pairs (parent, child). A pattern stands for all columns that it "
        'matches: ``("age", "*")``, ``("lab_*", "outcome")``.',
        "An arc that is required, A:B. '*' stands for any text: 'age:*'. May be repeated.",
        flag="--require",
    )
    forbidden_arcs: Arcs = option(
        (),
        'Arcs that it must not have, also with patterns: ``("*", "age")``.',
        "An arc that is forbidden, A:B. '*' stands for any text: '*:age'. May be repeated.",
        flag="--forbid",
    )
    tiers: Tiers = option(
        (),
        "Groups of columns in the order of events; no arc points back to an earlier group: "
        '``[["age", "sex"], ["dose"], ["outcome"]]``. Patterns stand for all columns that no tier has by '
        "name. Columns in no tier may be joined with any other.",
        "Groups of columns in the order of events: no arc points back to an earlier one. Written "
        "'age,sex;dose;outcome', or the name of a file with a group per line.",
    )
    bandwidth: Bandwidth | BandwidthFunction = option(
        "scott",
        'Rule for the bandwidths of CKDE nodes: "scott", "silverman", "cv", which chooses their scale by '
        "cross-validation, or a function (see `spbn.kernels.estimates`).",
        "Rule for the bandwidths of CKDE nodes.",
        implies="spbn",
    )
    margins: MarginsName | None = option(
        None,
        '"yeo-johnson" transforms every column before anything else, which reduces skew and heavy tails, and '
        '"auto" those columns that are predicted better for it (see `spbn.transforms`); densities and '
        'samples are still in the units of the data. By default "auto" for the model "auto", and "none" for '
        "all others.",
        "Transform every column, to reduce skew and heavy tails, or those that are predicted better for it. "
        "Default: auto for the model auto, otherwise no column.",
    )
    bounds: str | Ends = option(
        "auto",
        "The least and the greatest possible value of columns, None for no bound: "
        '``{"price": (0, None), "share": (0, 1)}``, or as text: ``"price:0:,share:0:1"``. Whatever is drawn '
        'is within them, and beyond them the density is 0. With ``margins="auto"``, other columns count as '
        "bounded if all their values are positive, or between 0 and 1, and that predicts them better. With "
        '"none", no column does.',
        "Least and greatest possible values of columns: price:0:,share:0:1. Samples stay within them. Those "
        "of other columns are found where that predicts better, unless it is none.",
        has_default_recorded=False,
    )
    atoms: Names = option(
        (),
        "Columns in which many rows have exactly the same value, such as 0, which then has a probability of "
        'its own. Values are found ("balance"), or given ("balance=0"). "auto" looks in all columns for '
        "values that stand out, and that at least 5 % of the rows and 20 rows have. The network has one more "
        'node for every such column, "balance = 0", which is a parent of it and may be one of others. At '
        "these values, densities are probabilities (see `spbn.nodes.atoms`).",
        "Columns in which many rows have exactly the same value, balance or balance=0, or auto to find them: "
        "the value gets a probability of its own. May be repeated.",
        has_default_recorded=False,
    )
    hidden: int | Literal["auto"] | None = option(
        None,
        'A hidden class: how many populations the rows come from, or "auto", which finds out; that may be '
        'one. The network has one more node then, "class", which no column holds; densities and answers '
        "are sums over it (see `spbn.learning.hidden`). No rows are held out for validation, and the score "
        "chooses node types.",
        "Number of populations that rows come from, a hidden class of the network, or auto to find out.",
        words=("auto", "none"),
        only_for=("hc", "boss"),
    )
    seed: int | Generator | None = option(
        0,
        "Decides which rows are for validation and which are in which fold, and all other random numbers. "
        "The same seed gives the same network.",
        "The same seed gives the same result.",
    )
    progress: bool = option(
        False,
        "Show a progress line on the terminal.",
        flag=None,
        is_recorded=False,
        affects_result=False,
        in_estimators=False,
    )
    missing: MissingValues = option(
        "error",
        '"error" refuses missing and infinite values, "drop" leaves out rows that have them, and "impute" '
        "learns from all values that are present, by alternating searches and draws for missing values (see "
        "`spbn.learning.structural_em`).",
        "Missing values: refuse the table, drop the rows that have them, or impute them.",
        in_estimators=False,
    )
    drop: Names = option(
        (),
        "Columns to leave out.",
        "Columns to leave out, separated by commas: a,b. May be repeated.",
        in_estimators=False,
    )
    discrete: Names = option(
        (),
        "Numeric columns that stand for categories.",
        "Columns to treat as categories even if they hold numbers or look like names or dates: a,b. May be "
        "repeated.",
    )
    prepare: Fix | Preparation = option(
        "none",
        '"auto" reads a table as people have it (see `spbn.prepare`): units, dates, codes for missing values '
        "and so on. Columns that say nothing are left out, and holes are imputed. A preparation reads it as "
        "that says. The network keeps it, and reads new rows in the same way.",
        "Read a messy table as spbn check says, and new rows in the same way; holes are imputed.",
        flag="--fix",
        is_shared=False,
        is_recorded=False,
        affects_result=False,  # beyond the table, which checkpoints know
        in_estimators=False,
    )
    smoothing: float = option(
        1.0,
        "How many rows are added to every configuration of a discrete node's parents, spread evenly over its "
        "levels, so that nothing is impossible just because it has not been seen.",
        "Rows added to every configuration of a discrete node's parents; 0 for none.",
    )
    engine: Engine = option(
        "auto",
        'How Gaussian sums are computed: "exact", "spectral", or "auto", which takes the faster one (see '
        "`spbn.kernels`).",
        flag=None,
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None,
        'For "hc" and "boss": a file in which every step, or sweep, is recorded. If it has steps of the same '
        "search, which was killed or stopped by `max_seconds`, the search resumes after them. A file about "
        "other data or settings is refused.",
        "Record every step of hc, or sweep of boss, in this file, and resume from it: run.jsonl.",
        is_shared=False,
        only_for=("hc", "boss"),
        is_recorded=False,
        affects_result=False,
        in_estimators=False,
    )
    client: object = option(
        None,
        "A `dask.distributed.Client` whose workers score the families of the search, each with the whole "
        'table. The network is the same as without. The tests of "pc" run in this process.',
        flag="--workers",
        is_shared=False,
        is_recorded=False,
        affects_result=False,
        in_estimators=False,
    )

    def __post_init__(self) -> None:
        for known in OPTIONS.values():
            value = getattr(self, known.name)
            if isinstance(value, Iterator):  # which could be read only once, and is needed more often
                object.__setattr__(self, known.name, tuple(value))
        object.__setattr__(self, "tiers", _checked_tiers(self.tiers))
        if self.bounds not in ("auto", "none"):
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        self._require_values()
        self._require_agreement()

    @classmethod
    def of(cls, function: str, options: Mapping[str, object]) -> LearnSettings:
        """Make settings from the arguments that were given to a function."""
        require_known(function, options, OPTIONS)
        return cls(**options)  # type: ignore[arg-type]  # they are checked as soon as they are there

    def replace(self, **changes: object) -> LearnSettings:
        """Return the same settings with some changes, checked again; the model stays unless it is changed."""
        require_known("replace", changes, OPTIONS)
        return replace_fields(self, **{"model": self.model_name, **changes})  # type: ignore[arg-type]

    def plain(self) -> dict[str, object]:
        """Return the settings as plain data, for the record of a network."""
        from spbn.record import plain_settings

        recorded = {name: self._used(name) for name, known in OPTIONS.items() if known.is_recorded}
        for name, known in OPTIONS.items():
            if not known.has_default_recorded and recorded.get(name) == known.default:
                del recorded[name]
        return plain_settings(recorded)

    def affecting_result(self) -> dict[str, object]:
        """Return the settings that decide what is found: two searches that share them find the same."""
        return {name: self._used(name) for name, known in OPTIONS.items() if known.affects_result}

    def _is_given(self, name: str) -> bool:
        """Tell whether an argument says something else than its default.

        A table does; so does a type to start from, but not a structure, from which any search can start.
        """
        from spbn.nodes.base import NodeType

        value = getattr(self, name)
        if name == "start":
            return isinstance(value, str | NodeType) and value != OPTIONS[name].default
        is_plain = value is None or isinstance(value, float | int | str)
        return not is_plain or value not in (None, OPTIONS[name].default)

    def _used(self, name: str) -> object:
        """Return the value that learning goes by, where the one that was given stands for it."""
        used = {
            "model": "model_name",
            "algorithm": "algorithm_name",
            "margins": "margins_name",
            "validation": "held_out",
        }
        return getattr(self, used.get(name, name))

    @property
    def model_name(self) -> Model:
        """The model: the one that was asked for, or that the other settings are about."""
        if self.model is not None:
            return self.model
        if self.score in ("bic", "bge"):
            return "gbn"
        meant = (known.implies for known in OPTIONS.values() if known.implies and self._is_given(known.name))
        return next(meant, "auto")

    @property
    def margins_name(self) -> MarginsName:
        """The margins: those that were asked for, or those of the model."""
        if self.margins is not None:
            return self.margins
        return "auto" if self.model_name == "auto" else "none"

    @property
    def margins_plan(self) -> MarginsPlan:
        """Which columns get a transform, and within which bounds."""
        from spbn.transforms import MarginsPlan

        bounds = {} if isinstance(self.bounds, str) else self.bounds
        return MarginsPlan(
            self.margins_name,
            {name: _ends(name, ends) for name, ends in bounds.items()},
            self.bounds != "none",
            self.known_atoms,
            "auto" in _several(self.atoms),
        )

    @property
    def has_atoms(self) -> bool:
        """Whether values may have a probability of their own."""
        return _several(self.atoms) not in ((), ("none",))

    @property
    def known_atoms(self) -> dict[str, tuple[float, ...]]:
        """The atoms that were given, by column: none where they are to be found."""
        found: dict[str, tuple[float, ...]] = {}
        for text in _several(self.atoms):
            name, equals, value = text.rpartition("=")
            try:
                name, values = (name, (float(value),)) if equals else (text, ())
            except ValueError:
                name, values = text, ()
            if text not in ("auto", "none"):
                found[name.strip()] = (*found.get(name.strip(), ()), *values)
        return found

    @property
    def node_types(self) -> tuple[NodeType, ...]:
        """The types that continuous nodes may have."""
        from spbn.nodes.base import NodeType

        if self.types is None:
            return tuple(map(NodeType.parse, MODELS[self.model_name]))
        types = (self.types,) if isinstance(self.types, str) else self.types
        choices = dict.fromkeys(map(NodeType.parse, types))
        if self.model_name == "auto":
            return tuple(sorted(choices, key=lambda choice: SIMPLICITY.get(choice.name, 1)))
        return tuple(choices)

    @property
    def start_type(self) -> NodeType:
        """The type of all nodes where the search starts, unless it starts from a structure."""
        from spbn.nodes.base import NodeType

        first, choices = NodeType.parse(cast("str | NodeType", self.start), "start"), self.node_types
        # From lines, a search does not see relations that are far from linear, and would stop too early.
        preferred = (first, NodeType.BLEND, NodeType.CURVE)
        return next((choice for choice in preferred if choice in choices), choices[0])

    @property
    def score_name(self) -> ScoreName:
        """The score that hill climbing maximises: the one that was asked for, or that of the model."""
        return self.score or ("cv" if self.model_name != "gbn" or self.has_class or self.has_atoms else "bic")

    @property
    def is_published(self) -> bool:
        """Whether the model is one of the paper's, which learns from all rows as they are."""
        is_plain = self.margins_name == "none" and isinstance(self.bounds, str) and not self.has_atoms
        return self.model_name in PUBLISHED and self.types is None and is_plain

    @property
    def algorithm_name(self) -> Algorithm:
        """The algorithm: the one that was asked for, or that of the model."""
        return self.algorithm or ("boss" if self.model_name == "auto" else "hc")

    @property
    def held_out(self) -> float | TableLike | None:
        """What a search is validated with; None if all rows are for training."""
        is_validated = self.algorithm_name != "boss" and self.model_name != "auto" and not self.has_class
        return self.validation if is_validated else None

    @property
    def has_class(self) -> bool:
        """Whether there may be a hidden class: one population is none."""
        return self.hidden is not None and self.hidden != 1

    @property
    def is_penalised(self) -> bool:
        """Whether every arc costs something, and the score alone decides."""
        return self.held_out is None and self.score_name == "cv"

    @property
    def chooses_types(self) -> bool:
        """Whether the score gives every family its best type, so that a search is over arcs alone."""
        is_open = len(self.node_types) > 1
        return is_open and (self.model_name == "auto" or self.algorithm_name == "boss" or self.has_class)

    @property
    def fit_settings(self) -> FitSettings:
        """What the fit of a density depends on."""
        from spbn.rows.store import FitSettings

        return FitSettings(self.bandwidth, self.engine, self.smoothing)

    @property
    def score_settings(self) -> FitSettings:
        """What scores of families depend on: kernels on few rows while the score chooses node types."""
        return replace_fields(self.fit_settings, centres=CENTRES if self.chooses_types else None)

    def resolve(self, names: Sequence[str]) -> LearnSettings:
        """Return the same settings for columns of these names: with arcs in the place of patterns and tiers.

        This is what a search is given, which knows nothing of either.
        """
        from spbn.graphs.tiers import Tiers, resolve_arcs

        required, forbidden = resolve_arcs(
            names,
            required_arcs=self.required_arcs,
            forbidden_arcs=self.forbidden_arcs,
            tiers=cast(Tiers, self.tiers),
        )
        return self.replace(required_arcs=required, forbidden_arcs=forbidden, tiers=())

    def without_patterns(self, names: Sequence[str]) -> LearnSettings:
        """Return the same settings with names in the place of patterns, to choose some of the columns from.

        Whatever makes no sense for all columns is refused.
        """
        from spbn.graphs.tiers import Tiers, named_tiers

        self.resolve(names)
        tiers = named_tiers(names, cast(Tiers, self.tiers))
        return self.replace(tiers=()).resolve(names).replace(tiers=tiers)

    @property
    def missing_rows(self) -> Literal["error", "drop"]:
        """What becomes of rows with missing values where they are not imputed."""
        return "drop" if self.missing == "drop" else "error"

    def require_unprepared(self) -> None:
        """Refuse a preparation where tables have to be ready."""
        if self.prepare != "none":
            raise ArgumentError(
                f"{argument('prepare')} is for spbn.learn: pass spbn.prepare(data).frame instead."
            )

    def refuse_atoms(self, reason: str) -> None:
        """Refuse atoms where they make no sense, or are not there yet."""
        if self.has_atoms:
            raise ArgumentError(f"{argument('atoms')} cannot be given here: {reason}.")

    def _require_values(self) -> None:
        """Refuse values that make no sense by themselves."""
        from spbn._base import checks
        from spbn._base.arrays import generator
        from spbn.rows.store import FitSettings
        from spbn.transforms import require_kind

        if isinstance(self.prepare, str):
            checks.choice("prepare", self.prepare, OPTIONS["prepare"].choices)
        for name in ("missing", "test", "type_selection"):
            checks.choice(name, getattr(self, name), OPTIONS[name].choices)
        for name in ("model", "algorithm"):
            checks.choice(name, self._used(name), OPTIONS[name].choices)
        if self.penalty != "auto":
            checks.at_least_0("penalty", self.penalty, "'auto', or a number that is 0 or more")
        checks.seconds("max_seconds", self.max_seconds)
        FitSettings(self.bandwidth, self.engine, self.smoothing)
        require_kind(self.margins_name)
        checks.choice("score", self.score_name, SCORES)
        checks.whole("patience", self.patience)
        checks.at_least_0("epsilon", self.epsilon)
        checks.fraction("alpha", self.alpha)
        if self.max_parents is not None:
            checks.whole("max_parents", self.max_parents, or_none=True)
        if self.hidden is not None and self.hidden != "auto":
            checks.whole("hidden", self.hidden, 1, requirement="a whole number, 1 or more, or 'auto'")
        generator(self.seed)
        if self.types is not None and not self.node_types:
            raise ArgumentError(f"{argument('types')} must name at least one node type.")
        if self.client is not None:
            from spbn.dask.client import require_client

            require_client(self.client)

    def _require_agreement(self) -> None:
        """Refuse values that make no sense together, instead of ignoring some of them."""
        from spbn.nodes.base import NodeType
        from spbn.structure import Structure

        if self.types is not None and self.model_name not in ("auto", "spbn"):
            raise ArgumentError(
                f"{argument('types')} can be given with {setting('model', 'auto')} or "
                f"{setting('model', 'spbn')} only. Got {setting('model', self.model_name)}."
            )
        if self.bandwidth == "cv" and NodeType.CKDE not in self.node_types:
            types = " or ".join(node_type.appearance.label for node_type in self.node_types)
            raise ArgumentError(
                f"{setting('bandwidth', 'cv')} chooses the scale of CKDE nodes, and all nodes will be "
                f"{types}: leave it out."
            )
        if not isinstance(self.start, Structure):
            first = NodeType.parse(self.start, "start")
            # CKDE is the default, and stands for the only choice too.
            if first not in (*self.node_types, NodeType.CKDE):
                raise ArgumentError(
                    f"{argument('start')} must be a type that nodes of a {self.model_name} can have: "
                    f"{' or '.join(choice.name for choice in self.node_types)}. Got {first.name!r} instead."
                )
        if self.held_out is None and self._is_given("validation"):
            which = setting("model", "auto") if self.model_name == "auto" else setting("algorithm", "boss")
            which = setting("hidden", self.hidden) if self.has_class else which
            raise ArgumentError(
                f"{argument('validation')} cannot be given with {which}, which holds out no rows: "
                f"leave it out."
            )
        if self._is_given("penalty") and not self.is_penalised:
            raise ArgumentError(
                f"{argument('penalty')} is for {setting('score', 'cv')} without validation rows "
                f"({setting('validation', None)})."
            )
        if self.algorithm_name == "pc":
            unused = [
                argument(known.name)
                for known in OPTIONS.values()
                if "hc" in (known.only_for or ()) and getattr(self, known.name) is not None
            ]
            if isinstance(self.start, Structure):
                unused.append(f"{argument('start')} (as a structure)")
            if unused:
                raise ArgumentError(
                    f"{' and '.join(unused)} can be given with {setting('algorithm', 'hc')} only, "
                    f"not with 'pc'."
                )
        elif self.type_selection != "score":
            raise ArgumentError(
                f"{setting('type_selection', self.type_selection)} can be given with "
                f"{setting('algorithm', 'pc')} only. For a graph that is known, there is "
                f"spbn.learning.types_by_normality."
            )
        elif self.score_name != "cv" and self.model_name != "gbn":
            raise ArgumentError(
                f"{setting('score', self.score)} is for {setting('model', 'gbn')} only. "
                f"Got {setting('model', self.model_name)}: use {setting('score', 'cv')}."
            )
        if self.has_atoms:
            unusual = {
                setting("algorithm", "pc"): self.algorithm_name == "pc",
                setting("score", self.score_name): self.score_name != "cv",
                setting("hidden", self.hidden): self.has_class,
                setting("max_parents", 0): self.max_parents == 0,
                f"{argument('start')} (as a structure)": isinstance(self.start, Structure),
                f"{argument('validation')} (as a table)": not _is_share(self.held_out),
            }
            for which in (which for which, is_given in unusual.items() if is_given):
                raise ArgumentError(
                    f"{argument('atoms')} cannot be given with {which}: leave one of them out."
                )
        if self.has_class and self.score_name != "cv":
            raise ArgumentError(
                f"{setting('score', self.score)} cannot be given with {setting('hidden', self.hidden)}: "
                f"classes are found by the likelihood of rows out of their folds. "
                f"Use {setting('score', 'cv')}."
            )
        if self.has_class and not _is_count(self.folds):
            raise ArgumentError(
                f"{argument('folds')} must be a number with {setting('hidden', self.hidden)}: every class "
                f"has rows in every fold."
            )
        if self.type_selection == "normality" and (
            NodeType.LG not in self.node_types or len(self.node_types) < 2
        ):
            raise ArgumentError(
                f"{setting('type_selection', 'normality')} chooses between 'lg' and another type, and nodes "
                f"can only be {' or '.join(choice.name for choice in self.node_types)}: leave it out."
            )
        if self.missing == "impute" or self.has_class:  # by several searches: what follows is about one
            unused = [
                argument(name) for name in ("max_seconds", "checkpoint") if getattr(self, name) is not None
            ]
            if unused:
                which = setting("hidden", self.hidden) if self.has_class else setting("missing", "impute")
                raise ArgumentError(f"{' and '.join(unused)} cannot be given with {which}.")


def _checked_tiers(tiers: object) -> tuple[tuple[str, ...], ...]:
    """Return tiers as tuples, and refuse what is not groups of names; a name may stand for a group of one."""
    with suppress(TypeError):  # of what is not a group
        if not isinstance(tiers, str | Mapping):
            groups = [(tier,) if isinstance(tier, str) else tuple(tier) for tier in tiers]  # type: ignore[attr-defined]
            if all(isinstance(name, str) for tier in groups for name in tier):
                return tuple(groups)
    raise ArgumentError(
        f"{argument('tiers')} must be groups of columns, in the order of events: "
        f"[['age', 'sex'], ['dose'], ['outcome']]. Got {tiers!r} instead."
    )


def _several(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _is_share(validation: object) -> bool:
    return validation is None or isinstance(validation, float | int)


def _checked_bounds(bounds: object) -> Ends:
    """Return bounds as they are given, by column; refuse what makes no sense."""
    if isinstance(bounds, str):
        read: dict[str, tuple[float | None, float | None]] = {}
        for part in filter(None, map(str.strip, bounds.split(","))):
            name, *ends = part.rsplit(":", 2)
            with suppress(ValueError):
                if len(ends) == 2 and name not in read:
                    low, high = (float(end) if end.strip() else None for end in ends)
                    read[name.strip()] = low, high
                    continue
            raise ArgumentError(
                f"{argument('bounds')} are a name, the least and the greatest value for each column: "
                f"'price:0:,share:0:1', or 'none'. Got {part!r}."
            )
        bounds = read
    if not isinstance(bounds, Mapping):
        raise ArgumentError(
            f"{argument('bounds')} must be a dict of pairs (least, greatest), None for no bound: "
            f"{{'price': (0, None)}}. Got {bounds!r:.100}."
        )
    for name, ends in bounds.items():
        _ends(name, ends)
    return {name: (low, high) for name, (low, high) in bounds.items()}


def _ends(name: object, ends: object) -> Bounds:
    """Return bounds of a column as numbers."""
    with suppress(TypeError, ValueError):
        first, last = cast("tuple[float | None, float | None]", ends)
        low, high = -math.inf if first is None else float(first), math.inf if last is None else float(last)
        if isinstance(name, str) and low < high:
            return low, high
    raise ArgumentError(
        f"{argument('bounds')}: those of {name!r} must be a pair (least, greatest), None for no bound. "
        f"Got {ends!r:.100}."
    )


def _is_count(folds: object) -> bool:
    from spbn._base.checks import is_whole

    return is_whole(folds)


def _options() -> Iterator[Option]:
    for known in fields(LearnSettings):
        annotation = str(known.type)
        kind, choices = _kind_of(annotation)
        described = {"flag": f"--{known.name.replace('_', '-')}", **known.metadata}
        yield Option(known.name, known.default, annotation, kind=kind, choices=choices, **described)


def _kind_of(annotation: str) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of value that an annotation stands for, by the first part of it that says so."""
    for part in map(str.strip, annotation.split("|")):
        literal = globals().get(part)
        if get_origin(literal) is Literal:
            return "choice", get_args(literal)
        if part in _KINDS:
            return _KINDS[part], ()
    return "object", ()


#: All arguments of `learn` but the data, in order.
OPTIONS: Mapping[str, Option] = {known.name: known for known in _options()}


def require_known(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments that a function does not have, as Python does, and say which one is like them."""
    names = list(known)
    for name in given:
        if name in names:
            continue
        near = difflib.get_close_matches(name, names, n=1)
        hint = f": did you mean {near[0]!r}?" if near else "."
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def write_docstring(thing: object, names: Iterable[str], renamed: Mapping[str, str] | None = None) -> None:
    """Put what options mean, perhaps under other names, in the place of ``{options}`` in a docstring."""
    fill = partial(textwrap.fill, width=110, break_on_hyphens=False, break_long_words=False)
    lines = []
    for name in names:
        text = fill(OPTIONS[name].help, initial_indent=" " * 8, subsequent_indent=" " * 8)
        lines.append(f"    {(renamed or {}).get(name, name)}\n{text}")
    thing.__doc__ = (thing.__doc__ or "").replace("    {options}", "\n".join(lines))


def takes(
    make: Callable[P, LearnSettings],
) -> Callable[[Callable[[RowsLike, LearnSettings], R]], Callable[Concatenate[RowsLike, P], R]]:
    """Let a function of data and settings take the settings as arguments of its own."""

    def decorate(function: Callable[[RowsLike, LearnSettings], R]) -> Callable[Concatenate[RowsLike, P], R]:
        def called(data: RowsLike, *none: P.args, **options: P.kwargs) -> R:
            require_known(function.__name__, options, OPTIONS)
            return function(data, make(*none, **options))

        update_wrapper(called, function)
        write_docstring(called, OPTIONS)
        signature = inspect.signature(function)
        parameters = [signature.parameters["data"], *(known.parameter for known in OPTIONS.values())]
        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]  # data may also be given by name

    return decorate


def shows_options(function: F) -> F:
    """Let the signature of a function name all options that its ``**options`` takes."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    names = {parameter.name for parameter in own}
    further = [known.parameter for known in OPTIONS.values() if known.name not in names]
    function.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]
    return function


write_docstring(LearnSettings, OPTIONS)
