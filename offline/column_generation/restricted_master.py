"""The restricted master of the configuration LP (14)-(16): the schedules known so far.

max sum f_i x_il, at most one schedule per job (14), shares of capacity at most 1 in every row
(15)(16). Only rows that some column uses exist; all others have the dual 0.

Rows after those are cuts on what runs in one slot. Servers do not change, so which jobs fit
together with how many workers each is the same in every slot. A cut gives each number of workers of
each form i of a job a weight phi_i(n), such that

    sum_i phi_i(n_i) <= 1

for all counts (n_i) that fit on the servers together. The entry of a schedule in the row of a slot
is phi_i of the workers that it runs there. The pricing problem stays the dynamic programme that it
was: the dual value of the row times phi_i(n) is added to COST_t(n).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.solvers.budget import Budget
from oasis.solvers.lp import ColumnLp, LpColumn
from offline.model.arrays import GroupArrays, OfflineArrays
from offline.patterns import Cut


@dataclass(frozen=True, slots=True, eq=False)
class SlotCut:
    """A cut in one slot: by form, weights of 0, 1, 2, .. workers, that add up to 1 at most."""

    slot: int
    weights: Mapping[int, FloatArray]

    @classmethod
    def of_counts(cls, arrays: OfflineArrays, group: str, cut: Cut, slot: int) -> SlotCut:
        """Convert ``cut.weights @ counts <= 1`` of a group to weights per form and worker count."""
        weights = {}
        for form in np.flatnonzero(cut.weights > 0).tolist():
            units = np.arange(arrays.forms[form].chunks + 1)
            if group == "ps":
                units = arrays.forms[form].ps_needed(units)
            weights[form] = cut.weights[form] * units
        return cls(slot, weights)


def workers_by_slot(schedule: Schedule, horizon: int) -> IntArray:
    """Workers of a schedule in each slot, (T,)."""
    rows = schedule.workers
    return np.bincount(rows[:, SLOT], rows[:, COUNT], horizon).astype(np.int64)


class SlotCuts:
    """The cuts of a restricted master, in the order of their rows."""

    def __init__(self, arrays: OfflineArrays) -> None:
        self.arrays = arrays
        self.cuts: list[SlotCut] = []
        self._of_form: list[list[tuple[int, int, FloatArray]]] = [[] for _ in arrays.forms]

    def __len__(self) -> int:
        return len(self.cuts)

    def add(self, cut: SlotCut) -> None:
        """Append a cut."""
        for form, weights in cut.weights.items():
            self._of_form[form].append((len(self.cuts), cut.slot, weights))
        self.cuts.append(cut)

    def usage(self, job: int, schedule: Schedule) -> tuple[IntArray, FloatArray]:
        """Numbers of the cuts in which a schedule of a job has a weight, and these weights."""
        counts = workers_by_slot(schedule, self.arrays.horizon)
        terms = [
            (number, float(weights[counts[slot]]))
            for number, slot, weights in self._of_form[self.arrays.form_of(job, schedule)]
            if counts[slot] and weights[counts[slot]] > 0
        ]
        numbers = np.array([number for number, _ in terms], dtype=np.int64)
        return numbers, np.array([weight for _, weight in terms])

    def surcharges(self, job: int, duals: FloatArray) -> list[FloatArray | None]:
        """Return the surcharges of a job's forms at the cuts' dual values; see `surcharge`."""
        return [self.surcharge(form, duals) for form in self.arrays.forms_of[job]]

    def surcharge(self, form: int, duals: FloatArray) -> FloatArray | None:
        """Return the costs (T, N_i + 1) that cuts add to worker counts; None if they add none."""
        table: FloatArray | None = None
        for number, slot, weights in self._of_form[form]:
            if duals[number] > 0:
                if table is None:
                    table = np.zeros((self.arrays.horizon, len(weights)))
                table[slot] += duals[number] * weights
        return table

    def changes(self, duals: FloatArray) -> IntArray:
        """Slots in which the surcharge may differ from that of the slot before."""
        slots = {self.cuts[k].slot for k in np.flatnonzero(duals > 0).tolist()}
        after = {slot + 1 for slot in slots if slot + 1 < self.arrays.horizon}
        return np.array(sorted(slots | after), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of one server group: (slot, class of servers, resource), all with right-hand side 1."""

    horizon: int
    capacity: FloatArray
    member: IntArray
    total: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        total = np.zeros((int(self.member.max(initial=-1)) + 1, self.capacity.shape[1]))
        np.add.at(total, self.member, self.capacity)
        object.__setattr__(self, "total", total)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.horizon * self.total.size

    def prices(self, duals: FloatArray) -> FloatArray:
        """Prices (T, S, R) per unit of resource from the dual values of the rows."""
        shaped = duals.reshape(self.horizon, *self.total.shape)
        by_class = np.divide(shaped, self.total, out=np.zeros_like(shaped), where=self.total > 0)
        return by_class[:, self.member]

    def duals(self, prices: FloatArray) -> FloatArray:
        """Dual values of the rows from prices (T, S, R): costs of the whole capacity of a class."""
        classes, resources = self.total.shape
        duals = np.zeros((classes, self.horizon, resources))
        for server, member in enumerate(self.member.tolist()):
            duals[member] += prices[:, server] * self.capacity[server]
        return np.moveaxis(duals, 0, 1).ravel()

    def usage(self, rows: IntArray, demand: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the LP rows that placements `rows` of units of `demand` use, and the shares."""
        classes, resources = self.total.shape
        place = rows[:, SLOT] * classes + self.member[rows[:, SERVER]]
        # Servers of a class share a row: their tasks are one entry.
        used, inverse = np.unique(place, return_inverse=True)
        counts = np.bincount(inverse.ravel(), rows[:, COUNT], minlength=len(used))
        used_resources = np.flatnonzero(demand > 0)
        amounts = counts[:, None] * demand[used_resources]
        shares = amounts / self.total[used % classes][:, used_resources]
        return (used[:, None] * resources + used_resources).ravel(), shares.ravel()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows (15) of the worker servers, then (16) of the hosts of parameter servers."""

    arrays: OfflineArrays
    worker: GroupRows
    ps: GroupRows

    @classmethod
    def of(cls, arrays: OfflineArrays, classes: int | None = None) -> Grouping:
        """Group similar servers, at most `classes` classes a group; None: identical ones only."""
        groups = [
            GroupRows(arrays.horizon, group.priced, similar(group, classes))
            for group in (arrays.worker, arrays.ps)
        ]
        return cls(arrays, *groups)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.worker.size + self.ps.size

    def prices(self, duals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices (T, H, R) and (T, K, R) from the dual values of the rows."""
        split = self.worker.size
        return self.worker.prices(duals[:split]), self.ps.prices(duals[split:])

    def duals(self, worker_prices: FloatArray, ps_prices: FloatArray) -> FloatArray:
        """Dual values of the rows from prices; undoes `prices` where a class has one price."""
        return np.concatenate([self.worker.duals(worker_prices), self.ps.duals(ps_prices)])

    def usage(self, job: int, schedule: Schedule) -> tuple[IntArray, FloatArray]:
        """Entries of a schedule's column: row numbers and shares of their capacity."""
        arrays, form = self.arrays, self.arrays.form_of(job, schedule)
        rows, shares = self.worker.usage(schedule.workers, arrays.worker.priced_demand(form))
        ps_rows, ps_shares = self.ps.usage(schedule.ps, arrays.ps.priced_demand(form))
        return np.concatenate([rows, ps_rows + self.worker.size]), np.concatenate(
            [shares, ps_shares]
        )


def levels(arrays: OfflineArrays, classes: tuple[int, ...]) -> list[Grouping]:
    """Return groupings from coarse to fine: at most `classes` each, then identical servers."""
    groupings = [Grouping.of(arrays, most) for most in (*classes, None)]
    finer = [*(grouping.size for grouping in groupings[1:]), None]
    return [g for g, size in zip(groupings, finer, strict=True) if g.size != size]


def similar(group: GroupArrays, classes: int | None) -> IntArray:
    """Return the class of each server, (S,): at most `classes` of similar mix; None: identical."""
    # Servers that admit different forms are never in one class, so there may be more. Otherwise
    # servers with the same proportions of resources are worth as much together as one. Classes are
    # split in two, the widest first, so that finer groupings refine coarser ones.
    capacity = group.priced
    alike = np.column_stack([capacity, group.kinds])
    kinds, kind = np.unique(alike, axis=0, return_inverse=True)
    kind = kind.ravel()
    if classes is None:
        return np.asarray(kind, dtype=np.int64)
    member = kinds[:, -1].astype(np.int64)
    kinds, total = kinds[:, :-1], capacity.sum(axis=0)
    mix = np.divide(kinds, total, out=np.zeros_like(kinds), where=total > 0)
    mix /= np.maximum(mix.sum(axis=1, keepdims=True), 1e-300)
    for new in range(int(member.max(initial=0)) + 1, min(classes, len(kinds))):
        spreads = [np.ptp(mix[member == k], axis=0) for k in range(new)]
        widest = int(np.argmax([spread.max() for spread in spreads]))
        axis = int(np.argmax(spreads[widest]))
        if spreads[widest][axis] <= 1e-12:
            break
        inside = np.flatnonzero(member == widest)
        middle = (mix[inside, axis].min() + mix[inside, axis].max()) / 2
        member[inside[mix[inside, axis] > middle]] = new
    return member[kind]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of the LP: a schedule l of a job i in L_i, and its utility."""

    job: int
    schedule: Schedule
    utility: float

    @classmethod
    def of(cls, arrays: OfflineArrays, job: int, schedule: Schedule) -> Column:
        """The column of `schedule`, with the original utility."""
        return cls(job, schedule, arrays.utility(job, schedule.completion))

    @property
    def key(self) -> tuple[int, int, bytes, bytes]:
        """Identity of a column: equal keys mean equal columns."""
        schedule = self.schedule
        return self.job, schedule.form, schedule.workers.tobytes(), schedule.ps.tobytes()


def columns_of(arrays: OfflineArrays, schedules: Mapping[str, Schedule]) -> list[Column]:
    """Return the columns of schedules, which are given by job id."""
    return [
        Column.of(arrays, k, schedules[job.id])
        for k, job in enumerate(arrays.jobs)
        if job.id in schedules
    ]


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """Optimal solution of a restricted master."""

    value: float
    duals: FloatArray
    payoffs: FloatArray
    weights: FloatArray


class RestrictedMaster:
    """The LP over the schedules generated so far (columns), with capacity rows and cuts."""

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.cuts = SlotCuts(grouping.arrays)
        self.columns: list[Column] = []
        jobs = grouping.arrays.jobs
        self._usage: list[tuple[IntArray, FloatArray]] = []
        self._keys: set[tuple[int, int, bytes, bytes]] = set()
        self._lp = ColumnLp(np.ones(len(jobs)))
        self._row = np.full(grouping.size, -1)
        # utilities scaled to about 1: the solver's tolerances are absolute
        self._scale = max((float(job.utility(0)) for job in jobs), default=0.0) or 1.0

    def add(self, columns: Iterable[Column]) -> int:
        """Add the columns that are new; return how many."""
        new = []
        for column in columns:
            if column.key not in self._keys and column.utility > 0:
                self._keys.add(column.key)
                self.columns.append(column)
                new.append(self._entries(column))
        self._lp.add_columns(new)
        return len(new)

    @property
    def size(self) -> int:
        """Number of rows (15)(16) and of cuts."""
        return self.grouping.size + len(self.cuts)

    def cut(self, cut: SlotCut) -> None:
        """Add a cut as a row of the LP, with its weights in the present columns."""
        row = self.size
        self.cuts.add(cut)
        users, values = [], []
        for k, column in enumerate(self.columns):
            weights = cut.weights.get(self.grouping.arrays.form_of(column.job, column.schedule))
            workers = column.schedule.workers
            count = int(workers[workers[:, SLOT] == cut.slot, COUNT].sum())
            if weights is not None and weights[count] > 0:
                rows, shares = self._usage[k]
                self._usage[k] = np.append(rows, row), np.append(shares, weights[count])
                users.append(k)
                values.append(float(weights[count]))
        self._row = np.append(self._row, self._lp.rows)
        self._lp.add_row(1.0, np.array(users, np.int64), np.array(values))

    def _entries(self, column: Column) -> LpColumn:
        rows, shares = self.grouping.usage(column.job, column.schedule)
        cuts, weights = self.cuts.usage(column.job, column.schedule)
        rows = np.concatenate([rows, self.grouping.size + cuts])
        shares = np.concatenate([shares, weights])
        self._usage.append((rows, shares))
        # Most rows are never used: one is made when the first column has an entry in it.
        missing = rows[self._row[rows] < 0]
        self._row[missing] = self._lp.rows + np.arange(len(missing))
        self._lp.add_rows(np.ones(len(missing)))
        return LpColumn(
            column.utility / self._scale,
            np.concatenate([[column.job], self._row[rows]]),
            np.concatenate([[1.0], shares]),
        )

    def solve(self, budget: Budget) -> MasterSolution | None:
        """Solve the linear program; None if the budget is spent first."""
        solution = self._lp.solve(budget)
        if solution is None:
            return None
        used = self._row >= 0
        duals = np.zeros(self.size)
        duals[used] = solution.duals[self._row[used]] * self._scale
        jobs = len(self.grouping.arrays.jobs)
        payoffs = solution.duals[:jobs] * self._scale
        return MasterSolution(solution.objective * self._scale, duals, payoffs, solution.values)

    def keep_best(self, solution: MasterSolution, most: int) -> None:
        """Keep the `most` best columns: those in use, then those of largest reduced profit."""
        if len(self.columns) <= most:
            return
        reduced = [
            column.utility - solution.duals[rows] @ shares - solution.payoffs[column.job]
            for column, (rows, shares) in zip(self.columns, self._usage, strict=True)
        ]
        # Columns of the solution stay, whatever rounding makes of their reduced costs.
        order = np.lexsort((-np.array(reduced), -solution.weights))
        self._lp.remove_columns(order[most:])
        chosen = np.sort(order[:most]).tolist()
        self.columns = [self.columns[k] for k in chosen]
        self._usage = [self._usage[k] for k in chosen]
        self._keys = {column.key for column in self.columns}
