"""The numbers that steer planning with recourse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from oasis.model.errors import InputError

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

    rounds: int = 20
    discount: float = 0.98
    started_bonus: float = 0.0
    min_utility_fraction: float = 1e-3
    most_leaving: int = 5
    most_joining: int = 5
    noise: float = 0.5
    growth: float = 1.0
    tries: int = 20
    first_window: int = 8
    widening: int = 4

    def __post_init__(self) -> None:
        for name, least in (
            ("rounds", 0),
            ("most_leaving", 1),
            ("most_joining", 1),
            ("tries", 0),
            ("first_window", 1),
            ("widening", 2),
        ):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(name, f"expected an integer >= {least}", value)
        for name, low, high in (
            ("discount", 0.0, 1.0),
            ("started_bonus", 0.0, math.inf),
            ("min_utility_fraction", 0.0, 1.0),
            ("noise", 0.0, math.inf),
            ("growth", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if not low <= value <= high or value == math.inf:
                raise InputError(name, f"expected {low:g} to {high:g}", value)
        if self.discount == 0:
            raise InputError("discount", "expected more than 0")


def check_commitment(commitment: str) -> None:
    """Raise `ValueError` for an unknown level of commitment."""
    if commitment not in get_args(Commitment):
        expected = ", ".join(get_args(Commitment))
        raise InputError("commitment", f"expected one of {expected}", commitment)
