"""How fast a job works with what it holds; exchangeable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from oasis.scheduling.allocation import Allocation
from oasis.scheduling.job import PolicyJob
from oasis.simulator.load import Load


class Speed(Protocol):
    """A speed model.

    `coupled` says that the speed of a job depends on who else is on its machines: the engine then
    keeps the `Load` and works out anew how fast the jobs on a machine work whenever anything there
    has changed, else only the jobs that changed themselves. The engine asks for complete gangs
    only: with less, a job does no work at all.

    Examples
    --------
    Workers that are half as fast:

    >>> class Slow(Linear):
    ...     def rate(self, job, allocation, load):
    ...         return 0.5 * allocation.worker_count
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> work = rigid_workload([PlainJob("a", 0.0, 60.0, 8)], servers=1, gpus_per_server=8)
    >>> replay(work, FIFO(), speed=Slow()).completions
    [120.0]
    """

    @property
    def coupled(self) -> bool:
        """Whether jobs slow each other down."""
        ...

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        """Work of `job` done in a unit of time; its own tasks are part of `load`."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Constraint (2): a worker does one worker-slot of work in a slot, wherever it is.

    Examples
    --------
    >>> from oasis.simulator import Machine, Site
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,)))))
    >>> Linear().rate(job, Allocation(((0, 2), (1, 1))), load)
    3.0
    """

    coupled: ClassVar[bool] = False

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        workers = allocation.workers
        return float(workers[0][1] if len(workers) == 1 else sum(n for _, n in workers))


MOST_SHOWN = 1  # jobs in a `repr`


@dataclass(frozen=True, slots=True)
class ScalingTable:
    """Measured throughput by number of workers, and what spreading over machines costs.

    Parameters
    ----------
    speedup : mapping of str to tuple of float
        By job id: speed with 1, 2, .. workers in units of one worker; the last holds beyond.
        Jobs that are not named scale linearly.
    spread : float
        Factor on the speed of a job whose tasks are on more than one machine.
    sharing : float
        A job that shares a machine with k others runs at ``1 / (1 + sharing k)`` of its speed,
        for the machine with most tenants; 0 means that jobs do not disturb each other.

    Examples
    --------
    >>> from oasis.simulator import Machine, Site
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> load = Load(Site(("gpu",), (Machine("n0", (4.0,)),)))
    >>> ScalingTable({"a": (1.0, 1.7, 2.1)}).rate(job, Allocation(((0, 2),)), load)
    1.7
    """

    speedup: Mapping[str, tuple[float, ...]]
    spread: float = 1.0
    sharing: float = 0.0

    def __repr__(self) -> str:
        rest = f"spread={self.spread}, sharing={self.sharing}"
        if len(self.speedup) <= MOST_SHOWN:
            return f"ScalingTable(speedup={self.speedup}, {rest})"
        return f"<ScalingTable: {len(self.speedup)} jobs, {rest}>"

    @property
    def coupled(self) -> bool:
        return self.sharing > 0

    def rate(self, job: PolicyJob, allocation: Allocation, load: Load) -> float:
        workers = allocation.worker_count
        table = self.speedup.get(job.id)
        speed = float(workers) if not table else table[min(workers, len(table)) - 1]
        machines = allocation.machines
        if len(machines) > 1:
            speed *= self.spread
        if self.sharing:
            speed /= 1 + self.sharing * (max(load.tenants[machine] for machine in machines) - 1)
        return speed
