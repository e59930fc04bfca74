"""Optional abilities of a policy beside deciding: one small protocol for each.

A driver asks ``isinstance(policy, Promising)``, and mypy then knows which members it may use.
A policy has an ability if it has the members; nothing is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol, Self, runtime_checkable

from oasis.model.calendar import Calendar
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.scheduling.job import Allocation, PolicyJob


def wants(policy: object, attribute: str) -> bool:
    """Whether `policy` has one of the attributes of `BasePolicy` that are no by default.

    Examples
    --------
    >>> from baselines import FIFO, SRTF
    >>> wants(FIFO(), "told_remaining"), wants(SRTF(), "told_remaining")
    (False, True)
    """
    return bool(getattr(policy, attribute, False))


def left_out(policy: object) -> str:
    """Why a replay runs `policy` only where it is named; empty if it always does.

    Examples
    --------
    >>> from baselines import DRF, FIFO, ElasticFlow
    >>> left_out(FIFO), left_out(DRF), left_out(ElasticFlow)
    ('', 'slow with many jobs', 'need deadlines')
    """
    needs = getattr(policy, "needs", "")
    return f"need {needs}" if needs else "slow with many jobs" * wants(policy, "is_slow")


@runtime_checkable
class Deciding(Protocol):
    """Answers what should run where: the one method without which nothing is a policy."""

    def decide(self, view: Any) -> Any:
        """Return a `Plan`."""
        ...


@runtime_checkable
class Withdrawing(Protocol):
    """Distinguishes a job that its owner cancelled from one that ended.

    Attributes
    ----------
    withdrawn : sequence of int
        Indices of jobs that were withdrawn and that the policy has not taken in yet.
    """

    withdrawn: Sequence[int]

    def withdraw(self, job: PolicyJob) -> None:
        """Note that the owner of `job` does not want it any more."""
        ...


@runtime_checkable
class Promising(Protocol):
    """Promises completions at arrival.

    Attributes
    ----------
    late : set of int
        Indices of the jobs whose promise was broken by the last decision.
    """

    late: Set[int]

    def promised(self, job: PolicyJob) -> int | None:
        """Return the slot by which `job` is to be complete; None if nothing was promised."""
        ...


@runtime_checkable
class Forecasting(Protocol):
    """Knows already what jobs will hold in the next slots."""

    def ahead(self, slots: int) -> Mapping[int, Sequence[tuple[int, Allocation]]]:
        """Return, by index of the job, what it is planned to hold in the next `slots` slots."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """Keeps the decisions on the latest arrivals, with their reasons."""

    def last_decisions(self) -> Mapping[int, Decision]:
        """Return them by index of the job."""
        ...


@runtime_checkable
class Settling(Protocol):
    """Settles the whole life of a job at its arrival, once and for all, as OASiS does.

    Attributes
    ----------
    settles : bool
        Whether it does so in this run.
    decisions : sequence of Decision
        One for each job, in order of arrival.
    decision_seconds : sequence of float
        The measured time of each decision of this run.
    on_decision : callable or None
        To be called for each decision.
    """

    settles: bool
    decisions: Sequence[Decision]
    decision_seconds: Sequence[float]
    on_decision: Callable[[Decision], None] | None


@runtime_checkable
class PlanningAhead(Protocol):
    """Plans whole schedules on a horizon that rolls, and changes them where it must.

    A service lets its plan run; any other policy it asks at every event.
    """

    def planned(self) -> Mapping[str, tuple[Any, float]]:
        """Return schedule and planned utility of every live job, by id."""
        ...

    def making(self) -> dict[str, Any] | None:
        """Plain data from which its class builds the same policy; None if there are none."""
        ...


@runtime_checkable
class PlanningAround(Protocol):
    """Knows beforehand which machines are closed or reserved in which slots.

    Examples
    --------
    >>> import oasis
    >>> from baselines import FIFO
    >>> isinstance(oasis.Recourse(), PlanningAround), isinstance(FIFO(), PlanningAround)
    (True, False)
    """

    def plan_around(self, calendar: Calendar) -> None:
        """Place nothing, from the next decision on, where `calendar` keeps machines from jobs."""
        ...


@runtime_checkable
class Repeating(Protocol):
    """Searches for as long as it may, and can do exactly the same search again.

    Attributes
    ----------
    rounds_given : int or None
        Exact number of rounds of the next decisions.
    """

    rounds_given: int | None

    @property
    def rounds_done(self) -> int:
        """Rounds in the last decision."""
        ...

    @property
    def cut_short(self) -> int:
        """Decisions in which a limit in seconds left rounds undone."""
        ...


@runtime_checkable
class Quoting(Protocol):
    """Says what would happen to a job, and changes nothing."""

    def foresee(self, job: Job, now: int) -> Any:
        """Return what would happen to `job` if it arrived in slot `now`."""
        ...


@runtime_checkable
class Rehearsing(Protocol):
    """A policy that can be asked for a decision on a copy, without being changed.

    A driver then starts jobs between boundaries (`oasis.driver.between.EarlyStarts`).

    Examples
    --------
    >>> from baselines import FIFO
    >>> isinstance(FIFO(), Rehearsing)
    True
    """

    def rehearsed(self) -> Self:
        """Return a copy: it decides as the policy would, and shares nothing that changes."""
        ...


@runtime_checkable
class NamingStates(Protocol):
    """Has a word of its own for the state of an unfinished job.

    Examples
    --------
    >>> from baselines import Kod2
    >>> isinstance(Kod2(), NamingStates)
    True
    """

    def state_of(self, job: PolicyJob) -> str:
        """Return the state of `job` since the last decision."""
        ...


@runtime_checkable
class Persistent(Protocol):
    """Writes and reads its own state; the state of any other policy is read off its attributes."""

    def state(self) -> dict[str, Any]:
        """Return plain data that `restore` accepts."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the policy from the data of `state`, on the same machines."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """Has the price bounds U and L (23)-(26), which results record.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> isinstance(oasis.OASiS.from_instance(instance), Bounded)
    True
    """

    bounds: Any
