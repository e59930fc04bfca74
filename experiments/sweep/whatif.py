"""Policies on the jobs of a trace as cells of a sweep: on every core or a Dask cluster, resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

from experiments.evaluation.policies import entry_of
from experiments.evaluation.whatif import JobColumns, mean_bound, policy_figures, utility_bound
from experiments.sweep.cells import Cell
from experiments.sweep.executors import Executor
from experiments.sweep.fingerprint import fingerprint
from experiments.sweep.run import recorded
from experiments.sweep.store import CellResult, ResultStore
from experiments.sweep.task import Case, CellTask, Figures, Options
from oasis.model.rounding import FloatArray


@dataclass(frozen=True, slots=True)
class Scenario:
    """The machines, and the speed at which jobs arrive.

    Parameters
    ----------
    machines : tuple of int
        GPUs of each.
    placement : {"pooled", "whole"}
        Whether a job takes GPUs wherever they are, or all on one machine.
    load : float
        The times of submission are divided by it.
    """

    machines: tuple[int, ...]
    placement: str = "pooled"
    load: float = 1.0


@dataclass(frozen=True)
class ReplayedTrace:
    """The jobs of a trace in a scenario: the source of its cells, which travels to any worker.

    `sha256` is the digest of `jobs`.
    """

    jobs: JobColumns = field(repr=False)
    sha256: str
    scenario: Scenario
    draws: ClassVar[bool] = False

    @property
    def identity(self) -> dict[str, Any]:
        """Plain data that determine the jobs and the machines."""
        one = self.scenario
        how = {"machines": list(one.machines), "placement": one.placement, "load": one.load}
        return {"kind": "trace", "sha256": self.sha256, **how}

    @property
    def labels(self) -> dict[str, Any]:
        """The scenario in columns."""
        gpus = sum(self.scenario.machines)
        return {"load": self.scenario.load, "gpus": gpus, "placement": self.scenario.placement}

    def make(self, seed: int) -> ReplayedTrace:
        """Return itself: nothing is drawn."""
        return self


class WhatIfOptions(Options):
    """Option of the task: whether to keep the times of each job beside the figures."""

    each: bool = False


def replayed(case: Case) -> Figures:
    """Figures of one policy in one scenario, and the times of each job if they are asked for."""
    source, one = case.instance, case.instance.scenario
    jobs = source.jobs.at_load(one.load)
    found, times = policy_figures(jobs, one.machines, one.placement, case.make_policy())
    if case.options.each:
        columns = {"waiting": times.waiting, "completion": times.completion}
        columns["started"] = times.started
        found["each"] = {name: _listed(column) for name, column in columns.items()}
    return found


def bounded(case: Case) -> Figures:
    """Bounds on every schedule of the scenario."""
    source = case.instance
    one = source.scenario
    jobs, gpus = source.jobs.at_load(one.load), sum(one.machines)
    return {"mean_completion": mean_bound(jobs, gpus), "utility": utility_bound(jobs, gpus)}


def _listed(column: FloatArray) -> list[float | None]:
    return [None if math.isnan(value) else value for value in column.tolist()]


REPLAY = CellTask("replayed", replayed, WhatIfOptions)
BOUND = CellTask("bounded", bounded)


def cells_of(
    jobs: JobColumns,
    scenarios: Sequence[Scenario],
    policies: Mapping[str, Mapping[str, Any]],
    *,
    each: bool = False,
) -> list[list[Cell]]:
    """The cells of each scenario: its bound, then a run of each policy.

    Parameters
    ----------
    jobs : JobColumns
        The jobs of the trace.
    scenarios : sequence of Scenario
        Scenarios that they run in.
    policies : mapping of str to mapping
        The options of each policy that differ from their defaults, by its name.
    each : bool
        Whether the times of each job are kept, in the first scenario.

    Examples
    --------
    >>> from oasis.simulator import PlainJob
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 8)])
    >>> [[cell.policy for cell in row] for row in cells_of(jobs, [Scenario((8,))], {"fifo": {}})]
    [[None, 'fifo']]
    """
    sha256 = jobs.digest
    files = {name: tuple(entry_of(name).files(given)) for name, given in policies.items()}
    rows = []
    for k, scenario in enumerate(scenarios):
        source = ReplayedTrace(jobs, sha256, scenario)
        bound = Cell(source, None, {}, 0, BOUND, Options(), fingerprint(BOUND.function))
        options = WhatIfOptions(each=each and k == 0)
        code = fingerprint(REPLAY.function)
        runs = [
            Cell(source, name, given, 0, REPLAY, options, code, files[name])
            for name, given in policies.items()
        ]
        rows.append([bound, *runs])
    return rows


def run_until_interrupted(
    cells: Sequence[Cell],
    executor: Executor,
    store: ResultStore | None = None,
    on_done: Callable[[Cell, Mapping[str, CellResult]], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> dict[str, CellResult]:
    """Records of `cells` by key; after Ctrl-C of those that were done by then.

    Parameters
    ----------
    cells : sequence of Cell
        Cells to run.
    executor : Executor
        Executor of the cells.
    store : ResultStore, optional
        Store that receives each record at once; records that it has already are used.
    on_done : callable, optional
        Called with each cell that is done, and all records that there are.
    on_note : callable, optional
        Called with what the user should know, such as a damaged record.
    """
    found: dict[str, CellResult] = {}
    if store is not None:
        store.prepare()
        found = recorded(cells, store, on_note=on_note)
    left = [cell for cell in cells if cell.key not in found]
    try:
        with closing(executor.run(left)) as finished:
            for cell, record in finished:
                if store is not None:
                    store.save(cell.key, cell.identity, record)
                found[cell.key] = record
                if on_done is not None:
                    on_done(cell, found)
    except KeyboardInterrupt:
        if not any(cell.policy is not None and cell.key in found for cell in cells):
            raise
    return found
