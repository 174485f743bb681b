"""Files that a command is going to write, checked before it does any work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from spbn.cli.sources import STANDARD, Source
from spbn.errors import ArgumentError, require_plot_packages


def require_targets(*targets: Path | None, inputs: Iterable[Path | Source | None] = ()) -> None:
    """Refuse files that cannot be written, that the command also reads, or that it would write twice."""
    written = [path for path in targets if path is not None]
    read = [Path(path) for path in inputs if path is not None]
    for i, path in enumerate(written):
        if path == STANDARD:
            raise ArgumentError("only tables can be written to standard output (-): give the name of a file.")
        for source in read:
            if is_same(path, source):
                which = "an input" if path == source else f"the same file as the input {source}"
                raise ArgumentError(
                    f"{path} is {which}, and writing would destroy it: choose another name for the output."
                )
        for other in written[:i]:
            if is_same(path, other):
                raise ArgumentError(f"{path} would be written twice: choose two different names.")
        _require_writable(path)


def require_picture(path: Path | None) -> None:
    """Refuse a file that no picture can be drawn into, or all if the packages for that are not there."""
    if path is None:
        return
    from spbn.plots.pictures import require_picture_name

    require_picture_name(path)
    require_plot_packages()


def is_same(first: Path, second: Path) -> bool:
    """Tell whether two names stand for one file, be it through links; the files need not exist."""
    try:
        return first.samefile(second)
    except OSError:
        return os.path.normcase(os.path.realpath(first)) == os.path.normcase(os.path.realpath(second))


def _require_writable(path: Path) -> None:
    from spbn._base.files import is_read_only  # needs numpy, and completion does without

    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ArgumentError(f"the folder {folder} does not exist: create it first.")
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder: give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise ArgumentError(f"{path} is not a regular file: choose another name for the output.")
    if is_read_only(path):
        raise ArgumentError(f"no permission to write to {path}: it is read-only. Choose another name.")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"no permission to write to the folder {folder}: choose another one.")
