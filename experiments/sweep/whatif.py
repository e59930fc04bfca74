"""Policies on the jobs of a trace as cells of a sweep: on every core or a Dask cluster, resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.evaluation.policies import entry_of
from experiments.evaluation.whatif import (
    TIMES,
    Scenario,
    busiest_moment,
    is_recorded,
    or_none,
    policy_figures,
    queue_ahead,
    recorded_figures,
    seconds_a_job,
)
from experiments.evaluation.whatif_result import RECORDED, Bisection, Goal, Setting, WhatIf
from experiments.evaluation.whatif_tables import setting_text
from experiments.sweep.cells import Cell, PolicyMaker
from experiments.sweep.fingerprint import fingerprint
from experiments.sweep.store import FAILED, CellResult
from experiments.sweep.task import MEASURED, Case, CellTask, Figures, Options

BOUND_SECONDS = 5e-6  # of a job, for the bound

Chosen = Mapping[str, Mapping[str, Any]]
Run = Callable[[Sequence[Cell]], Mapping[str, CellResult]]  # those that are done, by their keys


class WhatIfOptions(Options):
    """Option of the task: whether to keep the times of each job beside the figures."""

    each: bool = False


def replayed(case: Case) -> Figures:
    """Figures of one policy in one scenario, and the times of each job if they are asked for."""
    found, jobs = policy_figures(case.instance, case.make_policy())
    if case.options.each:
        found["each"] = {name: or_none(jobs[name]) for name in TIMES}
    return found


def bounded(case: Case) -> Figures:
    """Bounds on every schedule of the scenario."""
    return {**case.instance.bounds}


REPLAY = CellTask("replayed", replayed, WhatIfOptions)
BOUND = CellTask("bounded", bounded)


def bound_cell(scenario: Scenario) -> Cell:
    """The cell of the bounds of a scenario."""
    return Cell(scenario, None, {}, 0, BOUND, Options(), fingerprint(BOUND.function))


def run_cell(
    scenario: Scenario, name: str, given: Mapping[str, Any], *, each: bool = False
) -> Cell:
    """The cell of a policy with these options; with `each`, the times of each job are kept."""
    files = tuple(entry_of(name).files(given))
    code = fingerprint(REPLAY.function)
    return Cell(scenario, name, given, 0, REPLAY, WhatIfOptions(each=each), code, files)


def expected_seconds(cells: Sequence[Cell]) -> float:
    """About how long the cells take one after another."""
    paces: dict[str, tuple[float, float]] = {}
    expected = 0.0
    for cell in cells:
        scenario: Any = cell.source
        if cell.policy is None:
            expected += BOUND_SECONDS * len(scenario.trace)
            continue
        if cell.policy not in paces:
            paces[cell.policy] = seconds_a_job(scenario, PolicyMaker(cell, None))
        alone, beside = paces[cell.policy]
        expected += alone * len(scenario.trace) + (beside and beside * queue_ahead(scenario))
    return expected


def compared(
    scenarios: Sequence[Scenario], chosen: Chosen, run: Run, *, each: bool = False
) -> tuple[WhatIf, dict[str, Any]]:
    """What all runs say, and what really happened; with `each`, times of the jobs by policy."""
    first, *_ = scenarios
    cells = [
        [run_cell(one, *policy, each=each and one is first) for policy in chosen.items()]
        for one in scenarios
    ]
    bounds = [bound_cell(one) for one in scenarios]
    records = run(
        [cell for bound, row in zip(bounds, cells, strict=True) for cell in (bound, *row)]
    )
    settings: list[Setting] = []
    lost: dict[str, list[str]] = {"missing": [], "failed": []}
    times: dict[str, Any] = {}
    for one, bound, row in zip(scenarios, bounds, cells, strict=True):
        rows = {}
        if one is first and is_recorded(one.jobs):
            rows[RECORDED] = recorded_figures(one.jobs, one.gpus)
        known = records[bound.key].figures if bound.key in records else {}
        ends = known.get("mean_completion"), rows, known.get("utility")
        settings.append(Setting(one.load, one.machines, *ends, *one.offered))
        for cell in row:
            figures = _figures(cell, records, setting_text(settings[0], settings[-1]), lost)
            if figures is not None:
                times |= {str(cell.policy): figures.pop("each")} if "each" in figures else {}
                rows[str(cell.policy)] = figures
    return WhatIf(tuple(settings), tuple(first.jobs.owner.cat.categories), lost), times


def _figures(
    cell: Cell, records: Mapping[str, CellResult], where: str, lost: dict[str, list[str]]
) -> dict[str, Any] | None:
    """The figures of a run, and how it is made again; without them, `lost` is told why."""
    record = records.get(cell.key)
    if record is None:
        lost["missing"].append(f"{cell.policy} ({where})")
        return None
    if record.status == FAILED:
        lost["failed"].append(f"{cell.policy} ({where}): {record.error}")
        return None
    row: dict[str, Any] = {
        name: part for name, part in record.figures.items() if not name.startswith(MEASURED)
    }
    return row | entry_of(str(cell.policy)).recorded(cell.policy_options, row["parameters"])


def with_goal(
    found: WhatIf,
    goal: Goal,
    first: Scenario,
    chosen: Chosen,
    run: Run,
    note: Callable[[str], None],
) -> WhatIf:
    """Search the fewest machines of each policy; all policies take a step at the same time."""
    there, jobs = len(first.machines), first.jobs
    least = next(n for n in range(1, there + 1) if first.at(n).widest >= jobs.gpus.max())
    # With so many, more of the last kind, no job would wait if it could have any GPUs.
    lacking = max(0, busiest_moment(jobs.assign(started=math.nan)) - first.gpus)
    most = there + -(-lacking // first.machines[-1])
    searches = {name: Bisection(goal, least, most) for name in chosen}
    lost = {name: list(found.about[name]) for name in ("missing", "failed")}
    while steps := {name: one.next for name, one in searches.items() if one.next is not None}:
        note(f"goal: {', '.join(f'{name} on {n}' for name, n in steps.items())} machines")
        cells = {name: run_cell(first.at(n), name, chosen[name]) for name, n in steps.items()}
        records = run(list(cells.values()))
        for name, cell in cells.items():
            row = _figures(cell, records, f"--goal, {steps[name]} machines", lost)
            if row is None:
                del searches[name]  # a search that has not ended says nothing
            else:
                searches[name].tried[steps[name]] = goal.value(row)
        if lost["missing"]:
            searches = {name: one for name, one in searches.items() if one.next is None}
    policies = {name: one.to_dict() for name, one in searches.items()}
    said = {"text": goal.text, "least": least, "most": most, "policies": policies}
    return replace(found, about={**found.about, **lost, "goal": said})
