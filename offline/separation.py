"""What the master learns of a plan that does not fit: cuts, or counts that are forbidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
import pulp

from oasis.rounding import FloatArray, IntArray
from offline.counts import GROUPS, CountModel
from offline.cuts import Servers, classes
from offline.deadline import Deadline
from offline.placing import place

CLASSES = 60  # of servers a side


class Separation:
    """Cuts of a master, from the patterns of its servers.

    Parameters
    ----------
    model : CountModel
        The master; every new row is added to it.
    """

    def __init__(self, model: CountModel) -> None:
        self.model = model
        most = np.array([c.parallel for c in model.candidates])
        self._servers = {
            group: Servers(*classes(model.capacity(group), CLASSES), model.demand(group), most)
            for group in GROUPS
        }

    def cut(self, values: Mapping[str, float], deadline: Deadline) -> list[pulp.LpConstraint]:
        """Rows that a solution of the master violates: of known cuts, else of new ones."""
        rows: list[pulp.LpConstraint] = []
        open_slots: list[tuple[str, int, FloatArray]] = []
        for group, slot in product(GROUPS, range(self.model.instance.horizon)):
            counts = self.model.counts(values, group, slot)
            broken = [k for k, c in enumerate(self.model.cuts[group]) if c.is_violated(counts)]
            rows += [row for k in broken for row in self.model.rows_of(group, k, [slot])]
            if not broken:
                open_slots.append((group, slot, counts))
        if not rows:
            for group, slot, counts in open_slots:
                cut = self._servers[group].separate(counts, deadline)
                if cut is not None:
                    rows += self.model.add(group, cut, [slot])
        return self._added(rows)

    def cut_off(
        self, group: str, counts: IntArray, slots: Iterable[int], deadline: Deadline
    ) -> bool:
        """Whether patterns cut off counts (I,) of a group; if so, in all these slots."""
        cut = self._servers[group].separate(counts.astype(float), deadline)
        if cut is not None:
            self._added(self.model.add(group, cut, slots))
        return cut is not None

    def forbid(
        self, group: str, counts: IntArray, slots: Iterable[int], deadline: Deadline
    ) -> None:
        """Forbid counts (I,) in these slots, if they are proven not to fit: the last resort."""
        if self._is_misfit(group, counts, deadline):
            shrunk = self._shrunk(group, counts, deadline)
            self._added(self.model.forbid(group, shrunk, slots))

    def _shrunk(self, group: str, counts: IntArray, deadline: Deadline) -> IntArray:
        """Fewer of these counts that still do not fit: a stronger cut."""
        least = counts.copy()
        for i in np.flatnonzero(counts).tolist():
            trial = least.copy()
            trial[i] = 0
            if self._is_misfit(group, trial, deadline):
                least = trial
        return least

    def _is_misfit(self, group: str, counts: IntArray, deadline: Deadline) -> bool:
        capacity, demand = self.model.capacity(group), self.model.demand(group)
        units, is_proven = place(capacity, demand, counts, deadline)
        return is_proven and bool(units.sum() < counts.sum())

    def _added(self, rows: list[pulp.LpConstraint]) -> list[pulp.LpConstraint]:
        for row in rows:
            self.model.problem.addConstraint(row)
        return rows
