"""A scheduler that settles a job's whole life at its arrival, as OASiS does, run on the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

from oasis.model.decision import Decision
from oasis.model.errors import InputError
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.online.prices import PriceBounds
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocations

REFUSAL = "not admitted; the decision says why"  # finding the reason may take time


@runtime_checkable
class Scheduler(Protocol):
    """Decides on each job at its arrival, once and for all.

    Examples
    --------
    OASiS is one; a policy that may change its mind is not.

    >>> import oasis
    >>> from baselines import FIFO
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> isinstance(oasis.OASiS.from_instance(instance), Scheduler), isinstance(FIFO(), Scheduler)
    (True, False)
    """

    name: str
    bounds: PriceBounds

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this run from another, as plain data."""
        ...

    def submit(self, job: Job) -> Decision:
        """Decide on `job`, knowing only the jobs submitted before it."""
        ...


class Committed:
    """The policy that carries out what a `Scheduler` decides.

    It keeps the decisions and the measured time of each.
    """

    slotted = False
    told_remaining = True

    def __init__(
        self, scheduler: Scheduler, on_decision: Callable[[Decision], None] | None = None
    ) -> None:
        self.name = scheduler.name
        self.scheduler = scheduler
        self.decisions: list[Decision] = []
        self.seconds: list[float] = []
        self._on_decision = on_decision

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.scheduler.parameters

    def reset(self, site: Site) -> None:
        self._site = site
        self._due: dict[int, dict[int, Allocation]] = {}  # slot -> job -> what it holds from there

    def decide(self, view: View) -> Plan:
        """Submit what has arrived and carry out what was decided for this slot."""
        plan = Plan()
        for job in view.arrived:
            if job.source is None:
                raise InputError(
                    "", f"policy {self.name} needs jobs of an instance, not plain ones"
                )
            decision = self._submit(job.source)
            if decision.schedule is None:
                plan.rejected[job.index] = REFUSAL
            else:
                self._note(job.index, decision.schedule)
        active = {job.index for job in view.jobs()}
        due = self._due.pop(int(view.now), {})
        plan.changes = {index: what for index, what in due.items() if index in active}
        plan.wake_at = min(self._due, default=None)
        return plan

    def _submit(self, job: Job) -> Decision:
        begin = perf_counter()
        decision = self.scheduler.submit(job)
        self.seconds.append(perf_counter() - begin)
        self.decisions.append(decision)
        if self._on_decision is not None:
            self._on_decision(decision)
        return decision

    def _note(self, index: int, schedule: Schedule) -> None:
        """Enter the changes that `schedule` asks for, slot by slot."""
        planned = allocations(schedule, self._site)
        held = NOTHING
        for slot, allocation in planned.items():
            if allocation != held:
                self._due.setdefault(slot, {})[index] = held = allocation
            if slot + 1 not in planned:
                self._due.setdefault(slot + 1, {})[index] = held = NOTHING
