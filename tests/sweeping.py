"""Tasks for the tests of sweeps: workers import them from here."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

from threadpoolctl import threadpool_info

from experiments.sweep import TASKS, Case, CellTask, Options, SweepConfig, sweep_config

Figures = dict[str, Any]
SMALL: dict[str, Any] = {
    "instances": [{"preset": "testbed", "jobs": [3, 5], "horizon": 8}],
    "policies": [{"name": "oasis", "scale": [0.5, 1.0]}, {"name": "fifo"}],
    "seeds": [1, 0],
}


def small(**changes: Any) -> SweepConfig:
    return sweep_config(SMALL | changes)


@dataclass(frozen=True)
class FateOptions(Options):
    """Where the task finds what it does; `doomed` seeds die or fail."""

    folder: str = ""
    doomed: tuple[int, ...] = ()
    seconds: float = 0.0


def counted(case: Case) -> Figures:
    """Run the policy, and leave a line in a file for it; slowly, if asked."""
    path = Path(case.options.folder) / "calls"
    with path.open("a", encoding="utf-8") as stream:
        stream.write(f"{case.seed}\n")
    sleep(case.options.seconds)
    return TASKS["run"].function(case)


def failing(case: Case) -> Figures:
    """Fail for the doomed seeds, as long as the file `broken` is there."""
    if case.seed in case.options.doomed and (Path(case.options.folder) / "broken").exists():
        raise ValueError(f"seed {case.seed}\nis doomed")
    return TASKS["run"].function(case)


def dying(case: Case) -> Figures:
    """Kill the worker for the doomed seeds."""
    if case.seed in case.options.doomed:
        os.kill(os.getpid(), signal.SIGKILL)
    return TASKS["run"].function(case)


def untidy(case: Case) -> Figures:
    """Return what no record can hold."""
    return {"total_utility": object()}


def threads(case: Case) -> Figures:
    """Threads of each pool of linear algebra."""
    return {"threads": [pool["num_threads"] for pool in threadpool_info()]}


FATES = {
    **TASKS,
    "counted": CellTask("counted", counted, FateOptions),
    "failing": CellTask("failing", failing, FateOptions),
    "dying": CellTask("dying", dying, FateOptions),
    "threads": CellTask("threads", threads),
    "untidy": CellTask("untidy", untidy),
}
