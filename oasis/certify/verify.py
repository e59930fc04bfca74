"""Independent check of schedules against the model (1)-(13), one function per constraint.

Shares no code with the search: usage, counts and utility are recomputed here from the schedule,
the job and the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.decision import Decision
from oasis.model.errors import VerificationError, describe_or_read
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance, Job, expect_instance
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule

MANY = 2**31  # tasks on one server in one slot: up to here sums in floats are exact

BoolArray = npt.NDArray[np.bool_]


def suspects(
    instance: Instance, jobs: Mapping[str, Job], schedules: Mapping[str, Schedule]
) -> list[str]:
    """Return jobs whose schedules may break a constraint on one job, in the order of `schedules`.

    These are (2), (3), the minimum of workers, (6), (7) and (9)-(13).

    Parameters
    ----------
    instance : Instance
        The problem.
    jobs : mapping of job id to Job
        At least those that have a schedule.
    schedules : mapping of job id to Schedule
        Schedules by job id.

    Examples
    --------
    >>> import oasis
    >>> from oasis.certify.verify import suspects
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> jobs = {job.id: job for job in instance.jobs}
    >>> early = oasis.Schedule("j0", workers=[[0, 0, 1]], ps=[])  # the job arrives in slot 4
    >>> suspects(instance, jobs, {"j0": early})
    ['j0']
    """
    # All schedules at once in a few passes over arrays: only those that look wrong are then
    # checked one by one, constraint by constraint, for the message.
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
        # Rows outside the instance would be counted for another job or slot below.
        owner, rows = owner[inside], rows[inside]
        moment = owner * horizon + rows[:, SLOT]  # a job in a slot
        # A job has one number for each server and slot: equal neighbours name a place twice.
        places = np.sort(moment * servers + rows[:, SERVER])
        wrong[places[1:][places[1:] == places[:-1]] // (horizon * servers)] = True
        tables.append((moment, rows[:, COUNT]))
    wrong |= _breaks_counts(instance, those, *tables)
    return [job_id for job_id, is_wrong in zip(schedules, wrong.tolist(), strict=True) if is_wrong]


def _inside(rows: IntArray, arrival: IntArray, horizon: int, servers: int) -> BoolArray:
    """Return a mask of the rows whose slot, server and count satisfy (9)(10) and (12)(13)."""
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
    """Return a mask of `jobs` that break (2), (3), their minimum of workers, (6) or (7).

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
    """Return the minimum of workers, N_i, b_i / B_i and W_i of a job."""
    share = job.bandwidth / job.ps_bandwidth if job.bandwidth else 0.0
    minibatches = job.epochs * job.chunks * job.minibatches
    return job.min_workers, job.chunks, share, minibatches * minibatch_slots(instance, job)


def minibatch_slots(instance: Instance, job: Job) -> float:
    """Return kappa_i = tau_i + 2 e_i / b_i in slots: gradients of e_i MB are sent and fetched."""
    if job.gradient_mb == 0:
        return job.minibatch_time
    seconds = 2 * job.gradient_mb * 8 / 1000 / job.bandwidth
    return job.minibatch_time + seconds / instance.slot_seconds


def _within(counts: FloatArray, limits: FloatArray) -> BoolArray:
    """Return a mask where counts are at most `limits` up to rounding, as `rounding.within`."""
    within: BoolArray = counts <= limits + TOLERANCE * np.maximum(1.0, np.abs(limits))
    return within


# Half the tolerance: sums in floats may be off by far less than the other half.
SUSPICION = 5e-10  # relative excess of a sum in floats from which on it is summed exactly


class HasSchedules(Protocol):
    """What has schedules by job id, such as a run or an offline result."""

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        """Schedule of each admitted job."""
        ...


@runtime_checkable
class HasDecisions(HasSchedules, Protocol):
    """What has schedules and a decision on every job: a run of a policy."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """In order of arrival."""
        ...

    @property
    def bounds(self) -> object | None:
        """Price bounds, if the policy prices resources."""
        ...


def verify(instance: Instance, result: HasSchedules | Mapping[str, Schedule]) -> float:
    """Check every schedule against constraints (2)-(13) and recompute the objective (1).

    Parameters
    ----------
    instance : Instance
        The problem.
    result : Run, OfflineResult or mapping of job id to Schedule
        What was decided. If it states ``total_utility`` or ``objective``, that is checked too.

    Returns
    -------
    float
        The recomputed total utility.

    Raises
    ------
    VerificationError
        Naming the constraint, job, slot and server.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> round(oasis.verify(instance, run), 3)
    100.684
    """
    expect_instance(instance)
    if not isinstance(result, Mapping) and not hasattr(result, "schedules"):
        expected = "expected a Run, an OfflineResult or a mapping of job ids to schedules"
        raise TypeError(f"result: {expected}, got {describe_or_read(result, 'read_result')}")
    schedules = result if isinstance(result, Mapping) else result.schedules
    known = {job.id: job for job in instance.jobs}
    for job_id, schedule in schedules.items():
        if job_id not in known:
            raise VerificationError("(1) jobs", "the instance has no such job", job=job_id)
        if schedule.job_id != job_id:
            raise VerificationError("(1) jobs", f"is filed for {schedule.job_id!r}", job=job_id)
    # From here on each job is what it is in the form that runs.
    jobs = {job_id: running_form(known[job_id], s) for job_id, s in schedules.items()}
    # The quick check may only suspect too much: what it suspects is judged by the slow one.
    for job_id in suspects(instance, jobs, schedules):
        verify_schedule(instance, jobs[job_id], schedules[job_id])
    for group in GROUPS:
        _check_labels(instance, jobs, schedules, group)
        _check_capacity(instance, jobs, schedules, group)
    total = math.fsum(_utility(jobs[job_id], s) for job_id, s in schedules.items())
    if isinstance(result, HasDecisions):
        verify_decisions(instance, result)
    bound = getattr(result, "upper_bound", None)
    # A bound below a feasible schedule is wrong, unless by no more than the solver's own tolerance.
    if bound is not None and bound < total * (1 - 1e-6):
        raise VerificationError("(1) bound", f"upper_bound is {bound}, a schedule has {total}")
    for name in ("total_utility", "objective"):
        stated = getattr(result, name, None)
        if stated is not None and not math.isclose(stated, total, rel_tol=1e-9, abs_tol=1e-12):
            raise VerificationError("(1) objective", f"{name} is {stated}, recomputed {total}")
    return total


def verify_decisions(instance: Instance, run: HasDecisions) -> None:
    """Check that `run` decides on every job once, in order, and that its figures are right."""
    order = [job.id for job in instance.jobs_by_arrival()]
    if [decision.job_id for decision in run.decisions] != order:
        raise VerificationError("decisions", "expected one for each job, in order of arrival")
    for job, decision in zip(instance.jobs_by_arrival(), run.decisions, strict=True):
        schedule = decision.schedule
        # a job that a policy without prices admits may still be unfinished at the horizon
        unfinished = decision.admitted and schedule is None and run.bounds is None
        if decision.admitted != (schedule is not None) and not unfinished:
            detail = f"admitted is {decision.admitted}, schedule is {schedule}"
            raise VerificationError("decisions", detail, job=job.id)
        completion = schedule.completion if schedule is not None else None
        utility = _utility(job, schedule) if schedule is not None else 0.0
        stated = (decision.utility, decision.payoff)
        true = (utility, utility - decision.cost)
        # a payoff is a difference: its last digits are those of the utility
        close = all(abs(a - b) <= 1e-9 * utility for a, b in zip(stated, true, strict=True))
        if decision.completion != completion or not close:
            detail = f"states {stated} at {decision.completion}, recomputed {true} at {completion}"
            raise VerificationError("decisions", detail, job=job.id)
        if decision.cost < 0 or (schedule is None and decision.cost > 0):
            raise VerificationError("decisions", f"cost {decision.cost}", job=job.id)
        if schedule is not None and run.bounds is not None and not decision.payoff > 0:
            detail = f"admitted at the payoff {decision.payoff}"
            raise VerificationError("decisions", detail, job=job.id)


def running_form(job: Job, schedule: Schedule) -> Job:
    """Return the job in the form of its schedule; `VerificationError` if it has no such form."""
    if not 0 <= schedule.form < len(job.in_forms):
        detail = f"form {schedule.form} of {len(job.in_forms)}"
        raise VerificationError("forms", detail, job=job.id)
    return job.in_forms[schedule.form]


def _check_labels(
    instance: Instance,
    jobs: Mapping[str, Job],
    schedules: Mapping[str, Schedule],
    group: TaskGroup,
) -> None:
    """Raise `VerificationError` for a task on a machine without the labels its form requires."""
    machines = [server for server in group.servers(instance.cluster) for _ in server.ids]
    for job_id, schedule in schedules.items():
        required = group.required(jobs[job_id])
        for slot, server, _ in group.placed(schedule).tolist() if required else ():
            labels = machines[server].labels
            for name, values in required.items():
                if labels.get(name) not in values:
                    name_of_server = group.ids(instance.cluster)[server]
                    detail = f"{name} is {labels.get(name)!r}, required is {' or '.join(values)}"
                    where = {"job": job_id, "slot": slot, "server": name_of_server}
                    raise VerificationError("labels of machines", detail, **where)


def verify_schedule(instance: Instance, job: Job, schedule: Schedule) -> None:
    """Check the constraints on one job: (2), (3), its minimum of workers, (6), (7), (9)-(13)."""
    _check_domain(instance, job, schedule.workers, len(instance.cluster.worker_ids), "y")
    _check_domain(instance, job, schedule.ps, len(instance.cluster.ps_ids), "z")
    # Python's integers: a count that is absurdly large must not overflow into a small one.
    done = sum(schedule.workers[:, COUNT].tolist())
    work = job.epochs * job.chunks * job.minibatches * minibatch_slots(instance, job)
    if done == 0 or not rounding.within(work, done):
        detail = f"{done} worker-slots, needs {work:.9g}"
        raise VerificationError("(2) training work", detail, job=job.id)
    workers, ps = _counts(schedule.workers), _counts(schedule.ps)
    for slot in sorted(workers.keys() | ps.keys()):  # in all others the counts are 0
        counts = workers.get(slot, 0), ps.get(slot, 0)
        for constraint, broken, detail in _slot_constraints(job, *counts):
            if broken:
                raise VerificationError(constraint, detail, job=job.id, slot=slot)


def _counts(rows: IntArray) -> dict[int, int]:
    """Return the number of tasks in each slot that has any, by slot."""
    counts: dict[int, int] = {}
    for slot, _, count in rows.tolist():
        counts[slot] = counts.get(slot, 0) + count
    return counts


def _slot_constraints(job: Job, workers: float, ps: float) -> Iterator[tuple[str, bool, str]]:
    yield "(3) workers at most chunks", workers > job.chunks, f"{workers:g} > {job.chunks}"
    too_few = 0 < workers < job.min_workers
    yield "minimum of workers", too_few, f"{workers:g} < {job.min_workers}"
    # divided by one parameter server's bandwidth, so that both sides are counts of servers
    share = job.bandwidth / job.ps_bandwidth if job.bandwidth else 0.0
    needed, offered = workers * job.bandwidth, ps * job.ps_bandwidth
    broken = not rounding.within(workers * share, ps)
    yield "(6) bandwidth of parameter servers", broken, f"{needed:g} > {offered:g} Gbit/s"
    yield "(7) parameter servers at most workers", ps > workers, f"{ps:g} > {workers:g}"


def _check_domain(instance: Instance, job: Job, rows: IntArray, servers: int, symbol: str) -> None:
    """Raise `VerificationError` unless `rows` satisfy (9)-(13); `symbol`: "y" workers, "z" PSs."""
    slots, where, counts = rows.T
    inside = (slots >= 0) & (slots < instance.horizon) & (where >= 0) & (where < servers)
    if not inside.all():
        slot, server, _ = rows[np.argmin(inside)].tolist()
        detail = f"{symbol}: slot {slot}, server {server} outside the instance"
        raise VerificationError("(12)(13) domain", detail, job=job.id)
    places = slots * servers + where
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(places, return_index=True)[1]] = True
    wrong = ~first | (counts < 1) | (slots < job.arrival)
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    slot, server, count = rows[at].tolist()
    name = _server_id(instance, symbol, server)
    constraint = "(12)(13) domain"
    detail = f"{symbol} = {count}, expected one positive count for each slot and server"
    if count >= 1 and first[at]:
        constraint = "(9) workers after arrival" if symbol == "y" else "(10) PSs after arrival"
        detail = f"arrives in slot {job.arrival}"
    raise VerificationError(constraint, detail, job=job.id, slot=slot, server=name)


def _server_id(instance: Instance, symbol: str, server: int) -> str:
    cluster = instance.cluster
    return (cluster.worker_ids if symbol == "y" else cluster.ps_ids)[server]


CAPACITY = {
    TaskGroup.WORKER: "(4) worker capacity",
    TaskGroup.PS: "(5) parameter-server capacity",
}


def _check_capacity(
    instance: Instance,
    jobs: Mapping[str, Job],
    schedules: Mapping[str, Schedule],
    group: TaskGroup,
) -> None:
    """Raise `VerificationError` where tasks of `group` exceed a server's capacity, (4), (5)."""
    cluster = instance.cluster
    capacity, ids = group.capacity(cluster), group.ids(cluster)
    rows = [group.placed(schedule) for schedule in schedules.values()]
    if not rows:
        return
    table = np.concatenate(rows)
    owner = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    places, place = _distinct(table[:, SLOT] * len(ids) + table[:, SERVER])
    demands = [group.of(jobs[job_id]) for job_id in schedules]
    for r, resource in enumerate(cluster.resources):
        demand = np.array([needs.get(resource, 0.0) for needs in demands])
        amounts = table[:, COUNT] * demand[owner]
        available = capacity[places % len(ids), r]
        # sums in floats choose whom to look at; an exact sum decides
        crowded = np.bincount(place, amounts) > available * (1 + SUSPICION)
        for at in np.flatnonzero(crowded).tolist():
            used, limit = math.fsum(amounts[place == at].tolist()), float(available[at])
            if not rounding.fits(used, limit):
                slot, server = divmod(int(places[at]), len(ids))
                detail = f"{resource}: {used:.9g} used, capacity {limit:g}"
                raise VerificationError(CAPACITY[group], detail, slot=slot, server=ids[server])


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in order, and the index of each of `keys` in them: `np.unique`."""
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    is_new = np.ones(len(keys), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    which = np.empty_like(order)
    which[order] = is_new.cumsum() - 1
    return ordered[is_new], which


def _utility(job: Job, schedule: Schedule) -> float:
    """Return the utility f_i at the delay of the last slot with a worker (8)."""
    last = int(schedule.workers[:, SLOT].max())
    return float(job.utility(last - job.arrival))
