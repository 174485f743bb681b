import os
import stat

import pytest

from spbn._base.files import replacing

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_a_new_file_has_the_permissions_that_open_would_give_it(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "ours")
        (tmp_path / "theirs").write_text("")
    finally:
        os.umask(before)
    assert mode(tmp_path / "ours") == 0o666 & ~mask == mode(tmp_path / "theirs")


def test_the_umask_is_left_alone(tmp_path, monkeypatch):
    """It belongs to the process: another thread that makes a file meanwhile would get the wrong one."""

    def touched(mask):
        raise AssertionError(f"umask({mask:o})")

    monkeypatch.setattr(os, "umask", touched)
    write(tmp_path / "file")


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, permissions):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(permissions)
    with replacing(target) as temporary:
        assert mode(temporary) & ~permissions == 0  # nobody else can read what is being written
        temporary.write_text("new")
    assert (target.read_text(), mode(target)) == ("new", permissions)


def test_a_read_only_file_is_not_replaced(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        write(target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_what_is_not_a_regular_file_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_long_name(tmp_path):
    target = tmp_path / ("n" * 250 + ".csv")
    write(target)
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there(tmp_path, error):
    target = tmp_path / "file"
    target.write_text("old")

    def write_half():
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
