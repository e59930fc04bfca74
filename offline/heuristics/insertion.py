"""Strong feasible solutions from what the configuration LP knows.

Greedy insertion at its prices, ruin and recreate, a plan on merged servers carried over to the
real ones, and a search over neighbourhoods that HiGHS solves exactly. Only better solutions are
ever kept, and each is verified before it counts.
"""

from __future__ import annotations

import numpy as np

from oasis.certify.verify import verify
from oasis.model.instance import Instance
from oasis.solvers import PROOF
from oasis.solvers.budget import Budget
from offline.column_generation.bound import ConfigurationBound
from offline.column_generation.pricing import empty, price, pricing_work
from offline.heuristics.fix_and_optimise import reoptimise
from offline.heuristics.packing import pack
from offline.heuristics.partial_solution import Occupancy
from offline.heuristics.plan import Slack, plan
from offline.heuristics.ruin_and_recreate import Guide, search
from offline.state import Standing

ORDERS = 20
SLACK = Slack(worker=0.0, ps=0.12)
PLAN_SHARE = 0.08  # of the time left, for one plan
PACK_SHARE = 0.2  # for carrying it over
SEARCH_SHARE = 0.05  # for ruin and recreate


class Incumbent:
    """The best verified solution so far.

    Parameters
    ----------
    start : Occupancy
        A feasible solution.
    standing : Standing
        Is told of every improvement.
    """

    def __init__(self, start: Occupancy, standing: Standing) -> None:
        self.best = start
        self.standing = standing
        standing.found(verify(start.instance, start.by_id), start.by_id)

    def offer(self, solution: Occupancy) -> bool:
        """Keep a solution if it is better; raises `VerificationError` if it is not feasible."""
        if solution.value <= self.best.value * (1 + 1e-12):
            return False
        value = verify(solution.instance, solution.by_id)
        self.best = solution
        self.standing.found(value, solution.by_id)
        return True

    @property
    def is_proven(self) -> bool:
        """Whether the bound leaves nothing to gain."""
        return self.standing.bound - self.best.value <= PROOF * abs(self.best.value)


def improve(
    instance: Instance,
    bound: ConfigurationBound,
    incumbent: Incumbent,
    budget: Budget,
    seed: int = 0,
) -> None:
    """Improve `incumbent` until the budget or the bound is reached.

    Parameters
    ----------
    instance : Instance
        The problem.
    bound : ConfigurationBound
        Whose prices guide every heuristic.
    incumbent : Incumbent
        Where to start, and where better solutions go.
    budget : Budget
        When to stop.
    seed : int
        Of the random choices.
    """
    rng = np.random.default_rng(seed)
    standing = incumbent.standing
    guide = guide_of(instance, bound)
    standing.enter("insertion at the LP's prices")
    insert_in_orders(instance, guide, incumbent, rng, budget)
    standing.enter("ruin and recreate")
    search(incumbent.best, guide, rng, budget.share(SEARCH_SHARE), incumbent)
    if not (budget.passed or incumbent.is_proven):
        standing.enter("plan on merged servers")
        follow_plan(instance, guide, incumbent, rng, budget)
    standing.enter("neighbourhood search")
    reoptimise(incumbent.best, guide, rng, budget, incumbent)


def follow_plan(
    instance: Instance,
    guide: Guide,
    incumbent: Incumbent,
    rng: np.random.Generator,
    budget: Budget,
) -> None:
    """A plan on merged servers, carried over to the real ones."""
    schedules, _ = plan(instance, SLACK, budget.share(PLAN_SHARE))
    solution = Occupancy(instance)
    for index, schedule in pack(instance, schedules, budget.share(PACK_SHARE)).items():
        solution.put(index, schedule)
    rest = [k for k in range(len(instance.jobs)) if k not in solution.schedules]
    solution.fill(guide.order(rest, rng), guide.worker_prices, guide.ps_prices)
    incumbent.offer(solution)


def insert_in_orders(
    instance: Instance,
    guide: Guide,
    incumbent: Incumbent,
    rng: np.random.Generator,
    budget: Budget,
) -> None:
    """Sequential insertion of all jobs in many orders at the prices of the bound."""
    for _ in range(ORDERS):
        if budget.passed or incumbent.is_proven:
            return
        solution = Occupancy(instance)
        order = guide.order(list(range(len(instance.jobs))), rng)
        solution.fill(order, guide.worker_prices, guide.ps_prices)
        budget.charge(len(order) * pricing_work(instance))
        incumbent.offer(solution)


def guide_of(instance: Instance, bound: ConfigurationBound) -> Guide:
    """What the bound knows about prices and jobs."""
    ledger = empty(instance, bound.worker_prices, bound.ps_prices)
    free = empty(instance, bound.worker_prices * 0.0, bound.ps_prices * 0.0)
    payoffs, best = (
        np.array([price(job, prices)[0] for job in instance.jobs]) for prices in (ledger, free)
    )
    return Guide(bound.worker_prices, bound.ps_prices, payoffs, best)
