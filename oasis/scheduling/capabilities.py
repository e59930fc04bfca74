"""Abilities of a policy besides deciding, and the facts that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.policy import BasePolicy, Policy


def wants(policy: object, attribute: str) -> bool:
    """Whether `policy` has one of the attributes of `BasePolicy` that are no by default."""
    return bool(getattr(policy, attribute, False))


def left_out(policy: object) -> str:
    """Why a replay runs `policy` only where it is named; empty if it always does."""
    needs = getattr(policy, "needs", "")
    return f"need {needs}" if needs else "slow with many jobs" * wants(policy, "is_slow")


def state_of(policy: Policy, job: PolicyJob) -> str | None:
    """The word of `policy` for the state of an unfinished job; None if it has none."""
    own = getattr(policy, "state_of", None)
    return None if own is None else own(job)


class Planner(BasePolicy):
    """Plans whole schedules on a horizon that rolls; by default it promises nothing."""

    told_remaining = True
    plans_in_model = True
    knows_forms = True
    lookahead: int | None = None  # slots that the plan reaches ahead; None if it does not roll
    bounds: Any = None  # U and L (23)-(26), which results record
    late: Set[int] = frozenset()  # jobs whose promise was broken by the last decision
    withdrawn: Sequence[int] = ()  # jobs that were withdrawn and are not taken in yet
    rounds_given: int | None = None  # exact number of rounds of the search in the next decisions
    _calendar = EVER_OPEN
    _decided: Mapping[int, Decision] = MappingProxyType({})

    @property
    def rounds_done(self) -> int:
        """Rounds of the search in the last decision."""
        return 0

    @property
    def cut_short(self) -> int:
        """Decisions in which a limit in seconds left rounds undone."""
        return 0

    def withdraw(self, job: PolicyJob) -> None:
        """Note that the owner of `job` does not want it any more, which is no end of its work."""
        self.withdrawn = [*self.withdrawn, job.index]

    def plan_around(self, calendar: Calendar) -> None:
        """Place nothing, from the next decision on, where `calendar` keeps machines from jobs."""
        self._calendar = calendar

    def last_decisions(self) -> Mapping[int, Decision]:
        """Decisions on the latest arrivals, by index of the job."""
        return self._decided

    def promised(self, job: PolicyJob) -> int | None:
        """The slot by which `job` is to be complete; None if nothing was promised."""
        return None

    def planned(self) -> Mapping[str, tuple[Any, float]]:
        """Schedule and planned utility of every live job, by id."""
        return {}

    def ahead(self, slots: int) -> Mapping[int, Sequence[tuple[int, Allocation]]]:
        """Planned allocations of each job in the next `slots` slots, by index of the job."""
        return {}

    def foresee(self, job: Job, now: int) -> Any:
        """Return what would happen to `job` if it arrived in slot `now`; None: ask a copy of it."""
        return None

    def making(self) -> dict[str, Any] | None:
        """Plain data from which its class builds the same policy; None if there are none."""
        return None
