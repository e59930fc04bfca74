"""What steers the bound from periods of the horizon."""

from __future__ import annotations

from dataclasses import dataclass

from offline.params import Amount, Number, Params, Share


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
    plan_limit : float
        The same in a plan.
    gap : float
        Share of the difference of bound and incumbent at which the solutions of all periods
        together are good enough.
    margin : float
        Plans leave so many times the reserve free that a dive from them will leave.
    slow : float
        A round of all periods that lowers the bound by less than this share of that difference is
        the last one.
    """

    slots: Number = 33
    step: Share = 2e-3
    share: Share = 0.15
    patience: Number = 2
    least_progress: Amount = 3e-4
    limit: Amount = 40.0
    plan_limit: Amount = 15.0
    gap: Share = 0.02
    margin: Amount = 1.25
    slow: Share = 0.01
