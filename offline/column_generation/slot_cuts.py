"""Cuts on what runs in one slot, as rows of the configuration LP.

Servers do not change, so which jobs fit together with how many workers each is the same in every
slot. A cut gives each number of workers of each form i of a job a weight phi_i(n), such that

    sum_i phi_i(n_i) <= 1

for all counts (n_i) that fit on the servers together. The entry of a schedule in the row of a slot
is phi_i of the workers that it runs there. The pricing problem stays the dynamic programme that it
was: the dual value of the row times phi_i(n) is added to COST_t(n).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from offline.model.arrays import OfflineArrays
from offline.patterns import Cut


@dataclass(frozen=True, slots=True, eq=False)
class SlotCut:
    """One cut in one slot."""

    slot: int
    weights: Mapping[int, FloatArray]

    @classmethod
    def of_counts(cls, arrays: OfflineArrays, group: str, cut: Cut, slot: int) -> SlotCut:
        """A cut on the counts of a group, ``cut.weights @ counts <= 1``, by workers."""
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
        """Cuts that a schedule of a job has a weight in, by number, and these weights."""
        counts = workers_by_slot(schedule, self.arrays.horizon)
        found = [
            (number, float(weights[counts[slot]]))
            for number, slot, weights in self._of_form[self.arrays.form_of(job, schedule)]
            if counts[slot] and weights[counts[slot]] > 0
        ]
        numbers = np.array([number for number, _ in found], dtype=np.int64)
        return numbers, np.array([weight for _, weight in found])

    def surcharges(self, job: int, duals: FloatArray) -> list[FloatArray | None]:
        """Surcharge of each worker count of a job, one table per form (`surcharge`)."""
        return [self.surcharge(form, duals) for form in self.arrays.forms_of[job]]

    def surcharge(self, form: int, duals: FloatArray) -> FloatArray | None:
        """Surcharge of each worker count of a form in each slot, shape (T, N_i + 1)."""
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
