"""The first feasible solution: what OASiS decides, as far as it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oasis.certify.verify import verify
from oasis.model.decision import Decision
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.online.oasis import OASiS
from oasis.simulator import simulate
from oasis.simulator.result import Run
from offline.result import WARM_START
from offline.state import TRIVIAL, Standing, trivial_bound

ONLINE = "OASiS"


def begin(
    instance: Instance, standing: Standing, warm_start: Mapping[str, Schedule] | None
) -> None:
    """Tell `standing` of `warm_start`, or without one of OASiS's own schedules.

    Raises
    ------
    VerificationError
        If `warm_start` breaks a constraint.
    """
    if warm_start is None:
        decide(instance, standing, lambda: OASiS.from_instance(instance))
        return
    standing.enter(WARM_START)
    standing.found(verify(instance, warm_start), warm_start)


def decide(
    instance: Instance,
    standing: Standing,
    make: Callable[[], OASiS],
    on_decision: Callable[[Decision], None] | None = None,
) -> Run:
    """Run the scheduler that `make` makes, and tell `standing` of its schedules.

    If Ctrl-C ends the run, of those it has decided on by then.
    """
    standing.enter(ONLINE)
    standing.proved(trivial_bound(instance), TRIVIAL)
    decided: dict[str, Schedule] = {}

    def note(decision: Decision) -> None:
        if decision.schedule is not None:
            decided[decision.job_id] = decision.schedule
        if on_decision is not None:
            on_decision(decision)

    try:
        run = simulate(instance, make(), on_decision=note)
    except KeyboardInterrupt:
        standing.found(verify(instance, decided), decided)
        raise
    standing.found(verify(instance, run), run.schedules)
    return run
