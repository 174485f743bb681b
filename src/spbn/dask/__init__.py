"""More than one process or machine, through Dask.

Two ways to spread work:

- *families and replicates* over workers, each of which has the whole table (`families`);
- *rows* over workers, for tables that no machine can hold (`rowstore`).
"""
