"""Where SpeCon first puts a container: on the next worker in turn."""

from __future__ import annotations

from baselines.node import on_node
from oasis.scheduling import Allocation, PolicyJob, Room, RoundRobin
from oasis.scheduling.job import Demand

Size = tuple[Demand, Demand, int, int]


class InTurn:
    """A whole job on the next machine in turn that has room for it.

    The paper puts containers 1, 2, 3, 4 on workers 1, 2, 3, 4 and then begins again (section
    VI-C2), under both of the schedulers that it compares. A job too large for any machine, which
    the paper does not have, is spread task by task; another one waits until a machine has room.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "abc"))
    >>> room, rule = Room(site, [(4,), (1,), (4,)]), InTurn()
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> [rule.place(room, job, 2, 0).workers for _ in range(3)]
    [((0, 2),), ((2, 2),), ((0, 2),)]
    >>> rule.place(room, job, 4, 0) is None
    True
    """

    name = "in-turn"

    def __init__(self) -> None:
        self._after = 0
        self._by_task = RoundRobin()
        self._small: dict[Size, bool] = {}

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Put all tasks into `room`; return None and change nothing if they do not fit."""
        machines = len(room.site.machines)
        hosts = set(room.fitting(room.site.machines_for("worker"), job.worker))
        for step in range(machines):
            machine = (self._after + step) % machines
            if machine in hosts:
                found = on_node(room, job, workers, ps, machine)
                if found is not None:
                    self._after = machine + 1
                    return found
        if self._fits_one_machine(room, job, workers, ps):
            return None
        return self._by_task.place(room, job, workers, ps)

    def _fits_one_machine(self, room: Room, job: PolicyJob, workers: int, ps: int) -> bool:
        """Whether the job would fit on a machine with nobody on it."""
        size = (job.worker, job.ps, workers, ps)
        if size not in self._small:
            empty = Room(room.site, [machine.capacity for machine in room.site.machines])
            self._small[size] = any(
                on_node(empty, job, workers, ps, machine) is not None
                for machine in room.site.machines_for("worker")
            )
        return self._small[size]
