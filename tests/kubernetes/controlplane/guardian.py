"""Ends what a test started, whatever happened to it: a process of its own, ``guardian.py DIR``.

Its owner writes a line "PID START" to its standard input for every process that it starts. When
that input ends, because the owner closed it or died of any signal, the processes are killed, with
START (their start time in /proc) telling them from strangers that got the same number since, and
DIR is removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_PATIENCE = 30.0  # seconds that a killed process may take to go

GARBAGE = "400"  # Go collects when there is four times as much as is used: memory for processors


class Guardian:
    """The owner's end. Use as a context manager; leaving it waits until nothing is left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._owned: list[subprocess.Popen[bytes]] = []
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the terminal is for the owner
        )

    def start(
        self, command: list[str], log: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own, its output in `log`; `env`: all it knows."""
        with log.open("ab") as output:
            own = {**os.environ, "GOGC": GARBAGE, "TMPDIR": str(self.directory)}
            to = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(
                command, cwd=self.directory, env=env or own, start_new_session=True, **to
            )
        self._owned.append(process)
        self.watch(process.pid)
        return process

    def watch(self, pid: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{pid} {started(pid)}\n".encode())
        self._process.stdin.flush()

    def __enter__(self) -> Guardian:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        for process in self._owned:
            process.wait(_PATIENCE)
        if self._process.wait(_PATIENCE):
            raise RuntimeError(f"not all of {self.directory} could be taken away")


def started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty if it has gone or is a zombie."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if after_name[0] == "Z" else after_name[19]  # fields 3 and 22 of proc(5)


def processes_in(directory: Path) -> list[str]:
    """Processes whose working directory, as that of all that is started, is in `directory`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if str(directory) in os.readlink(entry / "cwd"):
                found.append(entry.name)
    return found


def _guard(directory: Path) -> int:
    owned = dict(line.split() for line in sys.stdin if len(line.split()) == 2)
    alive = [int(pid) for pid, start in owned.items() if started(int(pid)) == start]
    for pid in alive:
        with suppress(ProcessLookupError):  # it went by itself
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE
    while any(started(pid) == owned[str(pid)] for pid in alive) and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(directory)
    return any(started(pid) == owned[str(pid)] for pid in alive)


if __name__ == "__main__":
    sys.exit(_guard(Path(sys.argv[1])))
