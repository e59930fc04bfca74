"""The run of recourse as a start: it learns of jobs one by one, and is good at long horizons.

Recourse plans all unfinished jobs again at every arrival, with little ruin and recreate each time.
That works on one window of time after the other, where a search of all jobs at once loses itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from oasis.model.instance import Instance
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site
from oasis.simulator.run import simulate
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, PartialSolution
from offline.heuristics.params import RecourseRunParams
from offline.heuristics.window_search import insertion_work
from offline.model.arrays import OfflineArrays
from offline.state import Phase

# What a round of ruin and recreate costs, in insertions of a job, measured.
INSERTIONS_PER_ROUND = 5.0

LOGGER = logging.getLogger(__name__)


class _SpentError(Exception):
    """The budget of a run is spent."""


class _WithinBudget:
    """A policy that makes no decision once a budget is spent, but raises `_SpentError`."""

    slotted = False
    told_remaining = True

    def __init__(self, policy: Recourse, budget: Budget) -> None:
        self.name = policy.name
        self._policy, self._budget = policy, budget

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._policy.parameters

    def reset(self, site: Site) -> None:
        self._policy.reset(site)

    def decide(self, view: View) -> Plan:
        if self._budget.passed:
            raise _SpentError
        return self._policy.decide(view)


def follow_recourse(
    instance: Instance,
    arrays: OfflineArrays,
    best: BestSolution,
    seed: int,
    budget: Budget,
    params: RecourseRunParams,
) -> bool:
    """Offer the schedules of a run of recourse; whether there was a whole run.

    How many rounds of ruin and recreate a decision has follows from what they cost and what may be
    spent, so that the same limit in work gives the same run. A limit in seconds holds on a slow
    machine too: no round begins when a decision has had its part, and no decision once all is
    spent, as each also plans all live jobs anew. The run is then given up, and nothing of it is
    kept. Without enough for one round, or with nothing to gain, there is no run. Recourse does not
    choose forms: a job runs in that which the simulator chooses.

    Parameters
    ----------
    instance : Instance
        The problem.
    arrays : OfflineArrays
        The same.
    best : BestSolution
        Where better solutions go.
    seed : int
        Of the rounds.
    budget : Budget
        What may be spent.
    params : RecourseRunParams
        Most rounds.
    """
    round_work = len(arrays.jobs) * INSERTIONS_PER_ROUND * insertion_work(arrays)
    rounds = params.rounds
    if budget.limit is not None:
        rounds = min(rounds, int(budget.left / max(round_work, 1e-300)))
    if rounds < 1 or budget.passed or best.is_proven:
        return False
    best.state.enter(Phase.RECOURSE)
    seconds = None
    if budget.limit is not None and not budget.is_repeatable:
        seconds = budget.left / len(arrays.jobs)
    steering = RecourseParams(rounds=rounds)
    policy = Recourse("none", seed=seed, seconds=seconds, params=steering)
    try:
        run = simulate(instance, _WithinBudget(policy, budget))
    except _SpentError:
        LOGGER.info("the run of recourse is given up: its part of the limit is spent")
        return False
    budget.charge(rounds * round_work)
    best.offer(PartialSolution(arrays, run.schedules))
    return True
