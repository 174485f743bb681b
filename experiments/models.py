"""The models that execution times are measured on: 5, 10 and 20 variables.

A model is a table of equations, which give its structure and its samples. The equations are those
used by the authors of the paper: half of the nodes are linear Gaussian (in the model with
five, two), the others are mixtures, products, quotients and curves of their parents.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit

import spbn

FUNCTIONS = {"sigmoid": expit, "sin": np.sin}
TYPES = {"lg": "linear Gaussian", "ckde": "CKDE"}


@dataclass(frozen=True)
class Normal:
    """Normal noise with mean zero."""

    variance: float

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw some noise."""
        return rng.normal(0.0, np.sqrt(self.variance), rows)

    def __str__(self) -> str:
        return f"N(0, {self.variance:g})"


@dataclass(frozen=True)
class Mixture:
    """Noise with several modes: a weight, a mean and a variance for each."""

    components: tuple[tuple[float, float, float], ...]

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw some noise."""
        weights, means, variances = np.array(self.components).T
        chosen = rng.choice(len(weights), size=rows, p=weights)
        return rng.normal(means[chosen], np.sqrt(variances[chosen]))

    def __str__(self) -> str:
        return " + ".join(f"{w:g} N({m:g}, {v:g})" for w, m, v in self.components)


@dataclass(frozen=True)
class Equation:
    """A node is an expression of its parents, plus noise."""

    node: str
    type: str
    expression: str
    noise: Normal | Mixture

    @property
    def parents(self) -> tuple[str, ...]:
        """The nodes that the expression names."""
        names = [n.id for n in ast.walk(ast.parse(self.expression)) if isinstance(n, ast.Name)]
        return tuple(sorted(set(names) - set(FUNCTIONS)))

    def mean(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        """Evaluate the expression."""
        return eval(self.expression, {"__builtins__": {}, **FUNCTIONS}, columns)


@dataclass(frozen=True)
class Model:
    """Equations, every node after its parents."""

    equations: tuple[Equation, ...]

    @property
    def structure(self) -> spbn.Structure:
        """The true structure."""
        arcs = [(parent, equation.node) for equation in self.equations for parent in equation.parents]
        types = {equation.node: equation.type for equation in self.equations}
        return spbn.Structure(list(types), arcs, types)

    def sample(self, rows: int, *, seed: int = 0) -> pd.DataFrame:
        """Draw rows."""
        rng = np.random.default_rng(seed)
        columns: dict[str, np.ndarray] = {}
        for equation in self.equations:
            columns[equation.node] = equation.mean(columns) + equation.noise.sample(rows, rng)
        return pd.DataFrame(columns)

    def markdown(self) -> str:
        """Return the equations as a table."""
        lines = ["| node | type | expression | noise |", "| --- | --- | --- | --- |"]
        for equation in self.equations:
            expression = equation.expression.replace("*", "·").replace("-", "−")
            noise = str(equation.noise).replace("-", "−")
            lines.append(f"| {equation.node} | {TYPES[equation.type]} | {expression} | {noise} |")
        return "\n".join(lines) + "\n"


TWO_MODES = Mixture(((0.5, -2.0, 1.0), (0.5, 2.0, 1.0)))
THREE_MODES = Mixture(((0.3, -2.0, 0.5), (0.4, 0.0, 1.0), (0.3, 2.0, 0.5)))

FIVE = (
    Equation("A", "lg", "6", Normal(1.0)),
    Equation("B", "ckde", "0", TWO_MODES),
    Equation("C", "ckde", "A * B", Normal(1.0)),
    Equation("D", "lg", "10 + 0.8 * C", Normal(0.5)),
    Equation("E", "ckde", "sigmoid(D)", Normal(0.5)),
)
TEN = (
    Equation("X1", "ckde", "0", TWO_MODES),
    Equation("X2", "lg", "10 + 0.8 * X1", Normal(0.5)),
    Equation("X3", "ckde", "sigmoid(X1)", Normal(1.0)),
    Equation("X4", "ckde", "X2 * X3", Normal(1.0)),
    Equation("X5", "lg", "2.3 - 1.8 * X2 + 0.7 * X4", Normal(2.0)),
    Equation("X6", "ckde", "3 * sigmoid(0.5 * X4)", Normal(1.0)),
    Equation("X7", "lg", "5.7 - 1.5 * X4 + 0.5 * X3", Normal(0.5)),
    Equation("X8", "lg", "1 - 0.3 * X5 + 0.3 * X6", Normal(0.25)),
    Equation("X9", "ckde", "sigmoid(X6 * X7)", Normal(1.5)),
    Equation("X10", "lg", "-3 + 2 * X8 - 3.5 * X9", Normal(1.0)),
)
TWENTY = (
    *TEN,
    Equation("X11", "lg", "6", Normal(1.0)),
    Equation("X12", "ckde", "0", THREE_MODES),
    Equation("X13", "ckde", "X11 / X2", Normal(2.0)),
    Equation("X14", "lg", "-2 + 3.2 * X3 - 5 * X12", Normal(0.5)),
    Equation("X15", "lg", "1 + 0.5 * X5", Normal(2.0)),
    Equation("X16", "ckde", "sigmoid(0.2 * X7)", Normal(1.0)),
    Equation("X17", "lg", "-3 + X13 - 0.5 * X15", Normal(0.5)),
    Equation("X18", "lg", "4 - 2 * X16 + 1.5 * X14", Normal(1.0)),
    Equation("X19", "ckde", "sigmoid(X17 * X10)", Normal(4.0)),
    Equation("X20", "ckde", "sin(X18 / X10)", Normal(5.0)),
)

#: The models, by their number of variables.
MODELS = {len(equations): Model(equations) for equations in (FIVE, TEN, TWENTY)}
