"""The journal: one line per accepted call, on the disk before the call is answered."""

from __future__ import annotations

import os
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from oasis.model.errors import OasisError, describe
from oasis.model.files import decoded, encoded, is_torn, naming, write_bytes

if sys.platform != "win32":
    import fcntl


class JournalLock:
    """The right to write a journal, until `release` or the end of the process, however it ends.

    A second lock of the same process takes the right over from the first: a process may take up
    again what it lost track of, and only one of its schedulers goes on.

    It is held on a file of its own, `path` with ``.lock`` added, because a checkpoint replaces the
    journal. That file stays; it says nothing by being there. Systems other than POSIX have no such
    locks: there nothing keeps a second process away. A process that is forked off does not hold it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = f"{os.fspath(path)}.lock"
        former = _HOLDERS.get(_key(name))
        self._former = None if former is None else weakref.ref(former)
        if former is not None and (taken := former._closing.detach()) is not None:
            descriptor: int = taken[2][0]
        else:
            with naming(name):
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        self._hold(descriptor)
        if sys.platform != "win32":
            try:
                # The system frees such a lock when its process dies: a file
                # that says "locked" would outlive it.
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                self.release()
                where = f"journal: {os.fspath(path)}"
                raise OasisError(f"{where} is open in another process; close it first") from None
        _HOLDERS[_key(name)] = self

    def _hold(self, descriptor: int) -> None:
        # Closing the file frees the lock, also when the scheduler is collected or the program ends.
        self._closing: weakref.finalize[[int, int], JournalLock] = weakref.finalize(
            self, _close, descriptor, os.getpid()
        )

    @property
    def is_held(self) -> bool:
        """Whether the lock is held: neither released nor taken over."""
        return self._closing.alive

    @property
    def is_inherited(self) -> bool:
        """Whether the process that holds it is the one that this was forked off from."""
        held = self._closing.peek()
        return held is not None and held[2][1] != os.getpid()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._closing()

    def give_back(self) -> None:
        """Return the lock to its former holder in this process; without one, release it."""
        former = None if self._former is None else self._former()
        if former is None:
            self.release()
        elif (taken := self._closing.detach()) is not None:
            former._hold(taken[2][0])
            _HOLDERS.update({key: former for key, lock in _HOLDERS.items() if lock is self})


def _close(descriptor: int, process: int) -> None:
    """Close the file of a lock; but not in a process forked off, which may have its own by then."""
    if os.getpid() == process:
        os.close(descriptor)


# The locks of this process by file. POSIX gives up a lock of a process as soon as it closes any of
# its descriptors of the file, so a process has one descriptor of it at most.
_HOLDERS: weakref.WeakValueDictionary[tuple[int, int, int] | None, JournalLock] = (
    weakref.WeakValueDictionary()
)


def _key(name: str) -> tuple[int, int, int] | None:
    """Identity of a lock; None without a file. A fork inherits no lock."""
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


KIND = "oasis-journal 1"


@dataclass(frozen=True, slots=True)
class Contents:
    """Content of a journal."""

    calls: int  # that had been made when it began
    entries: tuple[dict[str, Any], ...]  # one for each call, in order
    size: int  # bytes up to the end of the last whole line
    note: str | None  # what is said of a torn last line, which is left out


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that entries are added to; the file must exist."""

    path: Path

    @classmethod
    def begin(cls, path: str | os.PathLike[str], calls: int) -> Self:
        """Create an empty journal that follows a snapshot after this number of calls."""
        # Written beside and renamed, so that there is the old journal or the new one, never a half.
        write_bytes(path, encoded({"kind": KIND, "calls": calls}), durable=True)
        return cls(Path(path))

    @classmethod
    def resume(cls, path: str | os.PathLike[str], contents: Contents) -> Self:
        """Continue after the valid `contents` of the file; a torn entry behind them is cut off."""
        with naming(path):
            # A new line behind half a line would make both unreadable.
            os.truncate(path, contents.size)
        return cls(Path(path))

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry; it is on the disk when this returns."""
        line = encoded(entry)
        with naming(self.path):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)  # it is never created here
            try:
                # The system may write less than it was given.
                while line:
                    line = line[os.write(descriptor, line) :]
                # Only this makes the line outlive the machine's own crash.
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def read_journal(path: str | os.PathLike[str]) -> Contents:
    """Read a journal; a torn last line is left out, and any other damage is an error."""
    with open(path, "rb") as stream:
        lines = stream.readlines() or [b""]
    entries: list[dict[str, Any]] = []
    size, note = 0, None
    for number, line in enumerate(lines, start=1):
        where = f"{os.fspath(path)}: line {number}"
        # A crash leaves the beginning of a line whose call was never answered, and only at the
        # end. All other damage has another cause, and may have hit a call that was.
        if number > 1 and is_torn(line):
            note = f"{where} is torn and was dropped"
            break
        entry = decoded(line)
        if entry is None:
            raise OasisError(f"{where}: expected a line with its checksum")
        if number == 1 and (entry.get("kind") != KIND or not isinstance(entry.get("calls"), int)):
            raise OasisError(f"{os.fspath(path)}: expected {KIND!r} in the first line")
        if number > 1 and entry.get("number") != (due := entries[0]["calls"] + number - 1):
            raise OasisError(f"{where}: expected call {due}, got {describe(entry.get('number'))}")
        entries.append(entry)
        size += len(line)
    return Contents(entries[0]["calls"], tuple(entries[1:]), size, note)
