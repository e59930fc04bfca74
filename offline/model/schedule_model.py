"""Base of models over schedules: variables, and conversion from and to schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pulp

from oasis.model.schedule import COUNT, SLOT, Schedule, placements
from oasis.solvers.budget import NO_LIMIT, Budget
from offline.model import constraints
from offline.model.arrays import OfflineArrays
from offline.model.variables import JobVariables, by_job, variables_of

Placement = tuple[int, int, int]


class ScheduleModel:
    """A model with variables and utility (1), without rows; `are_merged`: one server a group."""

    def __init__(
        self,
        arrays: OfflineArrays,
        name: str,
        *,
        are_merged: bool = False,
        budget: Budget = NO_LIMIT,
    ) -> None:
        self.arrays = arrays
        self.problem = pulp.LpProblem(name, pulp.LpMaximize)
        variables_or_none = [
            variables_of(arrays, owner, form, self.problem, are_merged=are_merged, budget=budget)
            for owner, forms in enumerate(arrays.forms_of)
            for form in range(len(forms))
        ]
        self.jobs = [variables for variables in variables_or_none if variables is not None]
        self.problem.setObjective(constraints.total_utility(budget.over(self.jobs)))

    @property
    def trivial_bound(self) -> float:
        """Every job at its best utility; no schedule is worth more."""
        return math.fsum(max(max(c.utility.values()) for c in forms) for forms in by_job(self.jobs))

    def values_of(self, schedules: Mapping[str, Schedule]) -> dict[str, float]:
        """Return the values of the variables, by name, that represent `schedules`, by job id."""
        values: dict[str, float] = {}
        for c in self.jobs:
            schedule = schedules.get(c.job.id)
            # A completion without a variable is worth nothing: the job is left out of the start.
            if schedule is None or schedule.form != c.form or schedule.completion not in c.done:
                continue
            values[c.done[schedule.completion].name] = 1.0
            for slot, variable in c.completed.items():
                values[variable.name] = float(slot >= schedule.completion)
            for slot in schedule.workers[:, SLOT].tolist() if c.runs else ():
                values[c.runs[slot].name] = 1.0
            for rows, variables in ((schedule.workers, c.workers), (schedule.ps, c.ps)):
                for slot, server, count in rows.tolist():
                    if (slot, server) in variables:
                        values[variables[slot, server].name] = float(count)
        return values

    def schedules_of(self, values: Mapping[str, float]) -> dict[str, Schedule]:
        """Return schedules by job id of the jobs that complete in `values`, without surplus."""
        schedules = {}
        for c in self.jobs:
            if any(values.get(var.name, 0.0) > 0.5 for var in c.done.values()):
                workers, ps = (
                    [(*place, round(values.get(var.name, 0.0))) for place, var in variables.items()]
                    for variables in (c.workers, c.ps)
                )
                schedules[c.job.id] = without_surplus(c, workers, ps)
        return schedules


def without_surplus(c: JobVariables, workers: list[Placement], ps: list[Placement]) -> Schedule:
    """Make the schedule with only as many workers as its work takes, the latest left out."""
    in_slot: dict[int, int] = {}
    for slot, _, count in workers:
        in_slot[slot] = in_slot.get(slot, 0) + count
    # HiGHS may give a job more than its work: nothing in the objective keeps it from that.
    surplus, spare = sum(in_slot.values()) - c.work, {}
    # The latest slots first: the job may then complete earlier, and never later.
    for slot, count in sorted(in_slot.items(), reverse=True):
        most = count if surplus >= count else c.job.spare_workers(count)
        spare[slot] = min(most, max(0, surplus))
        surplus -= spare[slot]
    reduced = []
    for slot, server, count in sorted(workers, reverse=True):
        cut = min(count, spare[slot])
        spare[slot] -= cut
        in_slot[slot] -= cut
        reduced.append((slot, server, count - cut))
    missing = {slot: int(c.job.ps_needed(count)) for slot, count in in_slot.items()}
    served = []
    for slot, server, count in sorted(ps):
        count_served = min(count, missing.get(slot, 0))
        missing[slot] = missing.get(slot, 0) - count_served
        served.append((slot, server, count_served))
    tables = (placements(table) for table in (reduced, served))
    worker_rows, ps_rows = (table[table[:, COUNT] > 0] for table in tables)
    return Schedule(c.job.id, worker_rows, ps_rows, c.form)
