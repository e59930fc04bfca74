"""SpeCon: containers whose training hardly progresses make way for those that still progress."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from baselines.counts import on_node
from baselines.gangs import GangController, by_arrival
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE, difference, key
from oasis.scheduling import NOTHING, Allocation, Plan, PolicyJob, Room, RoundRobin, Site
from oasis.scheduling.job import Demand
from oasis.scheduling.policy import View


class Category(StrEnum):
    """Progress categories of a container (section V-A): PC, WC and CC of the paper."""

    PROGRESSING = "progressing"
    WATCHING = "watching"
    CONVERGED = "converged"


class Container:
    """A job as the paper's container: its category, and the last values of its evaluation."""

    # `home` is the machine where all of it runs, None if it waits or is spread; `value` and
    # `growth` (1) are those of the evaluation function at the last look, `largest` the largest
    # absolute value so far; `migrated`: Algorithm 2 has decided on it, `rebalanced`: Algorithm 3
    # has moved it.

    def __init__(self, job: PolicyJob, observed: bool = True) -> None:
        self.job, self.observed = job, observed
        self.migrated = self.rebalanced = False
        self.begin_again()

    def begin_again(self) -> None:
        """Line 2: forget home and progress; the job counts as progressing on its next worker."""
        self.home: int | None = None
        # One that Algorithm 2 has decided on is no longer looked at: it stays converged.
        if not self.migrated:
            self.category = Category.PROGRESSING
            self.converged_at: float | None = None
            self.value: float | None = None
            self.growth, self.largest = math.inf, 0.0

    def look(self, value: float, alpha: float, now: float) -> bool:
        """Lines 4-22: update the category by `value`; return whether it asks to be moved."""
        # Read, where Algorithm 1 says something else than the text of section V-A or is silent:
        # - Lines 10-12 move a watching container to the watching category, so that none would ever
        #   converge; the text moves it to the converged category.
        # - As printed, the conditions of lines 7, 10 and 13 are looked at one after the other, so
        #   that a container could go through all of them at once; in the text it takes one step.
        # - alpha is "a percentage value" of a growth in the unit of the evaluation function (Fig. 1
        #   shows "normalized values"): here a part of the largest value seen.
        # - There is no last growth when the first one is seen: that one counts as slower.
        # - A growth of exactly alpha, which the paper leaves out, changes nothing.
        last, self.value = self.value, value
        self.largest = max(self.largest, abs(value))
        # One value has no growth yet.
        if last is None:
            return False
        growth, before = abs(value - last), self.growth
        self.growth = growth
        share = growth / self.largest if self.largest else 0.0
        if difference(share, alpha) > 0:
            self.category, self.converged_at = Category.PROGRESSING, None
        # Slow but not slower than the last time, a container stays in its category.
        elif difference(share, alpha) < 0 and growth < before - TOLERANCE * self.largest:
            if self.category is Category.CONVERGED:
                return True
            if self.category is Category.WATCHING:
                self.category, self.converged_at = Category.CONVERGED, now
            else:
                self.category = Category.WATCHING
        return False


Size = tuple[Demand, Demand, int, int]


class InTurn:
    """Places a whole job on the next machine, in turn, that has room (section VI-C2)."""

    # A job too large for any machine, which the paper does not have, is spread task by task;
    # another one waits until a machine has room.
    name = "in-turn"

    def __init__(self) -> None:
        self._after = 0
        self._by_task = RoundRobin()
        self._small: dict[Size, bool] = {}

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        """Place all tasks; None, with `room` unchanged, if they do not fit."""
        machines = len(room.site.machines)
        hosts = set(room.fitting(room.site.machines_for("worker"), job.worker))
        for step in range(machines):
            machine = (self._after + step) % machines
            if machine in hosts:
                allocation = on_node(room, job, workers, ps, machine)
                if allocation is not None:
                    self._after = machine + 1
                    return allocation
        # It waits for a machine to come free, as the paper's containers never span two.
        if self._fits_one_machine(room, job, workers, ps):
            return None
        return self._by_task.place(room, job, workers, ps)

    def _fits_one_machine(self, room: Room, job: PolicyJob, workers: int, ps: int) -> bool:
        """Return whether the job would fit on some machine if that were empty."""
        size = (job.worker, job.ps, workers, ps)
        if size not in self._small:
            empty = Room(room.site, [machine.capacity for machine in room.site.machines])
            self._small[size] = any(
                on_node(empty, job, workers, ps, machine) is not None
                for machine in room.site.machines_for("worker")
            )
        return self._small[size]


# w_pc, w_wc and w_cc of Algorithm 2 (section VI-A).
WEIGHTS = {Category.PROGRESSING: 2.0, Category.WATCHING: 1.5, Category.CONVERGED: 1.0}
HasRoom = Callable[[Container, int], bool]
Usage = Callable[[int], float]
On = Mapping[int, Sequence[Container]]


def count(containers: Sequence[Container], *categories: Category) -> int:
    """Return the number of `containers` in any of `categories`."""
    return sum(container.category in categories for container in containers)


def worker_score(containers: Sequence[Container]) -> float:
    """Line 3 of Algorithm 2: return the score of a worker with these containers."""
    return key(sum(WEIGHTS[category] * count(containers, category) for category in Category))


def choose_host(container: Container, on: On, has_room: HasRoom, usage: Usage) -> int | None:
    """Algorithm 2: return the worker to which `container` moves; None if it stays."""
    # It stays if no score is lower than that of its own worker (lines 8-10), and else goes to the
    # worker with the lowest score, among several to that with the lowest resource consumption.
    scores = {worker: worker_score(containers) for worker, containers in on.items()}
    assert container.home is not None
    own = scores[container.home]
    # Lines 5-10: the lowest score first; a worker without room for what the container reserves,
    # which the paper's do not, is passed over for the next.
    for score in sorted({score for score in scores.values() if score < own}):
        able = [w for w in scores if scores[w] == score and has_room(container, w)]
        if able:
            return min(able, key=lambda worker: (usage(worker), worker))
    return None


def rebalance(on: On, move: Callable[[Container, int], None], has_room: HasRoom) -> None:
    """Algorithm 3: call `move` for converged containers, so that workers become more even."""
    # The converged duration is counted from when a container was found to have converged, as the
    # text says (section V-C), not from when it was marked as migrated (line 1), as not all are; one
    # that has not converged has no such duration and is not moved. Read: a container that was
    # rebalanced is not rebalanced again, which is what its mark is for; in lines 26-31, which print
    # w_i for w_j and would move one container again and again, each worker with room takes another.
    everyone = {id(container): container for containers in on.values() for container in containers}
    if not everyone:
        return
    factor = sum(map(len, on.values())) // len(on)  # line 9
    line = [
        container
        for container in everyone.values()
        if container.home is not None
        and not container.rebalanced
        and container.category is Category.CONVERGED
    ]
    # The shortest converged duration first: the container that converged last is moved.
    line.sort(key=lambda container: (-(container.converged_at or 0.0), container.job.index))
    idle = [worker for worker, containers in on.items() if not containers]
    if idle:  # lines 10-18
        candidates = idle if factor > 0 else []
        sources = set(on)
    else:  # lines 19-31
        candidates = [worker for worker in on if len(on[worker]) < factor - 1]
        sources = set(on) - set(candidates)
    for worker in candidates:
        able = (
            container
            for container in line
            if container.home in sources and has_room(container, worker)
        )
        # One for each worker: after it, the worker is no longer idle.
        chosen = next(able, None)
        if chosen is not None:
            line.remove(chosen)
            chosen.rebalanced = True
            move(chosen, worker)


MIGRATED, STAYED, REBALANCED = "migrated", "stayed", "rebalanced"


class Move(NamedTuple):
    """An entry of the manager's log: the decision on a container, its time and its reason."""

    # `kind` is "migrated" or "stayed" for what Algorithm 2 decided, "rebalanced" for Algorithm 3:
    # "-M" and "-R" in Fig. 9 of the paper.
    time: float
    job: str
    kind: str
    origin: int
    target: int


class SpeCon(GangController):
    """Jobs start on the machines in turn; those that have converged move out of the way.

    SpeCon (Mao et al.), Algorithms 1 to 3 of the paper.

    Each job is one container on one worker, and containers share the CPU of their worker
    (`PolicyJob.worker_cpu`). A new one goes to the next worker in turn (`InTurn`), and waits if
    none has room for what it reserves. Then `look_at_containers`, Algorithm 1, finds in every
    interval the jobs that still make progress; `reallocate`, Algorithm 2, moves converged ones,
    once in its life; and `even_out`, Algorithm 3, rebalances the workers. A moved container is
    saved and resumed: its allocation changes, and what that costs is up to the workload.

    Read, beside what is said at the algorithms: all containers are looked at before any is moved,
    at the multiples of the interval; after that, a request needs ``|PC| + |WC| > 1`` (line 15),
    whose sets alone in Algorithm 1 are printed without their worker: on its worker, as the
    algorithm runs on each; requests are answered in order of arrival; R(w, t), which the paper does
    not define, is what the tasks on a worker would keep busy of its cores, and what they reserve,
    as shares of what it has. Algorithm 3 runs whenever the manager looks, as it is printed, and not
    only once all containers have converged: in the paper's own run (Fig. 9) it moves Job-1 at
    620 s, when jobs that came until 600 s cannot have converged, which takes three looks, 60 s and
    more; and only so is the gain of Fig. 5 reproduced. Jobs that span machines never move. Where a
    job is not observed (`View.observed`), it counts as progressing.
    `experiments.figures.specon.OtherReading` reads line 15 and Algorithm 3 in other ways.

    Nothing bounds how long a container waits for a worker with room: smaller ones that come later
    may be placed before it.

    Parameters
    ----------
    alpha : float
        Categorisation threshold, as a share; 0.01 in most of the experiments (section VI).
    interval : float
        Categorisation interval t_m - t_(m-1), seconds; 30 in most of the experiments.

    Attributes
    ----------
    log : list of Move
        Decisions of the manager.

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
    Move(time=210.0, job='j0', kind='rebalanced', origin=0, target=1)
    """

    name = "specon"
    needs = "training curves"

    def __init__(self, alpha: float = 0.01, interval: float = 30.0) -> None:
        super().__init__(InTurn)
        if not 0 <= alpha < math.inf:
            raise InputError("alpha", "expected a number >= 0", alpha)
        if not 0 < interval < math.inf:
            raise InputError("interval", "expected seconds > 0", interval)
        self.alpha, self.interval = float(alpha), float(interval)

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
            # Looks at times without jobs are skipped: only the next multiple counts.
            self._looks = max(self._looks, int(view.now // interval))
            while self._looks * interval <= view.now:
                self._looks += 1
            # All are looked at before any is moved, or the first move
            # would change what the next one sees.
            for container in self.look_at_containers(view):
                self.reallocate(container, view.now)
        self.even_out(view.now)
        if len(self.log) > decided:  # a move may have made room for one that waits
            self.place_in_turn()
        # Without anybody to look at, no timer is needed.
        if self._watched:
            self._plan.wake_at = self._looks * interval
        return self._plan

    def place_in_turn(self) -> None:
        """The initial placement (section VI-A): each container on the next worker in turn."""
        self._queue.launch_all(by_arrival, self._launch, set())

    def look_at_containers(self, view: View) -> list[Container]:
        """Algorithm 1, the container monitors: return containers to be moved (lines 3-16)."""
        asking = []
        for index in sorted(self._watched):
            container = self._containers[index]
            seen = view.observed(container.job)
            if seen and container.look(seen[-1][1], self.alpha, view.now):
                asking.append(container)
        busy = (Category.PROGRESSING, Category.WATCHING)
        return [
            container
            for container in asking
            if container.home is not None and count(self._counted(container.home), *busy) > 1
        ]

    def reallocate(self, container: Container, now: float) -> None:
        """Algorithm 2, the SpeCon scheduler: move `container` to the best worker, or log a stay."""
        # A container that stays, too, has had the one decision of its life (lines 9, 15 and 20).
        container.migrated = True
        self._watched.discard(container.job.index)
        host = choose_host(container, self._workers(), self._has_room, self._usage)
        if host is None:
            assert container.home is not None
            self.log.append(Move(now, container.job.id, STAYED, container.home, container.home))
        else:
            self._move(container, host, now, MIGRATED)

    def even_out(self, now: float) -> None:
        """Algorithm 3 (section V-C): move converged containers to even out the workers."""
        rebalance(
            self._workers(),
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
        """Take `job`, which has ended or lost its worker, from the workers where it ran."""
        for machine in self._running.allocations.get(job.index, NOTHING).machines:
            self._on.get(machine, {}).pop(job.index, None)
        self._watched.discard(job.index)
        self._containers[job.index].begin_again()

    def _set(self, job: PolicyJob, allocation: Allocation) -> None:
        """Record that `job` holds `allocation`, also on its workers."""
        container = self._containers[job.index]
        for machine in self._running.allocations.get(job.index, NOTHING).machines:
            self._on.get(machine, {}).pop(job.index, None)
        super()._set(job, allocation)
        machines = allocation.machines
        container.home = min(machines) if len(machines) == 1 else None
        for machine in machines & self._on.keys():
            self._on[machine][job.index] = container
        if container.observed and not container.migrated:
            self._watched.add(job.index)

    def _move(self, container: Container, machine: int, now: float, kind: str) -> None:
        """Move `container` (save and resume) to `machine`, and log this as `kind`."""
        job, origin = container.job, container.home
        assert origin is not None
        before = self._running.allocations[job.index]
        allocation = _all_on(before, machine)
        self._room.release(job, before)
        self._room.hold(job, allocation)
        self._set(job, allocation)
        self.log.append(Move(now, job.id, kind, origin, machine))

    def _workers(self) -> dict[int, list[Container]]:
        """Return the workers that are up, and the containers on each."""
        return {m: self._at(m) for m in self._on if m not in self._down}

    def _counted(self, home: int) -> list[Container]:
        """Return the containers that count in line 15 of Algorithm 1 for worker `home`."""
        return self._at(home)

    def _at(self, machine: int) -> list[Container]:
        """Return the containers on `machine`."""
        return list(self._on[machine].values())

    def _has_room(self, container: Container, machine: int) -> bool:
        """Whether all tasks of `container` fit on `machine` now; nothing is moved."""
        before = self._running.allocations[container.job.index]
        allocation = _all_on(before, machine)
        if allocation.ps and machine not in self._site.machines_for_both:
            return False
        if not self._room.hold(container.job, allocation):
            return False
        self._room.release(container.job, allocation)  # it was only asked: nothing moves here
        return True

    def _usage(self, machine: int) -> float:
        """R(w, t): share of the machine's cores that are busy, plus the share of it reserved."""
        cores = []
        for container in self._at(machine):
            job, allocation = container.job, self._running.allocations[container.job.index]
            workers, ps = (dict(tasks).get(machine, 0) for tasks in allocation.by_group)
            cores.append(workers * job.worker_cpu + ps * job.ps_cpu)
        cores_of_all = self._site.machines[machine].cpu_cores
        return key(math.fsum(cores) / cores_of_all + 1.0 - self._room.idle_share(machine))


def _all_on(allocation: Allocation, machine: int) -> Allocation:
    """Return an allocation with as many tasks as `allocation`, all on `machine`."""
    ps = ((machine, allocation.ps_count),) if allocation.ps_count else ()
    return Allocation(((machine, allocation.worker_count),), ps)
