"""What one job holds: workers and parameter servers by machine."""

from __future__ import annotations

from typing import NamedTuple

Tasks = tuple[tuple[int, int], ...]


class Allocation(NamedTuple):
    """Workers and parameter servers of one job, machine by machine.

    Parameters
    ----------
    workers, ps : tuple of (machine, count)
        Index of the machine in `Site.machines` and a positive count, each machine once.

    Examples
    --------
    Three workers on two machines, and a parameter server beside two of them:

    >>> held = Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    >>> held.worker_count, held.ps_count, held.machines
    (3, 1, {0, 1})
    """

    workers: Tasks = ()
    ps: Tasks = ()

    @property
    def worker_count(self) -> int:
        """Workers on all machines."""
        return sum(count for _, count in self.workers)

    @property
    def ps_count(self) -> int:
        """Parameter servers on all machines."""
        return sum(count for _, count in self.ps)

    @property
    def machines(self) -> set[int]:
        """Every machine that hosts a task."""
        return {machine for tasks in self for machine, _ in tasks}


NOTHING = Allocation()
