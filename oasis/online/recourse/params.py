"""The numbers that steer planning with recourse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oasis.model.records import Number, Whole, check, entry

Commitment = Literal["arrival", "start", "none"]


@dataclass(frozen=True, slots=True)
class RecourseParams:
    """Parameters of the search for plans and of their comparison.

    Parameters
    ----------
    rounds : int
        Rounds of ruin and recreate in each decision.
    discount : float
        A planned completion counts for ``discount`` times less for each slot that it lies ahead:
        what is planned for later may still be displaced by jobs to come. 1 counts all the same.
    started_bonus : float
        c: the utility of a job that has run is multiplied by 1 + c when plans are compared, so
        that it is given up only for a gain of more than c times its utility.
    min_utility_fraction : float
        phi: completions worth less than phi times the job's best count as worthless.
    most_leaving, most_joining : int
        Largest numbers of planned jobs that leave the plan, and of others that try to join, in a
        round.
    noise : float
        Standard deviation of the logarithm of the densities by which a round inserts its jobs.
    growth : float
        While prices are no more than a preference (unless jobs are admitted at OASiS's), they grow
        by so much of the first slot's for each slot: work is done early, because what is idle now
        is lost and what is idle later may serve jobs to come.
    tries : int
        How often promised jobs are packed again to make room for a newcomer, before it is refused.
    first_window, widening : int
        Completions are searched in `first_window` slots after the earliest one that the total free
        capacity allows; if none fits, in `widening` times as many, and so on.
    """

    rounds: int = entry(Whole(), default=20)
    discount: float = entry(Number(above=True, maximum=1.0), default=0.98)
    started_bonus: float = entry(Number(), default=0.0)
    min_utility_fraction: float = entry(Number(maximum=1.0), default=1e-3)
    most_leaving: int = entry(Whole(1), default=5)
    most_joining: int = entry(Whole(1), default=5)
    noise: float = entry(Number(), default=0.5)
    growth: float = entry(Number(), default=1.0)
    tries: int = entry(Whole(), default=20)
    first_window: int = entry(Whole(1), default=8)
    widening: int = entry(Whole(2), default=4)

    def __post_init__(self) -> None:
        check(self)
