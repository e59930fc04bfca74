"""The journal: one line per accepted call, on the disk before the call is answered."""

from __future__ import annotations

import os
import sys
import weakref
from dataclasses import dataclass
from typing import Any

from oasis.model.errors import OasisError, describe
from oasis.model.files import decoded, encoded, is_torn, naming, write_bytes

if sys.platform != "win32":
    import fcntl


class JournalLock:
    """A lock on a journal that only one process may write; the end of the process frees it."""

    # Schedulers of one process share the lock (`of`), and only its `holder` goes on. It is held on
    # a file of its own, because a checkpoint replaces the journal; that file stays, and says
    # nothing by being there. Only POSIX has such locks. A process that is forked off has none.
    holder: int | None = None  # `id` of the scheduler that opened the journal last

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = f"{os.fspath(path)}.lock"
        with naming(name):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        # Closing the file frees the lock, also when the scheduler is collected or the program ends.
        self._closing = weakref.finalize(self, os.close, descriptor)
        if sys.platform != "win32":
            try:
                # The system frees such a lock when its process dies: a file
                # that says "locked" would outlive it.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                self.release()
                where = f"journal: {os.fspath(path)}"
                raise OasisError(f"{where} is open in another process; close it first") from None
        _LOCKS[os.path.realpath(name)] = self

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> JournalLock:
        """Return the lock of a journal: the one that this process holds already, or a new one."""
        lock = _LOCKS.get(os.path.realpath(f"{os.fspath(path)}.lock"))
        return cls(path) if lock is None or not lock.is_held else lock

    @property
    def is_held(self) -> bool:
        """Whether this process holds the lock; False after `release` and in a forked process."""
        return self._closing.alive

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._closing()


_LOCKS: weakref.WeakValueDictionary[str, JournalLock] = weakref.WeakValueDictionary()


def _release_all() -> None:
    """In a forked process, close inherited lock files: they would prolong the parent's locks."""
    for lock in list(_LOCKS.values()):
        lock.release()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_release_all)


KIND = "oasis-journal 1"


@dataclass(frozen=True, slots=True)
class Contents:
    """What `read_journal` found in a journal: its calls, its size and a damaged end."""

    calls: int  # that had been made when it began
    entries: tuple[dict[str, Any], ...]  # one for each call, in order
    size: int  # bytes up to the end of the last whole line
    note: str | None  # what is said of a torn last line, which is left out


def begin_journal(path: str | os.PathLike[str], calls: int) -> None:
    """Create an empty journal beside a snapshot that was taken after this number of `calls`."""
    # Written beside and renamed, so that there is the old journal or the new one, never a half.
    write_bytes(path, encoded({"kind": KIND, "calls": calls}), durable=True)


def add_to_journal(path: str | os.PathLike[str], entry: dict[str, Any]) -> None:
    """Append an entry to an existing journal; it is on the disk when this returns."""
    line = encoded(entry)
    with naming(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)  # it is never created here
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
