"""What a user would pick instead to learn a graph. Every method is a function from a frame to a graph.

causal-learn: BOSS and GRaSP with BIC, and PC with partial correlations. lingam: DirectLiNGAM, which takes
noise that is not normal, and RESIT, which takes additive noise around any regression, here splines.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from spbn.graphs.dag import PDAG

ALPHA = 0.05  # of PC
LEAST_EFFECT = 0.05  # that counts as an arc, in units of standardised columns
RESIT_ALPHA = 0.05


def boss(frame: pd.DataFrame) -> PDAG:
    """Best order score search with BIC, as causal-learn has it."""
    from causallearn.search.PermutationBased.BOSS import boss as search

    return _quietly(lambda: _from_causal_learn(search(_array(frame), "local_score_BIC_from_cov"), frame))


def grasp(frame: pd.DataFrame) -> PDAG:
    """Greedy relaxations of the sparsest permutation with BIC."""
    from causallearn.search.PermutationBased.GRaSP import grasp as search

    return _quietly(lambda: _from_causal_learn(search(_array(frame), "local_score_BIC_from_cov"), frame))


def pc(frame: pd.DataFrame) -> PDAG:
    """PC with partial correlations, as causal-learn has it."""
    from causallearn.search.ConstraintBased.PC import pc as search

    return _quietly(
        lambda: _from_causal_learn(search(_array(frame), ALPHA, "fisherz", show_progress=False).G, frame)
    )


def direct_lingam(frame: pd.DataFrame) -> PDAG:
    """DirectLiNGAM."""
    from lingam import DirectLiNGAM

    model = DirectLiNGAM(random_state=0)
    return _quietly(lambda: _from_effects(model.fit(_array(frame)).adjacency_matrix_, frame))


def resit(frame: pd.DataFrame) -> PDAG:
    """Regression with subsequent independence test (Peters et al., 2014)."""
    from lingam import RESIT
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    regressor = make_pipeline(SplineTransformer(n_knots=6), Ridge(1.0))
    model = RESIT(regressor=regressor, random_state=0, alpha=RESIT_ALPHA)
    return _quietly(lambda: _from_effects(model.fit(_array(frame)).adjacency_matrix_, frame))


PEERS: dict[str, Callable[[pd.DataFrame], PDAG]] = {
    "BOSS, causal-learn": boss,
    "GRaSP, causal-learn": grasp,
    "PC, causal-learn": pc,
    "DirectLiNGAM": direct_lingam,
    "RESIT": resit,
}
#: The most nodes and rows for which a method ends within minutes.
LIMITS = {"RESIT": (10, 500), "DirectLiNGAM": (46, 2_000), "GRaSP, causal-learn": (64, 10_000)}


def _array(frame: pd.DataFrame) -> np.ndarray:
    values = frame.to_numpy(dtype=np.float64)
    return (values - values.mean(axis=0)) / values.std(axis=0)


def _quietly(run: Callable[[], PDAG]) -> PDAG:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return run()


def _from_causal_learn(graph: object, frame: pd.DataFrame) -> PDAG:
    """Read a graph whose matrix has -1 at tails and 1 at arrowheads, in [end, other end]."""
    ends = np.asarray(graph.graph)  # type: ignore[attr-defined]
    names = list(frame.columns)
    pairs = [(i, j) for i in range(len(names)) for j in range(len(names)) if ends[i, j] == -1]
    arcs = [(names[i], names[j]) for i, j in pairs if ends[j, i] == 1]
    edges = [(names[i], names[j]) for i, j in pairs if ends[j, i] == -1 and i < j]
    both = [(names[i], names[j]) for i, j in np.argwhere((ends == 1) & (ends.T == 1)) if i < j]
    return PDAG(names, arcs, [*edges, *both])


def _from_effects(effects: np.ndarray, frame: pd.DataFrame) -> PDAG:
    """Read effects, [child, parent], where small ones are none."""
    names = list(frame.columns)
    arcs = [(names[j], names[i]) for i, j in np.argwhere(np.abs(np.nan_to_num(effects)) > LEAST_EFFECT)]
    return PDAG(names, arcs, [])
