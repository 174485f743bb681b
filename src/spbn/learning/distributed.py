"""More than one process or machine, through Dask: what `spbn.distributed` names.

Two ways to spread work:

- *families and replicates* over workers, each of which has the whole table: the argument `client` of
  `spbn.learn`, `spbn.confidence` and `spbn.compare_models`;
- *rows* over workers, for tables that no machine can hold: `spbn.learn` of a Dask DataFrame or of Parquet
  files, and `learn` below, which can choose columns and has at most two parents per node by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spbn.dask.client import connected, local_workers
from spbn.dask.sources import require_remote
from spbn.errors import ArgumentError, argument, setting
from spbn.learning.learn import Extras, learn_network, most_parents
from spbn.learning.settings import LearnSettings, shows_options

if TYPE_CHECKING:
    from spbn.network import BayesianNetwork
    from spbn.tables.reader import RowsLike

__all__ = ["connected", "learn", "local_workers"]


@shows_options
def learn(
    data: RowsLike, *, columns: Sequence[str] | None = None, max_parents: int | None = 2, **options: object
) -> BayesianNetwork:
    """Learn a network from rows that workers hold: more of them than fit into the memory of any machine.

    This is `spbn.learn` of the same data, whose arguments it takes; only the two below are different.

    The search is that of a table in memory, and its scores are the same numbers, from sums over rows that the
    workers add up. Rows stay where they are, except for those that lie far from all others, a few in a
    million, and for the columns of families whose node type needs all rows. The network keeps no rows either:
    its CKDE and blend nodes are compact.

    Parameters
    ----------
    data
        A Dask DataFrame, which may be persisted; or the path of a Parquet file, a pattern such as
        ``"data/*.parquet"``, a folder of Parquet files, or a list of these, which every worker must be able
        to read.
    columns
        The columns to use; all by default.
    max_parents
        At most 2 with kernels: a grid of four dimensions does not fit into memory.
    options
        As for `spbn.learn`. Without `client`, this process does the work, a part of the rows at a time. Which
        row is in which fold depends on the part of the rows that it is in (a row group of a file, a
        partition), on its place there and on the seed. Blends with two parents are scored with all kernels,
        but fitted without narrow ones of which no table fits into memory; a warning says how much weight
        these had. Margins take four more passes over the rows.

    Returns
    -------
    An ordinary network, fitted to all rows.

    Raises
    ------
    LearningInterrupted
        A `KeyboardInterrupt` from which the best network so far can be had.

    Examples
    --------
    >>> with spbn.distributed.local_workers(2, memory="2GB") as client:  # doctest: +SKIP
    ...     network = spbn.distributed.learn("data/*.parquet", client=client)
    """
    require_remote(data)
    settings = LearnSettings.of("learn", {**options, "max_parents": max_parents})
    most = most_parents(settings)
    if max_parents is None and most is not None:
        raise ArgumentError(
            f"{argument('max_parents')} must be at most {most} where rows are over workers and nodes may be "
            f"kernels: {setting('max_parents', most)}. Got None instead."
        )
    return learn_network(data, settings, Extras(columns=columns))
