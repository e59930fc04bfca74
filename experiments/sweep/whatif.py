"""Policies on the jobs of a trace as cells of a sweep: on every core or a Dask cluster, resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.evaluation.policies import entry_of
from experiments.evaluation.whatif import Scenario, or_none, policy_figures
from experiments.sweep.cells import Cell
from experiments.sweep.fingerprint import fingerprint
from experiments.sweep.task import Case, CellTask, Figures, Options

EACH = ("started", "waiting", "completion")


class WhatIfOptions(Options):
    """Option of the task: whether to keep the times of each job beside the figures."""

    each: bool = False


def replayed(case: Case) -> Figures:
    """Figures of one policy in one scenario, and the times of each job if they are asked for."""
    found, jobs = policy_figures(case.instance, case.make_policy())
    if case.options.each:
        found["each"] = {name: or_none(jobs[name]) for name in EACH}
    return found


def bounded(case: Case) -> Figures:
    """Bounds on every schedule of the scenario."""
    return {**case.instance.bounds}


REPLAY = CellTask("replayed", replayed, WhatIfOptions)
BOUND = CellTask("bounded", bounded)


def bound_cell(scenario: Scenario) -> Cell:
    """The cell of the bounds of a scenario."""
    return Cell(scenario, None, {}, 0, BOUND, Options(), fingerprint(BOUND.function))


def scenario_of(cell: Cell) -> Scenario:
    """What a cell of this module runs in."""
    assert isinstance(cell.source, Scenario)
    return cell.source


def run_cell(
    scenario: Scenario, name: str, given: Mapping[str, Any], *, each: bool = False
) -> Cell:
    """The cell of a policy with these options; with `each`, the times of each job are kept."""
    files = tuple(entry_of(name).files(given))
    code = fingerprint(REPLAY.function)
    return Cell(scenario, name, given, 0, REPLAY, WhatIfOptions(each=each), code, files)
