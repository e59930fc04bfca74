"""Machines that are kept busy by saving: until when, how much, and when there is room again."""

from __future__ import annotations

from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.site import Machine, Site
from oasis.simulator.state import Saving, State

SITE = Site(("gpu", "cpu"), (Machine("n0", (4.0, 8.0)), Machine("n1", (4.0, 8.0))))
JOB = PolicyJob("a", 0.0, 60.0, ((0, 1), (1, 2)), ((1, 1),), max_workers=4)
TWO = Allocation(((0, 2),), ((1, 1),))


def test_only_what_a_job_gives_up_is_kept_busy() -> None:
    saving = Saving(SITE)
    saving.keep(JOB, TWO, Allocation(((0, 1),), ((1, 1),)), now=0.0, until=5.0)
    assert saving.kept == {0: [(5.0, [1, 2])]}
    saving.keep(JOB, Allocation(((0, 1),), ((1, 1),)), NOTHING, now=1.0, until=3.0)
    assert saving.kept == {0: [(3.0, [1, 2]), (5.0, [1, 2])], 1: [(3.0, [0, 1])]}


def test_busy_time_is_amount_times_time() -> None:
    saving = Saving(SITE)
    saving.keep(JOB, TWO, NOTHING, now=2.0, until=5.0)
    saving.advance(4.0, [(4, 8), (4, 8)])
    assert saving.busy == [2 * 2.0, 4 * 2.0 + 1 * 2.0]
    saving.advance(9.0, [(4, 8), (4, 8)])
    assert saving.busy == [2 * 3.0, 4 * 3.0 + 1 * 3.0]
    assert saving.kept == {}


def test_what_others_use_already_is_not_counted_twice() -> None:
    """On the first machine one GPU is planned to be free, so saving adds no more than that."""
    saving = Saving(SITE)
    saving.keep(JOB, TWO, NOTHING, now=0.0, until=2.0)
    saving.advance(2.0, [(1, 0), (4, 8)])
    assert saving.busy == [1 * 2.0, 0.0 + 1 * 2.0]


def test_saves_that_end_one_after_the_other_are_counted_in_steps() -> None:
    saving = Saving(SITE)
    saving.keep(JOB, Allocation(((0, 1),)), NOTHING, now=0.0, until=1.0)
    saving.keep(JOB, Allocation(((0, 2),)), NOTHING, now=0.0, until=3.0)
    saving.advance(4.0, [(4, 8), (4, 8)])
    assert saving.busy[0] == 3 * 1.0 + 2 * 2.0


def test_a_job_begins_when_what_is_saved_fits_beside_it() -> None:
    """Three of four GPUs are saved until 2, one of them until 6; the plan leaves so many free."""
    saving = Saving(SITE)
    saving.keep(JOB, Allocation(((0, 2),)), NOTHING, now=0.0, until=2.0)
    saving.keep(JOB, Allocation(((0, 1),)), NOTHING, now=0.0, until=6.0)
    for free, begin in (((3, 8), 1.0), ((2, 8), 2.0), ((1, 8), 2.0), ((0, 8), 6.0)):
        found = saving.free_at(JOB, NOTHING, Allocation(((0, 1),)), 1.0, [free, (4, 8)])
        assert found == begin


def test_machines_on_which_a_job_gets_nothing_new_do_not_delay_it() -> None:
    saving = Saving(SITE)
    saving.keep(JOB, Allocation(((0, 4),)), NOTHING, now=0.0, until=9.0)
    full = [(0, 0), (4, 8)]
    assert saving.free_at(JOB, NOTHING, Allocation(((1, 2),)), 1.0, full) == 1.0
    held = Allocation(((0, 1),))
    assert saving.free_at(JOB, held, Allocation(((0, 1), (1, 1))), 1.0, full) == 1.0
    assert saving.free_at(JOB, held, Allocation(((0, 2),)), 1.0, full) == 9.0


def test_a_lost_machine_saves_nothing() -> None:
    state = State(SITE)
    state.saving.keep(JOB, TWO, NOTHING, now=0.0, until=5.0)
    state.lose(0)
    assert list(state.saving.kept) == [1]
