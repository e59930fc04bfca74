"""Which schedules of many have to be looked at one by one: a pass over whole arrays.

It stands before `oasis.certify.verify.verify_schedule`, which alone says what is wrong. Every
schedule that it would refuse is a suspect.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from oasis.model.instance import Instance, Job
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule

MANY = 2**31  # tasks on one server in one slot: up to here sums in floats are exact

BoolArray = npt.NDArray[np.bool_]


def suspects(
    instance: Instance, jobs: Mapping[str, Job], schedules: Mapping[str, Schedule]
) -> list[str]:
    """Jobs whose schedules may break a constraint on one job, in the order of `schedules`.

    These are (2), (3), the minimum of workers, (6), (7) and (9)-(13).

    Parameters
    ----------
    instance : Instance
        The problem.
    jobs : mapping of job id to Job
        At least those that have a schedule.
    schedules : mapping of job id to Schedule
        What runs where.

    Examples
    --------
    >>> import oasis
    >>> from oasis.certify.suspects import suspects
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> jobs = {job.id: job for job in instance.jobs}
    >>> early = oasis.Schedule("j0", workers=[[0, 0, 1]], ps=[])  # the job arrives in slot 4
    >>> suspects(instance, jobs, {"j0": early})
    ['j0']
    """
    those = [jobs[job_id] for job_id in schedules]
    cluster, horizon = instance.cluster, instance.horizon
    arrivals = np.array([job.arrival for job in those], dtype=np.int64)
    wrong = np.zeros(len(those), dtype=bool)
    tables = []
    for servers, parts in (
        (len(cluster.worker_ids), [schedule.workers for schedule in schedules.values()]),
        (len(cluster.ps_ids), [schedule.ps for schedule in schedules.values()]),
    ):
        owner = np.arange(len(parts)).repeat([len(part) for part in parts])
        rows = np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])
        inside = _inside(rows, arrivals[owner], horizon, servers)
        wrong[owner[~inside]] = True
        owner, rows = owner[inside], rows[inside]
        moment = owner * horizon + rows[:, SLOT]  # a job in a slot
        places = np.sort(moment * servers + rows[:, SERVER])
        wrong[places[1:][places[1:] == places[:-1]] // (horizon * servers)] = True
        tables.append((moment, rows[:, COUNT]))
    wrong |= _breaks_counts(instance, those, *tables)
    return [job_id for job_id, is_wrong in zip(schedules, wrong.tolist(), strict=True) if is_wrong]


def _inside(rows: IntArray, arrival: IntArray, horizon: int, servers: int) -> BoolArray:
    """Rows with places that exist, (12)(13), after the arrival, (9)(10), and counts from 1."""
    slots, where, counts = rows.T
    is_slot = (slots >= arrival) & (slots < horizon)
    inside: BoolArray = (
        is_slot & (where >= 0) & (where < servers) & (counts >= 1) & (counts <= MANY)
    )
    return inside


def _breaks_counts(
    instance: Instance,
    jobs: list[Job],
    workers: tuple[IntArray, IntArray],
    ps: tuple[IntArray, IntArray],
) -> BoolArray:
    """Which of `jobs` break (2), (3), their minimum of workers, (6) or (7).

    `workers` and `ps` have, for each row, its moment, job times T plus slot, and the count.
    """
    moment = np.concatenate([workers[0], ps[0]])
    tasks = np.zeros((2, len(moment)))
    tasks[0, : len(workers[0])], tasks[1, len(workers[0]) :] = workers[1], ps[1]
    order = moment.argsort(kind="stable")
    moment = moment[order]
    first = (moment != np.concatenate([[-1], moment[:-1]])).nonzero()[0]
    in_slot, of_ps = np.add.reduceat(tasks[:, order], first, axis=1)
    owner = moment[first] // instance.horizon
    least, most, share, work = np.array([_needs(instance, job) for job in jobs]).reshape(-1, 4).T
    broken = (in_slot > most[owner]) | (of_ps > in_slot)  # (3), (7)
    broken |= (in_slot > 0) & (in_slot < least[owner])
    broken |= ~_within(in_slot * share[owner], of_ps)  # (6)
    done: FloatArray = np.bincount(owner, in_slot, len(jobs)).astype(np.float64)
    wrong: BoolArray = (done == 0) | ~_within(work, done)  # (2)
    wrong[owner[broken]] = True
    return wrong


def _needs(instance: Instance, job: Job) -> tuple[float, float, float, float]:
    """Fewest workers, N_i, the parameter servers b_i / B_i that a worker needs, and W_i."""
    share = job.bandwidth / job.ps_bandwidth if job.bandwidth else 0.0
    minibatches = job.epochs * job.chunks * job.minibatches
    return job.min_workers, job.chunks, share, minibatches * minibatch_slots(instance, job)


def minibatch_slots(instance: Instance, job: Job) -> float:
    """kappa_i = tau_i + 2 e_i / b_i: 8 Gbit in 1000 MB, sent and fetched."""
    if job.gradient_mb == 0:
        return job.minibatch_time
    seconds = 2 * job.gradient_mb * 8 / 1000 / job.bandwidth
    return job.minibatch_time + seconds / instance.slot_seconds


def _within(counts: FloatArray, limits: FloatArray) -> BoolArray:
    """`oasis.model.rounding.within` of arrays."""
    within: BoolArray = counts <= limits + TOLERANCE * np.maximum(1.0, np.abs(limits))
    return within
