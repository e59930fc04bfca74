"""Processor time of a process over time, read from /proc while it runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

PERIOD = 0.25
LAST = 19  # the nice value of those who wait for everybody else
TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pid: int) -> float:
    """Seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def go_last(pid: int) -> None:
    """Give a process that leads a session only processor time that no other process wants."""
    # Linux compares nice values within a session, and between sessions those of their autogroups.
    os.setpriority(os.PRIO_PGRP, pid, LAST)
    group = Path(f"/proc/{pid}/autogroup")
    while group.exists():
        try:
            group.write_text(str(LAST))
        except BlockingIOError:  # who is not root may do it ten times a second
            time.sleep(0.1)
        else:
            break


def peak_megabytes(pid: int) -> float:
    """Most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def within(samples: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Seconds of processor time from `begin` to `end`: from samples of (time, seconds so far)."""
    so_far = np.interp([begin, end], *zip(*samples, strict=True), left=np.nan, right=np.nan)
    return float(so_far[1] - so_far[0])


class Sampler(threading.Thread):
    """Notes the processor time of named groups of processes until it is stopped."""

    def __init__(self, groups: Mapping[str, Sequence[int]]) -> None:
        super().__init__(daemon=True)
        self._groups, self._stopping = groups, threading.Event()
        self.samples: dict[str, list[tuple[float, float]]] = {name: [] for name in groups}

    def run(self) -> None:
        while not self._stopping.wait(PERIOD):
            with suppress(FileNotFoundError, ProcessLookupError):  # one of them has ended
                sums = {n: sum(map(seconds_of, pids)) for n, pids in self._groups.items()}
                now = time.time()
                for name, total in sums.items():
                    self.samples[name].append((now, total))

    def stop(self) -> None:
        """Stop the measurement."""
        self._stopping.set()
        self.join()
