"""The MILP of Dorm: counts and places of the tasks of some jobs, the others staying where they are.

The rows carry the names of what they say; `Partition.solve` reads the answer and checks it with
exact integers, so that a solver's tolerance never reaches the machines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pulp

from baselines.fair_shares import Fairness, Portions
from oasis.model import rounding
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.rounding import TOLERANCE, FloatArray
from oasis.scheduling.job import Allocation, PolicyJob, Tasks, admits
from oasis.scheduling.placement import Room
from oasis.scheduling.site import Site
from oasis.solvers import Status, highs

# A job whose count lies this little above a whole number of parameter servers is not given it.
MARGIN = 1e-6

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that the MILP may start, resize or move.

    Parameters
    ----------
    job : PolicyJob
        The job.
    held : Allocation
        What it holds; `NOTHING` if it waits.
    portions : tuple of (K,) float array
        Share of each resource that one worker, and one parameter server, takes.
    per_worker : float
        Dominant share of one worker.
    fair : float
        Dominant share that is fair.
    """

    job: PolicyJob
    held: Allocation
    portions: tuple[FloatArray, FloatArray]
    per_worker: float
    fair: float

    @classmethod
    def of(
        cls, job: PolicyJob, held: Allocation, portions: Portions, fairness: Fairness
    ) -> Candidate:
        """`job` as it stands."""
        worker, ps = (portions.of_task(job, group) for group in GROUPS)
        index = job.index
        return cls(job, held, (worker, ps), fairness.per_worker[index], fairness.fair[index])

    @property
    def runs(self) -> bool:
        """Whether the job runs now."""
        return bool(self.held.workers)


class Partition:
    """The MILP of one repartition.

    Parameters
    ----------
    site : Site
        The machines.
    free : list of tuple of int
        Capacity of each machine for the candidates, without what the other jobs hold.
    candidates : sequence of Candidate
        The jobs to decide on.
    most_loss : float
        Limit on the sum of their fairness losses.
    most_changes : int
        Number of running jobs that may be resized or moved.
    down : collection of int
        Machines that are down.
    """

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
        self.problem = pulp.LpProblem("Dorm", pulp.LpMaximize)
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
                (v, rounding.key(amount / room) * (1 - rounding.TOLERANCE)) for v, amount in load
            )
            self._require(row <= 1, f"capacity_{machine}_{resource}")

    def solve(self, node_limit: int) -> tuple[str, dict[int, Allocation] | None]:
        """Return the status, and the allocation of each candidate; None without an answer."""
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
        """Rows (3), (6), (7) of a job, its fairness loss and whether it is adjusted."""
        job = candidate.job
        # A job that runs is kept running: its lower limit is 1.
        runs = self.problem.add_variable(f"runs_{k}", int(candidate.runs), 1, pulp.LpInteger)
        most = (job.max_workers, job.ps_needed(job.max_workers))
        workers, ps = (self._add_tasks(k, job, *each) for each in zip(GROUPS, most, strict=True))
        self._tasks.append((workers, ps))
        count = self._add_count(f"n_{k}", workers, job.max_workers)
        needed, fixed = job.ps_line
        servers = self._add_count(f"p_{k}", ps, max(job.max_workers, fixed))
        self._require(count >= job.min_workers * runs, f"fewest_{k}")
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
        """Tasks of a job by machine, at most as many as fit there."""
        tasks, demand = {}, group.of(job)
        for machine in self._site.machines_for(group):
            room = self._free[machine]
            fit = min([most, *(room[resource] // amount for resource, amount in demand)])
            if fit > 0 and machine not in self._down and admits(demand, machine):
                name = f"{group}_{k}_{machine}"
                task = self.problem.add_variable(name, 0, fit, pulp.LpInteger)
                tasks[machine] = task
                for resource, amount in demand:
                    self._loads.setdefault((machine, resource), []).append((task, amount))
        return tasks

    def _add_count(
        self, name: str, tasks: dict[int, pulp.LpVariable], most: int
    ) -> pulp.LpVariable:
        count = self.problem.add_variable(name, 0, most, pulp.LpInteger)
        self._require(pulp.lpSum(tasks.values()) == count, f"count_{name}")
        return count

    def _add_change(self, k: int, candidate: Candidate) -> list[pulp.LpVariable]:
        """Add the variable that a running job is adjusted; otherwise every task stays."""
        change = self.problem.add_variable(f"change_{k}", 0, 1, pulp.LpInteger)
        for group, tasks, held in zip(
            GROUPS, self._tasks[-1], candidate.held.by_group, strict=True
        ):
            before = dict(held)
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
        """Return whether numbers are small enough for an answer exact to the unit."""
        room = Room(self._site, self._free.copy(), self._down)
        for candidate in self._candidates:
            job, given = candidate.job, answer[candidate.job.index]
            workers = given.worker_count
            fits = not workers or job.min_workers <= workers <= job.max_workers
            if not fits or given.ps_count != job.ps_needed(workers) or not room.hold(job, given):
                return False
        return True


def _read(variables: dict[int, pulp.LpVariable], values: Mapping[str, float]) -> Tasks:
    counts = ((machine, round(values[v.name])) for machine, v in variables.items())
    return tuple((machine, count) for machine, count in counts if count)
