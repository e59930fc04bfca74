"""Exact offline solve by logic-based Benders decomposition: how many, then where.

The master (`offline.counts`) chooses completions and the workers and parameter servers of each
job in each slot; the subproblem places the counts of one slot on the servers. Counts that cannot
be placed give a cut that holds in every slot: one from the patterns of single servers
(`offline.cuts`), or, where patterns fit fractionally, one that forbids these counts. The master's
bound holds throughout; a plan whose slots can all be placed is worth what the master says.

References
----------
Hooker and Ottosson, Logic-based Benders decomposition, Mathematical Programming 96, 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pulp

from oasis.problem import Instance
from oasis.rounding import FloatArray, IntArray
from oasis.schedule import Schedule, placements
from oasis.solvers import Progress, Solution, Status, highs
from oasis.solvers.relaxation import Relaxation
from offline.column_generation import columns_of, configuration_bound
from offline.counts import GROUPS, CountModel
from offline.cuts import Servers, classes
from offline.deadline import Deadline
from offline.heuristics import Incumbent, guide_of, insert_in_orders
from offline.milp import COMPACT, compact_size, prove
from offline.neighbourhood import search
from offline.occupancy import Occupancy
from offline.placing import place
from offline.reoptimise import reoptimise
from offline.result import OfflineResult
from offline.standing import Standing, concluded
from offline.start import begin

CLASSES = 60  # of servers a side in the cuts
PRICES_SHARE, SEARCH_SHARE = 0.05, 0.03  # of the time left
ROOT_SHARE, RELAXED_SHARE = 0.12, 0.2
PLAN_SHARE, SETTLE_SHARE, NEIGHBOUR_SHARE = 0.2, 0.55, 0.5
PATIENCE, STALL = 4, 3e-4  # rounds of cuts that lower the bound by less than this are the last
CYCLES = 2  # after which the compact model proves small instances
LAST = 0.1  # of the time limit: what remains after that goes to neighbourhoods
EXCLUDE_SHARE = 0.2
LEAST_SQUEEZE = 0.01  # of the room of a slot whose counts do not fit
SETTLE_SECONDS, WINDOW = 20.0, 3  # for one plan; slots that a job may be later in it
PLACE_SECONDS = 0.4  # for one slot of a plan
SEARCH_SECONDS, NEIGHBOUR_SECONDS = 5.0, 120.0  # at most, also without a time limit


def solve_benders(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    seed: int = 0,
) -> OfflineResult:
    """Solve the offline problem by logic-based Benders decomposition; see `offline.solve`.

    The result is never worse than `warm_start`, or than OASiS's own schedule without one.
    Without a time limit it ends only with a proof.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    SolverError
        If the solver fails, or a bound is below a verified schedule.
    """
    deadline = Deadline(time_limit)
    standing = Standing(deadline, on_progress)
    parameters: dict[str, Any] = {
        "time_limit": time_limit,
        "seed": seed,
        "solver": highs.version(),
    }

    def work() -> Status:
        begin(instance, standing, warm_start)
        incumbent = Incumbent(Occupancy(instance, standing.schedules), standing)
        run = _Decomposition(instance, incumbent, deadline, np.random.default_rng(seed))
        run.prepare()
        run.cut_the_relaxation()
        run.complete()
        if compact_size(instance) <= COMPACT:
            run.plan_without_wish(CYCLES)
            done = deadline.passed or incumbent.is_proven
            return run.status if done else prove(instance, standing, deadline)
        while not (deadline.passed or incumbent.is_proven):
            run.plan()
            run.look_around()
        return run.status

    return concluded(instance, standing, work, "benders", parameters)


Misfits = list[tuple[str, IntArray, list[int]]]


class _Decomposition:
    """State of a solve."""

    def __init__(
        self,
        instance: Instance,
        incumbent: Incumbent,
        deadline: Deadline,
        rng: np.random.Generator,
    ) -> None:
        self.instance, self.incumbent = instance, incumbent
        self.standing, self.deadline, self.rng = incumbent.standing, deadline, rng
        self.model = CountModel(instance)
        self.servers = {group: self._servers(group) for group in GROUPS}
        self._worth = self._ranks()
        self._wish: Mapping[str, Schedule] = {}
        self._placements: dict[tuple[str, bytes], tuple[IntArray, bool]] = {}

    @property
    def status(self) -> Status:
        """Why the solve ends now."""
        return Status.OPTIMAL if self.incumbent.is_proven else Status.TIME_LIMIT

    def plan_without_wish(self, cycles: int) -> None:
        """Integer masters only, for instances that have a proof in reach."""
        self._wish = {}
        for _ in range(cycles):
            if not (self.deadline.passed or self.incumbent.is_proven):
                self.plan()

    def prepare(self) -> None:
        """Prices of the configuration LP, and what simple heuristics find with them."""
        self.standing.proved(self.model.trivial_bound, "every job at its best")
        self.standing.enter("configuration LP")
        columns = columns_of(self.instance, self.incumbent.best.by_id)
        part = self.deadline.share(PRICES_SHARE)
        bound = configuration_bound(self.instance, part, columns, self.standing, 1e-3)
        if bound.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.guide = guide_of(self.instance, bound)
        part = self.deadline.share(SEARCH_SHARE).within(SEARCH_SECONDS)
        self.standing.enter("insertion at the LP's prices")
        insert_in_orders(self.instance, self.guide, self.incumbent, self.rng, part)
        self.standing.enter("ruin and recreate")
        search(self.incumbent.best, self.guide, self.rng, part, self.incumbent)

    def cut_the_relaxation(self) -> None:
        """Solve the master's relaxation and cut off what cannot be placed, again and again."""
        self.standing.enter("cutting planes")
        deadline = self.deadline.share(ROOT_SHARE)
        relaxation = Relaxation(self.model.problem)
        bounds: list[float] = []
        while not (deadline.passed or self.incumbent.is_proven):
            solution = relaxation.solve(deadline.left)
            if solution is None:
                return
            self.standing.proved(solution.bound * (1 + 1e-9))
            bounds.append(solution.bound)
            if len(bounds) > PATIENCE and bounds[-1 - PATIENCE] - bounds[-1] < STALL * bounds[-1]:
                return
            rows = self._cuts(solution.values, deadline)
            if not rows:
                return
            relaxation.add(rows)

    def complete(self) -> None:
        """Completions as whole decisions, counts in fractions: the best bound for its time."""
        self.standing.enter("master, counts in fractions")
        deadline = self.deadline.share(RELAXED_SHARE)
        while not (deadline.passed or self.incumbent.is_proven):
            solution = self._solve(pulp.LpContinuous, deadline)
            self._wish = self.model.schedules_of(solution.values) or self._wish
            if solution.status is not Status.OPTIMAL or not self._cuts(solution.values, deadline):
                return

    def plan(self) -> None:
        """Whole counts: close to the relaxed master's completions first, then anywhere."""
        self.model.require(pulp.LpInteger)
        wish, self._wish = self._wish, {}
        if wish:
            self._settle(wish, [], self.deadline.share(SETTLE_SHARE))
            return
        self.standing.enter("master, whole counts")
        solution = self._solve(pulp.LpInteger, self.deadline.share(PLAN_SHARE))
        plan = self.model.schedules_of(solution.values)
        deadline = self.deadline.share(SETTLE_SHARE)
        misfits = self._place(plan, deadline)
        for group, counts, slots in misfits:
            self._exclude(group, counts, slots, solution.status, deadline)
        if misfits and solution.status is not Status.OPTIMAL:
            self._settle(plan, misfits, deadline)

    def _settle(self, plan: Mapping[str, Schedule], misfits: Misfits, deadline: Deadline) -> None:
        """Plans close to `plan`, with less in the slots that did not fit, until one fits."""
        self.standing.enter("plans that fit")
        near = self.model.near(plan, self.incumbent.best.by_id, WINDOW)
        room: dict[tuple[str, int], float] = {}
        seconds = min(SETTLE_SECONDS, 0.1 * deadline.left)
        while not (deadline.passed or self.incumbent.is_proven):
            part = deadline.share(EXCLUDE_SHARE)
            for group, counts, slots in misfits:
                if self._separated(group, counts, slots, part):
                    continue
                placed = self._units(group, counts, deadline)[0].sum(axis=1)
                less = max(LEAST_SQUEEZE, self._missing(group, counts, placed))
                room.update(((group, t), room.get((group, t), 1.0) - less) for t in slots)
            problem = self.model.problem.copy()
            for row in (*near, *self.model.within(room)):
                problem.addConstraint(row)
            solution = highs.solve(
                problem,
                time_limit=deadline.within(seconds).left,
                warm_start=self.model.values_of(self.incumbent.best.by_id),
                proof=False,
            )
            if solution.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            misfits = self._place(self.model.schedules_of(solution.values), deadline)
            if not misfits:
                return

    def look_around(self) -> None:
        """Neighbourhoods of the best schedules."""
        if not self.incumbent.is_proven:
            self.standing.enter("neighbourhood search")
            part = self.deadline.share(NEIGHBOUR_SHARE).within(NEIGHBOUR_SECONDS)
            if self.deadline.left < LAST * (self.deadline.limit or math.inf):
                part = self.deadline
            reoptimise(self.incumbent.best, self.guide, self.rng, part, self.incumbent)

    def _solve(self, category: str, deadline: Deadline) -> Solution:
        """The master as a MILP; its bound is one of the instance."""
        self.model.require(category)
        known = self.model.values_of(self.incumbent.best.by_id)
        solution = highs.solve(
            self.model.problem,
            time_limit=None if math.isinf(deadline.left) else deadline.left,
            warm_start=known,
            on_progress=lambda progress: self.standing.proved(progress.bound),
        )
        self.standing.proved(solution.bound)
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution

    def _cuts(self, values: Mapping[str, float], deadline: Deadline) -> list[pulp.LpConstraint]:
        """Cuts that a solution of the master violates, added to it: known ones, else new ones."""
        rows: list[pulp.LpConstraint] = []
        open_slots = []
        for group, slot in product(GROUPS, range(self.instance.horizon)):
            counts = self.model.counts(values, group, slot)
            broken = [k for k, c in enumerate(self.model.cuts[group]) if c.is_violated(counts)]
            rows += [row for k in broken for row in self.model.rows_of(group, k, [slot])]
            if not broken:
                open_slots.append((group, slot, counts))
        if not rows:
            for group, slot, counts in open_slots:
                cut = self.servers[group].separate(counts, deadline)
                if cut is not None:
                    rows += self.model.add(group, cut, [slot])
        for row in rows:
            self.model.problem.addConstraint(row)
        return rows

    def _ranks(self) -> FloatArray:
        """Worth of a unit by job, 1 to 10: where not all fit, the same few jobs go without."""
        total = np.maximum(self.model.capacity("worker").sum(axis=0), 1e-300)
        size = (self.model.demand("worker") / total).max(axis=1)
        density = [
            max(c.utility.values()) / max(c.work * take, 1e-300)
            for c, take in zip(self.model.candidates, size.tolist(), strict=True)
        ]
        ranks = np.argsort(np.argsort(density, kind="stable"), kind="stable")
        return 1.0 + 9.0 * ranks / max(1, len(ranks) - 1)

    def _missing(self, group: str, counts: IntArray, placed: IntArray) -> float:
        """Share of what the counts ask for that found no place, of the scarcest resource."""
        total = np.maximum(self.model.capacity(group).sum(axis=0), 1e-300)
        return float(((counts - placed) @ self.model.demand(group) / total).max())

    def _place(self, plan: Mapping[str, Schedule], deadline: Deadline) -> Misfits:
        """Place every slot of a plan; the counts that do not fit, with their slots.

        Jobs that are placed whole stay so, the others go where there is room: that is offered.
        """
        values = self.model.values_of(plan)
        rows: dict[str, list[list[tuple[int, int, int]]]] = {
            group: [[] for _ in self.model.candidates] for group in GROUPS
        }
        misfits: dict[tuple[str, bytes], tuple[str, IntArray, list[int]]] = {}
        unfinished: set[int] = set()
        for group, slot in product(GROUPS, range(self.instance.horizon)):
            counts = np.rint(self.model.counts(values, group, slot)).astype(np.int64)
            units, _ = self._units(group, counts, deadline)
            for i, server in np.argwhere(units).tolist():
                rows[group][i].append((slot, server, int(units[i, server])))
            missing = np.flatnonzero(units.sum(axis=1) < counts).tolist()
            if missing:
                unfinished.update(missing)
                key = (group, counts.tobytes())
                misfits.setdefault(key, (group, counts, []))[2].append(slot)
        solution = Occupancy(self.instance)
        for i, c in enumerate(self.model.candidates):
            if rows["worker"][i] and i not in unfinished:
                tables = (placements(rows[group][i]) for group in GROUPS)
                solution.put(self.model.index[c.job.id], Schedule(c.job.id, *tables))
        rest = [k for k in range(len(self.instance.jobs)) if k not in solution.schedules]
        guide = self.guide
        solution.fill(guide.order(rest, self.rng), guide.worker_prices, guide.ps_prices)
        self.incumbent.offer(solution)
        return list(misfits.values())

    def _units(self, group: str, counts: IntArray, deadline: Deadline) -> tuple[IntArray, bool]:
        key = (group, counts.tobytes())
        if key not in self._placements:
            self._placements[key] = self._placed(group, counts, deadline.within(PLACE_SECONDS))
        return self._placements[key]

    def _placed(self, group: str, counts: IntArray, deadline: Deadline) -> tuple[IntArray, bool]:
        capacity, demand = self.model.capacity(group), self.model.demand(group)
        return place(capacity, demand, counts, deadline, self._worth)

    def _exclude(
        self, group: str, counts: IntArray, slots: list[int], status: Status, deadline: Deadline
    ) -> None:
        """Cut off counts that cannot be placed; at any price if they stand before a proof."""
        if self._separated(group, counts, slots, deadline):
            return
        if status is not Status.OPTIMAL:
            return
        units, is_proven = self._placed(group, counts, deadline)
        self._placements[group, counts.tobytes()] = units, is_proven
        if is_proven and units.sum() < counts.sum():
            for row in self.model.forbid(group, self._shrunk(group, counts, deadline), slots):
                self.model.problem.addConstraint(row)

    def _separated(
        self, group: str, counts: IntArray, slots: list[int], deadline: Deadline
    ) -> bool:
        """Whether patterns of servers cut off counts; if so, in all these slots."""
        cut = self.servers[group].separate(counts.astype(float), deadline)
        rows = [] if cut is None else self.model.add(group, cut, slots)
        for row in rows:
            self.model.problem.addConstraint(row)
        return cut is not None

    def _servers(self, group: str) -> Servers:
        return Servers(
            *classes(self.model.capacity(group), CLASSES),
            self.model.demand(group),
            np.array([c.parallel for c in self.model.candidates]),
        )

    def _shrunk(self, group: str, counts: IntArray, deadline: Deadline) -> IntArray:
        """Fewer of these counts that still cannot be placed: a stronger cut."""
        least = counts.copy()
        for i in np.flatnonzero(counts).tolist():
            trial = least.copy()
            trial[i] = 0
            units, is_proven = self._units(group, trial, deadline)
            if is_proven and units.sum() < trial.sum():
                least = trial
        return least
