"""When cuts are looked for, which ones are taken from those that are known, and when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from oasis.model.rounding import FloatArray
from oasis.solvers.budget import Budget
from offline import configuration_bound
from offline.column_generation import cutting
from offline.column_generation.cutting import CutSearch, _averages, cut_configuration_lp
from offline.column_generation.generation import ColumnGeneration
from offline.column_generation.restricted_master import SlotCut
from offline.model.arrays import OfflineArrays
from offline.params import ColumnGenerationParams
from offline.patterns import Cut, CutGenerator
from offline.state import SolveState
from tests.oracle.tiny import on_one_server

SLOTS = 3


# Of these four jobs, only one at a time fits on the only server.
INSTANCE = on_one_server([2.5, 2.7, 2.9, 3.1], [10.0] * 4, SLOTS)
ARRAYS = OfflineArrays.of(INSTANCE)


def averages(*busy: tuple[int, int, int]) -> dict[str, FloatArray]:
    """In each given slot, two jobs share the server in fractions: two thirds of each."""
    workers = np.zeros((SLOTS, 4))
    for slot, one, other in busy:
        workers[slot, [one, other]] = 2 / 3
    return {"worker": workers, "ps": np.zeros((SLOTS, 4))}


@pytest.fixture
def separated(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """The counts for which new cuts are looked for."""
    asked: list[FloatArray] = []
    original = CutGenerator.separate

    def separate(self: CutGenerator, counts: FloatArray, budget: Budget) -> Any:
        asked.append(counts)
        return original(self, counts, budget)

    monkeypatch.setattr(CutGenerator, "separate", separate)
    return asked


def weight(cut: SlotCut, counts: dict[str, FloatArray]) -> float:
    """Weight in a cut of average counts of workers, at most one each."""
    row = counts["worker"][cut.slot]
    return float(sum(row[k] * weights[1] for k, weights in cut.weights.items()))


def test_a_cut_found_in_one_slot_is_tried_in_all_before_others_are_looked_for(
    separated: list[FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "ENOUGH", 1)
    search = CutSearch(ARRAYS)
    (first,) = search.cuts(averages((0, 0, 1)), Budget())
    assert first.slot == 0
    separated.clear()
    (second,) = search.cuts(averages((2, 0, 1)), Budget())
    assert second.slot == 2
    assert second.weights.keys() == first.weights.keys()
    assert separated == []


@pytest.mark.parametrize("is_lifted", [True, False])
def test_every_cut_is_violated_by_the_counts_that_it_was_found_for(
    monkeypatch: pytest.MonkeyPatch, is_lifted: bool
) -> None:
    """One cut for all jobs, or one for the first two and another for the others."""
    if not is_lifted:
        monkeypatch.setattr(
            CutGenerator, "separate", lambda _, counts, __: Cut(counts) if counts.any() else None
        )
    search = CutSearch(ARRAYS)
    counts = averages((0, 0, 1), (1, 2, 3))
    counts["worker"] *= 1.2
    found = search.cuts(counts, Budget())
    assert [cut.slot for cut in found] == [0, 1]
    assert all(weight(cut, counts) > 1.1 for cut in found)
    assert (found[0].weights.keys() == found[1].weights.keys()) == is_lifted


def test_a_search_that_took_long_ends_with_what_it_found_and_the_next_one_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No limit ends a search that has found nothing."""
    monkeypatch.setattr(
        CutGenerator, "separate", lambda _, counts, __: Cut(counts) if counts.any() else None
    )
    monkeypatch.setattr(cutting, "SEARCH_LIMIT", 0.0)
    search = CutSearch(ARRAYS)
    counts = averages((1, 0, 1), (2, 2, 3))
    counts["worker"] *= 1.2
    ends, slots = [search.is_complete], []
    for _ in range(2):
        slots.append([cut.slot for cut in search.cuts(counts, Budget())])
        ends.append(search.is_complete)
    assert slots == [[1], [2]]
    assert search.cuts(averages(), Budget()) == []
    assert [*ends, search.is_complete] == [True, False, False, True]


def rounds(
    monkeypatch: pytest.MonkeyPatch, values: Sequence[float], patience: int, least: float
) -> int:
    """Number of LP solves with these values, if there is always another cut."""
    left = list(values)

    def refine(self: ColumnGeneration, *_: Any) -> bool:
        self.value = left.pop(0)
        return True

    state = SolveState(Budget())
    bound = configuration_bound(INSTANCE)
    monkeypatch.setattr(ColumnGeneration, "refine", refine)
    monkeypatch.setattr(CutSearch, "cuts", lambda *_: [SlotCut(0, {0: np.array([0.0, 0.1])})])
    monkeypatch.setattr(cutting, "PATIENCE", patience)
    monkeypatch.setattr(cutting, "LEAST_PROGRESS", least)
    cut_configuration_lp(ARRAYS, bound, state, state.budget)
    return len(values) - len(left) - 1  # the last one is without new cuts


def test_rounds_that_have_not_looked_at_all_slots_do_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = (10.0, 10.0, 10.0, 0.0)
    assert rounds(monkeypatch, values, 1, least=0.1) == 2
    monkeypatch.setattr(CutSearch, "is_complete", property(lambda _: False, lambda *_: None), False)
    with pytest.raises(IndexError):  # it asks for more values than there are
        rounds(monkeypatch, values, 1, least=0.1)


@pytest.mark.parametrize(
    ("values", "patience", "expected"),
    [
        ((100.0, 50.0, 44.0, 44.0, 0.0), 1, 4),  # 6 of 44 is more than a tenth
        ((10.0, 8.0, 8.0, 8.0, 0.0), 2, 4),  # in two rounds it fell
        ((10.0, 10.0, 0.0), 1, 2),
    ],
)
def test_it_ends_when_the_bound_hardly_falls_any_more(
    monkeypatch: pytest.MonkeyPatch, values: Sequence[float], patience: int, expected: int
) -> None:
    assert rounds(monkeypatch, values, patience, least=0.1) == expected


def test_without_a_solved_master_nothing_runs_on_average() -> None:
    state = SolveState(Budget())
    generation = ColumnGeneration(ARRAYS, state.budget, state, ColumnGenerationParams())
    bound = configuration_bound(INSTANCE)
    generation.columns = list(bound.columns)
    assert generation.columns
    assert not any(table.any() for table in _averages(ARRAYS, generation).values())
