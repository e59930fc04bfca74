"""Plans carried out one step at a time: what then is free, who works how fast, what is due."""

from __future__ import annotations

from oasis.driver.loop import INFINITY
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import Machine, Site
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.events import COMPLETION, Agenda
from oasis.simulator.execution import Execution
from oasis.simulator.speed import Linear, ScalingTable, Speed
from oasis.simulator.state import Checkpoints, JobProgress, State

MACHINES = (Machine("n0", (4.0,)), Machine("n1", (4.0,)))
SITE = Site(("gpu",), MACHINES)
FREE = ChangeCosts()
TWO, FOUR = Allocation(((0, 2),)), Allocation(((0, 4),))


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


def test_a_job_that_is_still_set_up_saves_nothing() -> None:
    run = Run(costs=ChangeCosts(start=20.0, save=4.0))
    run.do(0.0, j0=TWO)
    run.do(10.0, j0=NOTHING)
    assert run.state.saving.kept == {}
    assert run.job().overhead == 10.0


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
