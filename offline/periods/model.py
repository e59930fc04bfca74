"""The master in fractions, cut into periods: rows of single periods, and a few links between them.

A job that runs in several periods has a part in each. The part says by which slot of the period the
job has completed, how many workers it has, whether it enters the period unfinished and how much
work it brings along, and whether it leaves the period unfinished and how much work it takes along.
Of a later part, what enters is at most what leaves the part before: these links are all that the
periods share. Parameter servers are what workers need of them at least, a fixed ratio a job.

Everything here is wider than the problem (1)-(13), so that bounds hold for it: counts may be
fractions, and completions with nearly the same utility count as one, at the last of their slots and
with the utility of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray
from oasis.solvers.arrays import ArrayModel
from offline.benders.master import CountModel
from offline.model.arrays import GROUPS
from offline.periods.parts import Part, ps_a_worker, ps_of_all, rows_of, utility_steps
from offline.periods.rows import Row, as_arrays, at_most

TIE = 0.01  # of what a job is worth for each worker-slot of its work
BROKEN = 1e-6  # relative excess from which a cut counts as broken


class PeriodModel:
    """The variables and rows of all periods, and the links between them.

    Parameters
    ----------
    master : CountModel
        The jobs, and the cuts on what fits in a slot.
    periods : sequence of range
        Slots of each period, in order, all of the horizon.
    step : float
        Share of a job's best utility by which utilities of completions that count as one differ.

    Attributes
    ----------
    parts : list of list of Part
        By period.
    links : list of (int, int)
        Pairs of variables, the first of which is at most the second.
    new : list of Row
        Rows that were added since the list was cleared last; the caller does that.
    """

    def __init__(self, master: CountModel, periods: list[range], step: float) -> None:
        self.master, self.periods = master, periods
        self.parts: list[list[Part]] = []
        self.links: list[tuple[int, int]] = []
        self.new: list[Row] = []
        self.ratios = np.array([ps_a_worker(c) for c in master.jobs])
        self._full_ratios = np.array([ps_of_all(c) / c.parallel for c in master.jobs])
        self._names: list[str] = []
        self._costs: list[float] = []
        self._most: list[float] = []
        self._is_whole: list[bool] = []
        self._rows: list[list[Row]] = []
        self._ends: list[int] = []
        self._placed: dict[tuple[str, int, int], Row] = {}
        steps = [utility_steps(c.utility, step) for c in master.jobs]
        before: dict[int, Part] = {}
        for period in periods:
            self._rows.append([])
            self.parts.append([])
            for i in range(len(master.jobs)):
                part = self._part(i, period, steps[i], before.get(i))
                if part is not None:
                    before[i] = part
                    self.parts[-1].append(part)
            self._ends.append(len(self._names))

    def add(self, period: int, row: Row) -> None:
        """Add a row over the variables of one period."""
        self._rows[period].append(row)
        self.new.append(row)

    @property
    def size(self) -> int:
        """How many variables all periods have together."""
        return len(self._names)

    def whole(self, room: FloatArray | None = None) -> ArrayModel:
        """All periods together with their links, which are its first rows.

        With `room` (T,), it is for plans, as in `period`.
        """
        links = [at_most({later: 1.0, earlier: -1.0}) for later, earlier in self.links]
        numbers = range(len(self.periods))
        rows = [*links, *(row for number in numbers for row in self._rows_of(number, room))]
        return self._model(0, self.size, np.array(self._costs), rows)

    def period(self, number: int, prices: FloatArray, room: FloatArray | None = None) -> ArrayModel:
        """One period, whose jobs pay for what they bring along and are paid for what they take.

        `prices` (L,) are those of the links. At any prices, the best values of all periods add up
        to a bound on the best value of the `whole`. With `room` (T,), the model is one for plans
        and not for bounds: all known cuts have rows in all slots, each slot has this share of its
        room, jobs have the parameter servers that they need when all their workers run, and work
        that is taken along is worth a little more, so that a period leaves no room unused.
        """
        costs = np.array(self._costs)
        for (later, earlier), price in zip(self.links, prices.tolist(), strict=True):
            costs[later] -= price
            costs[earlier] += price
        first, end = self.columns(number)
        for part in self.parts[number] if room is not None else ():
            if part.taken is not None:
                c = self.master.jobs[part.job]
                costs[part.taken] += TIE * max(c.utility.values()) / c.work
        return self._model(first, end, costs[first:end], self._rows_of(number, room))

    def _rows_of(self, number: int, room: FloatArray | None) -> list[Row]:
        """The rows of a period, for bounds or, with `room`, for plans."""
        slots = self.periods[number]
        if room is None:
            cuts = [row for (_, _, slot), row in self._placed.items() if slot in slots]
        else:
            known = ((g, k) for g in GROUPS for k in range(len(self.master.cuts[g])))
            cuts = [
                self._cut_row(number, group, k, slot, self._full_ratios, room[slot])
                for (group, k), slot in product(known, slots)
            ]
        return [*self._rows[number], *cuts]

    def columns(self, number: int) -> tuple[int, int]:
        """The first variable of a period, and the first one after it."""
        return (self._ends[number - 1] if number else 0), self._ends[number]

    def counts(self, values: FloatArray) -> FloatArray:
        """Workers (I, T) in a solution."""
        counts = np.zeros((len(self.master.jobs), self.master.arrays.horizon))
        for part in (part for parts in self.parts for part in parts):
            counts[part.job, list(part.workers)] = values[list(part.workers.values())]
        return counts

    def units(self, group: str, counts: FloatArray) -> FloatArray:
        """What workers (I,) of a slot are in units of a group: themselves, or what they need."""
        return counts * self.ratios if group == "ps" else counts

    def keep_cuts(self, values: FloatArray) -> int:
        """Add the rows of the master's cuts that a solution breaks; how many."""
        counts, number_before = self.counts(values), len(self._placed)
        for number, slots in enumerate(self.periods):
            for group in GROUPS:
                here = self.units(group, counts[:, slots.start : slots.stop].T).T
                for k, cut in enumerate(self.master.cuts[group]):
                    for column in np.flatnonzero(cut.weights @ here > 1.0 + BROKEN).tolist():
                        self._place(number, group, k, slots[column])
        return len(self._placed) - number_before

    def _place(self, number: int, group: str, k: int, slot: int) -> None:
        """Add the row of a cut for a slot, unless it is there."""
        if (group, k, slot) not in self._placed:
            row = self._cut_row(number, group, k, slot, self.ratios, 1.0 + CAPACITY_TOLERANCE)
            self._placed[group, k, slot] = row
            self.new.append(row)

    def _cut_row(
        self, number: int, group: str, k: int, slot: int, ratios: FloatArray, room: float
    ) -> Row:
        """The row of a cut in a slot of a period, with so many parameter servers a worker."""
        weights = self.master.cuts[group][k].weights * (ratios if group == "ps" else 1.0)
        terms = {
            part.workers[slot]: float(weights[part.job])
            for part in self.parts[number]
            if slot in part.workers and weights[part.job] > 0
        }
        return at_most(terms, room)

    def _part(
        self, i: int, period: range, steps: Mapping[int, float], before: Part | None
    ) -> Part | None:
        """The part of a job in a period, with its rows; None if it cannot run there."""
        c, last = self.master.jobs[i], max(steps)
        slots = range(max(period.start, c.job.arrival), min(period.stop, last + 1))
        if not slots:
            return None
        passes = last >= period.stop
        name = f"{i}_{period.start}"
        here = [slot for slot in steps if slot in slots]
        worth = [*(steps[slot] for slot in here), 0.0]
        done = {
            slot: self._variable(f"c_{name}_{slot}", 1.0, worth[k] - worth[k + 1], whole=True)
            for k, slot in enumerate(here)
        }
        most = float(min(c.work, c.parallel * max(0, period.start - c.job.arrival)))
        most_taken = float(min(c.work, c.parallel * (slots.stop - c.job.arrival)))
        part = Part(
            i,
            done,
            {slot: self._variable(f"y_{name}_{slot}", float(c.parallel)) for slot in slots},
            None if before is None else self._variable(f"enters_{name}", 1.0, whole=True),
            None if before is None else self._variable(f"brought_{name}", most),
            self._variable(f"leaves_{name}", 1.0, whole=True) if passes else None,
            self._variable(f"taken_{name}", most_taken) if passes else None,
            most,
        )
        self._rows[-1] += rows_of(c, part, most_taken)
        if before is not None:
            pairs = ((part.enters, before.leaves), (part.brought, before.taken))
            self.links += [(a, b) for a, b in pairs if a is not None and b is not None]
        return part

    def _variable(self, name: str, most: float, cost: float = 0.0, *, whole: bool = False) -> int:
        """A new variable from 0 to `most`."""
        self._names.append(name)
        self._most.append(most)
        self._costs.append(cost)
        self._is_whole.append(whole)
        return len(self._names) - 1

    def _model(self, first: int, end: int, costs: FloatArray, rows: list[Row]) -> ArrayModel:
        """The variables from `first` to before `end`, with rows over them alone."""
        return ArrayModel(
            self._names[first:end],
            costs,
            0.0,
            np.zeros(end - first),
            np.array(self._most[first:end]),
            np.array(self._is_whole[first:end]),
            as_arrays(rows, first),
            maximise=True,
        )
