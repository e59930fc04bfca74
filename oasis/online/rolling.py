"""Shared parts of OASiS and recourse on a rolling horizon: live jobs and plans as plain data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oasis.model import rounding
from oasis.model.calendar import EVER_OPEN
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.online.answers import Planned
from oasis.online.recourse.live_job import LiveJob
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.policy import Planner, View
from oasis.scheduling.site import Site, allocations

# The utility of what is left of a job is tabulated by delay: far
# enough for any plan, and short enough to keep.
LEAST_REACH = 1000  # slots


def servers_of(site: Site) -> list[tuple[TaskGroup, int]]:
    """Return the group and the index in it of each machine, by its index on the site."""
    return [(group, k) for group in GROUPS for k in range(len(site.machines_for(group)))]


def source_of(job: PolicyJob, policy: str) -> Job:
    """Return the `Job` behind `job`; `InputError` that names `policy` if it has none (traces)."""
    if job.source is None:
        raise InputError("", f"policy {policy} needs jobs of an instance, not plain ones")
    return job.source


def restricted(schedule: Schedule, end: int) -> Schedule | None:
    """Return the part of `schedule` before slot `end`; None if nothing runs there."""
    workers = schedule.workers[: np.searchsorted(schedule.workers[:, SLOT], end)]
    if not len(workers):
        return None
    ps = schedule.ps[: np.searchsorted(schedule.ps[:, SLOT], end)]
    return Schedule(schedule.job_id, workers, ps, schedule.form)


class LivePlanner(Planner):
    """Base of OASiS and recourse: each live job has a schedule, or waits for one."""

    _site: Site

    def _forget(self) -> None:
        """Discard decisions, withdrawals and the calendar, as for a new run."""
        self._decided = {}
        self.late: set[int] = set()
        self.withdrawn: list[int] = []
        self._calendar = EVER_OPEN
        self.rounds_given = None

    @property
    def live(self) -> dict[int, LiveJob]:
        """Live jobs by key, in order of arrival."""
        raise NotImplementedError

    @property
    def now(self) -> int:
        """The present slot, which has not begun."""
        raise NotImplementedError

    def promised(self, job: PolicyJob) -> int | None:
        """The slot by which `job` is to be complete; None if nothing was promised."""
        live = self.live.get(job.index)
        return None if live is None else live.promise

    def planned(self) -> Planned:
        """Return (schedule, utility at completion) of every live job by id; (None, 0): no plan."""
        return {
            job.job.id: (
                job.schedule,
                job.utility_at(job.schedule.completion) if job.schedule is not None else 0.0,
            )
            for job in self.live.values()
        }

    def ahead(self, slots: int) -> Mapping[int, list[tuple[int, Allocation]]]:
        """Return (slot, allocation) pairs planned in the next `slots` slots, by index of job."""
        plans = {}
        for key, job in self.live.items():
            part = None if job.schedule is None else restricted(job.schedule, self.now + slots)
            if part is not None:
                plans[key] = list(allocations(part, self._site).items())
        return plans


def reach_of(lookahead: int) -> int:
    """Return for how many delays, in slots, the utility of a replanned job is tabulated."""
    return max(LEAST_REACH, 2 * lookahead)


def differs(live: LiveJob, work: int) -> bool:
    """Return whether a job must be replanned because `work` differs from its planned work.

    A plan of a gang may do more than its work, as its last slot runs the whole minimum. Where
    nothing is left, the job is to end with the slot before this one, and the plan stays.
    """
    spare = 0
    if live.schedule is not None and live.job.is_gang:
        # The surplus of a gang's last slot is not work that is missing from the plan.
        spare = int(live.schedule.workers[:, COUNT].sum())
    return not (work in (0, live.remaining) or live.remaining < work <= spare)


def work_left(job: PolicyJob, view: View) -> int:
    """Remaining worker-slots of `job`, rounded up; 0 only if no work is left at all."""
    # A job that has not finished has something left, however
    # little; rounding forgives what is no work.
    remaining = view.remaining(job)
    return max(1, int(rounding.ceil(remaining))) if remaining else 0
