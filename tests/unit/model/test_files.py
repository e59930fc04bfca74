"""Writing files: regular ones whole or not at all, all else written through.

Nothing here touches what is under the real ``/dev`` but by opening it: devices are made anew in a
temporary directory, or reached through a link from there.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from oasis.model.files import check_writable, is_standard_output, remove_unfinished, write_bytes

NEW, OLD = b"new content\n", b"old\n"


def in_scratch(path: Path) -> Path:
    """`path`, refused where a mistake in the code under test could replace a real device."""
    assert not str(path.parent.resolve()).startswith(("/dev", "/proc", "/sys"))
    return path


def device(path: Path, minor: int) -> Path:
    """Make a copy of /dev/null (minor 3) or /dev/full (minor 7)."""
    try:
        os.mknod(in_scratch(path), 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"cannot make a device here: {error.strerror}")
    return path


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of a user who is not root, while the test runs as that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() != 0:
            yield folder
            return
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(0)


# --- regular files -----------------------------------------------------------------------------


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a", NEW)
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == NEW
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(OLD)
    path.chmod(mode)
    with path.open("rb") as reader:
        write_bytes(path, NEW)
        assert reader.read() == OLD
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["a"]


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_bytes(path, NEW)
    assert path.read_bytes() == NEW


# --- links -------------------------------------------------------------------------------------


def test_a_link_stays_a_link_and_its_file_is_replaced_where_it_is(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "a").write_bytes(OLD)
    link = tmp_path / "link"
    link.symlink_to(Path("home", "a"))
    inode = (home / "a").stat().st_ino
    write_bytes(link, NEW)
    assert link.is_symlink()
    assert (home / "a").read_bytes() == NEW
    assert (home / "a").stat().st_ino != inode
    assert sorted(os.listdir(tmp_path)) == ["home", "link"]
    assert os.listdir(home) == ["a"]


def test_a_dangling_link_creates_its_target(tmp_path):
    (tmp_path / "link").symlink_to("second")
    (tmp_path / "second").symlink_to("target")
    check_writable(tmp_path / "link")
    assert not (tmp_path / "target").exists()
    write_bytes(tmp_path / "link", NEW)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert (tmp_path / "target").read_bytes() == NEW


@pytest.mark.parametrize("call", [check_writable, lambda path: write_bytes(path, NEW)])
def test_a_circle_of_links_is_refused(tmp_path, call):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        call(tmp_path / "a")
    assert caught.value.filename == str(tmp_path / "a")


# --- what is no regular file -------------------------------------------------------------------


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_is_written_through(tmp_path, through_a_link):
    fifo = in_scratch(tmp_path / "fifo")
    os.mkfifo(fifo)
    path = fifo
    if through_a_link:
        path = tmp_path / "link"
        path.symlink_to("fifo")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(path)
        write_bytes(path, NEW)
        assert os.read(reader, 100) == NEW
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert path.is_symlink() == through_a_link


def test_a_device_stays_a_device(tmp_path):
    null = device(tmp_path / "null", 3)
    check_writable(null)
    write_bytes(null, NEW)
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert os.listdir(tmp_path) == ["null"]


def test_a_full_device_is_said_under_the_name_that_was_asked_for(tmp_path):
    device(tmp_path / "full", 7)
    (tmp_path / "link").symlink_to("full")
    check_writable(tmp_path / "link")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_bytes(tmp_path / "link", NEW)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "link")
    assert stat.S_ISCHR((tmp_path / "full").lstat().st_mode)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        with pytest.raises(OSError, match="Is a socket"):
            check_writable("socket")
        with pytest.raises(OSError, match="Is a socket"):
            write_bytes("socket", NEW)
    assert os.listdir(tmp_path) == ["socket"]


def test_a_link_to_an_open_file_that_has_lost_its_name_writes_to_that_file(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    with (tmp_path / "gone").open("w+b") as stream:
        (tmp_path / "gone").unlink()
        link = in_scratch(tmp_path / "link")
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        write_bytes(link, NEW)
        assert os.pread(stream.fileno(), 100, 0) == NEW
    assert os.listdir(tmp_path) == ["link"]


def test_the_file_behind_standard_output_is_not_replaced(tmp_path, capfd):
    path = tmp_path / "out"
    kept = os.dup(1)
    try:
        with path.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
        os.write(1, b"before\n")
        assert is_standard_output(path)
        write_bytes(path, NEW)
        os.write(1, b"after\n")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert path.read_bytes() == b"before\n" + NEW + b"after\n"
    assert not is_standard_output(path)
    assert not is_standard_output(tmp_path / "none")
    assert capfd.readouterr() == ("", "")


# --- refused before anything is written --------------------------------------------------------


def refused(path: Path, kind: type[OSError], message: str | None) -> None:
    """Both the check and the writing say so, and name `path`."""
    for call in (check_writable, lambda name: write_bytes(name, NEW)):
        with pytest.raises(kind, match=message) as caught:
            call(path)
        assert caught.value.filename == str(path)


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "link").symlink_to(Path("none", "a"))
    refused(tmp_path / "none" / "a", FileNotFoundError, "No such directory")
    refused(tmp_path / "link", FileNotFoundError, "none: No such directory")
    refused(tmp_path, IsADirectoryError, "Is a directory")
    refused(tmp_path / "file" / "a", NotADirectoryError, "Not a directory")
    refused(tmp_path / ("x" * 256), OSError, "File name too long")
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]
    assert (tmp_path / "file").read_bytes() == OLD


def test_without_permission_it_is_refused(unprivileged):
    path, folder = unprivileged / "read-only", unprivileged / "closed"
    path.write_bytes(OLD)
    path.chmod(0o444)
    folder.mkdir()
    (folder / "old").write_bytes(OLD)
    os.mkfifo(unprivileged / "fifo", 0o444)
    folder.chmod(0o555)
    refused(path, PermissionError, "Permission denied")
    refused(unprivileged / "fifo", PermissionError, "Permission denied")
    refused(folder / "new", PermissionError, "Permission denied")
    refused(folder / "old", PermissionError, "Permission denied")
    assert path.read_bytes() == OLD
    assert os.listdir(folder) == ["old"]
    folder.chmod(0o755)


# --- failures and interruptions ----------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EDQUOT, "Quota", "tmp.part")])
@pytest.mark.parametrize("name", ["chmod", "replace"])
def test_nothing_is_left_when_writing_fails_or_is_interrupted(tmp_path, monkeypatch, error, name):
    path = tmp_path / "a"
    path.write_bytes(OLD)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(type(error)) as caught:
        write_bytes(path, NEW)
    if isinstance(caught.value, OSError):
        assert (caught.value.errno, caught.value.filename) == (errno.EDQUOT, str(path))
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_bytes() == OLD


def test_an_exit_at_once_can_remove_what_is_unfinished(tmp_path, monkeypatch):
    seen: list[list[str]] = []

    def leave(*_: object) -> None:
        seen.append(os.listdir(tmp_path))
        remove_unfinished()
        seen.append(os.listdir(tmp_path))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", leave)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "a", NEW)
    assert [len(names) for names in seen] == [1, 0]
