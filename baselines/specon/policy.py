"""SpeCon: training that hardly makes progress any more moves out of the way of what still does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from baselines.gang_controller import GangController
from baselines.gang_queue import by_arrival
from baselines.specon.container import Category, Container
from baselines.specon.in_turn import InTurn
from baselines.specon.workers import choose_host, count, rebalance
from oasis.scheduling import NOTHING, Allocation, Plan, PolicyJob, Site
from oasis.scheduling.policy import View

MIGRATED, STAYED, REBALANCED = "migrated", "stayed", "rebalanced"
WORKER, CLUSTER = "worker", "cluster"
ALL_CONVERGED, ALWAYS = "converged", "always"


class Move(NamedTuple):
    """An entry of the manager's log: what was decided on a container, when and why.

    `kind` is "migrated" or "stayed" for what Algorithm 2 decided, "rebalanced" for Algorithm 3:
    "-M" and "-R" in Fig. 9 of the paper.
    """

    time: float
    job: str
    kind: str
    origin: int
    target: int


class SpeCon(GangController):
    """SpeCon (Mao et al.): Algorithms 1 to 3 of the paper.

    Each job is one container on one worker, and containers share the CPU of their worker
    (`PolicyJob.worker_cpu`). A new one goes to the next worker in turn (`InTurn`), and waits if
    none has room for what it reserves. Then `look_at_containers`, Algorithm 1, finds in every
    interval who still makes progress; `reallocate`, Algorithm 2, moves who has converged, once in
    its life; and `even_out`, Algorithm 3, rebalances the workers. A moved
    container is saved and resumed: its allocation changes, and what that costs is up to the
    workload.

    Read, beside what is said at the algorithms: all containers are looked at before any is moved,
    at the multiples of the interval; after that, a request needs ``|PC| + |WC| > 1`` (line 15),
    whose sets alone in Algorithm 1 are printed without their worker: on its worker, as the
    algorithm runs on each, or, with ``counted="cluster"``, anywhere; requests are answered in order
    of arrival; Algorithm 3 runs when all containers have converged, as the text of section V-C has
    it, or, with ``rebalancing="always"``, whenever the manager looks, as it is printed, without any
    such condition; R(w, t), which the paper does not define, is what the tasks on a worker would
    keep busy of its cores, and what they reserve, as shares of what it has. Jobs that span machines
    never move. Where nobody looks at a job (`View.observed`), it counts as progressing.

    Nothing bounds how long a container waits for a worker with room: smaller ones that come later
    may be placed before it.

    Parameters
    ----------
    alpha : float
        Categorisation threshold, as a share; 0.01 in most of the experiments (section VI).
    interval : float
        Categorisation interval t_m - t_(m-1), seconds; 30 in most of the experiments.
    weights : tuple of float
        w_pc, w_wc and w_cc of Algorithm 2 (section VI-A).
    counted : {"worker", "cluster"}
        Where line 15 of Algorithm 1 counts containers that still make progress.
    rebalancing : {"converged", "always"}
        When Algorithm 3 runs. In the paper's own run (Fig. 9) it moves Job-1 at 620 s, though jobs
        come until 600 s and need three looks, 60 s and more, to converge.

    Attributes
    ----------
    log : list of Move
        What the manager decided.

    Examples
    --------
    Three jobs on the first of two workers, which have a core each: the first converges early, and
    leaves the other two behind for the second worker, where the short jobs have ended.

    >>> from oasis.scheduling import TrainingCurve
    >>> from oasis.simulator import Machine, Observation, TrainingSpeed, Workload, replay
    >>> site = Site(("gb",), tuple(Machine(name, (64.0,), cpu_cores=1.0) for name in "ab"))
    >>> early = TrainingCurve.exponential(1.0, 0.1, 40.0)
    >>> steady = TrainingCurve(((0.0, 1.0), (1.0, 0.1)))
    >>> jobs = [
    ...     PolicyJob(f"j{k}", 0.0, work, (), worker_cpu=1.0, curve=early if k == 0 else steady)
    ...     for k, work in enumerate((400.0, 9.0, 300.0, 9.0, 300.0, 9.0))
    ... ]
    >>> policy = SpeCon()
    >>> options = {"speed": TrainingSpeed(), "observation": Observation(30.0)}
    >>> outcome = replay(Workload.of(site, jobs), policy, **options)
    >>> policy.log[0]
    Move(time=240.0, job='j0', kind='migrated', origin=0, target=1)
    """

    name = "specon"

    def __init__(
        self,
        alpha: float = 0.01,
        interval: float = 30.0,
        *,
        weights: tuple[float, ...] = (2.0, 1.5, 1.0),
        counted: str = WORKER,
        rebalancing: str = ALL_CONVERGED,
    ) -> None:
        super().__init__(InTurn)
        if not 0 <= alpha < math.inf:
            raise ValueError(f"alpha: expected a number >= 0, got {alpha}")
        if not 0 < interval < math.inf:
            raise ValueError(f"interval: expected seconds > 0, got {interval}")
        if len(weights) != 3 or not all(0 <= weight < math.inf for weight in weights):
            raise ValueError(f"weights: expected three numbers >= 0, got {weights}")
        if counted not in (WORKER, CLUSTER):
            raise ValueError(f"counted: expected {WORKER} or {CLUSTER}, got {counted!r}")
        if rebalancing not in (ALL_CONVERGED, ALWAYS):
            raise ValueError(
                f"rebalancing: expected {ALL_CONVERGED} or {ALWAYS}, got {rebalancing!r}"
            )
        self.counted, self.rebalancing = counted, rebalancing
        self.alpha, self.interval = float(alpha), float(interval)
        self._weights = dict(zip(Category, map(float, weights), strict=True))

    @property
    def parameters(self) -> Mapping[str, Any]:
        weights = list(self._weights.values())
        return {
            "alpha": self.alpha,
            "interval": self.interval,
            "weights": weights,
            "counted": self.counted,
            "rebalancing": self.rebalancing,
        }

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._containers: dict[int, Container] = {}
        self._on: dict[int, dict[int, Container]] = {
            machine: {} for machine in site.machines_for("worker")
        }
        self._watched: set[int] = set()  # running containers that Algorithm 1 looks at
        self._looks = 0
        self.log: list[Move] = []

    def decide(self, view: View) -> Plan:
        self._begin(view)
        self.place_in_turn()
        decided, interval = len(self.log), self.interval / self._site.unit_seconds
        if self._looks * interval <= view.now:
            self._looks = max(self._looks, int(view.now // interval))
            while self._looks * interval <= view.now:
                self._looks += 1
            for container in self.look_at_containers(view):
                self.reallocate(container, view.now)
        self.even_out(view.now)
        if len(self.log) > decided:
            self.place_in_turn()
        if self._watched:
            self._plan.wake_at = self._looks * interval
        return self._plan

    def place_in_turn(self) -> None:
        """The initial placement (section VI-A): each container on the next worker in turn."""
        self._queue.launch_all(by_arrival, self._launch, set())

    def look_at_containers(self, view: View) -> list[Container]:
        """Algorithm 1, the container monitors: who asks to be moved (lines 3-16)."""
        asking = []
        for index in sorted(self._watched):
            container = self._containers[index]
            seen = view.observed(container.job)
            if seen and container.look(seen[-1][1], self.alpha, view.now):
                asking.append(container)
        everyone = [self._containers[job.index] for job in self._running]
        busy = (Category.PROGRESSING, Category.WATCHING)
        return [
            each
            for each in asking
            if each.home is not None
            and count(self._at(each.home) if self.counted == WORKER else everyone, *busy) > 1
        ]

    def reallocate(self, container: Container, now: float) -> None:
        """Algorithm 2, the SpeCon scheduler: move `container` to the best worker, or let it stay.

        Whatever is decided is the once in its life that it is decided (lines 9, 15 and 20).
        """
        container.migrated = True
        self._watched.discard(container.job.index)
        host = choose_host(container, self._workers(), self._weights, self._has_room, self._usage)
        if host is None:
            assert container.home is not None
            self.log.append(Move(now, container.job.id, STAYED, container.home, container.home))
        else:
            self._move(container, host, now, MIGRATED)

    def even_out(self, now: float) -> None:
        """Algorithm 3, for the containers that have converged (section V-C)."""
        converged = Category.CONVERGED
        if self.rebalancing == ALWAYS or all(
            self._containers[job.index].category is converged for job in self._running
        ):
            rebalance(
                self._workers(),
                now,
                lambda container, worker: self._move(container, worker, now, REBALANCED),
                self._has_room,
            )

    def _begin(self, view: View) -> None:
        for job in (*view.finished, *view.evicted):
            self._leave(job)
        for job in view.finished:
            self._containers.pop(job.index, None)
        for job in view.arrived:
            self._containers[job.index] = Container(job, observed=view.observed(job) is not None)
        super()._begin(view)

    def _leave(self, job: PolicyJob) -> None:
        """Take `job`, which has ended or lost its worker, from where it ran."""
        for machine in self._running.held.get(job.index, NOTHING).machines:
            self._on.get(machine, {}).pop(job.index, None)
        self._watched.discard(job.index)
        self._containers[job.index].begin_again()

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Let `job` hold `allocation`, and enter it on its workers."""
        container = self._containers[job.index]
        for machine in self._running.held.get(job.index, NOTHING).machines:
            self._on.get(machine, {}).pop(job.index, None)
        super()._set(job, allocation)
        machines = allocation.machines
        container.home = min(machines) if len(machines) == 1 else None
        for machine in machines & self._on.keys():
            self._on[machine][job.index] = container
        if container.observed and not container.migrated:
            self._watched.add(job.index)

    def _move(self, container: Container, machine: int, now: float, kind: str) -> None:
        """Save `container` and restore it on `machine`."""
        job, origin = container.job, container.home
        assert origin is not None
        held = self._running.held[job.index]
        there = _all_on(held, machine)
        self._room.release(job, held)
        self._room.hold(job, there)
        self._set(job, there)
        self.log.append(Move(now, job.id, kind, origin, machine))

    def _workers(self) -> dict[int, list[Container]]:
        """The workers that are there, and the containers on each."""
        return {m: self._at(m) for m in self._on if m not in self._down}

    def _at(self, machine: int) -> list[Container]:
        return list(self._on[machine].values())

    def _has_room(self, container: Container, machine: int) -> bool:
        held = self._running.held[container.job.index]
        there = _all_on(held, machine)
        if there.ps and machine not in self._site.machines_for_both:
            return False
        if not self._room.hold(container.job, there):
            return False
        self._room.release(container.job, there)
        return True

    def _usage(self, machine: int) -> float:
        """R(w, t): what is asked of its cores, and what is reserved, as shares of what it has."""
        cores = []
        for container in self._at(machine):
            job, held = container.job, self._running.held[container.job.index]
            workers, ps = dict(held.workers).get(machine, 0), dict(held.ps).get(machine, 0)
            cores.append(workers * job.worker_cpu + ps * job.ps_cpu)
        there = self._site.machines[machine].cpu_cores
        return math.fsum(cores) / there + 1.0 - self._room.idle_share(machine)


def _all_on(held: Allocation, machine: int) -> Allocation:
    """As many tasks as `held` has, all on `machine`."""
    ps = ((machine, held.ps_count),) if held.ps_count else ()
    return Allocation(((machine, held.worker_count),), ps)
