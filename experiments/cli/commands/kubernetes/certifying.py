"""Measurement, beside a running controller, of the share of the optimum that its jobs earned."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.cli.exit_codes import DONE, LIMIT
from experiments.evaluation.on_cluster import ACTUAL

if TYPE_CHECKING:
    from oasis.kubernetes.control.metrics import Metrics

log = logging.getLogger("oasis.kubernetes")

EVERY_SECONDS = 600.0
SOLVE_SECONDS = 30  # of the clock; HiGHS may use two threads
PROCESSOR_SECONDS = 120  # of the whole process, which the system ends then
# A process of its own, behind all others: the controller must not wait for a solver. It limits
# itself, because a process with threads cannot safely run Python between fork and exec.
LIMITED = f"""
import os, resource, sys
os.nice(19)
resource.setrlimit(resource.RLIMIT_CPU, ({PROCESSOR_SECONDS}, {PROCESSOR_SECONDS}))
from experiments.cli.main import main
main(sys.argv[1:])
"""


def report_command(options: Sequence[str]) -> list[str]:
    """The command that measures the share, with these options of ``oasis kubernetes report``."""
    words = ["kubernetes", "report", "--json", "--policies", "none"]
    return [sys.executable, "-c", LIMITED, *words, "--time-limit", str(SOLVE_SECONDS), *options]


class Certifier:
    """Runs a command that prints a report, `every` so many seconds, and exports what it finds."""

    def __init__(
        self, command: Sequence[str], metrics: Metrics, every: float = EVERY_SECONDS
    ) -> None:
        self._command, self._metrics, self._every = list(command), metrics, every
        self.is_leading = False  # a controller that waits for the lease measures nothing
        self._over = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name="certifier", daemon=True)

    def __enter__(self) -> Certifier:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._child is not None:
            self._child.kill()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            if self.is_leading:
                self.measure()

    def measure(self) -> None:
        """Make one report, and export its share; a failure is one line of the log."""
        self._child = child = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self._over.is_set():  # `__exit__` may not have seen it
            child.kill()
        said, errors = child.communicate()
        if self._over.is_set():
            return
        if child.returncode not in (DONE, LIMIT):
            why = errors.strip().splitlines()[-1:] or [f"it ended with {child.returncode}"]
            log.warning("the share of the optimum was not measured: %s", why[0])
            return
        row = json.loads(said)["policies"][ACTUAL]
        for end in ("lower", "upper"):
            share = row.get(f"certified_share_{end}")
            # Where there was nothing to earn there is no share.
            self._metrics.certified.labels(end).set(float("nan") if share is None else share)
        self._metrics.certified_at.set(time.time())
