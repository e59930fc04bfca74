"""The configuration LP with cuts on the jobs of one slot: a smaller bound.

The LP spreads tasks over servers in fractions and jobs over schedules in fractions. What it runs
in a slot on average may fit on the servers added up and still on no real ones. Cuts say so, and the
column generation goes on with them, again and again.
"""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.column_generation.bound import ConfigurationBound
from offline.column_generation.generation import ColumnGeneration
from offline.column_generation.restricted_master import (
    Grouping,
    RestrictedMaster,
    SlotCut,
    SlotCuts,
    workers_by_slot,
)
from offline.model.arrays import GROUPS, OfflineArrays
from offline.params import ColumnGenerationParams
from offline.patterns import CLEAR, Cut, CutGenerator
from offline.state import SolveState

PRICING = ColumnGenerationParams(tolerance=5e-4)  # between two rounds of cuts
TOLERANCE = 1e-6  # in the end, after the last round
# Most classes of servers a group that have rows of their own, where the LP without cuts took longer
# than its share; else identical servers share a row, as in that.
CLASSES = 3
ENOUGH = 10  # known violated cuts that are added before new ones are searched
SEARCH_LIMIT = 10.0  # seconds or units of work after which a search that found new cuts ends
# Rounds over which the value of the LP must fall, and by how much, relatively, to go on.
PATIENCE = 3
LEAST_PROGRESS = 2e-4
NOTHING = 1e-9  # weight of a column that counts as none


class CutSearch:
    """Finds cuts that average counts violate, and tries each new cut in all slots."""

    def __init__(self, arrays: OfflineArrays) -> None:
        self.arrays = arrays
        # more workers than fit an empty cluster cannot run, whatever N_i is
        most = np.array(
            [arrays.worker.units(k, form.chunks).sum() for k, form in enumerate(arrays.forms)]
        )
        most = np.minimum(most, [form.chunks for form in arrays.forms]).astype(np.int64)
        groups = {group: arrays.group(group) for group in GROUPS}
        self._generators = {
            group: CutGenerator.of(rows.capacity, rows.demand, most)
            for group, rows in groups.items()
        }
        self._known: dict[str, list[Cut]] = {group: [] for group in GROUPS}
        self._placed: set[tuple[str, int, int]] = set()
        self._fingerprints: dict[tuple[str, int], bytes] = {}
        self._next = 0  # group and slot in which the next search begins, by number
        self._searched = 0  # groups and slots since all of them had been searched
        self.is_complete = True

    def cuts(self, averages: dict[str, FloatArray], budget: Budget) -> list[SlotCut]:
        """Return cuts that the average units (T, F) of each group violate: known or new ones."""
        places = [(group, slot) for group in GROUPS for slot in range(len(averages[group]))]
        by_place = {place: self._worst_cut(*place, averages) for place in places}
        new = [cut for cuts in by_place.values() for cut in cuts]
        # Known cuts cost no search, so new ones are looked for only where these are few.
        if len(new) >= ENOUGH:
            return new
        part = budget.within(SEARCH_LIMIT)
        for number in range(len(places)):
            if budget.passed or (new and part.passed):
                self._go_on_after(number, len(places))
                return new
            place = places[(self._next + number) % len(places)]
            if not by_place[place]:
                new += self._worst_cut(*place, averages) or self._new(*place, averages, budget)
        self._go_on_after(len(places), len(places))
        return new

    def _go_on_after(self, number: int, places: int) -> None:
        """Let the next search begin `number` of all `places` later: pairs of group and slot."""
        self._next = (self._next + number) % places
        self._searched += number
        self.is_complete = self._searched >= places
        if self.is_complete:
            self._searched = 0

    def _worst_cut(self, group: str, slot: int, averages: dict[str, FloatArray]) -> list[SlotCut]:
        """Return the stored cut that a slot's counts violate most; [] if none, or added already."""
        known, counts = self._known[group], averages[group][slot]
        if not known or not counts.any():
            return []
        excess = np.array([cut.weights @ counts for cut in known]) - 1.0
        number = int(np.argmax(excess))
        if excess[number] <= CLEAR or (group, slot, number) in self._placed:
            return []
        return [self._row(group, slot, number)]

    def _new(
        self, group: str, slot: int, averages: dict[str, FloatArray], budget: Budget
    ) -> list[SlotCut]:
        """Return a new cut that a slot's counts violate; [] if none, or searched in vain before."""
        counts = averages[group][slot]
        # Counts without a cut stay without one, and come back in most rounds.
        print_of = np.round(counts, 6).tobytes()
        if self._fingerprints.get((group, slot)) == print_of:
            return []
        cut = self._generators[group].separate(counts, budget)
        if cut is None:
            self._fingerprints[group, slot] = print_of
            return []
        self._known[group].append(cut)
        return [self._row(group, slot, len(self._known[group]) - 1)]

    def _row(self, group: str, slot: int, number: int) -> SlotCut:
        """Return a stored cut as a cut of this slot, and mark it as added."""
        self._placed.add((group, slot, number))
        return SlotCut.of_counts(self.arrays, group, self._known[group][number], slot)


def cut_configuration_lp(
    arrays: OfflineArrays,
    bound: ConfigurationBound,
    state: SolveState,
    budget: Budget,
) -> SlotCuts:
    """Lower the bound of `state` by cuts until they do not pay; return these cuts."""
    generation = ColumnGeneration(arrays, budget, state, PRICING)
    generation.columns = list(bound.columns)
    prices = bound.worker_prices, bound.ps_prices
    # The prices of the LP without cuts prove its bound here, too: a new cut begins at the dual 0.
    generation.centre.move(prices, bound.bound)
    # what the LP was not solved for is too fine for its cuts as well
    is_solved = bound.status is Status.OPTIMAL
    master = RestrictedMaster(Grouping.of(arrays, None if is_solved else CLASSES))
    master.add(state.budget.over(generation.columns))
    search, values = CutSearch(arrays), []
    while not (budget.passed or state.is_proven):
        generation.refine(master, PRICING.tolerance)
        # Before all slots were searched, a bound that hardly falls says nothing about the rest of
        # them.
        if search.is_complete:
            values.append(generation.value)
            if len(values) > PATIENCE:
                gain = values[-1 - PATIENCE] - values[-1]
                if gain < LEAST_PROGRESS * values[-1]:
                    break
        new = search.cuts(_averages(arrays, generation), budget)
        for cut in new:
            master.cut(cut)
        if not new:
            break
    # The rounds above need averages, not a tight bound; the result is the bound.
    generation.refine(master, TOLERANCE)
    return master.cuts


def _averages(arrays: OfflineArrays, generation: ColumnGeneration) -> dict[str, FloatArray]:
    """Return the units of each group that run in each slot on average in the LP, (T, F)."""
    averages = {group: np.zeros((arrays.horizon, len(arrays.forms))) for group in GROUPS}
    for column, weight in zip(generation.columns, generation.weights.tolist(), strict=False):
        if weight > NOTHING:
            workers: IntArray = workers_by_slot(column.schedule, arrays.horizon)
            form = arrays.form_of(column.job, column.schedule)
            averages["worker"][:, form] += weight * workers
            averages["ps"][:, form] += weight * arrays.forms[form].ps_needed(workers)
    return averages
