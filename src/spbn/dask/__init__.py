"""More than one process or machine, through Dask.

Two ways to spread work:

- *families and replicates* over workers, each of which has the whole table: the argument `client` of
  `spbn.learn`, `spbn.confidence` and `spbn.compare_models`;
- *rows* over workers, for tables that no machine can hold: `spbn.distributed.learn`.
"""

from spbn.dask.client import connected, local_workers
from spbn.dask.learn import learn

__all__ = ["connected", "learn", "local_workers"]
