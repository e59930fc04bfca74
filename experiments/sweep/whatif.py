"""Policies on the jobs of a trace as cells of a sweep: on every core or a Dask cluster, resumed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.evaluation import whatif as frames
from experiments.evaluation.policies import entry_of
from experiments.evaluation.whatif import Scenario
from experiments.evaluation.whatif_result import (
    RECORDED,
    Goal,
    Setting,
    WhatIf,
    next_count,
    setting_text,
)
from experiments.sweep.cells import Cell
from experiments.sweep.store import FAILED, CellResult
from experiments.sweep.tasks import MEASURED, Case, CellTask, Figures, Options, fingerprint
from oasis.model.summary import how_many

Lost = dict[str, list[str]]  # runs that are missing, and that failed
Chosen = Mapping[str, Mapping[str, Any]]
Run = Callable[[Sequence[Cell]], Mapping[str, CellResult]]  # those that are done, by their keys


@dataclass(frozen=True)
class WhatIfOptions(Options):
    """Options of the task: only find bounds; or record the times of each job, too."""

    bounds: bool = False
    each: bool = False


def replayed(case: Case) -> Figures:
    """Replay a policy in a scenario and return its figures; or return the bounds."""
    if case.options.bounds:
        return {**case.instance.bounds}
    row, jobs = frames.policy_figures(case.instance, case.make_policy())
    if case.options.each:
        row["each"] = {name: frames.or_none(jobs[name]) for name in frames.TIMES}
    return row


REPLAY = CellTask("replayed", replayed, WhatIfOptions)


def cell_of(
    scenario: Scenario, name: str | None, parameters: Mapping[str, Any], each: bool = False
) -> Cell:
    """Make the cell of policy `name` (None: of the bounds); `each` records the jobs' times."""
    options = WhatIfOptions(bounds=name is None, each=each and name is not None)
    files = () if name is None else tuple(entry_of(name).files(parameters))
    return Cell(scenario, name, parameters, 0, REPLAY, options, fingerprint(replayed), files)


def compared(
    scenarios: Sequence[Scenario], chosen: Chosen, run: Run, *, each: bool = False
) -> tuple[WhatIf, dict[str, Any]]:
    """Run all policies; return the result and, with `each`, times of jobs by policy."""
    first, *_ = scenarios
    cells = {
        (one, name): cell_of(one, name, {} if name is None else chosen[name], each and one is first)
        for one in scenarios
        for name in (None, *chosen)
    }
    records = run(list(cells.values()))
    settings: list[Setting] = []
    lost: Lost = {"missing": [], "failed": []}
    times: dict[str, Any] = {}
    for one in scenarios:
        rows = {}
        if one is first and frames.is_recorded(one.jobs):
            rows[RECORDED] = frames.recorded_figures(one.jobs, one.gpus, one.others)
        bound = records.get(cells[one, None].key)
        bounds = {} if bound is None else bound.figures
        ends = bounds.get("mean_completion"), rows, bounds.get("utility")
        settings.append(Setting(one.load, one.machines, *ends, *one.offered))
        where = setting_text(settings[0], settings[-1])
        for name in chosen:
            row = _row(cells[one, name], records, where, lost)
            if row is not None:
                times |= {name: row.pop("each")} if "each" in row else {}
                rows[name] = row
    return WhatIf(tuple(settings), tuple(first.jobs.owner.cat.categories), lost), times


def _row(
    cell: Cell, records: Mapping[str, CellResult], where: str, lost: Lost
) -> dict[str, Any] | None:
    """Return a run's figures and how to repeat it; without them, None, and a reason in `lost`."""
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
    result: WhatIf,
    goal: Goal,
    first: Scenario,
    chosen: Chosen,
    run: Run,
    note: Callable[[str], None],
) -> WhatIf:
    """Search each policy's fewest machines that meet `goal`; return `result` with them."""
    machines, jobs = len(first.machines), first.jobs
    least = next(n for n in range(1, machines + 1) if first.at(n).widest >= jobs.gpus.max())
    # With so many, more of the last kind, no job would wait if it could have any GPUs.
    busiest = frames.busiest_moment(jobs.assign(started=math.nan), first.held)
    most = machines + max(0, -(-(busiest - first.gpus) // first.machines[-1]))
    tried: dict[str, dict[int, float | None]] = {name: {} for name in chosen}
    lost: Lost = {name: list(result.about[name]) for name in ("missing", "failed")}

    while True:
        every = {name: next_count(goal, least, most, some) for name, some in tried.items()}
        now = {name: count for name, count in every.items() if count is not None}
        if not now or lost["missing"]:
            break
        on = {name: how_many(n, "machine") for name, n in now.items()}
        note(f"goal: {', '.join(f'{name} on {count}' for name, count in on.items())}")
        cells = {name: cell_of(first.at(n), name, chosen[name]) for name, n in now.items()}
        records = run(list(cells.values()))
        for name, cell in cells.items():
            row = _row(cell, records, f"--goal, {on[name]}", lost)
            if row is None:
                del tried[name]
            else:
                tried[name][now[name]] = goal.value(row)
    policies = {
        name: {
            "machines": min((n for n, value in some.items() if goal.reached(value)), default=None),
            "tried": sorted(map(list, some.items())),
        }
        for name, some in tried.items()
        if name not in now  # a search that has not ended says nothing
    }
    about_goal = {"text": goal.text, "least": least, "most": most, "policies": policies}
    return replace(result, about={**result.about, **lost, "goal": about_goal})
