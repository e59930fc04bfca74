"""Algorithms 2 and 3 of KOD2: workers taken from running jobs, and workers given to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from baselines.resizing import Changes, Held, add_worker, drop_worker
from oasis.scheduling import Allocation, PolicyJob, Room
from oasis.scheduling.job import Demand

OnNode = Callable[[int], Allocation | None]
Weight = Callable[[PolicyJob], float]
Entered = Callable[[PolicyJob], tuple[float, int]]


def scale_in_order(
    new: PolicyJob, running: Iterable[PolicyJob], weight: Weight, entered: Entered
) -> list[PolicyJob]:
    """Lines 3-8 of Algorithm 2: running jobs by ascending weight.

    Those of the same weight as the new job that entered the waiting queue before it are left out.

    Examples
    --------
    >>> a, b, c = (PolicyJob("abc"[k], float(k), 1.0, ((0, 1),), index=k) for k in range(3))
    >>> weights = {"a": 2.0, "b": 1.0, "c": 2.0}
    >>> order = scale_in_order(
    ...     c, [a, b], lambda job: weights[job.id], lambda job: (job.arrival, job.index)
    ... )
    >>> [job.id for job in order]
    ['b']
    """
    mine, mine_entered = weight(new), entered(new)
    victims = [job for job in running if weight(job) != mine or not entered(job) < mine_entered]
    return sorted(victims, key=lambda job: (weight(job), entered(job)))


def scale_in(
    room: Room,
    victims: Iterable[PolicyJob],
    held: Held,
    on_node: OnNode,
    *,
    printed: bool = False,
) -> tuple[Changes, Allocation] | None:
    """Lines 9-32 of Algorithm 2: take workers away until the new job's minimum fits on a node.

    Each job gives workers one at a time, on machines without one of its parameter servers first,
    then by index, and keeps its minimum. Parameter servers stay.

    Printed: whether the new job fits is looked at before each worker is taken, so that what the
    last worker of a job on a machine gave is not seen until another job's worker there is reached
    (lines 14-18). The text says "as one worker task is decreased, the idle resources of the node
    increase", so that it is read: look after each worker.

    Parameters
    ----------
    room : Room
        What is free; if the job fits, what is given back and taken is entered.
    victims : iterable of PolicyJob
        As `scale_in_order` has them.
    held : mapping of int to Allocation
        What each holds.
    on_node : callable
        Gives the new job room for its minimum on a machine, or says None.
    printed : bool
        Whether to look as Algorithm 2 prints it.

    Returns
    -------
    (dict of int to Allocation, Allocation) or None
        What the victims then hold, and what the new job holds; None, and `room` as it was, if
        nothing helps.
    """
    before = room.free.copy()
    changes: Changes = {}
    for job in victims:
        homes = dict(held[job.index].ps)
        order = sorted(held[job.index].workers, key=lambda task: (task[0] in homes, task[0]))
        now, spare = held[job.index], held[job.index].worker_count - job.min_workers
        for machine in (machine for machine, count in order for _ in range(count)):
            if printed and (found := on_node(machine)) is not None:
                return changes, found
            if not spare:
                break
            now = changes[job.index] = drop_worker(room, job, now, machine)
            spare -= 1
            if not printed and (found := on_node(machine)) is not None:
                return changes, found
    room.free = before
    return None


def scale_out(
    room: Room,
    able: Sequence[PolicyJob],
    held: Held,
    weight: Weight,
    entered: Entered,
    *,
    printed: bool = False,
) -> Changes:
    """Algorithm 3: running jobs by descending weight take workers, up to the most they can use.

    Machines are gone through by index; the paper gives no order.

    Printed: a machine is used while its idle resources are strictly more than a worker asks for
    (line 8), so that the last of them is never used. The text says that the next machine is
    searched if they "cannot satisfy" the worker, so that it is read: at least as much.

    Parameters
    ----------
    room : Room
        What is free; what is taken is entered.
    able : sequence of PolicyJob
        Running jobs that can use more workers.
    held : mapping of int to Allocation
        What each holds.
    weight, entered : callable
        The weight of a job, and when it entered the waiting queue, which decides between equals.
    printed : bool
        Whether to compare as Algorithm 3 prints it.

    Returns
    -------
    dict of int to Allocation
        What the jobs that grow then hold.
    """
    changes: Changes = {}
    hosts: dict[Demand, list[int]] = {}  # machines that may have room; room only shrinks

    def has_room(machine: int, demand: Demand) -> bool:
        row = room.free[machine]
        return all(row[r] > amount or (row[r] == amount and not printed) for r, amount in demand)

    everywhere = room.site.machines_for("worker")
    for demand in {job.worker for job in able}:
        hosts[demand] = [machine for machine in everywhere if has_room(machine, demand)]
    able = [job for job in able if hosts[job.worker]]
    for job in sorted(able, key=lambda job: (-weight(job), entered(job))):
        now = held[job.index]
        for machine in hosts[job.worker]:
            while now.worker_count < job.max_workers and has_room(machine, job.worker):
                more = add_worker(room, job, now, machine)
                if more is None:
                    break
                now = changes[job.index] = more
        hosts[job.worker] = [m for m in hosts[job.worker] if has_room(m, job.worker)]
    return changes
