"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NEW_FILE = 0o666  # what `open` requests; the umask takes bits away


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file to write to, in the target's folder; at the end it replaces the target.

    An error or an interrupt leaves everything as it was before. A new file gets the permissions that `open`
    would give it, and one that is replaced keeps its own. A link is followed: the file that it points to is
    replaced. Read-only files, and anything that is not a regular file, are not replaced.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    _require_replaceable(target, mode)
    temporary = _create(target, NEW_FILE if mode is None else stat.S_IMODE(mode))
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def is_read_only(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file exists that must not be changed: even root is asked to respect that."""
    mode = _mode(Path(path))
    return mode is not None and (not mode & 0o222 or not os.access(path, os.W_OK))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _require_replaceable(target: Path, mode: int | None) -> None:
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):  # a device would be replaced by a file
        raise OSError(errno.EINVAL, "is not a regular file", str(target))
    if is_read_only(target):
        raise PermissionError(errno.EACCES, "is read-only", str(target))


def _create(target: Path, mode: int) -> Path:
    """Create an empty file of our own; the kernel applies the umask, whatever other threads do."""
    while True:
        path = target.parent / f".{target.stem[:32]}.{secrets.token_hex(6)}.part{target.suffix}"
        with suppress(FileExistsError):
            # Nobody who may not read the target may read this.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode | stat.S_IWUSR))
            return path
