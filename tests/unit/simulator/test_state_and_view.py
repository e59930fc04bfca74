"""The state of a run and what a policy may see of it: holding, losing, waiting, being told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.site import Machine, Site
from oasis.scheduling.view import View
from oasis.simulator.state import JobProgress, State
from tests.builders import gang as job

MACHINES = (Machine("n0", (4.0, 8.0)), Machine("n1", (4.0, 8.0)))
SITE = Site(("gpu", "cpu"), MACHINES)
PARTIAL = Site(("gpu", "cpu"), MACHINES, partial_gangs=True)
TWO_AND_ONE = Allocation(((0, 2),), ((1, 1),))


def started(state: State, made: PolicyJob, held: Allocation = NOTHING) -> JobProgress:
    progress = state.jobs[made.index] = JobProgress(made)
    if held != NOTHING:
        state.hold(progress, held, coupled=False)
    return progress


# -- holding ---------------------------------------------------------------------------------------


def test_what_a_job_holds_is_not_free_and_in_use_by_kind_of_task() -> None:
    state = State(SITE)
    progress = started(state, job(), TWO_AND_ONE)
    assert state.free == [(2, 4), (4, 7)]
    assert state.used == [2, 4, 0, 1]  # workers: 2 GPUs and 4 cores; parameter servers: 1 core
    assert progress.complete
    assert progress.waiting_since is None


def test_exchanging_gives_back_what_was_held() -> None:
    state = State(SITE)
    progress = started(state, job(), TWO_AND_ONE)
    state.now = 5.0
    state.hold(progress, Allocation(((1, 3),), ((0, 2),)), coupled=False)
    assert state.free == [(4, 6), (1, 2)]
    assert state.used == [3, 6, 0, 2]
    state.hold(progress, NOTHING, coupled=False)
    assert state.free == [(4, 8), (4, 8)]
    assert state.used == [0, 0, 0, 0]
    assert progress.waiting_since == 5.0


def test_an_incomplete_gang_holds_machines_and_waits_all_the_same() -> None:
    state = State(PARTIAL)
    progress = started(state, job(arrival=1.0))
    state.now = 3.0
    state.hold(progress, Allocation(((0, 1),)), coupled=True)
    assert not progress.complete
    assert progress.waiting_since == 1.0  # since it came, not since it holds something
    assert state.free[0] == (3, 6)
    assert state.load.tasks == [0, 0]  # tasks that wait for others keep no core busy
    state.hold(progress, TWO_AND_ONE, coupled=True)
    assert progress.complete
    assert state.load.tasks == [2, 1]
    state.hold(progress, Allocation(((0, 2),)), coupled=True)
    assert not progress.complete
    assert state.load.tasks == [0, 0]
    assert progress.waiting_since == 3.0


def test_the_load_is_kept_for_coupled_speeds_only() -> None:
    state = State(SITE)
    started(state, job(), TWO_AND_ONE)
    assert state.load.tenants == [0, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), max_size=8))
def test_free_and_used_always_add_up_to_the_capacity(steps: list[tuple[int, int, int]]) -> None:
    state = State(PARTIAL)
    progress = [started(state, job(str(k), k)) for k in range(2)]
    for workers, ps, machine in steps:
        held = Allocation(((machine, workers),) if workers else (), ((0, ps),) if ps else ())
        state.hold(progress[machine], held, coupled=True)
    for r, total in enumerate((8, 16)):
        assert sum(row[r] for row in state.free) + state.used[r] + state.used[2 + r] == total
    state.hold(progress[0], NOTHING, coupled=True)
    state.hold(progress[1], NOTHING, coupled=True)
    assert state.free == [(4, 8), (4, 8)]
    assert state.load.cpu == [0.0, 0.0]


# -- machines that are lost ------------------------------------------------------------------------


def test_a_lost_machine_has_nothing_free() -> None:
    state = State(SITE)
    state.lose(1)
    assert state.free == [(4, 8), (0, 0)]
    assert state.down == {1}
    state.restore(1)
    assert state.free == [(4, 8), (4, 8)]
    assert state.down == set()


# -- the view --------------------------------------------------------------------------------------


def test_free_and_capacity_are_copies_to_plan_on() -> None:
    state = State(SITE)
    started(state, job(), TWO_AND_ONE)
    state.lose(1)
    view = View(state, "mine", told_remaining=False)
    assert view.free() == [(2, 4), (0, 0)]
    assert view.capacity() == [(4, 8), (0, 0)]
    view.free()[0] = (99, 99)
    view.capacity()[0] = (99, 99)
    assert state.free[0] == (2, 4)


def test_nobody_looks_at_a_job_without_an_observation() -> None:
    state = State(SITE)
    progress = started(state, job())
    assert View(state, "mine", told_remaining=False).observed(progress.job) is None


# -- progress of one job ---------------------------------------------------------------------------


def working(rate: float = 2.0, ready: float = 0.0, **options: object) -> JobProgress:
    progress = JobProgress(job(), **options)  # type: ignore[arg-type]
    progress.allocation, progress.complete = TWO_AND_ONE, True
    progress.rate, progress.ready = rate, ready
    return progress


def test_time_is_set_up_first_and_work_after_that() -> None:
    progress = working(ready=4.0)
    progress.advance(3.0)
    assert (progress.overhead, progress.running, progress.remaining) == (3.0, 0.0, 60.0)
    progress.advance(10.0)
    assert (progress.overhead, progress.running, progress.remaining) == (4.0, 6.0, 48.0)
    assert progress.held_at(11.0) == 11.0


def test_an_incomplete_gang_is_stalled_and_an_empty_one_only_waits() -> None:
    progress = working()
    progress.complete = False
    progress.advance(5.0)
    assert (progress.stalled, progress.running, progress.remaining) == (5.0, 0.0, 60.0)
    progress.allocation = NOTHING
    progress.advance(9.0)
    assert progress.stalled == 5.0
    assert progress.held_at(20.0) == 0.0


def test_work_left_never_falls_below_nothing() -> None:
    progress = working()
    assert progress.remaining_at(29.0) == 2.0
    assert progress.remaining_at(99.0) == 0.0
    progress.advance(99.0)
    assert progress.remaining == 0.0


def test_looking_ahead_changes_nothing() -> None:
    progress = working(ready=4.0)
    assert progress.remaining_at(2.0) == 60.0
    assert progress.remaining_at(6.0) == 56.0
    assert (progress.since, progress.remaining, progress.running) == (0.0, 60.0, 0.0)
