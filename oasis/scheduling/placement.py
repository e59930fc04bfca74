"""Placement of tasks: the free capacity to plan on, and the placement rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import fsum
from typing import Protocol

from oasis.model.errors import InputError
from oasis.model.groups import GROUPS
from oasis.scheduling.job import Allocation, Demand, LimitedDemand, PolicyJob, Tasks, admits
from oasis.scheduling.site import Site

Row = tuple[int, ...]

STEPS = 2.0**28  # of a share of a machine


class Room:
    """Free capacity of each machine while a policy plans; the run is not changed.

    Parameters
    ----------
    site : Site
        The machines.
    free : list of tuple of int
        Free amounts of each machine; taken over and changed.
    down : collection of int
        Machines that are not there now: they take no task, not even one that reserves nothing.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> room = Room(Site(("gpu",), (Machine("n0", (4.0,)),)), [(4,)])
    >>> room.take(0, ((0, 1),), 3)
    >>> room.free, room.fits(0, ((0, 2),))
    ([(1,)], False)
    """

    __slots__ = ("down", "free", "site")

    def __init__(self, site: Site, free: list[Row], down: Collection[int] = ()) -> None:
        self.free = free
        self.site = site
        self.down = down

    def takes(self, machine: int, demand: Demand) -> bool:
        """Return whether `machine` is not down and admits tasks of `demand`, even if it is full."""
        return machine not in self.down and admits(demand, machine)

    def fits(self, machine: int, demand: Demand) -> bool:
        """Return whether one task of `demand` fits on `machine`."""
        if not self.takes(machine, demand):
            return False
        row = self.free[machine]
        return all(row[resource] >= amount for resource, amount in demand)

    def fitting(self, machines: Sequence[int], demand: Demand) -> Sequence[int]:
        """Return those of `machines` on which one task of `demand` fits, in their order."""
        free = self.free
        if self.down or isinstance(demand, LimitedDemand):
            machines = [machine for machine in machines if self.takes(machine, demand)]
        for resource, amount in demand:
            machines = [machine for machine in machines if free[machine][resource] >= amount]
        return machines

    def count(self, machine: int, demand: Demand, most: int) -> int:
        """Return how many tasks of `demand` fit on `machine`, at most `most`."""
        if not self.takes(machine, demand):
            return 0
        row = self.free[machine]
        return max(0, min([most, *(row[resource] // amount for resource, amount in demand)]))

    def idle_share(self, machine: int) -> float:
        """Return the mean free share of the resources that `machine` has."""
        capacity = self.site.machines[machine].capacity
        shares = [
            free / most for free, most in zip(self.free[machine], capacity, strict=True) if most
        ]
        # Shares closer than `rounding.TOLERANCE` are equal, or the order of machines is one of
        # the last bits.
        return round(fsum(shares) / len(shares) * STEPS) / STEPS if shares else 0.0

    def most_idle(self, machines: Sequence[int]) -> list[int]:
        """Return `machines` by `idle_share`, the largest first, those with equal ones by index."""
        return sorted(machines, key=lambda machine: (-self.idle_share(machine), machine))

    def take(self, machine: int, demand: Demand, count: int) -> None:
        """Subtract `count` tasks of `demand` on `machine`; a negative count adds them back."""
        row = list(self.free[machine])
        for resource, amount in demand:
            row[resource] -= count * amount
        self.free[machine] = tuple(row)

    def hold(self, job: PolicyJob, allocation: Allocation) -> bool:
        """Subtract `allocation` if it fits, and return whether it did."""
        if len(allocation.workers) == 1 and not allocation.ps:  # as every job of a trace
            ((machine, count),) = allocation.workers
            before_it = self.free[machine]
            self.take(machine, job.worker, count)
            if self.takes(machine, job.worker) and min(self.free[machine]) >= 0:
                return True
            self.free[machine] = before_it
            return False
        self.occupy(job, allocation)
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, _ in tasks:
                # A task that reserves nothing leaves no negative amount on a
                # lost machine: that is asked by itself.
                if not self.takes(machine, demand) or min(self.free[machine]) < 0:
                    self.release(job, allocation)
                    return False
        return True

    def occupy(self, job: PolicyJob, allocation: Allocation, sign: int = 1) -> None:
        """Subtract `allocation` (`sign` -1: add it back) unchecked; amounts may become negative."""
        for tasks, demand in ((allocation.workers, job.worker), (allocation.ps, job.ps)):
            for machine, count in tasks:
                self.take(machine, demand, sign * count)

    def release(self, job: PolicyJob, allocation: Allocation) -> None:
        """Add back the capacity of `allocation`."""
        if allocation.workers or allocation.ps:  # not before a job's start, as for most of a trace
            self.occupy(job, allocation, -1)


class Placement(Protocol):
    """A rule that chooses machines for the tasks of a job, such as best fit.

    Examples
    --------
    All rules are used alike; what is placed is taken from the room.

    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> room = Room(site, [(4,), (2,)])
    >>> BestFit().place(room, job, 2, 0), room.free
    (Allocation(workers=((1, 2),), ps=()), [(4,), (0,)])
    """

    name: str

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks and subtract them from `room`; None, unchanged, if they do not fit."""
        ...


class TaskByTask:
    """Base of rules that place one task after the other, workers first, by `next_machine`."""

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        """Return the machine for one more task; None if no machine has the capacity."""
        raise NotImplementedError

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        if workers == 1 and not ps:  # as every job of a trace: nothing to take back
            host = self.next_machine(room, room.site.machines_for("worker"), job.worker, "worker")
            if host is None:
                return None
            room.take(host, job.worker, 1)
            return Allocation(((host, 1),))
        before = room.free.copy()
        placed: list[Tasks] = []
        for group, count in zip(GROUPS, (workers, ps), strict=True):
            tasks: dict[int, int] = {}
            demand, machines = group.of(job), room.site.machines_for(group)
            for _ in range(count):
                machine = self.next_machine(room, machines, demand, group)
                if machine is None:
                    room.free = before
                    return None
                room.take(machine, demand, 1)
                tasks[machine] = tasks.get(machine, 0) + 1
            placed.append(tuple(sorted(tasks.items())))
        on_workers, on_ps = placed
        return Allocation(on_workers, on_ps)


class BestFit(TaskByTask):
    """Places a task where least is left of what it needs; the lowest index among equals.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> BestFit().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((1, 3),)
    """

    name = "best-fit"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        best, least = None, None
        free = room.free
        if room.down or isinstance(demand, LimitedDemand):
            machines = [machine for machine in machines if room.takes(machine, demand)]
        if grains := room.site.grains:
            able = room.fitting(machines, demand)
            return min(
                able, key=lambda m: ([free[m][r] // grains[r] for r, _ in demand], m), default=None
            )
        for machine in machines:  # asked most of all: in half the time of the general form
            row = free[machine]
            amounts = []
            for resource, amount in demand:
                if row[resource] < amount:
                    break
                amounts.append(row[resource])
            else:
                # Amounts are compared resource by resource, the first one that differs decides; a
                # strict comparison keeps the lowest index among equals.
                if least is None or amounts < least:
                    best, least = machine, amounts
        return best


class RoundRobin(TaskByTask):
    """Places one task per machine, machine after machine, from where the last task was put.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> RoundRobin().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((0, 2), (1, 1))
    """

    name = "round-robin"

    def __init__(self) -> None:
        self._after: dict[str, int] = dict.fromkeys(GROUPS, 0)

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        size, begin = len(machines), self._after[group]
        for step in range(size):
            place = (begin + step) % size
            if room.fits(machines[place], demand):
                # The next task of any job goes on from here, so that
                # the load spreads over all machines.
                self._after[group] = place + 1
                return machines[place]
        return None


class FirstFit(TaskByTask):
    """Places a task on the machine with the lowest index where it fits.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> FirstFit().place(Room(site, [(4,), (3,)]), job, 3, 0).workers
    ((0, 3),)
    """

    name = "first-fit"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        return next((machine for machine in machines if room.fits(machine, demand)), None)


class Spread(TaskByTask):
    """Places a task where the free share is largest, as the default Kubernetes scheduler does.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> Spread().place(Room(site, [(2,), (4,)]), job, 3, 0).workers
    ((0, 1), (1, 2))
    """

    name = "spread"

    def next_machine(
        self, room: Room, machines: Sequence[int], demand: Demand, group: str
    ) -> int | None:
        return next(iter(room.most_idle(room.fitting(machines, demand))), None)


class OneNode:
    """Places all tasks on one machine: that with the smallest free share on which they fit.

    Where no machine hosts both workers and parameter servers, as on an instance of the model, all
    workers go on one machine and all parameter servers on one other.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> OneNode().place(Room(site, [(2, 4), (2, 2)]), job, 2, 1)
    Allocation(workers=((1, 2),), ps=((1, 1),))
    """

    name = "one-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        site, of_workers, of_ps = room.site, (job.worker, workers), (job.ps, ps)
        # On a cluster one machine may hold both groups; in the model the two never share one.
        if workers and ps and site.machines_for_both:
            home = server = _fullest(room, site.machines_for_both, of_workers, of_ps)
        else:
            home = _fullest(room, site.machines_for("worker"), of_workers) if workers else None
            server = _fullest(room, site.machines_for("ps"), of_ps) if ps else None
        if (workers and home is None) or (ps and server is None):
            return None
        allocation = Allocation(
            ((home, workers),) if home is not None else (),
            ((server, ps),) if server is not None else (),
        )
        room.hold(job, allocation)
        return allocation


class MostIdle:
    """Places tasks on the machines with most idle resources, filling one before the next.

    Parameter servers are placed first; the workers begin on the same machines.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> MostIdle().place(Room(site, [(2, 4), (4, 3)]), job, 3, 1)
    Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    """

    name = "most-idle"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        before = room.free.copy()
        # Parameter servers first: workers beside them send nothing over the network.
        servers = fill(room, room.most_idle(room.site.machines_for("ps")), job.ps, ps)
        hosts = room.site.machines_for("worker")
        used = [machine for machine, _ in servers or () if machine in set(hosts)]
        order = [*used, *(m for m in room.most_idle(hosts) if m not in set(used))]
        placed = fill(room, order, job.worker, workers) if servers is not None else None
        if servers is None or placed is None:
            room.free = before
            return None
        return Allocation(placed, servers)


class MinimumOnOneNode:
    """Places parameter servers and the fewest workers on one machine, other workers elsewhere.

    The other workers take what is left on that machine, and then the most idle ones.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu", "cpu"), (Machine("n0", (2.0, 4.0)), Machine("n1", (4.0, 4.0))))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((1, 1),), min_workers=2, max_workers=4)
    >>> MinimumOnOneNode().place(Room(site, [(2, 4), (4, 4)]), job, 3, 1)
    Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    """

    name = "minimum-on-one-node"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        before = room.free.copy()
        # The fewest workers can train without the network; those
        # beyond are an extra that may be far away.
        core = OneNode().place(room, job, min(workers, job.worker_counts[0]), ps)
        if core is None:
            return None
        home = [machine for machine, _ in core.workers]
        hosts = room.site.machines_for("worker")
        order = [*home, *(m for m in room.most_idle(hosts) if m not in home)]
        more = fill(room, order, job.worker, workers - core.worker_count)
        if more is None:
            room.free = before
            return None
        counts = Counter(dict(core.workers)) + Counter(dict(more))
        return Allocation(tuple(sorted(counts.items())), core.ps)


def _fullest(room: Room, machines: Sequence[int], *asked: tuple[Demand, int]) -> int | None:
    """Return the fullest machine on which `asked`, (demand, count) pairs, fit together; or None."""
    # Workers and parameter servers may ask for the same resource: their sum must fit.
    total: dict[int, int] = {}
    for demand, count in asked:
        machines = [machine for machine in machines if admits(demand, machine)]
        for resource, amount in demand:
            total[resource] = total.get(resource, 0) + count * amount
    fitting = room.fitting(machines, tuple(total.items()))
    # The fullest machine that is still enough leaves the emptier ones to larger jobs.
    return min(fitting, key=lambda machine: (room.idle_share(machine), machine), default=None)


def fill(room: Room, machines: Sequence[int], demand: Demand, count: int) -> Tasks | None:
    """Place `count` tasks on `machines` in their order and return them; None if not all fit."""
    tasks = []
    for machine in machines:
        if not count:
            break
        fitting = room.count(machine, demand, count)
        if fitting:
            room.take(machine, demand, fitting)
            tasks.append((machine, fitting))
            count -= fitting
    # Sorted by machine, so that equal allocations are equal whatever the order of placing.
    return None if count else tuple(sorted(tasks))


_RULES = (BestFit, RoundRobin, FirstFit, Spread, OneNode, MostIdle, MinimumOnOneNode)
PLACEMENTS: dict[str, Callable[[], Placement]] = {rule.name: rule for rule in _RULES}


def check_placement(name: str | None) -> str | None:
    """Return `name` if it is None or a placement rule has this name.

    Raises
    ------
    ValueError
        If there is none of this name.

    Examples
    --------
    >>> check_placement("spread")
    'spread'
    >>> check_placement("worst-fit")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    oasis.model.errors.InputError: placement: expected one of best-fit, ..., got 'worst-fit'
    """
    if name is not None and name not in PLACEMENTS:
        raise InputError("placement", f"expected one of {', '.join(PLACEMENTS)}", name)
    return name


def placement_named(name: str | None, site: Site) -> Placement:
    """Make the placement rule of this name.

    Parameters
    ----------
    name : str or None
        A key of `PLACEMENTS`. None: round-robin on slotted instances, as the rivals of the OASiS
        paper place, and best fit elsewhere.
    site : Site
        The machines.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> placement_named(None, Site(("gpu",), (Machine("n0", (4.0,)),))).name
    'best-fit'
    """
    if name is None:
        # Sec. V-A of the OASiS paper places its rivals round-robin.
        return RoundRobin() if site.slotted else BestFit()
    check_placement(name)
    return PLACEMENTS[name]()
