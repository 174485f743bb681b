"""Slow and obvious versions of what the library computes fast, to compare with.

Written from the definitions, with other means than the library's: no moments,
no set functions, no whitening, no compiled code.
"""

from fractions import Fraction

import numpy as np
from scipy import special, stats

from spbn import NodeType
from spbn.search import AddArc, ChangeType, RemoveArc, ReverseArc
from spbn.tables.splits import fold_labels


def kde_logpdf(queries, train, bandwidth):
    """Log-density of queries (rows × d) under kernels on train (rows × d)."""
    queries, train = np.atleast_2d(queries), np.atleast_2d(train)
    inverse = np.linalg.inv(bandwidth)
    _, log_determinant = np.linalg.slogdet(2 * np.pi * bandwidth)
    out = []
    for query in queries:
        difference = query - train
        exponents = -0.5 * np.einsum("ij,jk,ik->i", difference, inverse, difference)
        out.append(special.logsumexp(exponents) - np.log(len(train)) - 0.5 * log_determinant)
    return np.array(out)


def scott(train):
    """Scott's bandwidth matrix."""
    rows, d = train.shape
    return rows ** (-2 / (d + 4)) * np.atleast_2d(np.cov(train.T))


def silverman(train):
    """Silverman's bandwidth matrix."""
    rows, d = train.shape
    return (4 / (rows * (d + 2))) ** (2 / (d + 4)) * np.atleast_2d(np.cov(train.T))


def ckde_logpdf(frame, train, node, parents, bandwidth=scott):
    """Log-density of a node given its parents, as the quotient of two densities."""
    columns = [node, *parents]
    matrix = bandwidth(train[columns].to_numpy())
    out = kde_logpdf(frame[columns].to_numpy(), train[columns].to_numpy(), matrix)
    if parents:
        names = list(parents)
        out = out - kde_logpdf(frame[names].to_numpy(), train[names].to_numpy(), matrix[1:, 1:])
    return out


def far_ckde_logpdf(row, train, node, parent, bandwidth=scott):
    """Log-density of one row given one parent, wherever it is: exponents are exact fractions."""
    (h_xx, h_xp), (_, h_pp) = bandwidth(train[[node, parent]].to_numpy()).tolist()
    x, p = Fraction(row[node]), Fraction(row[parent])
    slope = Fraction(h_xp) / Fraction(h_pp)
    variance = Fraction(h_xx) - slope * Fraction(h_xp)
    weights, squares = [], []
    for x_j, p_j in train[[node, parent]].to_numpy().tolist():
        weights.append((p - Fraction(p_j)) ** 2 / Fraction(h_pp) / 2)
        squares.append((x - Fraction(x_j) - slope * (p - Fraction(p_j))) ** 2 / variance / 2)
    nearest = min(weights)
    least = min(w + s for w, s in zip(weights, squares, strict=True))
    above = sum(np.exp(-float(w + s - least)) for w, s in zip(weights, squares, strict=True))
    below = sum(np.exp(-float(w - nearest)) for w in weights)
    return float(nearest - least) + np.log(above / below) - 0.5 * np.log(2 * np.pi * float(variance))


def lg_logpdf(frame, train, node, parents):
    """Log-density of a node under the linear regression on its parents."""
    design = np.column_stack([np.ones(len(train)), *(train[p] for p in parents)])
    coefficients, *_ = np.linalg.lstsq(design, train[node], rcond=None)
    residuals = train[node] - design @ coefficients
    variance = (residuals**2).sum() / (len(train) - len(parents) - 1)
    mean = np.column_stack([np.ones(len(frame)), *(frame[p] for p in parents)]) @ coefficients
    return stats.norm.logpdf(frame[node], mean, np.sqrt(variance))


def logpdf(frame, train, node, parents, node_type, **options):
    """Log-density of a node of either type."""
    if node_type == "blend":
        weights = em_weights(blend_cv_rows(train, fold_labels(len(train), 10, 0), node, parents))
        return special.logsumexp(blend_rows(frame, train, node, parents), b=weights[:, None], axis=0)
    return (ckde_logpdf if node_type == "ckde" else lg_logpdf)(frame, train, node, parents, **options)


def cv_rows(frame, labels, node, parents, node_type, **options):
    """Log-density of every row under parameters fitted without its fold."""
    if node_type == "blend":
        components = blend_cv_rows(frame, labels, node, parents)
        return special.logsumexp(components, b=em_weights(components)[:, None], axis=0)
    out = np.empty(len(frame))
    for label in np.unique(labels):
        test = labels == label
        out[test] = logpdf(frame[test], frame[~test], node, parents, node_type, **options)
    return out


def blend_rows(frame, train, node, parents):
    """Log-densities of a blend's components, one bandwidth at a time: four kernels, then the line."""
    kernels = [
        ckde_logpdf(frame, train, node, parents, lambda rows, c=c: c * scott(rows))
        for c in (1 / 16, 1 / 4, 1, 4)
    ]
    return np.stack([*kernels, lg_logpdf(frame, train, node, parents)])


def blend_cv_rows(frame, labels, node, parents):
    """The same for every row under components fitted without its fold."""
    out = np.empty((5, len(frame)))
    for label in np.unique(labels):
        test = labels == label
        out[:, test] = blend_rows(frame[test], frame[~test], node, parents)
    return out


def em_weights(log_densities, steps=100_000):
    """Weights of a mixture by EM from uniform ones, with one pseudo-row spread over the components."""
    components, rows = log_densities.shape
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(components, 1 / components)
    for _ in range(steps):
        shares = weights[:, None] * densities
        shares /= shares.sum(axis=0)
        new = (shares.sum(axis=1) + 1 / components) / (rows + 1)
        if np.abs(new - weights).max() < 1e-15:
            break
        weights = new
    return new


def table_logpdf(frame, train, node, parents, levels, smoothing):
    """Log-probability of every row's level, by counting the training rows that are like it."""
    out = []
    for _, row in frame.iterrows():
        alike = train[(train[parents] == row[parents]).all(axis=1)] if parents else train
        if smoothing == 0 and len(alike) == 0:
            alike = train
        hits = (alike[node] == row[node]).sum()
        with np.errstate(divide="ignore"):
            out.append(np.log((hits + smoothing / levels) / (len(alike) + smoothing)))
    return np.array(out)


def can_fit(train, node, parents):
    """Whether lines and kernels can be fitted: no column is a linear function of the others."""
    columns = train[[node, *parents]].to_numpy()
    return len(columns) > 0 and np.linalg.matrix_rank(columns - columns.mean(axis=0)) == columns.shape[1]


def best_of_scales(frame, labels, node, parents):
    """The multiple of Scott's bandwidth under which folds predict each other best."""
    totals = {
        scale: cv_rows(frame, labels, node, parents, "ckde", bandwidth=scaled_scott(scale)).sum()
        for scale in (1 / 16, 1 / 4, 1, 4)
    }
    return max(totals, key=totals.get)


def scaled_scott(scale):
    """Scott's bandwidth matrix times a number."""
    return lambda rows: scale * scott(rows)


def configuration_rows(frame, labels, node, parents, given, node_type, **options):
    """Log-density of every row: fitted, without its fold, to the rows of its configuration.

    Where these are too few, to all rows outside its fold, without the discrete parents.
    """
    out = np.empty(len(frame))
    for _, mine in frame.reset_index(drop=True).groupby(given, observed=True):
        for label in np.unique(labels[mine.index]):
            test = mine.index[labels[mine.index] == label]
            train = mine.loc[labels[mine.index] != label]
            if not can_fit(train, node, parents):
                train = frame[labels != label]
            out[test] = logpdf(frame.iloc[test], train, node, parents, node_type, **options)
    return out


def is_acyclic(nodes, arcs):
    """Remove nodes without parents until none is left."""
    nodes, arcs = set(nodes), set(arcs)
    while True:
        roots = {n for n in nodes if not any(target == n for _, target in arcs)}
        if not roots:
            return not nodes
        nodes -= roots
        arcs = {(s, t) for s, t in arcs if s not in roots}


def possible_operators(structure):
    """Every operator that may be applied to a structure."""
    nodes, arcs = structure.nodes, set(structure.arcs)
    for a in nodes:
        for b in nodes:
            if a != b and not {(a, b), (b, a)} & arcs and is_acyclic(nodes, arcs | {(a, b)}):
                yield AddArc(a, b)
            if (a, b) in arcs:
                yield RemoveArc(a, b)
                if is_acyclic(nodes, arcs - {(a, b)} | {(b, a)}):
                    yield ReverseArc(a, b)
        before = structure.types[a]
        yield ChangeType(a, before, NodeType.LG if before is NodeType.CKDE else NodeType.CKDE)


def climb(score, start, *, types, patience, epsilon, max_parents, required, forbidden, fixed):
    """Hill climbing by its description: every structure scored from nothing, every rule checked on it.

    Returns the operators taken, and after how many of them the best structure was found.
    """

    def allowed(operator, structure):
        after = operator.apply(structure)
        arcs, known = set(after.arcs), set(structure.arcs)
        return (
            (not isinstance(operator, ChangeType) or (operator.after in types and operator.node not in fixed))
            and set(required) <= arcs
            and not (arcs - known) & set(forbidden)
            and all(
                len(after.parents(node)) <= max(max_parents, len(structure.parents(node)))
                for node in after.nodes
            )
        )

    judge = score if score.validation is None else score.validation
    structure, taken, best, best_value, tabu = start, [], 0, judge.total(start), set()
    while True:
        deltas = {
            operator: score.total(operator.apply(structure)) - score.total(structure)
            for operator in possible_operators(structure)
            if operator not in tabu and allowed(operator, structure)
        }
        if not deltas or max(deltas.values()) <= epsilon + 1e-11:
            return taken, best
        operator = max(deltas, key=deltas.get)
        structure = operator.apply(structure)
        taken.append(operator)
        if judge.total(structure) > best_value:
            best, best_value, tabu = len(taken), judge.total(structure), set()
        else:
            tabu.add(operator.inverse)
            if len(taken) - best > patience:
                return taken, best
