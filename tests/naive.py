"""Slow and obvious versions of what the library computes fast, to compare with.

Written from the definitions, with other means than the library's: no moments,
no set functions, no whitening, no compiled code.
"""

import itertools
import math
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
    if node_type == "curve":
        return curve_logpdf(frame, train, fold_labels(len(train), min(10, len(train)), 0), node, parents)
    if node_type == "blend":
        weights = em_weights(blend_cv_rows(train, fold_labels(len(train), 10, 0), node, parents))
        return special.logsumexp(blend_rows(frame, train, node, parents), b=weights[:, None], axis=0)
    return (ckde_logpdf if node_type == "ckde" else lg_logpdf)(frame, train, node, parents, **options)


def cv_rows(frame, labels, node, parents, node_type, **options):
    """Log-density of every row under parameters fitted without its fold."""
    if node_type == "curve":
        return curve_cv_rows(frame, labels, node, parents)
    if node_type == "blend":
        components = blend_cv_rows(frame, labels, node, parents)
        return special.logsumexp(components, b=em_weights(components)[:, None], axis=0)
    out = np.empty(len(frame))
    for label in np.unique(labels):
        test = labels == label
        out[test] = logpdf(frame[test], frame[~test], node, parents, node_type, **options)
    return out


def without_far_values(frame, of=None):
    """Replace values far out by the median: three times as far as 98 % of the rows on that side."""
    out = frame.copy()
    for name in frame.select_dtypes("number"):
        centre, _, low, high, *_ = _coarse_statistics((frame if of is None else of)[name])
        far = (frame[name] < centre + 3 * (low - centre)) | (frame[name] > centre + 3 * (high - centre))
        out.loc[far, name] = centre
    return out


def tails_logpdf(frame, train, node, of=None):
    """Log-density of Student's t at the median, as wide as the node."""
    centre, _, low, high = curve_spread((train if of is None else of)[node].to_numpy())
    width = np.sqrt(np.mean((np.clip(train[node], low, high) - centre) ** 2))
    return stats.t.logpdf(frame[node], 2, centre, width)


def blend_rows(frame, train, node, parents, labels=None):
    """Log-densities of a blend's components: four kernels, line, curve, tails and local lines."""
    labels = fold_labels(len(train), 10, 0) if labels is None else labels
    curve = curve_logpdf(frame, train, labels, node, parents)
    held, tails = without_far_values(train), tails_logpdf(frame, train, node)
    local = local_logpdf(frame, train, node, parents)
    return np.stack([*_kernels_and_line(frame, train, held, node, parents), curve, tails, local])


def blend_cv_rows(frame, labels, node, parents):
    """The same for every row under components fitted without its fold."""
    out = np.empty((8, len(frame)))
    held = without_far_values(frame)
    for label in np.unique(labels):
        test = labels == label
        out[7, test] = local_logpdf(frame[test], frame, node, parents, left_out=test)
        out[:5, test] = _kernels_and_line(frame[test], frame[~test], held[~test], node, parents)
        out[6, test] = tails_logpdf(frame[test], frame[~test], node, of=frame)
    out[5] = curve_cv_rows(frame, labels, node, parents)
    return out


def _kernels_and_line(frame, train, held, node, parents):
    bandwidth = scott(held[[node, *parents]].to_numpy())
    kernels = [
        ckde_logpdf(frame, train, node, parents, lambda rows, c=c: c * bandwidth)
        for c in (1 / 16, 1 / 4, 1, 4)
    ]
    return np.stack([*kernels, lg_logpdf(frame, held, node, parents)])


def em_weights(log_densities, steps=100_000):
    """Weights of a mixture by EM from uniform ones, with one pseudo-row spread over the components.

    Those that are -inf have the weight 0.
    """
    usable = np.isfinite(log_densities).all(axis=1)
    if not usable.all():
        weights = np.zeros(len(usable))
        weights[usable] = em_weights(log_densities[usable], steps)
        return weights
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


def curve_features(parents, spreads, *, is_rich):
    """The functions of a curve's basis, rows × functions; parents are rows × variables."""
    d = parents.shape[1]
    standard = []
    for j, (centre, scale, low, high) in enumerate(spreads):
        bounds = max((low - centre) / scale - 0.25, -6), min((high - centre) / scale + 0.25, 6)
        standard.append(np.clip((parents[:, j] - centre) / scale, *bounds))
    columns = [np.ones(len(parents)), *standard]
    columns += [standard[i] * standard[j] for i in range(d) for j in range(i + 1)]
    greatest = {0: 0, 1: 24, 2: 10, 3: 6.5, 4: 4.5, 5: 4, 6: 3}[d] * (1 if is_rich else 0.6)
    greatest = max(greatest, 2) if d else 0
    penalties = [1e-9, *[1e-5] * d]
    weights = [0.1] * (d * (d + 1) // 2)
    for index in np.ndindex(*[int(greatest) + 1] * d):
        active = sum(k > 0 for k in index)
        size = np.sqrt(sum(k * k for k in index))
        if 0 < active <= (2 if d > 4 else 4) and size * (1 + 0.25 * (active - 1)) <= greatest:
            angles = [np.arccos(z / np.sqrt(z**2 + 1.5**2)) for z in standard]
            factors = [np.sqrt(2) * np.cos(k * a) for k, a in zip(index, angles, strict=True) if k]
            columns.append(np.prod(factors, axis=0))
            weights.append(size**4)
    return np.column_stack(columns), np.array(penalties), np.array(weights)


def _quantile(ordered, share):
    return ordered[max(int(np.ceil(round(share * len(ordered), 9))) - 1, 0)]


def _coarse_statistics(column):
    """Median, width, ends of most rows and of all, as multiples of the unit that has 11 bits of the width."""
    ordered, scale = np.sort(column).tolist(), 0
    for share, width in ((0.1, 2.563), (0.02, 4.107), (0, 6)):
        scale = scale or (_quantile(ordered, 1 - share) - _quantile(ordered, share)) / width
    centre, low, high = (_quantile(ordered, share) for share in (0.5, 0.02, 0.98))
    if low == high:
        low, high = ordered[0], ordered[-1]
    if not scale:
        return centre, scale, low, high, ordered[0], ordered[-1]
    unit = Fraction(2) ** (math.frexp(scale)[1] - 11)
    to = (round, round, math.floor, math.ceil, math.floor, math.ceil)
    values = (centre, scale, low, high, ordered[0], ordered[-1])
    return tuple(float(f(Fraction(value) / unit) * unit) for f, value in zip(to, values, strict=True))


def curve_spread(column):
    """Median, width, and how far a curve of the column reaches."""
    centre, scale, low, high, least, greatest = _coarse_statistics(column)
    ends = max(least, centre + 1.5 * (low - centre)), min(greatest, centre + 1.5 * (high - centre))
    return centre, scale, *ends


def curve_cv_rows(frame, labels, node, parents):
    """Log-density of every row under the curve of all folds but its own."""
    return _curve(frame, frame, labels, node, parents)[: len(frame)]


def curve_logpdf(frame, train, labels, node, parents):
    """Log-density of rows under the curve of all training rows, whose folds are chosen by labels."""
    return _curve(frame, train, labels, node, parents)[len(train) :]


def _curve(frame, train, labels, node, parents):
    """Both, one after the other."""
    names, count = list(parents), len(train)
    x = np.concatenate([train[names].to_numpy(), frame[names].to_numpy()])
    raw = np.concatenate([train[node], frame[node]])
    spreads = [curve_spread(column) for column in x[:count].T]
    features, fixed, weights = curve_features(x, spreads, is_rich=count >= 600)
    near = np.arange(len(x)) < count  # rows that curves are fitted to
    for column, (c, s, low, high) in zip(x.T, spreads, strict=True):
        near &= (column >= max(low - s / 4, c - 6 * s)) & (column <= min(high + s / 4, c + 6 * s))
    centre, scale, *_ = curve_spread(raw[:count])
    y = (raw - centre) / scale
    labels = np.concatenate([labels, np.full(len(frame), -1)])
    folds = [labels == fold for fold in np.unique(labels)]
    grid = (1e-5, 3e-4, 1e-2, 0.3, 10.0, 300.0)

    def predicted(values):
        """Predictions of left-out rows, with the penalty that has the least logarithmic error."""
        best = np.inf, None
        for penalty in grid:
            ridge = np.diag(np.r_[fixed, penalty * weights])
            out, loss = np.empty(len(values)), 0
            for fold in folds:
                f = features[~fold & near]
                out[fold] = features[fold] @ np.linalg.solve(f.T @ f + ridge, f.T @ values[~fold & near])
                errors = (values - out)[fold & near]
                loss += len(errors) * np.log((errors**2).mean()) if len(errors) else 0
            best = min(best, (loss, out), key=lambda pair: pair[0])
        return best[1]

    def others(values):
        """The mean over all training rows that are not in the fold of a row."""
        out = np.empty(len(values))
        for fold in folds:
            out[fold] = values[~fold & near].mean()
        return out

    aimed, cut = np.clip(y, -5, 5), np.inf
    tails = np.sqrt(others(aimed**2))
    for pull in range(3):
        mean = predicted(aimed)
        reference = ((aimed - mean)[near] ** 2).mean()
        residuals = np.clip(y - mean, -cut, cut)
        logs = np.log(residuals**2 / reference + 1e-4)
        level = logs[near].mean()
        spread = np.sqrt(others(residuals**2))
        if pull < 2:
            cut = 4 * np.sqrt(reference) * np.exp(level / 2) / np.exp(-(np.euler_gamma + np.log(2)) / 2)
            aimed = mean + np.clip(y - mean, -cut, cut)
    log_ratio = predicted(logs) - level
    gain = (((logs - level) ** 2)[near].sum() - ((logs - level - log_ratio) ** 2)[near].sum()) / np.pi**2
    if gain > 3:
        ratio = np.exp(np.clip(log_ratio, -6, 6))
        spread = np.sqrt(others(residuals**2 / ratio) * ratio)
    densities = np.stack(
        [
            stats.norm.pdf(y, mean, spread),
            stats.t.pdf(y, 3, mean, 0.6 * spread),
            stats.t.pdf(y, 2, 0, tails),
        ]
    )
    shapes = [((1 - t) * (1 - w), t * (1 - w), w) for t in (0, 0.3, 0.7, 1) for w in (0.001, 0.01, 0.05)]
    logs = [np.log(shape @ densities) for shape in np.array(shapes)]
    return max(logs, key=lambda found: found[:count].sum()) - np.log(scale)


def local_logpdf(frame, train, node, parents, left_out=None):
    """Log-density of rows under the mixture of parents and node that is fitted to the rows not left out.

    Its cells are those of all rows.
    """
    names = [name for name in train if name in {*parents, node}]
    spreads = {name: curve_spread(train[name].to_numpy())[:2] for name in names}
    near, bounds = np.ones(len(train), dtype=bool), {}
    for name in names:
        centre, _, low, high, least, greatest = _coarse_statistics(train[name].to_numpy())
        bounds[name] = (
            max(least, centre + 3 * (low - centre)),
            min(greatest, centre + 3 * (high - centre)),
        )
        near &= train[name].between(*bounds[name]).to_numpy()

    def standardised(rows):
        return np.column_stack([(rows[name] - spreads[name][0]) / spreads[name][1] for name in names])

    z = standardised(train[near])
    count = min(16, len(z) // (12 * len(names)))
    if count < 2:
        return np.full(len(frame), -np.inf)
    cells = local_cells(z, count)
    start = np.eye(count)[cells]
    steps = [_rounding_step(train[name]) / spreads[name][1] for name in names]
    floors = [max(1e-4, step**2 / 12) for step in steps]
    _, used = _em(z, start, start.sum(axis=0) > 0, floors)
    kept = np.ones(len(z), dtype=bool) if left_out is None else ~left_out[near]
    (weights, means, covariances), _ = _em(z[kept], start[kept], used, floors, drop=False)
    asked = frame.copy()
    for name in parents:
        asked[name] = asked[name].clip(*bounds[name])
    asked, given = standardised(asked), [names.index(name) for name in parents]
    joint, marginal = [], []
    for k in np.flatnonzero(weights):
        mean, matrix = means[k], covariances[k]
        joint.append(np.log(weights[k]) + stats.multivariate_normal.logpdf(asked, mean, matrix).reshape(-1))
        part = (
            stats.multivariate_normal.logpdf(asked[:, given], mean[given], matrix[np.ix_(given, given)])
            if given
            else 0
        )
        marginal.append(np.log(weights[k]) + np.reshape(part, -1))
    ratio = special.logsumexp(joint, axis=0) - special.logsumexp(marginal, axis=0)
    return ratio - np.log(spreads[node][1])


def local_cells(z, count):
    """Cut the longest cell in two at its mean, across its longest axis, until there are enough."""
    d = z.shape[1]
    cells = np.zeros(len(z), dtype=int)

    def length_and_axis(rows):
        if len(rows) < 4 * (d + 2):
            return 0, None
        scatter = len(rows) * np.atleast_2d(np.cov(rows.T, bias=True))
        if scatter.diagonal().max() <= 1e-9 * len(rows):
            return 0, None
        axis = scatter[np.argmax(scatter.diagonal())]
        for _ in range(30):
            turned = scatter @ axis
            axis = turned / np.linalg.norm(turned)
        return np.linalg.norm(turned), axis

    for new in range(1, count):
        found = [length_and_axis(z[cells == c]) for c in range(new)]
        old = int(np.argmax([length for length, _ in found]))
        if found[old][0] == 0:
            break
        members = np.flatnonzero(cells == old)
        along = (z[members] - z[members].mean(axis=0)) @ found[old][1]
        cells[members[along > 1e-9 * np.sqrt(found[old][0])]] = new
    return cells


def _rounding_step(column):
    """The difference between most neighbours among the values of a column with many ties; 0 for others."""
    ordered = sorted(column)
    tied = sum(ordered.count(value) > 1 for value in ordered)
    gaps = [b - a for a, b in itertools.pairwise(ordered) if b > a]
    return np.median(gaps) if gaps and tied >= len(ordered) / 2 else 0.0


def _em(z, shares, used, floors, drop=True):
    """Six steps of EM from the shares of rows × components; components with few rows are dropped."""
    d = z.shape[1]
    for _ in range(7):
        counts = np.where(used, shares.sum(axis=0), 0)
        if drop:
            used = used & (counts >= d + 1)
            counts = np.where(used, counts, 0)
        weights = counts / counts.sum()
        means, covariances, densities = {}, {}, np.zeros_like(shares)
        for k in np.flatnonzero(weights):
            means[k] = shares[:, k] @ z / counts[k]
            apart = z - means[k]
            scatter = (shares[:, k, None] * apart).T @ apart + 0.01 * np.eye(d)
            covariances[k] = scatter / counts[k] + np.diag(floors)
            densities[:, k] = weights[k] * stats.multivariate_normal.pdf(z, means[k], covariances[k])
        shares = densities / densities.sum(axis=1, keepdims=True)
    return (weights, means, covariances), used


def best_graph(score, nodes, allowed=lambda node, parents: True, node_type="lg"):
    """Return the best total score of all graphs, by dynamic programming over the set of first nodes.

    `allowed`: tells whether a node may have these parents.
    """
    nodes = tuple(nodes)

    def subsets(members):
        return itertools.chain.from_iterable(
            itertools.combinations(members, size) for size in range(len(members) + 1)
        )

    def best_family(node, before):
        return max(
            (score.local(node, parents, node_type) for parents in subsets(before) if allowed(node, parents)),
            default=-np.inf,
        )

    best = {frozenset(): 0.0}
    for first in map(frozenset, subsets(nodes)):
        if first:
            best[first] = max(
                best[first - {last}] + best_family(last, sorted(first - {last})) for last in first
            )
    return best[frozenset(nodes)]


def grow_and_shrink(score, node, before, *, required=(), max_parents=None):
    """Return what a node takes as parents, of those before it: the best is added, then the worst removed."""
    parents = set(required)
    while max_parents is None or len(parents) < max_parents:
        options = [parents | {other} for other in before if other not in parents]
        best = max(options, key=lambda option: score.local(node, sorted(option)), default=None)
        if best is None or score.local(node, sorted(best)) <= score.local(node, sorted(parents)):
            break
        parents = best
    while parents - set(required):
        options = [parents - {other} for other in sorted(parents - set(required))]
        best = max(options, key=lambda option: score.local(node, sorted(option)))
        if score.local(node, sorted(best)) < score.local(node, sorted(parents)):
            break
        parents = best
    return parents


def equivalent_graphs(nodes, arcs, forbidden=()):
    """Return all acyclic graphs with these adjacencies and colliders and without forbidden arcs."""

    def colliders(some):
        joined = {frozenset(arc) for arc in some}
        return {
            (frozenset((a, b)), child)
            for (a, child), (b, other) in itertools.permutations(some, 2)
            if child == other and frozenset((a, b)) not in joined
        }

    found = []
    for turned in itertools.product((False, True), repeat=len(arcs)):
        graph = [arc[::-1] if turn else arc for arc, turn in zip(arcs, turned, strict=True)]
        allowed = not set(graph) & set(forbidden)
        if allowed and is_acyclic(nodes, graph) and colliders(graph) == colliders(arcs):
            found.append(graph)
    return found


def open_directions(local, nodes, arcs, cost, forbidden=()):
    """Return the arcs that some equivalent graph reverses whose score is nearly the best.

    `local`: the score of a node given a set of parents.
    """
    scores = []
    for graph in equivalent_graphs(nodes, arcs, forbidden):
        total = sum(local(node, frozenset(a for a, b in graph if b == node)) for node in nodes)
        scores.append((total, graph))
    best = max(total for total, _ in scores)
    near = [graph for total, graph in scores if best - total < cost]
    return {(a, b) for a, b in arcs if any((b, a) in graph for graph in near)}
