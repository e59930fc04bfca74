"""KOD2 and the operator that it replaces on ten jobs, as rows of plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from baselines import Kod2, KubernetesDefault
from experiments.figures.kod2.models import CORES, NODES, PATIENCE
from experiments.figures.rows import Row
from oasis.scheduling import NOTHING, Plan, Policy, View
from oasis.simulator import ElasticWorkload, replay
from oasis.simulator.load import Load
from oasis.simulator.progress import Progress

OPERATOR, KOD2 = "operator", "kod2"
POLICIES = (OPERATOR, KOD2)
CPU = 0  # the first resource
Step = tuple[float, float]


class Operator(KubernetesDefault):
    """The plain operator: pods one by one; a job that is stuck is terminated in the end.

    "Some tasks fall into a deadlock state and are terminated without completion" (section 5.2):
    when is not said. Here a job goes that has held pods for `patience` without ever having all.

    Parameters
    ----------
    patience : float
        Seconds.

    Examples
    --------
    Two jobs of three workers on four cores hold two each, until the first is terminated:

    >>> from oasis.simulator import Machine, PolicyJob, Site, Workload
    >>> jobs = [PolicyJob(n, 0.0, 9.0, ((0, 1),), min_workers=3, max_workers=3) for n in "ab"]
    >>> site = Site(("cpu",), (Machine("n0", (4.0,)),), partial_gangs=True)
    >>> found = replay(Workload.of(site, jobs), Operator(60.0)).jobs
    >>> [(job.job_id, job.refusal, job.end) for job in found]
    [('a', 'terminated in a deadlock', None), ('b', None, 64.0)]
    """

    name = "operator"

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__()
        self.patience = patience

    def decide(self, view: View) -> Plan:
        plan = super().decide(view)
        limits = {}
        for job in view.waiting():
            held = plan.changes.get(job.index, view.allocation(job))
            if held != NOTHING and not job.works_with(held):
                since = view.waiting_since(job)
                limits[job.index] = self.patience + (view.now if since is None else since)
        late = next((index for index, limit in limits.items() if limit <= view.now), None)
        if late is None:
            plan.wake_at = min(limits.values(), default=None)
            return plan
        plan.rejected[late] = "terminated in a deadlock"
        plan.changes.pop(late, None)
        self._bound.pop(late)
        self._leave({late})
        self._book.strike(self._book.jobs[late])
        plan.wake_at = view.now + 1.0  # when its pods are gone
        return plan


def measure(made: ElasticWorkload, policy: str) -> tuple[Row, list[Step]]:
    """Mean time to the end of a job, terminated ones included; and cores busy from time to time.

    Tasks of a job that waits for the network keep no core busy meanwhile, nor do pods that wait for
    the rest of their job; a parameter server is busy while its job works.

    Examples
    --------
    >>> from experiments.figures.kod2.models import ten_jobs
    >>> row, steps = measure(ten_jobs("VGG-16", 64, 0), KOD2)
    >>> row["terminated"], steps[0]
    (0, (0.0, 0.0))
    """
    chosen: Policy = Operator() if policy == OPERATOR else Kod2()
    changes: list[Step] = []

    def settle(progress: Progress) -> None:
        changes.extend(_cores(made, progress))

    outcome = replay(made.workload, chosen, on_settled=settle, **made.options)
    ends = [_end(job.arrival, job.end, job.waiting) for job in outcome.jobs]
    times = [end - job.arrival for end, job in zip(ends, outcome.jobs, strict=True)]
    row: Row = {
        "mean": math.fsum(times) / len(times),
        "makespan": max(ends),
        "terminated": sum(job.end is None for job in outcome.jobs),
        "stalled": math.fsum(job.stalled for job in outcome.jobs) / len(times),
        "resizes": sum(job.resizes for job in outcome.jobs),
    }
    level, steps = 0.0, [(0.0, 0.0)]
    for time, change in sorted(changes):
        level += change
        steps.append((time, level))
    return row, steps


def _cores(made: ElasticWorkload, progress: Progress) -> list[Step]:
    """By how much the busy cores change because of a job, and when."""
    job, found = progress.job, []
    load = Load(made.workload.site)  # the speeds here depend on nobody else
    for (begin, held), (end, _) in pairwise(progress.history):
        rate = made.speed.rate(job, held, load) if job.works_with(held) else 0.0
        cores = rate * dict(job.worker)[CPU] + (held.ps_count * dict(job.ps)[CPU] if rate else 0.0)
        found += [(begin, cores), (end, -cores)]
    return found


def _end(arrival: float, end: float | None, waited: float) -> float:
    """When a job left; one that was terminated has only waited."""
    return arrival + waited if end is None else end


def mean_busy(steps: Sequence[Step], begin: float, end: float) -> float:
    """Mean share of all cores that is busy between two times.

    Examples
    --------
    >>> mean_busy([(0.0, 30.0), (10.0, 15.0), (20.0, 0.0)], 5.0, 15.0)
    0.75
    """
    area = math.fsum(
        cores * max(0.0, min(after, end) - max(time, begin))
        for (time, cores), (after, _) in pairwise([*steps, (math.inf, 0.0)])
    )
    return area / (NODES * CORES * (end - begin))
