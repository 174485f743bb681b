"""A Bayesian network: a structure, and a fitted density for every node."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, final

from spbn import io, transforms
from spbn._base import display
from spbn._base.arrays import FloatArray, Seed
from spbn._base.checks import either
from spbn._base.files import ArrayReader, ArrayWriter, list_of, refuse
from spbn._base.lazy import pd
from spbn._deprecated import warn_deprecated
from spbn.errors import ArgumentError, FitError, ModelFileError, SpbnError, setting
from spbn.fitting import fitted, typical_logpdf
from spbn.inference.batch import class_probabilities, imputations, log_density_of_observed, predict
from spbn.inference.counterfactual import Counterfactual, counterfactual
from spbn.inference.effects import Effect, effect
from spbn.inference.equivalent import Over, over_graphs, require_over
from spbn.inference.query import Method, Posterior, query
from spbn.joint import Joint
from spbn.kernels.compression import require_tolerance
from spbn.kernels.estimates import BandwidthRule
from spbn.nodes.base import CPD
from spbn.record import Record, current_versions, from_plain, plain_settings, to_plain
from spbn.rows.store import FitSettings
from spbn.search import PCResult, SearchResult, records
from spbn.structure import Structure
from spbn.tables.reader import Missing, as_table, by_row, frame_like
from spbn.tables.readings import Preparation
from spbn.tables.rows import RowBuffer
from spbn.tables.table import Variable, require_variation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Network(ABC):
    """What networks of all kinds have in common, whether rows depend on those before them or not."""

    #: The variables that rows must have, with the levels of the discrete ones.
    variables: tuple[Variable, ...]
    #: How many earlier rows a row may depend on.
    lags: int
    #: The columns that tell series apart, and that hold the times of rows, if there are such.
    series: str | None
    time: str | None

    @property
    @abstractmethod
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""

    @property
    @abstractmethod
    def parts(self) -> tuple[BayesianNetwork, ...]:
        """The networks that it is made of: itself, or the static and the transition network."""

    @property
    def row_network(self) -> BayesianNetwork:
        """The network that gives the density of a row: itself, or the transition network."""
        return self.parts[-1]

    @property
    def is_dynamic(self) -> bool:
        """Whether rows depend on those before them."""
        return self.lags > 0

    @abstractmethod
    def row_buffer(self) -> RowBuffer:
        """Return a reader of new rows, which remembers what the next ones depend on."""

    @abstractmethod
    def contributions(self, data: Any) -> FloatArray:
        """Return what every node contributes to the log-density of every row: rows × nodes."""

    @abstractmethod
    def logpdf(self, data: Any) -> pd.Series[float] | FloatArray:
        """Log-density of every row: of a data frame, a Series, with its index; of other data, an array."""

    def loglik(self, data: Any) -> float:
        """Log-likelihood: the sum of the rows' log-densities."""
        return float(self.contributions(data).sum(axis=1).sum())

    def logpdf_by_node(self, data: Any) -> pd.DataFrame:
        """Return what every node contributes to the log-density of every row, one column per node."""
        return frame_like(data, dict(zip(self.nodes, self.contributions(data).T, strict=True)))

    @abstractmethod
    def sample(self, n: int, /, *, seed: Seed = None) -> pd.DataFrame:
        """Draw n rows; of a dynamic network, a series of that length."""

    @abstractmethod
    def compact(self, tolerance: float = 1e-6, *, others: str = "error") -> Network:
        """Return a network with the same densities, but without its training rows."""

    @abstractmethod
    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        """Describe the network as plain data, apart from its arrays, for a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a ``.spbn`` file."""
        io.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a ``.spbn`` file. Such a file holds only data: reading it runs no code."""
        network = io.load(path)
        if not isinstance(network, cls):
            what = "a dynamic network" if network.is_dynamic else "a network that is not dynamic"
            name = type(network).__name__
            raise ModelFileError(f"{os.fspath(path)} holds {what}: read it with spbn.{name}.load.")
        return network

    _repr_html_ = display.repr_html

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook, if the packages for that are installed."""
        try:
            return display.svg(self)
        except ImportError:
            return None


@final
class BayesianNetwork(Joint, Network):
    """The joint density of some variables, as the product of the densities of all nodes given their parents.

    Parameters
    ----------
    structure
        The graph and the types of its nodes.
    cpds
        The fitted density of every node.
    margins
        Transforms of the columns; the densities are then those of transformed columns.
    record
        How it was made. If nothing else is known, `search` and `type_search` can be given instead.
    hidden
        A discrete node that no column of data holds, the last one, without parents: its levels are classes
        of rows, and densities are sums over them.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> print(network)
    A = 6.015 + N(0, 0.9285)
    B ~ CKDE (200 rows)
    C | A, B ~ CKDE (200 rows)
    D = 9.884 + 0.8·C + N(0, 0.3734)
    E | D ~ CKDE (200 rows)
    >>> network.logpdf(data).round(1).tolist()[:3]
    [-6.9, -6.5, -7.5]
    """

    # Rows do not depend on each other, so no column says in what order they come.
    lags: int = 0
    series: str | None = None
    time: str | None = None

    @classmethod
    def fit(
        cls,
        structure: Structure,
        data: Any,
        *,
        bandwidth: BandwidthRule = "scott",
        margins: str = "none",
        missing: Missing = "error",
        engine: str = "auto",
        smoothing: float = 1.0,
        search: Any = None,
    ) -> BayesianNetwork:
        """Fit the density of every node to the data.

        Columns that are not nodes are ignored. Those of discrete nodes hold categories: text, truth values or
        numbers; `smoothing` is how many rows are added to every configuration of their parents. With
        ``margins="yeo-johnson"`` every other column is transformed first, and with ``margins="auto"`` every
        column that is predicted better for it (see `spbn.transforms`).
        """
        start = time.perf_counter()
        if not isinstance(structure, Structure):
            raise ArgumentError(f"fit takes a Structure. Got {type(structure).__name__}.")
        settings = FitSettings(bandwidth, engine, smoothing)
        plan = transforms.MarginsPlan(margins)
        continuous = [node for node, kind in structure.types.items() if kind.admits(Variable(node), ())]
        discrete = [node for node in structure.nodes if node not in continuous]
        table = as_table(
            data,
            levels="infer",
            names=(*structure.nodes, *structure.used_inputs),
            discrete=discrete,
            continuous=continuous,
            missing=missing,
            min_rows=2,
        )
        require_variation(table)
        fitted_margins = plan.fit(table)
        rows = table if fitted_margins is None else fitted_margins.transformed(table)
        cpds = {family.node: fitted(rows, family, settings) for family in structure.families()}
        chosen = {
            "bandwidth": bandwidth,
            "margins": margins,
            "missing": missing,
            "engine": engine,
            "smoothing": smoothing,
        }
        record = Record(
            settings=plain_settings(chosen),
            versions=current_versions(),
            rows=table.rows,
            columns=table.names,
            data_hash=table.digest,
            typical=typical_logpdf(structure, table, settings, fitted_margins),
            seconds=time.perf_counter() - start,
            search=search,
        )
        return cls(structure, cpds, margins=fitted_margins, record=record)

    def logpdf(self, data: Any, *, missing: str = "error", seed: Seed = 0) -> pd.Series[float] | FloatArray:
        """Log-density of every row: of a data frame, a Series, with its index; of other data, an array.

        With ``missing="integrate"``, rows may have holes. The result is the log-density of the values that
        are present: exact where nodes are linear Gaussian or discrete, and otherwise by simulation with this
        seed.
        """
        either("missing", missing, ("error", "integrate"))
        if missing == "error":
            return by_row(data, self.contributions(data).sum(axis=1))
        table = as_table(data, variables=self.variables, missing="keep")
        return by_row(data, log_density_of_observed(self, table, seed=seed, warn=True))

    def query(
        self,
        evidence: Mapping[str, object] | None = None,
        *,
        do: Mapping[str, object] | None = None,
        over: Over = "network",
        data: Any = None,
        n: int = 2000,
        seed: Seed = 0,
        method: Method = "auto",
        max_seconds: float | None = None,
        progress: bool = False,
    ) -> Posterior:
        """Return what is likely for all other variables, given what is known about some.

        Parameters
        ----------
        evidence
            By variable: a value, an interval ``(low, high)`` with None for an open end, or a set of levels.
        do
            Variables that are set by intervention, which says nothing about their causes: the arcs into them
            are cut. The answer names open directions that it depends on.
        over
            "network", or "equivalent": ask all graphs that open directions allow (50 if there are more, drawn
            with the seed). The answer then has `alternatives` and a `range`.
        data
            The training rows, to which nodes with other parents are fitted in such graphs.
        n
            How many draws to make.
        method
            "exact", "weighting", "smc", or "auto": exact where nodes are linear Gaussian or discrete;
            elsewhere weighted forward samples, and tempered sequential Monte Carlo where
            few of them carry all the weight.
        max_seconds
            When to stop a simulation. What is left of its way to the evidence is then weighed, and a warning
            says what the answer is worth.
        progress
            Show what is being done on the terminal.
        """
        require_over(over, do, data)
        ask = partial(
            query,
            evidence=evidence,
            do=do,
            n=n,
            seed=seed,
            method=method,
            max_seconds=max_seconds,
            progress=progress,
        )
        found = ask(self)
        return over_graphs(found, ask, over, data, seed) if do else found

    def effect(
        self,
        cause: str,
        outcome: str | Mapping[str, object],
        *,
        low: object,
        high: object,
        over: Over = "network",
        data: Any = None,
        n: int = 10_000,
        seed: Seed = 0,
    ) -> Effect:
        """Return how an outcome changes if a cause is set to `high` instead of `low`, along all paths.

        Parameters
        ----------
        cause
            The variable that is set.
        outcome
            A variable, whose mean counts; or an event, such as ``{"sick": "yes"}`` or ``{"y": (3, None)}``,
            whose probability counts.
        low, high
            What the cause is set to.
        over, data
            As for `query`.
        n
            How many draws to make, where the answer is not exact.
        """
        return effect(self, cause, outcome, low=low, high=high, over=over, data=data, n=n, seed=seed)

    def counterfactual(
        self, data: Any, do: Mapping[str, object], *, n: int = 100, level: float = 0.9, seed: Seed = 0
    ) -> Counterfactual:
        """Return what rows would have been, had variables been set to other values.

        Everything that a row owes to noise stays as it is. Values are determined where numbers depend on
        numbers. Levels that depend on others, holes and a hidden class leave something open: there, values
        are means, with intervals.

        Parameters
        ----------
        data
            A table, or a single row as a dict or a Series. Values may be missing.
        do
            What variables are set to, in every row.
        n
            How many times to draw what has to be drawn, for every row.
        level
            How probable it is that a value is in its interval.
        """
        return counterfactual(self, data, do, n=n, level=level, seed=seed)

    def predict(
        self, data: Any, targets: Sequence[str], *, statistic: str = "mean", seed: Seed = 0
    ) -> pd.DataFrame:
        """Predict columns, row by row, from the other columns of the data.

        Parameters
        ----------
        data
            A table; columns that it lacks and values that are missing are unknown, and so are the targets.
        targets
            The variables to predict.
        statistic
            "mean", "median" or "mode". A discrete variable is predicted by its most probable level.
        """
        return predict(self, data, targets, statistic=statistic, seed=seed)

    def classes(self, data: Any, *, seed: Seed = 0) -> pd.DataFrame:
        """Return which class every row belongs to: the probability of each, and the most probable one.

        There is a column for every level of the hidden node, and one with the node's name. Rows may have
        missing values.

        Examples
        --------
        >>> import numpy as np, pandas as pd, spbn
        >>> rng = np.random.default_rng(0)
        >>> group = rng.random(300) < 0.3
        >>> data = pd.DataFrame(rng.normal(np.where(group, 6.0, 0.0), 1.0, (2, 300)).T, columns=["x", "y"])
        >>> network = spbn.learn(data, model="gbn", hidden=2)
        >>> found = network.classes(data)
        >>> bool(((found["class"] == "2") == group).mean() > 0.99)
        True
        """
        if self.class_variable is None:
            raise ArgumentError(
                f"the network has no hidden class: learn one with {setting('hidden', 'auto')}."
            )
        table = as_table(data, variables=self.variables, missing="keep")
        found = class_probabilities(self, table, seed=seed)
        columns: dict[str, Any] = dict(zip(self.class_variable.levels, found.T, strict=True))
        columns[self.class_variable.name] = self.as_data(self.class_variable, found.argmax(axis=1))
        return frame_like(data, columns)

    def impute(self, data: Any, *, seed: Seed = 0, draws: int | None = None) -> pd.DataFrame:
        """Fill holes with random draws, given the rest of the row; return a frame like the data.

        `draws` is deprecated: `imputations` fills them several times.
        """
        if draws is None:
            return imputations(self, data, n=1, seed=seed)[0]
        warn_deprecated("the argument draws of impute", "n of imputations", stacklevel=3)
        found = imputations(self, data, n=draws, seed=seed)
        return found[0] if draws == 1 else found  # type: ignore[return-value]  # as in version 0.2

    def imputations(self, data: Any, *, n: int = 10, seed: Seed = 0) -> list[pd.DataFrame]:
        """Fill holes with random draws, given the rest of the row, n times.

        Each frame is filled differently, and their differences show how much is unknown.
        """
        return imputations(self, data, n=n, seed=seed)

    def compact(self, tolerance: float = 1e-6, *, others: str = "error") -> BayesianNetwork:
        """Return a network with the same densities, but without its training rows.

        The rows of CKDE and blend nodes with up to two continuous parents are replaced by tables, so that
        scoring a row takes the same time however many training rows there were, and the file is small. Only
        rows on the outskirts of the data are kept, rounded: see "Compact networks" in the documentation for
        what that means for privacy.

        Parameters
        ----------
        tolerance
            Largest error of the log-density of a node in any row, between 1e-6 and 0.01; relative for
            log-densities greater than 1 in absolute value.
        others
            Nodes that are too large for a table, because they have more parents or narrow kernels on many
            rows: "error", or "keep" them as they are, with their rows.

        Examples
        --------
        >>> import spbn
        >>> data = spbn.datasets.synthetic(2000, seed=0)
        >>> network = spbn.learn(data, max_parents=2)
        >>> small = network.compact()
        >>> bool(abs(small.logpdf(data) - network.logpdf(data)).max() < 1e-6)
        True
        """
        require_tolerance(tolerance)
        either("others", others, ("error", "keep"))
        cpds, refused = {}, []
        for node, cpd in self.cpds.items():
            try:
                cpds[node] = cpd.compact(tolerance)
            except FitError as error:
                cpds[node] = cpd
                refused.append(str(error))
        if refused and others == "error":
            raise FitError(
                f"some nodes cannot be made compact: {'; '.join(refused)}. Learn with "
                f"{setting('max_parents', 2)}, or pass {setting('others', 'keep')} to keep the rows of such "
                f"nodes."
            )
        return self.replace(cpds=cpds)

    @property
    def parts(self) -> tuple[BayesianNetwork, ...]:
        return (self,)

    def row_buffer(self) -> RowBuffer:
        return RowBuffer(self.variables)

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        record: dict[str, Any] = {
            "nodes": list(self.nodes),
            **({"inputs": list(self.structure.inputs)} if self.structure.inputs else {}),
            **({"hidden": self.hidden} if self.hidden is not None else {}),
            "arcs": [list(arc) for arc in self.structure.arcs],
            "cpds": [io.cpd_to_record(self.cpds[node], arrays) for node in self.nodes],
            "record": to_plain(self.record),
        }
        if self.preparation is not None:
            record["preparation"] = self.preparation.to_plain()
        if self.margins is not None:
            continuous = [variable.name for variable in self.variables if not variable.is_discrete]
            record["margins"] = transforms.to_plain(self.margins, continuous)
        if isinstance(self.search, SearchResult):
            record["search"] = records.search_to_record(self.search)
        elif isinstance(self.search, PCResult):
            record["pc"] = records.pc_to_record(self.search)
        if isinstance(self.type_search, SearchResult):
            record["type_search"] = records.search_to_record(self.type_search)
        return record

    @classmethod
    def from_record(cls, document: Mapping[str, Any], version: int, arrays: ArrayReader) -> BayesianNetwork:
        """Read what `to_record` wrote; anything else is a `ModelFileError`."""
        nodes = list_of(document, "nodes", str)
        inputs = list_of(document, "inputs", str) if "inputs" in document else []
        if len(nodes) + len(inputs) > io.MOST_NODES:
            refuse(
                f"it declares {len(nodes) + len(inputs)} nodes, and a network has at most {io.MOST_NODES}."
            )
        arcs = [tuple(arc) for arc in list_of(document, "arcs", list)]
        cpds: dict[str, CPD] = {}
        for record in list_of(document, "cpds", dict):
            cpd = io.cpd_from_record(record, arrays)
            if cpd.node in cpds:
                refuse(f"it describes {cpd.node!r} more than once.")
            cpds[cpd.node] = cpd
        types = {node: cpd.type for node, cpd in cpds.items()}
        hidden = document.get("hidden")
        if hidden is not None and not isinstance(hidden, str):
            refuse(f"'hidden' must name a node. Got {hidden!r:.200}.")
        seen = [node for node in nodes if node != hidden]  # by searches, which are given the classes of rows
        searches: dict[str, Any] = {
            key: records.search_from_record(document[key], seen, inputs) if key in document else None
            for key in ("search", "type_search")
        }
        if "pc" in document and "search" not in document:
            searches["search"] = records.pc_from_record(document["pc"], [*nodes, *inputs])
        made = Record(**searches) if version == 1 else from_plain(document.get("record"), **searches)
        if not set(made.open_directions or ()) <= set(arcs):
            refuse("its record of learning has open directions that are not arcs of the network.")
        written = document.get("preparation")
        known: dict[str, Any] = {
            "record": made,
            "hidden": hidden,
            "preparation": None if written is None else Preparation.from_plain(written),
        }
        try:
            network = cls(Structure(nodes, arcs, types, inputs=inputs), cpds, **known)
            if "margins" not in document:
                return network
            continuous = [variable.name for variable in network.variables if not variable.is_discrete]
            margins = transforms.from_plain(document["margins"], continuous)
            return cls(network.structure, cpds, margins=margins, **known)
        except ModelFileError:
            raise
        except SpbnError as error:
            raise ModelFileError(f"its network makes no sense: {error}") from error

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph, with open directions dashed; see `spbn.plots.plot_structure`."""
        drawn: Axes = display.plot(self, ax)
        return drawn

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BayesianNetwork)
            and self.structure == other.structure
            and self.margins == other.margins
            and self.hidden == other.hidden
            and all(self.cpds[node] == other.cpds[node] for node in self.nodes)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __repr__(self) -> str:
        return f"BayesianNetwork({self.structure!r})"

    def __str__(self) -> str:
        nodes = [str(self.cpds[node]) for node in self.order if node in self._cpds]
        return "\n".join(map(str, filter(None, [self.record.model, *nodes, self.margins])))


io.READERS[None] = BayesianNetwork.from_record
