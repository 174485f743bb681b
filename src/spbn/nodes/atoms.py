"""Columns with atoms: a density of all other values, and points that have a probability of their own.

Which atom a row has, if any, is a discrete parent of the node, which knows its probability (see
`spbn.transforms.Atoms`). The node is certain where that names an atom. Elsewhere it has a density of any
type, which is fitted to the rows without atoms. Log-densities are with respect to the measure that has the
weight 1 at every atom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.files import ArrayWriter, family_of, refuse
from spbn.nodes.base import CPD, Description, NodeType, Region, require_interval
from spbn.nodes.by_configuration import fit_node as fit_plainly
from spbn.nodes.discrete import read_levels, write_variables
from spbn.rows.store import FitSettings, RemoteRows
from spbn.tables.reader import as_table
from spbn.tables.table import Table, Variable


@dataclass(frozen=True, repr=False)
class WithAtoms(CPD):
    """The density of a node that may be exactly at some values.

    Attributes
    ----------
    node, parents
        The family.
    mark
        The parent that says which atom a row has; its first level is none.
    values
        The atoms, in the order of its other levels.
    density
        The density of all other values given the other parents.

    Examples
    --------
    >>> import numpy as np, spbn
    >>> rng = np.random.default_rng(0)
    >>> rain = np.where(rng.random(200) < 0.4, 0.0, rng.lognormal(size=200))
    >>> network = spbn.learn({"rain": rain}, model="gbn", atoms=["rain=0"])
    >>> print(network.cpds["rain"])
    rain | rain = 0 ~ linear Gaussian, unless it is certain
    """

    node: str
    parents: tuple[str, ...]
    mark: Variable
    values: tuple[float, ...]
    density: CPD

    @classmethod
    def fit(
        cls, node_type: NodeType, rows: Table, node: str, parents: Sequence[str], settings: FitSettings
    ) -> WithAtoms:
        """Fit a density of a type to the rows without atoms."""
        name = rows.marked_by[node]
        codes, column = rows.column(name), rows.column(node)
        mark = Variable(name, rows.levels[name])
        values = [float(column[np.argmax(codes == k)]) for k in range(1, len(mark.levels))]
        others = rows.select([*(parent for parent in parents if parent != name), node])
        rest = others.take(np.flatnonzero(codes == 0))
        density = fit_plainly(node_type, rest, node, others.names[:-1], settings)
        return cls(node, tuple(parents), mark, tuple(values), density)

    @classmethod
    def from_record(
        cls, node_type: NodeType, record: Mapping[str, Any], read: Callable[..., CPD]
    ) -> WithAtoms:
        """Read what `to_record` wrote, with node and parents; `read` reads the density of other values."""
        node, parents = family_of(record)
        entry, values, density = record.get("mark"), record.get("atoms"), record.get("density")
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            refuse(f"{node!r} must name what marks its atoms. Got {entry!r:.200}.")
        mark = Variable(entry["name"], read_levels(entry["name"], entry.get("levels")))
        is_right = isinstance(values, list) and len(values) == len(mark.levels) - 1
        if not is_right or not all(isinstance(value, float | int) for value in values or []):
            refuse(f"{node!r} must have an atom for every level but the first of what marks them.")
        if mark.name not in parents or not isinstance(density, dict) or "mark" in density:
            refuse(f"{node!r} must have a density besides its atoms, and be marked by a parent.")
        rest = [parent for parent in parents if parent != mark.name]
        family = {"node": node, "type": node_type.name, "parents": rest}
        return cls(node, parents, mark, tuple(map(float, values or [])), read({**(density or {}), **family}))

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        return {
            "mark": write_variables([self.mark])[0],
            "atoms": list(self.values),
            "density": self.density.to_record(arrays),
        }

    @property
    def type(self) -> NodeType:
        return self.density.type

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        known = {variable.name: variable for variable in (*self.density.variables, self.mark)}
        return tuple(known[name] for name in (*self.parents, self.node))

    @cached_property
    def _places(self) -> tuple[int, list[int]]:
        """Where the mark is among the columns, and where those of the density are."""
        names = (*self.parents, self.node)
        return names.index(self.mark.name), [names.index(v.name) for v in self.density.variables]

    def _atoms(self, codes: FloatArray) -> FloatArray:
        """Return the atom of every row; NaN where it has none."""
        return np.array([np.nan, *self.values])[codes.astype(np.int64)]

    def _others(
        self, columns: FloatArray, at_atoms: FloatArray, answer: Callable[[FloatArray, IntArray], FloatArray]
    ) -> FloatArray:
        """Ask the density about rows without atoms; all others have the answer that is given.

        Columns may lack the node, which is the last.
        """
        mark, rest = self._places
        rows, out = np.flatnonzero(columns[mark] == 0), at_atoms
        if len(rows):
            rest = [place for place in rest if place < len(columns)]
            found = answer(np.ascontiguousarray(columns[rest][:, rows]), rows)
            out = np.array(at_atoms)
            out[rows] = found
        return out

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        codes, values = columns[self._places[0]], columns[-1]
        certain = np.where(values == self._atoms(codes), 0.0, -np.inf)
        found = self._others(columns, certain, lambda rows, _: self.density.logpdf_of_columns(rows))
        # Only marked rows have atoms: without, each has the probability 0.
        return np.where((codes == 0) & np.isin(values, self.values), -np.inf, found)

    def cdf_of_columns(self, columns: FloatArray) -> FloatArray:
        certain = (columns[-1] >= self._atoms(columns[self._places[0]])).astype(np.float64)
        return self._others(columns, certain, lambda rows, _: self.density.cdf_of_columns(rows))

    def randomised_cdf(self, data: Any, uniforms: FloatArray) -> FloatArray:
        return self.logpdf_and_cdf(data, uniforms)[1]

    def logpdf_and_cdf(self, data: Any, uniforms: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        table = as_table(data, variables=self.variables)
        logpdf, cdf = super().logpdf_and_cdf(table)
        if uniforms is None:
            return logpdf, cdf
        is_atom = table.column(self.mark.name) != 0
        return logpdf, np.where(is_atom & np.isfinite(logpdf), uniforms, cdf)

    def draw(self, parents: FloatArray, rng: np.random.Generator) -> FloatArray:
        certain = self._atoms(parents[self._places[0]])
        return self._others(parents, certain, lambda rows, _: self.density.draw(rows, rng))

    def log_mass(self, region: Region, parents: Table) -> FloatArray:
        codes = parents.column(self.mark.name)
        with np.errstate(invalid="ignore"):
            is_inside = require_interval(region).contains(self._atoms(codes))
        return self._of_table(
            parents, np.where(is_inside, 0.0, -np.inf), lambda rest: self.density.log_mass(region, rest)
        )

    def draw_within(self, region: Region, parents: Table, rng: np.random.Generator) -> FloatArray:
        certain = self._atoms(parents.column(self.mark.name))
        return self._of_table(parents, certain, lambda rest: self.density.draw_within(region, rest, rng))

    def _of_table(
        self, parents: Table, at_atoms: FloatArray, answer: Callable[[Table], FloatArray]
    ) -> FloatArray:
        rows, out = np.flatnonzero(parents.column(self.mark.name) == 0), np.array(at_atoms)
        if len(rows):
            out[rows] = answer(parents.select(self.density.parents).take(rows))
        return out

    def to_noise(self, columns: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Return the noise of rows without atoms; that of all others is open, and drawn."""
        mark, rest = self._places
        known = np.array(columns[rest])
        atoms = np.flatnonzero(columns[mark] != 0)
        if len(atoms):
            given = np.ascontiguousarray(known[:-1, atoms])
            known[-1, atoms] = CPD.from_noise(self.density, given, uniforms[atoms][None])
        return self.density.to_noise(np.ascontiguousarray(known), uniforms)

    def from_noise(self, parents: FloatArray, noise: FloatArray) -> FloatArray:
        certain = self._atoms(parents[self._places[0]])
        return self._others(
            parents,
            certain,
            lambda rows, places: self.density.from_noise(rows, np.ascontiguousarray(noise[:, places])),
        )

    def compact(self, tolerance: float) -> WithAtoms:
        return replace(self, density=self.density.compact(tolerance))

    def pool(self, others: Sequence[WithAtoms]) -> WithAtoms:
        return replace(self, density=self.density.pool([other.density for other in others]))

    @property
    def kernel_rows(self) -> int:
        return self.density.kernel_rows

    def kernels_on(self, rows: FloatArray) -> list[IntArray | None]:
        mark, rest = self._places
        is_atom: BoolArray = rows[mark] > 0
        found = self.density.kernels_on(rows[rest])
        return [None if atom else kernels for atom, kernels in zip(is_atom, found, strict=True)]

    def without(self, kernels: IntArray) -> WithAtoms:
        return replace(self, density=self.density.without(kernels))

    def describe(self) -> Description:
        found = self.density.describe()
        label = self.type.appearance.label
        return Description(
            f"{self.node} | {', '.join(self.parents)} ~ {label}, unless it is certain",
            legend=f"Certain where {self.mark.name} says so. Otherwise fitted to all other values.",
            cases={f"{self.mark.name}: {self.mark.levels[0]}": found},
        )


def fit_node(
    node_type: NodeType, rows: Table | RemoteRows, node: str, parents: Sequence[str], settings: FitSettings
) -> CPD:
    """Fit the density of a node: with atoms, if it has some and a parent that marks them."""
    if isinstance(rows, Table) and rows.marked_by.get(node) in parents:
        return WithAtoms.fit(node_type, rows, node, parents, settings)
    return fit_plainly(node_type, rows, node, parents, settings)
