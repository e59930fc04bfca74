"""The contract of a policy, as properties: a search looks for a case in which it is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from oasis.driver.live import LiveScheduler
from oasis.model.choices import choice
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.scheduling.book import EmptyCluster
from oasis.scheduling.policy import Policy, wants
from oasis.simulator import Engine, Workload
from oasis.testing.strategies import TIMES, instances, instances_of_kinds, of, with_work, worlds

Make = Callable[[], Policy]
MOST_STEPS = 5_000


def check_policy(
    make: Make, *, checks: Iterable[str] | None = None, max_examples: int | None = None
) -> None:
    """Search for a case in which a policy breaks the contract that all policies keep.

    Each check runs the policy on random workloads: elastic jobs with and without parameter servers,
    in slots and in continuous time, on machines of several kinds that are lost and come back. It
    ends at the first case that breaks the contract. Hypothesis makes that case small, and adds it
    to the exception.

    - ``legal``: each plan can be carried out; a job has all tasks that it needs or none; a run ends
      after finitely many steps, and in continuous time no job then waits that fits the machines. A
      policy whose attribute `may_deadlock` is true may leave jobs waiting, or with some tasks.
    - ``past``: jobs that arrive later change nothing before.
    - ``untold``: without `told_remaining`, the work that is left changes nothing.
    - ``repeats``: it decides the same again, also after another run.
    - ``restored``: a service that is saved and loaded half way goes on like one that never was.
    - ``windows``: a service puts no task on a server in its window, a lost one, or a full one.

    Parameters
    ----------
    make : callable
        Makes a fresh policy: its class, or ``lambda: Mine(most=2)``. Each one has the same options.
    checks : iterable of str, optional
        Names of the checks to run. Default: all.
    max_examples : int, optional
        Random cases for each check. Default: as many as Hypothesis is set to, at first 100.

    Raises
    ------
    AssertionError
        If the policy breaks the contract.
    PolicyError
        If it fails, or one of its plans cannot be carried out.
    InputError
        If its state cannot be saved.

    See Also
    --------
    oasis.testing.instances, oasis.testing.worlds : The inputs, for tests of your own.

    Examples
    --------
    >>> from oasis import FIFO
    >>> from oasis.testing import check_policy
    >>> check_policy(FIFO, checks=["legal", "repeats"], max_examples=5)
    """
    if not callable(make):
        raise InputError("make", "expected what makes a policy, such as its class", make)
    for name in CHECKS if checks is None else checks:
        CHECKS[choice(name, CHECKS, "checks")](make, max_examples)


def run_to_end(work: Workload, policy: Policy, options: dict[str, Any] | None = None) -> Engine:
    """Run a policy on a workload to the end, which must come."""
    engine = Engine(work, policy, **(options or {}))
    for step in range(MOST_STEPS):
        # A policy in slots is asked for ever about a job that no machines hold: the run is over
        # once all jobs have come and none of the unfinished ones could run.
        has_come = step % 100 == 99 and len(engine.settled | engine.state.jobs) == len(work.jobs)
        if (has_come and not _still_waiting(engine)) or not engine.step():
            engine.finish()
            return engine
    raise AssertionError(f"{policy.name} still goes on after {MOST_STEPS} instants")


def _still_waiting(engine: Engine) -> list[str]:
    """Return the unfinished jobs that the empty machines hold in one of their forms."""
    empty = EmptyCluster(engine.workload.site)
    return [
        progress.job.id
        for progress in engine.state.jobs.values()
        if any(
            empty.holds(form, form.min_workers, form.ps_needed(form.min_workers))
            for form in progress.job.forms or (progress.job,)
        )
    ]


def decided(engine: Engine, until: float = inf) -> dict[int, Any]:
    """Return what every job that had arrived before `until` held, and its end, up to then."""
    everyone = engine.settled | engine.state.jobs
    found = {}
    for index, progress in sorted(everyone.items()):
        if progress.job.arrival < until:
            held = [entry for entry in progress.history if entry[0] < until]
            ended = progress.end if progress.end is not None and progress.end < until else None
            found[index] = (progress.job.id, held, ended)
    return found


def _expect(is_kept: object, message: str) -> None:
    """Raise `AssertionError` unless the contract is kept, also under ``python -O``."""
    if not is_kept:
        raise AssertionError(message)


def _searched(check: Callable[..., None], max_examples: int | None, **inputs: Any) -> None:
    """Run `check` on random inputs."""
    several = settings().max_examples if max_examples is None else max_examples
    search = settings(
        max_examples=several,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        report_multiple_bugs=False,
        phases=set(Phase) - {Phase.explain},  # which takes minutes here
    )
    search(given(**inputs)(check))()


# -- in the simulator ------------------------------------------------------------------------------


def _check_legal(make: Make, max_examples: int | None) -> None:
    def check(world: Any) -> None:
        work, options = world
        policy = make()
        engine = run_to_end(work, policy, options)  # a plan that cannot run raises PolicyError
        if wants(policy, "may_deadlock"):
            return
        # All machines come back: nobody waits for ever.
        waiting = _still_waiting(engine)
        _expect(work.site.slotted or not waiting, f"jobs wait for ever: {', '.join(waiting)}")
        for progress in (engine.settled | engine.state.jobs).values():
            job = progress.job
            _expect(progress.stalled == 0.0, f"job {job.id} is stalled")
            for time, held in progress.history:
                is_whole = not (held.workers or held.ps) or job.works_with(held)
                _expect(is_whole, f"job {job.id} is half placed at {time}: {held}")

    _searched(check, max_examples, world=worlds())


def _check_past(make: Make, max_examples: int | None) -> None:
    def check(world: Any, until: float, factor: float) -> None:
        work, options = world
        earlier = [job for job in work.jobs if job.arrival < until]
        later = [job for job in work.jobs if job.arrival >= until]
        expected = decided(run_to_end(work, make(), options), until)
        others = [with_work(job, lambda work: work * factor) for job in later]
        for name, jobs in (("without", earlier), ("with others", earlier + others)):
            changed = Workload.of(work.site, jobs)
            found = decided(run_to_end(changed, make(), options), until)
            _expect(found == expected, f"before {until} it decides otherwise {name} later jobs")

    _searched(check, max_examples, world=worlds(), until=TIMES, factor=of(0.1, 3.0))


def _check_untold(make: Make, max_examples: int | None) -> None:
    if getattr(make(), "told_remaining", False):
        return  # it declares that it is told how much work is left

    def check(world: Any, until: float, extra: list[float]) -> None:
        work, options = world
        options |= {"observation": None}  # which tells of the work, as it should
        expected = run_to_end(work, make(), options)
        ends = {k: job.end for k, job in expected.settled.items() if job.end is not None}
        longer = [
            with_work(job, extra[job.index].__add__, curve=None)
            if ends.get(job.index, inf) >= until
            else job
            for job in work.jobs
        ]
        found = run_to_end(Workload.of(work.site, longer), make(), options)
        message = f"before {until} it decides otherwise when jobs have more work left then"
        _expect(decided(found, until) == decided(expected, until), message)

    more = st.lists(of(0.0, 5.0, 40.0), min_size=6, max_size=6)
    _searched(check, max_examples, world=worlds(), until=TIMES, extra=more)


def _check_repeats(make: Make, max_examples: int | None) -> None:
    def check(world: Any) -> None:
        work, options = world
        policy = make()
        first, again, fresh = (
            decided(run_to_end(work, each, options)) for each in (policy, policy, make())
        )
        _expect(again == first, "it decides otherwise in a second run")
        _expect(fresh == first, "another one with the same options decides otherwise")

    _searched(check, max_examples, world=worlds())


# -- in a service ----------------------------------------------------------------------------------

CALLS = ("submit", "submit", "advance", "advance", "lose", "restore", "reserve", "finish", "cancel")
Call = tuple[str, int, int]


@dataclass(slots=True)
class _Service:
    """A service, and calls of it by numbers, whichever jobs and servers are there."""

    scheduler: LiveScheduler
    jobs: list[Job]
    submitted: dict[str, Job] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    windows: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def call(self, kind: str, which: int, length: int) -> Any:
        """Make the call `kind`; return its answer, None if no job or server can take it now.

        `which` chooses the job, the server or the window, and `length` is that of a window.
        """
        scheduler, now = self.scheduler, self.scheduler.now
        server = self.servers[which % len(self.servers)]
        able = [name for name in scheduler.jobs if kind != "finish" or name in self.ran]
        arguments: tuple[Any, ...]
        match kind:
            case "submit" if self.jobs:
                job = replace(self.jobs.pop(), arrival=now)
                self.submitted[job.id] = job
                arguments = (job,)
            case "finish" | "cancel" if able:
                arguments = (able[which % len(able)],)
            case "lose" if server not in self.lost:
                self.lost.add(server)
                arguments = (server,)
            case "restore" if server in self.lost:
                self.lost.remove(server)
                arguments = (server,)
            case "reserve":
                begin, name = now + which % 2, f"w{which % 3}"
                self.windows[name] = (begin, begin + length, server)
                arguments = (name, begin, begin + length, [server])
            case "advance":
                self.ran |= scheduler.plan(1).keys()
                arguments = (now + 1,)
            case _:
                return None
        return getattr(scheduler, kind)(*arguments).to_dict()

    @property
    def servers(self) -> tuple[str, ...]:
        return self.scheduler.cluster.worker_ids + self.scheduler.cluster.ps_ids

    def check_slot(self) -> None:
        """Fail if the jobs of the present slot use what they must not."""
        cluster, now = self.scheduler.cluster, self.scheduler.now
        closed = {s for begin, end, s in self.windows.values() if begin <= now < end}
        capacity = np.vstack([cluster.worker_capacity, cluster.ps_capacity])
        used = np.zeros_like(capacity)
        for name, schedule in self.scheduler.plan(1).items():
            job = self.submitted[name].in_forms[schedule.form]
            for rows, first, demand in (
                (schedule.workers, 0, job.worker),
                (schedule.ps, len(cluster.worker_ids), job.ps),
            ):
                for _, server, count in rows.tolist():
                    machine = self.servers[first + server]
                    _expect(machine not in self.lost, f"{name} is on {machine}, which is lost")
                    _expect(machine not in closed, f"{name} is on {machine}, in a window")
                    amounts = [demand.get(resource, 0.0) for resource in cluster.resources]
                    used[first + server] += count * np.array(amounts)
        _expect((used <= capacity * (1 + 1e-9) + 1e-9).all(), f"too much is used in slot {now}")


def _service(make: Make, instance: Instance) -> _Service:
    return _Service(LiveScheduler(make(), instance.cluster), list(reversed(instance.jobs)))


CLUSTERS = st.one_of(instances(), instances_of_kinds())
CALL = st.tuples(of(*CALLS), st.integers(0, 5), st.integers(1, 3))
SOME = st.lists(CALL, min_size=12, max_size=30)


def _check_restored(make: Make, max_examples: int | None) -> None:
    def check(instance: Instance, calls: list[Call], half: int) -> None:
        service, other = _service(make, instance), _service(make, instance)
        for number, call in enumerate(calls):
            if number == half:
                with _saved(other.scheduler) as path:
                    other.scheduler = LiveScheduler.load(path, make())
            expected, found = service.call(*call), other.call(*call)
            _expect(found == expected, f"restored before call {half}, it answers {call} otherwise")

    _searched(check, max_examples, instance=CLUSTERS, calls=SOME, half=st.integers(0, 20))


@contextmanager
def _saved(scheduler: LiveScheduler) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        scheduler.save(Path(folder, "state"))
        yield Path(folder, "state")


def _check_windows(make: Make, max_examples: int | None) -> None:
    def check(instance: Instance, calls: list[Call]) -> None:
        service = _service(make, instance)
        for call in calls:
            service.call(*call)
            service.check_slot()

    _searched(check, max_examples, instance=CLUSTERS, calls=SOME)


CHECKS: dict[str, Callable[[Make, int | None], None]] = {
    "legal": _check_legal,
    "past": _check_past,
    "untold": _check_untold,
    "repeats": _check_repeats,
    "restored": _check_restored,
    "windows": _check_windows,
}
