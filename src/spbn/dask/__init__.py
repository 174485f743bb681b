"""More than one process or machine, through Dask: see `spbn.learning.distributed`."""
