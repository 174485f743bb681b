"""The "what if" explorer: rows drawn from a network, and a script that conditions on them.

The values of a continuous variable are counted in cells of the same, round width. An interval that begins
and ends at edges of cells therefore holds exactly the rows whose values are in it: cutting costs accuracy
only where a mean is taken, by a fraction of a cell. Values beyond the edges go into a few cells in the
tails, each of which knows its mean, so that a few rows far away do not squeeze all others into one bar.

The page holds the rows as bytes, one per value (two for a variable of many levels), and the script counts
those that satisfy what is asked. Nothing is fetched, and the network itself is not needed.
"""

from __future__ import annotations

import base64
import json
import math
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed
from spbn._base.checks import is_whole, refuse
from spbn._base.lazy import pd
from spbn._deprecated import renamed
from spbn.graphs.dag import Arc
from spbn.network import Network
from spbn.report import html as h
from spbn.tables.lags import lag_name
from spbn.tables.table import Variable
from spbn.timeseries.network import DynamicNetwork

MOST_SAMPLES, FEWEST_SAMPLES = 20_000, 1_000  # by default
BUDGET = 480_000  # values by default: a byte each
KERNELS = 4e8  # by default, kernels to evaluate: samples × training rows × nodes that keep them
LARGEST = 1_000_000  # samples that anyone may ask for
FEWEST_BARS = 18  # the next round width gives up to 45, and rounding outwards two more
CELLS = 5  # per bar
TAIL = 0.005  # share of the rows on each side that may be beyond the axis
FAR = 8.0  # interquartile ranges from the quartiles, where the axis ends at the latest
TAIL_CELLS = 10  # on each side: with at most 235 cells between, one byte is enough
BYTE = 256  # values that one byte tells apart
MOST_ARCS = 6  # that are named
TITLE = "What if?"


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of a continuous variable: edge i is ``(first + i) * digit * 10**power``."""

    first: int
    cells: int  # between the first edge and the last
    digit: int
    power: int
    #: Means of the cells beyond the edges, from left to right; empty where no row is.
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def edge(self, place: int) -> float:
        """Return an edge, as the number nearest to what is written in decimals."""
        number = (self.first + place) * self.digit
        return float(number * 10**self.power) if self.power >= 0 else number / 10**-self.power


@dataclass(frozen=True, eq=False)
class Sampled:
    """A variable: which cell, or which level, every row has.

    Cells of the lower tail are counted first, then those between the edges, then those of the upper tail.
    """

    variable: Variable
    axis: Axis | None  # None if it is discrete
    codes: npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class JointSample:
    """Rows drawn from a network, variable by variable.

    As many of the rows before as there are lags are further variables: ``x[t-1]`` is x in the row before.
    """

    rows: int
    variables: tuple[Sampled, ...]
    lags: int = 0
    #: Arcs of the network whose direction is open.
    open_directions: tuple[Arc, ...] = ()


def joint_sample(network: Network, n: int | None = None, *, seed: Seed = 0) -> JointSample:
    """Draw rows from a network, with those before them if it is dynamic, and cut them into cells."""
    if n is None:
        n = default_samples(network)
    elif not is_whole(n, 1, LARGEST):
        refuse("n", f"a whole number between 1 and {LARGEST:,}", n)
    n = int(n)
    if isinstance(network, DynamicNetwork):
        frame, lags, variables = rows_in_time(network, n, seed), network.lags, network.variables
    else:
        (part,) = network.parts
        frame, lags, variables = part.sample_with_class(n, seed=seed), 0, part.all_variables
    found = []
    for lag in range(lags + 1):
        for variable in variables:
            name = lag_name(variable.name, lag)
            column = frame[name]
            if variable.is_discrete:
                axis, codes = None, column.cat.codes.to_numpy().astype(np.uint16)
            else:
                # Numbers that cannot be added are as far away as anyone can see.
                axis, codes = cut(np.clip(column.to_numpy(dtype=np.float64), -1e300, 1e300))
            found.append(Sampled(Variable(name, variable.levels), axis, codes))
    return JointSample(n, tuple(found), lags, tuple(network.row_network.open_directions()))


def rows_in_time(network: DynamicNetwork, rows: int, seed: Seed) -> pd.DataFrame:
    """Draw rows together with those before them, from the joint density of as many rows as lags and one.

    The static network is that of rows wherever a series may begin, so the rows before are as they are at any
    time.
    """
    width = network.lags + 1
    drawn = network.sample(width, n=rows, seed=seed)
    columns = {
        lag_name(v.name, lag): drawn[v.name].iloc[network.lags - lag :: width].array
        for lag in range(width)
        for v in network.variables
    }
    return pd.DataFrame(columns)


def default_samples(network: Network) -> int:
    """Return how many rows to draw: what a small page holds, and what does not take long to draw."""
    cpds = [cpd for part in network.parts for cpd in part.cpds.values()]
    kept = [cpd.kept_rows.rows for cpd in cpds if cpd.parents and cpd.kept_rows is not None]
    most = min(MOST_SAMPLES, BUDGET // len(cpds), KERNELS / max(1, sum(kept)))
    rounded = round(most, 1 - math.ceil(math.log10(most)))  # to two digits
    return max(FEWEST_SAMPLES, int(rounded))


def cut(values: FloatArray) -> tuple[Axis, npt.NDArray[np.uint16]]:
    """Choose the cells of a continuous variable, and return them with the cell of every value."""
    low, high = _range(values)
    digit, power = h.round_width(high - low, FEWEST_BARS)
    width = digit * 10.0**power
    begin, end = math.floor(low / width), max(math.floor(low / width) + 1, math.ceil(high / width))
    # A cell is a fifth of a bar: two tenths of ten to some power, which is round as well.
    bare = Axis(begin * CELLS, (end - begin) * CELLS, 2 * digit, power - 1)
    edges = np.array([bare.edge(place) for place in range(bare.cells + 1)])
    cells = np.searchsorted(edges, values, side="right") - 1
    below, above = values < edges[0], values >= edges[-1]
    low_cells, low_means = _tail(values, below)
    high_cells, high_means = _tail(values, above)
    codes = len(low_means) + cells
    codes[below] = low_cells
    codes[above] = len(low_means) + bare.cells + high_cells
    return replace(bare, low=low_means, high=high_means), codes.astype(np.uint16)


def _range(values: FloatArray) -> tuple[float, float]:
    """Return what the axis has to show: all but the tails, and nothing very far away."""
    low, first, third, high = np.quantile(values, [TAIL, 0.25, 0.75, 1.0 - TAIL]).tolist()
    spread = third - first
    if spread > 0.0:
        low, high = max(low, first - FAR * spread), min(high, third + FAR * spread)
    # Where numbers are large and nearly the same, double precision has no more edges.
    least = max(1e-300, 1e-9 * max(abs(low), abs(high)))
    if high - low < least:
        low, high = low - least, high + least
    return low, high


def _tail(values: FloatArray, chosen: BoolArray) -> tuple[IntArray, tuple[float, ...]]:
    """Share the values of a tail out among a few cells, and return these with their means."""
    tail = values[chosen]
    cells = np.empty(len(tail), dtype=np.int64)
    means = []
    order = np.argsort(tail, kind="stable")
    for place, part in enumerate(np.array_split(order, min(TAIL_CELLS, len(tail))) if len(tail) else []):
        cells[part] = place
        means.append(float(tail[part].mean()))
    return cells, tuple(means)


def what_if_section(sample: JointSample) -> h.Html:
    """Write the explorer: its controls, and the samples for the script that draws the charts."""
    hint = (
        "Drag across a chart to select an interval, or click levels. The other charts then show what is "
        f"likely given your selection, counted among {sample.rows:,} rows drawn from the network; grey "
        "shows what was expected before. With the keyboard: Tab to an end of a chart, then use the arrow "
        "keys. This is about what is observed, not about what would happen if somebody set a value."
    )
    if sample.open_directions:
        arcs = [f"{source} → {target}" for source, target in sample.open_directions]
        more = f" and {len(arcs) - MOST_ARCS} more" if len(arcs) > MOST_ARCS else ""
        hint += (
            f" What setting a variable does also depends on directions that are open: "
            f"{', '.join(arcs[:MOST_ARCS])}{more}."
        )
    if sample.lags:
        further = ", x[t-2] two rows before, and so on" if sample.lags > 1 else ""
        hint += f" Of a variable x, x[t-1] is the value in the row before{further}."
    tools = [
        h.search_box("Find a variable"),
        h.button("changed", "Most changed first"),
        h.button("sorted", "Table order"),
        h.tag("a", "Link to this question", class_="link", href="#what-if"),
        h.tag("span.hidden.small"),
    ]
    state = [h.tag("span.remaining"), h.tag("span.meter", h.tag("i")), h.button("reset", "Reset")]
    asked = (h.tag("summary", "Ask the network itself"), h.tag("code.code.equation"))
    explorer = h.tag(
        "div",
        h.tag("svg", hidden=True),  # tells the script the namespace of pictures
        h.tag("p.scriptless.hint", "This part of the page needs JavaScript."),
        h.tag("p.question"),
        h.tag("div.state", *state),
        h.tag("p.few.warning", hidden=True),
        h.tag("details.itself", *asked, hidden=True),
        h.tag("p.spoken", role="status"),
        h.tag("div.tools", *tools),
        h.tag("ul.variables"),
        id="explorer",
        class_="whatif",
    )
    return h.join(h.heading("what-if", TITLE, hint), explorer, _data(sample))


def _data(sample: JointSample) -> h.Html:
    """Write the samples as text that a browser does not show."""
    variables: list[dict[str, Any]] = []
    packed = []
    for sampled in sample.variables:
        levels = sampled.variable.levels
        size = 2 if sampled.axis is None and len(levels) > BYTE else 1
        kind = {"levels": levels, "bytes": size} if sampled.axis is None else {"axis": asdict(sampled.axis)}
        variables.append({"name": sampled.variable.name, **kind})
        packed.append(sampled.codes.astype(f"<u{size}").tobytes())
    samples = base64.b64encode(b"".join(packed)).decode()
    content = {"rows": sample.rows, "lags": sample.lags, "variables": variables, "samples": samples}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return h.tag("div", text, id="explorer-data", hidden=True)


@renamed(samples="n")
def write_explorer(
    network: Network,
    path: str | os.PathLike[str],
    *,
    n: int | None = None,
    seed: Seed = 0,
    title: str | None = None,
) -> None:
    """Write a page that answers "what if" questions in a browser; it appears whole or not at all.

    The page holds rows drawn from the network. Brushing an interval of a variable, or clicking a level, keeps
    the rows that satisfy it, and the charts of all other variables show how these are distributed. It needs
    no internet connection, and contains no row of the training data.

    Parameters
    ----------
    network
        A network; one over time is shown by rows together with those before them.
    n
        How many rows to draw. By default as many as a small page holds, and at most 20,000.
    seed
        The same seed gives the same page.
    title
        The heading; by default it names the kind of network.

    Examples
    --------
    >>> import spbn
    >>> network = spbn.learn(spbn.datasets.synthetic(300, seed=0), folds=3)
    >>> spbn.report.write_explorer(network, "explorer.html", title="Synthetic")
    """
    h.write_page(render_explorer(network, n=n, seed=seed, title=title), path)


@renamed(samples="n")
def render_explorer(
    network: Network,
    *,
    n: int | None = None,
    seed: Seed = 0,
    title: str | None = None,
) -> str:
    """Return the page that `write_explorer` writes as text.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> page = spbn.report.explorer.render_explorer(network, n=500)
    >>> page[:15]
    '<!doctype html>'
    """
    sample = joint_sample(network, n, seed=seed)
    size = h.plural(len(network.nodes), "variable")
    if network.is_dynamic:
        before = "row" if network.lags == 1 else f"{network.lags} rows"
        kind, size = "Dynamic network", f"{size} in a row and the {before} before it"
    else:
        static = network.row_network
        kind, size = h.model_name(static), f"{size} and {h.plural(len(static.structure.arcs), 'arc')}"
    name = kind if title is None else title
    lead = f"{kind} of {size}, shown by {sample.rows:,} rows drawn from it."
    head = h.tag("header", h.tag("h1", name), h.tag("p.lead", lead))
    return h.assemble_page(name, head, {"what-if": (TITLE, what_if_section(sample))})
