"""Networks that do not know the rows they are asked about.

A network of kernels has a kernel on every row that it was learned from. If such a row had holes, they were
filled before, and the kernel sits on what they were filled with: asked about the row again, a narrow kernel
would only repeat that. So rows are recognised by their values, and answered by a network without the kernels
that may be their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from spbn._base.arrays import IntArray
from spbn.joint import Joint
from spbn.nodes.base import CPD
from spbn.tables.table import Table

GROUPS = 10  # rows that are left out together are a tenth of those that are recognised
#: A kernel that shares what is known of a row with more others than these says little about the row alone;
#: times the number of fillings, if the network was fitted to several.
MOST_ALIKE = 3

#: For every row, the kernels that may be its own, by node.
OwnKernels = Mapping[str, list[IntArray | None]]


def without_themselves(network: Joint, table: Table) -> Iterator[tuple[Joint, IntArray]]:
    """Yield networks, and the rows to ask them about: each network lacks the kernels of its rows.

    Parameters
    ----------
    table
        Rows in the units of the data; NaN is unknown.
    """
    kernels = _kernels_on(network, network.transformed(table))
    recognised = _recognised(kernels, table.rows)
    others = np.setdiff1d(np.arange(table.rows), recognised)
    copies = _copies(network)
    if len(others):
        yield network, others
    for number in range(min(GROUPS, len(recognised))):
        rows = recognised[number::GROUPS]
        cpds = dict(network.cpds) | {
            node: _without(network.cpds[node], [found[row] for row in rows], MOST_ALIKE * copies)
            for node, found in kernels.items()
        }
        yield network.with_cpds(cpds), rows


def _kernels_on(network: Joint, table: Table) -> OwnKernels:
    return {
        node: cpd.kernels_on(table.select((*cpd.parents, node)).columns) for node, cpd in network.cpds.items()
    }


def _recognised(kernels: OwnKernels, rows: int) -> IntArray:
    """Return the rows that agree with a kernel of every node of which they have a value."""
    known = np.zeros(rows, dtype=bool)
    strange = np.zeros(rows, dtype=bool)
    for found in kernels.values():
        for row, mine in enumerate(found):
            known[row] |= mine is not None
            strange[row] |= mine is not None and not len(mine)
    return np.flatnonzero(known & ~strange)


def _copies(network: Joint) -> int:
    """Return how many kernels of a node a row has at most: one for every filling of its table."""
    most = max((cpd.kernel_rows for cpd in network.cpds.values()), default=0)
    return max(1, most // (network.record.rows or max(most, 1)))


def _without(cpd: CPD, kernels: list[IntArray | None], most: int) -> CPD:
    """Leave kernels out that may be those of the rows themselves, unless they are more than these."""
    own = [mine for mine in kernels if mine is not None and len(mine) <= most]
    return cpd.without(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *own])))
