"""What the master learns of a plan that does not fit: cuts, or counts that are forbidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.subproblem import place
from offline.model.arrays import GROUPS
from offline.patterns.cuts import Cut, CutGenerator
from offline.patterns.params import CutParams
from offline.patterns.patterns import PatternPool
from offline.patterns.server_classes import classes
from offline.processes.messages import Message, Partner


class Separation:
    """Cuts of a master, from the patterns of its servers.

    Parameters
    ----------
    model : CountModel
        The master; every new row is added to it.
    params : CutParams
        How cuts are looked for.
    """

    def __init__(self, model: CountModel, params: CutParams) -> None:
        self.model, self.params = model, params
        most = np.array([c.parallel for c in model.jobs], dtype=np.int64)
        self._generators = {
            group: CutGenerator(
                PatternPool(
                    *classes(model.capacity(group), params.classes), model.demand(group), most
                ),
                params,
            )
            for group in GROUPS
        }
        self._partner: Partner | None = None
        self._heard: list[Message] = []

    def share(self, partner: Partner) -> None:
        """Tell another process of new cuts from now on, and take up those that it tells of."""
        self._partner = partner
        partner.on("cuts", self._heard.append)

    def cut(
        self,
        values: Mapping[str, float],
        budget: Budget,
        slots: range | None = None,
        new: range | None = None,
    ) -> list[pulp.LpConstraint]:
        """Rows that a solution of the master violates: of known cuts, else of new ones.

        With `slots`, rows are looked for in these slots alone. With `new`, new cuts are looked for
        in those alone, while known cuts count in all of `slots`.
        """
        self._take_up()
        slots = range(self.model.arrays.horizon) if slots is None else slots
        new = slots if new is None else new
        rows: list[pulp.LpConstraint] = []
        open_slots: list[tuple[str, int, FloatArray]] = []
        for group, slot in product(GROUPS, slots):
            counts = self.model.counts(values, group, slot)
            broken = self._broken(group, slot, counts)
            rows += broken
            if not broken and slot in new:
                open_slots.append((group, slot, counts))
        if not rows:
            for group, slot, counts in open_slots:
                broken = self._broken(group, slot, counts)  # by a cut of a slot before
                if not broken:
                    cut = self._generators[group].separate(counts, budget)
                    broken = [] if cut is None else self._learnt(group, cut, [slot])
                rows += broken
        return self._added(rows)

    def _learnt(self, group: str, cut: Cut, slots: Iterable[int]) -> list[pulp.LpConstraint]:
        """Rows of a new cut for these slots."""
        if self._partner is not None:
            self._partner.tell({"cuts": group, "weights": cut.weights.tolist()})
        return self.model.add(group, cut, slots)

    def _take_up(self) -> None:
        """Take note of the cuts of the other process; rows come of those that are violated."""
        heard = self._heard.copy()
        self._heard.clear()
        for message in heard:
            self.model.add(message["cuts"], Cut(np.array(message["weights"])), [])

    def _broken(self, group: str, slot: int, counts: FloatArray) -> list[pulp.LpConstraint]:
        """Rows of known cuts that the counts (I,) of a slot break."""
        known = enumerate(self.model.cuts[group])
        broken = [number for number, cut in known if cut.is_violated(counts)]
        return [row for number in broken for row in self.model.rows_of(group, number, [slot])]

    def cut_off(
        self, group: str, counts: IntArray | FloatArray, slots: Iterable[int], budget: Budget
    ) -> bool:
        """Whether patterns cut off counts (I,) of a group.

        If so, the cut has rows for these slots. For all others it is noted, and has a row as soon
        as `cut` meets a solution that breaks it.
        """
        self._take_up()
        cut = self._generators[group].separate(counts.astype(float), budget)
        if cut is not None:
            self._added(self._learnt(group, cut, slots))
        return cut is not None

    def forbid(self, group: str, counts: IntArray, slots: Iterable[int], budget: Budget) -> None:
        """Forbid counts (I,) in these slots, if they are proven not to fit: the last resort."""
        if self._is_misfit(group, counts, budget):
            shrunk = self._shrunk(group, counts, budget)
            self._added(self.model.forbid(group, shrunk, slots))

    def _shrunk(self, group: str, counts: IntArray, budget: Budget) -> IntArray:
        """Fewer of these counts that still do not fit: a stronger cut.

        One job after the other gets the fewest units with which they do not fit, by bisection: the
        less the others leave of a misfit, the more counts lie above it and are forbidden with it.
        """
        least = counts.copy()
        for i in np.flatnonzero(counts).tolist():
            fits, misfits = -1, int(least[i])
            while misfits - fits > 1:
                trial = least.copy()
                # most jobs can go altogether, or give up nothing
                trial[i] = 0 if fits < 0 else (fits + misfits) // 2
                if self._is_misfit(group, trial, budget):
                    misfits = int(trial[i])
                else:
                    fits = int(trial[i])
            least[i] = misfits
        return least

    def _is_misfit(self, group: str, counts: IntArray, budget: Budget) -> bool:
        capacity, demand = self.model.capacity(group), self.model.demand(group)
        units, is_proven = place(capacity, demand, counts, budget, self.params)
        return is_proven and bool(units.sum() < counts.sum())

    def _added(self, rows: list[pulp.LpConstraint]) -> list[pulp.LpConstraint]:
        for row in rows:
            self.model.problem.addConstraint(row)
        return rows
