"""One process at a time writes a journal."""

from __future__ import annotations

import os
import sys
import weakref

from oasis.model.errors import OasisError
from oasis.model.files import naming

if sys.platform != "win32":
    import fcntl


class JournalLock:
    """The right of a process to write a journal, until `release` or its end, however it ends.

    Two schedulers of one process are not kept apart: a process may take up again what it lost
    track of.

    It is held on a file of its own, `path` with ``.lock`` added, because a checkpoint replaces the
    journal. That file stays; it says nothing by being there. Systems other than POSIX have no such
    locks: there nothing keeps a second process away.

    Parameters
    ----------
    path : str or path-like
        The journal; it need not exist.

    Raises
    ------
    OasisError
        If another process holds it.
    OSError
        If the file cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = f"{os.fspath(path)}.lock"
        with naming(name):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        self._closing = weakref.finalize(self, os.close, descriptor)
        if sys.platform != "win32":
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                self.release()
                where = f"journal: {os.fspath(path)}"
                raise OasisError(f"{where} is open in another process; close it first") from None

    def release(self) -> None:
        """Let others have it; a second time does nothing."""
        self._closing()
