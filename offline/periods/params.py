"""What steers the bound from periods of the horizon."""

from __future__ import annotations

from dataclasses import dataclass, field

from offline.params import Amount, Number, Params, Share


@dataclass(frozen=True, slots=True)
class PlanningParams(Params):
    """How a plan in fractions is made from the periods.

    Parameters
    ----------
    margin : float
        Plans leave so many times the reserve free that a dive from them will leave.
    period_limit : float
        For one period of the first plan; seconds or units of work.
    share, most : float
        Share of what is left of the limit for better plans after it, and the most for these.
    limit : float
        For one neighbourhood.
    gap : float
        Share of the difference of bound and incumbent at which a solution is good enough.
    first_jobs, fewest_jobs : int
        Jobs whose completion is free in the first neighbourhood, and in the smallest.
    growth, shrinkage : int
        How many jobs more are free after a neighbourhood that was solved, and how many fewer after
        one that was not.
    noise : float
        Slots by which a job's distance from the middle of a neighbourhood is changed at random.
    """

    margin: Amount = 1.1
    period_limit: Amount = 10.0
    share: Share = 0.15
    most: Amount = 120.0
    limit: Amount = 5.0
    gap: Share = 1e-3
    first_jobs: Number = 12
    fewest_jobs: Number = 8
    growth: Number = 1
    shrinkage: Number = 2
    noise: Amount = 4.0


@dataclass(frozen=True, slots=True)
class PeriodParams(Params):
    """How the bound from periods spends its time.

    Parameters
    ----------
    slots : int
        About so many slots make a period. There are two periods at least.
    step : float
        Share of a job's best utility: completions whose utilities differ by no more than this
        count as one.
    share : float
        Share of what is left of the limit for the linear relaxation and its cuts.
    patience : int
        Rounds of these cuts over which the bound must fall.
    least_progress : float
        Relative fall of the bound over these rounds below which the relaxation is good enough.
    limit : float
        For one period in a round; seconds or units of work.
    gap : float
        Share of the difference of bound and incumbent at which the solutions of all periods
        together are good enough.
    slow : float
        A round of all periods that lowers the bound by less than this share of that difference is
        the last one.
    planning : PlanningParams
        What steers the plans.
    """

    slots: Number = 33
    step: Share = 2e-3
    share: Share = 0.15
    patience: Number = 2
    least_progress: Amount = 3e-4
    limit: Amount = 40.0
    gap: Share = 0.02
    slow: Share = 0.01
    planning: PlanningParams = field(default_factory=PlanningParams)
