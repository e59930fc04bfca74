"""The first feasible solution: what OASiS decides, as far as it came."""

from __future__ import annotations

from collections.abc import Mapping

from oasis.online import OASiS
from oasis.problem import Instance
from oasis.result import Decision
from oasis.schedule import Schedule
from oasis.simulator import simulate
from oasis.verify import verify
from offline.standing import Standing, trivial_bound

ONLINE = "OASiS"
WARM_START = "warm start"


def begin(
    instance: Instance, standing: Standing, warm_start: Mapping[str, Schedule] | None
) -> None:
    """Tell `standing` of `warm_start`, or without one of OASiS's own schedules.

    If Ctrl-C ends OASiS's run, of those it has decided on by then.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    """
    if warm_start is not None:
        standing.enter(WARM_START)
        standing.found(verify(instance, warm_start), warm_start)
        return
    standing.proved(trivial_bound(instance))
    standing.enter(ONLINE)
    decided: dict[str, Schedule] = {}

    def note(decision: Decision) -> None:
        if decision.schedule is not None:
            decided[decision.job_id] = decision.schedule

    try:
        simulate(instance, OASiS.from_instance(instance), on_decision=note)
    finally:
        standing.found(verify(instance, decided), decided)
