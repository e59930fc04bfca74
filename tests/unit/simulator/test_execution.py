"""Plans carried out one step at a time: what then is free, who works how fast, what is due."""

from __future__ import annotations

import pytest

from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import Machine, Site
from oasis.simulator.costs import ChangeCosts, GangChange
from oasis.simulator.events import COMPLETION, INFINITY, SAVED, Agenda
from oasis.simulator.execution import Execution
from oasis.simulator.speed import Linear, ScalingTable, Speed
from oasis.simulator.state import Checkpoints, JobProgress, State

MACHINES = (Machine("n0", (4.0,)), Machine("n1", (4.0,)))
SITE = Site(("gpu",), MACHINES)
FREE = ChangeCosts()
TWO, FOUR = Allocation(((0, 2),)), Allocation(((0, 4),))
ELSEWHERE = Allocation(((1, 2),))


class Run:
    """An execution with what it works on; jobs of 60 units of work, one to four workers."""

    def __init__(
        self,
        jobs: int = 1,
        costs: ChangeCosts = FREE,
        speed: Speed | None = None,
        site: Site = SITE,
    ) -> None:
        self.state, self.agenda = State(site), Agenda((), ())
        self.left: list[str] = []
        self.execution = Execution(
            self.state,
            self.agenda,
            speed or Linear(),
            costs,
            on_settled=lambda progress: self.left.append(progress.job.id),
        )
        for k in range(jobs):
            made = PolicyJob(f"j{k}", 0.0, 60.0, ((0, 1),), max_workers=4, index=k)
            interval = costs.checkpoint_interval
            self.state.jobs[k] = JobProgress(
                made, Checkpoints(interval, 60.0) if interval else None
            )

    def do(self, now: float, rejected: dict[int, str] | None = None, **held: Allocation) -> bool:
        """Carry out a plan at `now` that gives ``j0``, ``j1``, .. what they are to hold."""
        self.state.now = now
        changes = {int(name[1:]): allocation for name, allocation in held.items()}
        return self.execution.carry_out(Plan(changes, rejected or {}))

    def job(self, index: int = 0) -> JobProgress:
        return self.state.jobs[index]

    def due(self) -> list[tuple[float, int, int]]:
        """Time, kind and job of all events that still hold."""
        found = []
        for time, kind, subject, version in self.agenda.take_events(INFINITY):
            if kind != COMPLETION or version == self.job(subject).version:
                found.append((time, kind, subject))
        return found


def test_a_job_that_is_given_machines_works_at_once() -> None:
    run = Run()
    assert run.do(3.0, j0=TWO)
    job = run.job()
    assert (job.started, job.rate, job.ready) == (3.0, 2.0, 3.0)
    assert job.finish == 33.0
    assert run.state.free == [(2,), (4,)]
    assert run.due() == [(33.0, COMPLETION, 0)]


def test_a_plan_that_says_what_is_already_so_changes_nothing() -> None:
    run = Run()
    run.do(0.0, j0=TWO)
    version = run.job().version
    assert not run.do(1.0, j0=TWO)
    assert not run.do(2.0)
    assert (run.job().version, run.job().history) == (version, [(0.0, TWO)])


def test_an_outdated_completion_is_told_by_its_version() -> None:
    run = Run()
    run.do(0.0, j0=TWO)
    run.do(10.0, j0=FOUR)
    assert run.job().remaining == 40.0
    assert run.due() == [(20.0, COMPLETION, 0)]


def test_pausing_leaves_nothing_due() -> None:
    run = Run()
    run.do(0.0, j0=TWO)
    run.do(10.0, j0=NOTHING)
    assert (run.job().rate, run.job().finish) == (0.0, INFINITY)
    assert run.job().remaining == 40.0
    assert run.state.free == [(4,), (4,)]
    assert run.due() == []


def test_jobs_exchange_machines_in_one_plan() -> None:
    run = Run(jobs=2)
    run.do(0.0, j0=FOUR)
    assert run.do(5.0, j0=NOTHING, j1=FOUR)
    assert run.state.free == [(0,), (4,)]
    assert (run.job(0).complete, run.job(1).complete) == (False, True)


@pytest.mark.parametrize(
    ("second", "ready", "change"),
    [
        (FOUR, 10.0 + 7.0, GangChange.RESIZE),
        (ELSEWHERE, 10.0 + 3.0, GangChange.MIGRATE),
    ],
)
def test_each_change_costs_its_own_time(
    second: Allocation, ready: float, change: GangChange
) -> None:
    run = Run(costs=ChangeCosts(start=1.0, resume=5.0, resize=7.0, migrate=3.0))
    run.do(0.0, j0=TWO)
    assert run.job().ready == 1.0
    run.do(10.0, j0=second)
    assert (run.job().ready, run.job().changes) == (ready, (change,))


def test_a_resumed_job_pays_for_resuming() -> None:
    run = Run(costs=ChangeCosts(start=1.0, resume=5.0, resize=7.0))
    run.do(0.0, j0=TWO)
    run.do(4.0, j0=NOTHING)
    run.do(10.0, j0=FOUR)
    assert (run.job().ready, run.job().changes) == (15.0, (GangChange.RESUME,))
    assert run.job().started == 0.0


def test_saving_delays_the_job_itself_and_whoever_gets_its_machines() -> None:
    run = Run(jobs=2, costs=ChangeCosts(save=4.0))
    run.do(0.0, j0=FOUR)
    run.do(10.0, j0=ELSEWHERE, j1=FOUR)
    assert run.job(0).ready == 14.0
    assert run.job(1).ready == 14.0
    assert (14.0, SAVED, 0) in run.due()


def test_a_job_that_is_still_set_up_saves_nothing() -> None:
    run = Run(costs=ChangeCosts(start=20.0, save=4.0))
    run.do(0.0, j0=TWO)
    run.do(10.0, j0=NOTHING)
    assert run.state.saving.kept == {}
    assert run.job().overhead == 10.0


def test_a_job_that_is_done_leaves_at_its_own_time() -> None:
    run = Run()
    run.do(0.0, j0=FOUR)
    job = run.job()
    run.state.now = 15.5  # the engine comes a little later
    run.execution.complete(job)
    assert (job.end, job.remaining, job.running) == (15.0, 0.0, 15.0)
    assert run.execution.settled == {0: job}
    assert run.left == ["j0"]
    assert run.state.jobs == {}
    assert run.state.free == [(4,), (4,)]


def test_a_rejected_job_leaves_with_the_reason_before_others_are_placed() -> None:
    run = Run(jobs=2)
    run.do(0.0, j0=FOUR)
    assert run.do(10.0, rejected={0: "too long"}, j1=FOUR)
    gone = run.execution.settled[0]
    assert (gone.refusal, gone.end, gone.remaining) == ("too long", None, 20.0)
    assert run.left == ["j0"]
    assert run.state.free == [(0,), (4,)]


def test_a_lost_machine_evicts_only_who_was_there() -> None:
    run = Run(jobs=2)
    run.do(0.0, j0=TWO, j1=ELSEWHERE)
    run.state.now = 5.0
    assert [job.id for job in run.execution.lose(0)] == ["j0"]
    assert (run.job(0).allocation, run.job(0).remaining) == (NOTHING, 50.0)
    assert run.job(1).allocation == ELSEWHERE
    assert run.state.free == [(0,), (2,)]
    assert run.due() == [(30.0, COMPLETION, 1)]


def test_an_evicted_job_goes_back_to_its_last_checkpoint() -> None:
    run = Run(costs=ChangeCosts(checkpoint_interval=4.0))
    run.do(0.0, j0=TWO)
    run.state.now = 11.0
    run.execution.lose(0)
    assert (run.job().remaining, run.job().lost) == (60.0 - 2 * 8.0, 2 * 3.0)


def test_a_resize_writes_a_checkpoint() -> None:
    run = Run(costs=ChangeCosts(checkpoint_interval=100.0))
    run.do(0.0, j0=TWO)
    run.do(10.0, j0=FOUR)
    run.state.now = 15.0
    run.execution.lose(0)
    assert (run.job().remaining, run.job().lost) == (40.0, 20.0)


def test_in_slots_machines_are_free_at_the_end_of_the_slot() -> None:
    """Begun at 1, 60 units take four workers to 16; 58 take three into slot 20."""
    run = Run(site=Site(("gpu",), MACHINES, slotted=True, horizon=99.0))
    run.do(1.0, j0=FOUR)
    assert (run.job().finish, run.due()) == (16.0, [(16.0, COMPLETION, 0)])
    run.job().remaining = 58.0
    run.do(1.0, j0=Allocation(((0, 3),)))
    assert run.job().finish == pytest.approx(1.0 + 58.0 / 3.0)
    assert run.due() == [(21.0, COMPLETION, 0)]


def test_jobs_that_share_a_machine_get_their_speeds_together() -> None:
    run = Run(jobs=2, speed=ScalingTable({}, sharing=1.0))
    run.do(0.0, j0=TWO)
    assert run.job(0).rate == 0.0  # until the end of the instant
    run.execution.set_speeds()
    assert run.job(0).rate == 2.0
    run.do(10.0, j1=TWO)
    run.execution.set_speeds()
    assert (run.job(0).rate, run.job(1).rate) == (1.0, 1.0)
    assert run.job(0).remaining == 40.0
    run.do(20.0, j1=NOTHING)
    run.execution.set_speeds()
    assert (run.job(0).rate, run.job(0).remaining) == (2.0, 30.0)
    assert run.due() == [(35.0, COMPLETION, 0)]


def test_an_incomplete_gang_holds_its_machines_and_does_no_work() -> None:
    run = Run(site=Site(("gpu",), MACHINES, partial_gangs=True))
    made = PolicyJob("j0", 0.0, 60.0, ((0, 1),), min_workers=3, max_workers=4, index=0)
    run.state.jobs[0] = JobProgress(made)
    run.do(0.0, j0=TWO)
    assert (run.job().started, run.job().rate, run.due()) == (None, 0.0, [])
    assert run.state.free == [(2,), (4,)]
    run.do(5.0, j0=FOUR)
    assert (run.job().started, run.job().stalled, run.job().finish) == (5.0, 5.0, 20.0)
