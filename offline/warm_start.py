"""The first feasible solution: schedules that are given, or those of OASiS's own run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from oasis.certify.verify import verify
from oasis.model.decision import Decision
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.summary import Facts, Summarised
from oasis.online.oasis import OASiS
from oasis.simulator import simulate
from oasis.simulator.result import Run
from oasis.solvers.budget import Budget
from offline.state import Phase, SolveState, trivial_bound


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnlinePrices(Summarised):
    """What an online run leaves to a column generation.

    Parameters
    ----------
    worker, ps : (T, H, R) and (T, K, R) float arrays
        OASiS's final prices, utility per unit of resource.
    schedules : mapping of str to Schedule
        What it has admitted at these prices, by job id.

    Examples
    --------
    >>> import numpy as np
    >>> from offline import OnlinePrices
    >>> OnlinePrices(np.zeros((8, 2, 5)), np.zeros((8, 1, 5)), {}).worker.shape
    (8, 2, 5)
    """

    worker: FloatArray
    ps: FloatArray
    schedules: Mapping[str, Schedule]

    def summary(self) -> tuple[str, Facts]:
        """Shapes of the prices, and how many jobs were admitted at them."""
        shapes = [("worker", str(self.worker.shape)), ("ps", str(self.ps.shape))]
        return "OnlinePrices", [*shapes, ("admitted", f"{len(self.schedules)} jobs")]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WarmStart(Summarised):
    """Where a solve starts.

    Parameters
    ----------
    schedules : mapping of str to Schedule
        A feasible solution by job id; the result is never worse.
    prices : OnlinePrices, optional
        Of an online run of the same instance. A method that starts from prices makes this run
        itself if they are missing.
    source : Phase
        Who gets the credit for `schedules`.

    Examples
    --------
    >>> import oasis
    >>> from offline import WarmStart, solve
    >>> instance = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance, scale=0.5))
    >>> result = solve(instance, warm_start=WarmStart(run.schedules))
    >>> result.objective >= run.total_utility
    True
    """

    schedules: Mapping[str, Schedule]
    prices: OnlinePrices | None = None
    source: Phase = Phase.WARM_START

    def summary(self) -> tuple[str, Facts]:
        """How many schedules, from where, and whether there are prices."""
        prices = "none" if self.prices is None else "given"
        schedules = ("schedules", str(len(self.schedules)))
        return "WarmStart", [schedules, ("from", str(self.source)), ("prices", prices)]


Start = WarmStart | Mapping[str, Schedule] | None


def warm_start_of(
    instance: Instance, given: Start, state: SolveState, *, needs_prices: bool
) -> WarmStart:
    """The start that was given, completed by the one run of OASiS that it takes, if any.

    Parameters
    ----------
    instance : Instance
        The problem.
    given : WarmStart, mapping of str to Schedule, or None
        None is OASiS's own solution.
    state : SolveState
        Is told how the run goes, if its solution counts.
    needs_prices : bool
        Whether OASiS also runs for its prices alone.
    """
    if given is None:
        return decide(instance, state, lambda: OASiS.from_instance(instance))[1]
    start = given if isinstance(given, WarmStart) else WarmStart(given)
    if start.prices is not None or not needs_prices:
        return start
    _, online = decide(instance, SolveState(Budget()), lambda: OASiS.from_instance(instance))
    return WarmStart(start.schedules, online.prices, start.source)


def decide(
    instance: Instance,
    state: SolveState,
    make: Callable[[], OASiS],
    on_decision: Callable[[Decision], None] | None = None,
) -> tuple[Run, WarmStart]:
    """Run the scheduler that `make` makes, and tell `state` of its schedules.

    If Ctrl-C ends the run, of those it has decided on by then.
    """
    state.enter(Phase.ONLINE)
    state.proved(trivial_bound(instance), Phase.TRIVIAL)
    decided: dict[str, Schedule] = {}

    def note(decision: Decision) -> None:
        if decision.schedule is not None:
            decided[decision.job_id] = decision.schedule
        if on_decision is not None:
            on_decision(decision)

    try:
        scheduler = make()
        run = simulate(instance, scheduler, on_decision=note)
    except KeyboardInterrupt:
        state.found(verify(instance, decided), decided)
        raise
    state.found(verify(instance, run), run.schedules)
    ledger = scheduler.ledger
    prices = OnlinePrices(
        np.asarray(ledger.worker_prices), np.asarray(ledger.ps_prices), run.schedules
    )
    return run, WarmStart(run.schedules, prices, Phase.ONLINE)
