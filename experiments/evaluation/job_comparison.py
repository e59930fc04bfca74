"""Differences between the optimum and a policy, job by job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from oasis.model.instance import Instance, Job
from oasis.model.schedule import Schedule

if TYPE_CHECKING:
    from experiments.evaluation.competitive_ratio import CompetitiveRatio

TAKEN_BY = ("offline", "online", "both", "neither")


@dataclass(frozen=True, slots=True)
class Finish:
    """Completion and utility of a job in one of the two solutions."""

    completion: int
    utility: float


@dataclass(frozen=True, slots=True)
class JobComparison:
    """A job in the online run and in the offline solution; None where it is not taken."""

    job_id: str
    arrival: int
    online: Finish | None
    offline: Finish | None

    @property
    def taken_by(self) -> str:
        """The solutions that admit the job: one of `TAKEN_BY`."""
        if self.online is None:
            return "neither" if self.offline is None else "offline"
        return "online" if self.offline is None else "both"


def compare_jobs(instance: Instance, result: CompetitiveRatio) -> list[JobComparison]:
    """Compare the two solutions of `result` job by job, in the order of the file."""
    sides = result.run.schedules, result.offline.schedules
    return [
        JobComparison(job.id, job.arrival, *(_finish(job, side) for side in sides))
        for job in instance.jobs
    ]


def totals(rows: list[JobComparison]) -> dict[str, dict[str, float]]:
    """Number of jobs and total utilities, for each value of `JobComparison.taken_by`."""
    groups = {name: [row for row in rows if row.taken_by == name] for name in TAKEN_BY}
    return {
        name: {
            "jobs": len(group),
            "online_utility": math.fsum(row.online.utility for row in group if row.online),
            "offline_utility": math.fsum(row.offline.utility for row in group if row.offline),
        }
        for name, group in groups.items()
    }


def to_dict(rows: list[JobComparison]) -> dict[str, Any]:
    """Plain data for JSON."""
    jobs = [asdict(row) | {"taken_by": row.taken_by} for row in rows]
    return {"jobs": jobs, "totals": totals(rows)}


def _finish(job: Job, schedules: Mapping[str, Schedule]) -> Finish | None:
    schedule = schedules.get(job.id)
    if schedule is None:
        return None
    return Finish(schedule.completion, float(job.utility(schedule.completion - job.arrival)))
