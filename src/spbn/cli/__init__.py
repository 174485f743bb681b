"""The command ``spbn``: what it takes, reads, prints and writes."""

import sys
from importlib.util import find_spec

from spbn._base import interrupts


def run() -> None:
    """Run the command line, or say how to install what it needs."""
    if find_spec("click") is None:
        sys.stderr.write('spbn: the command line needs click: install it with pip install "spbn[cli]".\n')
        raise SystemExit(2)
    from spbn.cli.main import main

    interrupts.raise_errors()
    main()
