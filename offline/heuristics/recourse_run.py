"""The run of recourse as a start: it learns of jobs one by one, and is good at long horizons.

Recourse plans all unfinished jobs again at every arrival, with little ruin and recreate each time.
That works on one window of time after the other, where a search of all jobs at once loses itself.
"""

from __future__ import annotations

from oasis.model.instance import Instance
from oasis.online.recourse.params import RecourseParams
from oasis.simulator.recourse import Recourse
from oasis.simulator.run import simulate
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.params import RecourseRunParams
from offline.heuristics.partial_solution import PartialSolution
from offline.heuristics.window_search import insertion_work
from offline.model.arrays import OfflineArrays
from offline.state import Phase


def follow_recourse(
    instance: Instance,
    arrays: OfflineArrays,
    best: BestSolution,
    seed: int,
    budget: Budget,
    params: RecourseRunParams,
) -> bool:
    """Offer the schedules of a run of recourse; whether there was a run.

    How many rounds of ruin and recreate a decision has follows from what they cost and what may be
    spent, so that the same limit in work gives the same run. A limit in seconds holds on a slow
    machine too: no round begins when a decision has had its part. Without enough for one round, or
    with nothing to gain, there is no run.

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
    round_work = len(arrays.jobs) * params.insertions_per_round * insertion_work(arrays)
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
    run = simulate(instance, Recourse("none", seed=seed, seconds=seconds, params=steering))
    budget.charge(rounds * round_work)
    best.offer(PartialSolution(arrays, run.schedules))
    return True
