"""Dorm: an MILP partitions the cluster among the jobs at each event."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baselines.counts import Placing
from baselines.fair_shares import Fairness, Portions
from oasis.extras import require
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.rounding import TOLERANCE, FloatArray
from oasis.scheduling import Allocation, BasePolicy, JobBook, Plan, PolicyJob, Room, Site, View
from oasis.scheduling.job import Tasks, admits

if TYPE_CHECKING:
    import pulp

IDLE = "an answer that runs no job"


class Dorm(BasePolicy):
    """At each arrival and completion an MILP sets how many tasks each job has, and where.

    Sun, Wen, Ta and Yan (SMARTCOMP 2017, "Towards distributed machine learning in shared clusters:
    a dynamically-partitioned approach") fix: a job holds a partition of containers, at least n_min
    and at most n_max, that is resized while it runs; the MILP maximises utilisation, the sum over
    resources of the share in use, over counts on each server; the fairness loss, the sum over jobs
    of the distance between the dominant share and that of DRF, is at most ceil(theta_1 2m) for m
    resources; of the jobs that run before and after, at most ceil(theta_2 n) of n are changed;
    without a feasible answer the partitions stay. (The factor 2m and the rounding up are recalled,
    not checked against the printed text.) The OASiS paper fixes (section V-A): all jobs are
    admitted, and workers and parameter servers are counted and placed by the MILP.

    Chosen: a container is a worker, with b_i / B_i of a parameter server in its dominant share;
    parameter servers are as few as (6) allows, since more would be utilisation that does no work;
    n_max is N_i; m counts what the jobs of the moment demand, a resource of the worker servers and
    the same of the parameter-server hosts as two, unless some machine hosts both (`Pools`); the
    shares of DRF are those of divisible workers (`fair_shares`). A job that runs keeps at least its
    fewest workers; one that waits may go on waiting, but the objective first counts the jobs that
    run, which is the source's n_min for all wherever that is possible. Both thetas are 0.1, of the
    values that the source tries.

    Three concessions to time, all counted in `report`. The MILP decides on the jobs whose possible
    places number at most `places`: by turns the one that has waited longest and, of those that run,
    the one farthest from its fair share; the others keep what they have, and their part of the
    fairness loss is charged (`restricted`). A job left out that waits is then started with its
    fewest workers where it fits and the fairness limit allows. It stops after `node_limit` nodes
    with the best answer it has (`node_limit`): never after seconds, so that runs repeat. Without an
    answer, or an answer that runs no job, the partitions stay, and waiting jobs are started as
    before but whatever the fairness loss: no job waits on an idle cluster (`fell_back`, with the
    reason).

    Parameters
    ----------
    theta_1, theta_2 : float
        Limits of the fairness loss and of the adjustments, 0 to 1.
    node_limit : int
        Nodes of one branch-and-bound search.
    places : int
        Pairs of a job and a machine in one MILP; a single job may have more.
    placement : str or None
        Rule by which jobs that are started without the MILP are placed, such as ``best-fit``; None:
        round-robin on instances, best fit elsewhere.

    Examples
    --------
    Two jobs that could each use the four GPUs share them:

    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [PolicyJob(name, 0.0, 8.0, ((0, 1),), max_workers=4) for name in "ab"]
    >>> work = Workload.of(Site(("gpu",), (Machine("n0", (4.0,)),)), jobs)
    >>> replay(work, Dorm()).completions
    [4.0, 4.0]
    """

    name = "dorm"
    is_slow = True

    def __init__(
        self,
        theta_1: float = 0.1,
        theta_2: float = 0.1,
        *,
        node_limit: int = 20,
        places: int = 600,
        placement: str | None = None,
    ) -> None:
        if not (0 <= theta_1 <= 1 and 0 <= theta_2 <= 1):
            raise InputError("", f"expected theta_1 and theta_2 in 0..1, got {theta_1}, {theta_2}")
        if node_limit < 1 or places < 1:
            limits = f"{node_limit}, {places}"
            raise InputError("", f"expected node_limit and places of at least 1, got {limits}")
        self.theta_1, self.theta_2 = theta_1, theta_2
        self.node_limit, self.places = node_limit, places
        self.outcomes: list[str] = []
        self._placing = Placing(placement)
        self._restricted, self._solver = 0, ""

    @property
    def report(self) -> Mapping[str, Any]:
        """Counts of MILPs by result, why some had no answer, and the version of the solver."""
        outcomes = Counter(self.outcomes)
        answered = {name: outcomes.pop(name, 0) for name in ("optimal", "node_limit")}
        return {
            "milps": len(self.outcomes),
            **answered,
            "fell_back": outcomes.total(),
            "reasons": dict(sorted(outcomes.items())),
            "restricted": self._restricted,
            "solver": self._solver,
        }

    def reset(self, site: Site) -> None:
        # here, so that whoever has no solver hears of it before the run
        require("Dorm", "pulp", "highspy")
        from oasis.solvers import highs  # noqa: PLC0415 (needs an extra)

        self._solver = highs.version()
        self._site, self._portions = site, Portions(site)
        self._book = JobBook(self._placing.empty(site).fewest)
        self._jobs = self._book.jobs
        self.outcomes, self._restricted = [], 0

    def decide(self, view: View) -> Plan:
        plan = Plan()
        self._book.update(view, plan)
        if self._jobs:
            self._repartition(view, plan)
        return plan

    def _repartition(self, view: View, plan: Plan) -> None:
        """Set new allocations of all jobs by the MILP, and start waiting jobs beside them."""
        before = {index: view.allocation(job) for index, job in self._jobs.items()}
        fairness = Fairness.among(self._jobs, self._portions, view.capacity())
        # counted by demand: a machine that no job can use would otherwise loosen the limit
        most_loss = float(rounding.ceil(self.theta_1 * 2 * fairness.kinds))
        after = self._solve(view, before, fairness, most_loss)
        allocations = before | (after or {})
        room = Room(self._site, view.capacity(), view.down())
        for index, allocation in allocations.items():
            room.hold(self._jobs[index], allocation)
        # Without an answer there is no fair partition to protect,
        # and an idle machine is worth nothing.
        limit = math.inf if after is None else most_loss
        self._start_waiting(allocations, room, fairness, limit)
        # A limit on unfairness that leaves all machines idle protects no job.
        if not any(gang.workers for gang in allocations.values()):
            self._start_waiting(allocations, room, fairness, math.inf)
            if any(gang.workers for gang in allocations.values()):
                self.outcomes[-1] = IDLE
        plan.changes = {i: gang for i, gang in allocations.items() if gang != before[i]}

    def _start_waiting(
        self, allocations: dict[int, Allocation], room: Room, fairness: Fairness, limit: float
    ) -> None:
        """Start waiting jobs, in order of arrival, as far as the fairness loss stays in `limit`."""
        loss = fairness.total(allocations)
        for index, job in self._jobs.items():
            if allocations[index].workers:
                continue
            with_it = loss - fairness.loss(index, 0) + fairness.loss(index, job.worker_counts[0])
            started = self._start(job, room) if rounding.within(with_it, limit) else None
            if started is not None:
                allocations[index], loss = started, with_it

    def _solve(
        self,
        view: View,
        before: Mapping[int, Allocation],
        fairness: Fairness,
        most_loss: float,
    ) -> dict[int, Allocation] | None:
        """Return allocations of the chosen jobs from the MILP; None if it has no answer."""
        chosen = dict.fromkeys(self._choose(before, fairness))
        others = [index for index in self._jobs if index not in chosen]
        self._restricted += bool(others)
        room = Room(self._site, view.capacity(), view.down())
        for index in others:
            room.hold(self._jobs[index], before[index])
        # The limit is one on all jobs: those left out have used up their part of it.
        charged = fairness.total({index: before[index] for index in others})
        running = sum(1 for allocation in before.values() if allocation.workers)
        partition = Partition(
            self._site,
            room.free,
            [
                Candidate.of(self._jobs[index], before[index], self._portions, fairness)
                for index in chosen
            ],
            most_loss - charged,
            int(rounding.ceil(self.theta_2 * running)),
            room.down,
        )
        outcome, answer = partition.solve(self.node_limit)
        self.outcomes.append(outcome)
        return answer

    def _choose(self, before: Mapping[int, Allocation], fairness: Fairness) -> list[int]:
        """Select jobs for the MILP, with at most `self.places` pairs of a job and a machine."""
        waiting = [index for index in self._jobs if not before[index].workers]
        running = [index for index in self._jobs if before[index].workers]
        # The MILP can gain most on the least fair ones; equal ones in order of arrival.
        running.sort(key=lambda index: (-fairness.loss(index, before[index].worker_count), index))
        chosen: list[int] = []
        places = 0
        for k in range(max(len(waiting), len(running))):
            for index in waiting[k : k + 1] + running[k : k + 1]:
                places += len(self._site.machines_for("worker"))
                if any(self._jobs[index].ps_line):
                    places += len(self._site.machines_for("ps"))
                # A job with more places than the limit is decided on
                # alone: otherwise it never would be.
                if chosen and places > self.places:
                    return chosen
                chosen.append(index)
        return chosen

    def _start(self, job: PolicyJob, room: Room) -> Allocation | None:
        """Place the fewest tasks of `job` in `room`; None if they do not fit."""
        return self._placing.on(self._site).place(room, job, *self._book.counts[job.index])


# A job whose count lies this little above a whole number of parameter servers is not given it.
MARGIN = 1e-6

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that the MILP may start, resize or move, with its shares and its fair share."""

    job: PolicyJob
    allocation: Allocation
    portions: tuple[FloatArray, FloatArray]  # share of each resource by a worker, and by a server
    per_worker: float  # dominant share of one worker
    fair: float  # dominant share that is fair

    @classmethod
    def of(
        cls, job: PolicyJob, allocation: Allocation, portions: Portions, fairness: Fairness
    ) -> Candidate:
        """Make a candidate of `job` with its present `allocation`, its shares and its fairness."""
        worker, ps = (portions.of_task(job, group) for group in GROUPS)
        index = job.index
        return cls(job, allocation, (worker, ps), fairness.per_worker[index], fairness.fair[index])

    @property
    def runs(self) -> bool:
        """Whether the job runs now."""
        return bool(self.allocation.workers)


class Partition:
    """The mixed-integer linear program that sets tasks by job and machine at one moment."""

    def __init__(
        self,
        site: Site,
        free: list[Row],
        candidates: Sequence[Candidate],
        most_loss: float,
        most_changes: int,
        down: Collection[int] = (),
    ) -> None:
        self._site, self._free, self._candidates = site, free, candidates
        self._down = down
        import pulp  # noqa: PLC0415 (needs an extra)

        self._pulp, self.problem = pulp, pulp.LpProblem("Dorm", pulp.LpMaximize)
        self._loads: dict[tuple[int, int], list[tuple[pulp.LpVariable, int]]] = {}
        self._tasks: list[tuple[dict[int, pulp.LpVariable], ...]] = []
        self._objective: list[tuple[pulp.LpVariable, float]] = []
        losses, changes = [], []
        for k, candidate in enumerate(candidates):
            loss, change = self._add_job(k, candidate)
            losses.append(loss)
            changes += change
        self.problem.setObjective(pulp.LpAffineExpression(self._objective))
        self._require(pulp.lpSum(losses) <= most_loss, "fairness")
        if changes:
            self._require(pulp.lpSum(changes) <= most_changes, "adjustment")
        for (machine, resource), load in self._loads.items():
            room = free[machine][resource]
            # In shares of what is free: HiGHS's tolerance is absolute,
            # and grid units are far too large for it.
            # Equal loads have one coefficient, and none is too large: what fits stays allowed.
            row = pulp.LpAffineExpression(
                (v, rounding.key(amount / room) * (1 - TOLERANCE)) for v, amount in load
            )
            self._require(row <= 1, f"capacity_{machine}_{resource}")

    def solve(self, node_limit: int) -> tuple[str, dict[int, Allocation] | None]:
        """Return the outcome in words, and allocations by index of job; None: no answer."""
        from oasis.solvers import Status, highs  # noqa: PLC0415 (needs an extra)

        solution = highs.solve(self.problem, node_limit=node_limit)
        if solution.status is Status.INTERRUPTED:  # the solver has swallowed Ctrl-C
            raise KeyboardInterrupt
        if solution.objective is None:
            return f"{solution.status} without a solution", None
        answer = {
            candidate.job.index: Allocation(
                _read(workers, solution.values), _read(ps, solution.values)
            )
            for candidate, (workers, ps) in zip(self._candidates, self._tasks, strict=True)
        }
        # HiGHS forgives 1e-9 in each row; the check of plans counts in
        # whole grid units and forgives nothing.
        if not self._is_exact(answer):
            return "a solution that rounding breaks", None
        return str(solution.status), answer

    def _require(self, row: pulp.LpConstraint, name: str) -> None:
        self.problem.addConstraint(row, name)

    def _add_job(
        self, k: int, candidate: Candidate
    ) -> tuple[pulp.LpVariable, list[pulp.LpVariable]]:
        """Add rows (3), (6), (7) of job `k`; return variables of fairness loss and of changes."""
        job = candidate.job
        # A job that runs is kept running: its lower limit is 1.
        runs = self.problem.add_variable(f"runs_{k}", int(candidate.runs), 1, self._pulp.LpInteger)
        most = (job.max_workers, job.ps_needed(job.max_workers))
        workers, ps = (self._add_tasks(k, job, *pair) for pair in zip(GROUPS, most, strict=True))
        self._tasks.append((workers, ps))
        count = self._add_count(f"n_{k}", workers, job.max_workers)
        needed, fixed = job.ps_line
        servers = self._add_count(f"p_{k}", ps, max(job.max_workers, fixed))
        self._require(count >= job.worker_counts[0] * runs, f"fewest_{k}")
        self._require(count <= job.max_workers * runs, f"(3)_{k}")
        # The same tolerance as `ps_needed`, or the MILP would ask
        # for one server more than the rule.
        slack = TOLERANCE * max(1.0, needed * job.max_workers)
        self._require(servers >= needed * count + fixed * runs - slack, f"(6)_{k}")
        # no more of them than (6) asks for, and so no more than workers (7)
        self._require(servers <= needed * count + (fixed + 1 - MARGIN) * runs, f"(7)_{k}")
        # The absolute value of the distance as two rows: the limit on the sum presses it down.
        loss = self.problem.add_variable(f"loss_{k}", 0)
        self._require(loss >= candidate.per_worker * count - candidate.fair, f"above_{k}")
        self._require(loss >= candidate.fair - candidate.per_worker * count, f"below_{k}")
        # utilisation is at most K: to run one job more comes before it
        self._objective.append((runs, 1.0 + len(candidate.portions[0])))
        used = zip((count, servers), candidate.portions, strict=True)
        self._objective += [(variable, float(portion.sum())) for variable, portion in used]
        return loss, self._add_change(k, candidate) if candidate.runs else []

    def _add_tasks(
        self, k: int, job: PolicyJob, group: TaskGroup, most: int
    ) -> dict[int, pulp.LpVariable]:
        """Add a variable for each machine: how many tasks of `group` run there; return them."""
        tasks, demand = {}, group.of(job)
        for machine in self._site.machines_for(group):
            room = self._free[machine]
            fit = min([most, *(room[resource] // amount for resource, amount in demand)])
            if fit > 0 and machine not in self._down and admits(demand, machine):
                name = f"{group}_{k}_{machine}"
                task = self.problem.add_variable(name, 0, fit, self._pulp.LpInteger)
                tasks[machine] = task
                for resource, amount in demand:
                    self._loads.setdefault((machine, resource), []).append((task, amount))
        return tasks

    def _add_count(
        self, name: str, tasks: dict[int, pulp.LpVariable], most: int
    ) -> pulp.LpVariable:
        """Add a variable for the sum of `tasks` over the machines, at most `most`."""
        count = self.problem.add_variable(name, 0, most, self._pulp.LpInteger)
        self._require(self._pulp.lpSum(tasks.values()) == count, f"count_{name}")
        return count

    def _add_change(self, k: int, candidate: Candidate) -> list[pulp.LpVariable]:
        """Add a 0-1 variable for adjusting a running job; if it is 0, all its tasks stay."""
        change = self.problem.add_variable(f"change_{k}", 0, 1, self._pulp.LpInteger)
        for group, tasks, placed in zip(
            GROUPS, self._tasks[-1], candidate.allocation.by_group, strict=True
        ):
            before = dict(placed)
            for machine, task in tasks.items():
                count = before.get(machine, 0)
                more = int(task.upBound) - count
                # Without a change both rows pin the count to what it
                # was; with one they say nothing.
                self._require(task <= count + more * change, f"most_{group}_{k}_{machine}")
                if count:
                    least = count - count * change
                    self._require(task >= least, f"least_{group}_{k}_{machine}")
        return [change]

    def _is_exact(self, answer: dict[int, Allocation]) -> bool:
        """Return whether all counts are allowed and fit to the grid unit, despite tolerances."""
        room = Room(self._site, self._free.copy(), self._down)
        for candidate in self._candidates:
            job, allocation = candidate.job, answer[candidate.job.index]
            workers = allocation.worker_count
            fits = not workers or workers in job.worker_counts
            if (
                not fits
                or allocation.ps_count != job.ps_needed(workers)
                or not room.hold(job, allocation)
            ):
                return False
        return True


def _read(variables: dict[int, pulp.LpVariable], values: Mapping[str, float]) -> Tasks:
    """Return the tasks by machine in a solution, without machines that have none."""
    counts = ((machine, round(values[v.name])) for machine, v in variables.items())
    return tuple((machine, count) for machine, count in counts if count)
