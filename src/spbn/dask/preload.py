"""What worker processes on this machine begin with."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the process that waits for the results, which then ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
