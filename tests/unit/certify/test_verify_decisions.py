"""What a run states of each decision is checked, not only that its utilities add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import Decision, Run, VerificationError

INSTANCE = oasis.generate("testbed", seed=3)
RUN = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
ADMITTED = next(k for k, d in enumerate(RUN.decisions) if d.admitted)
REJECTED = next(k for k, d in enumerate(RUN.decisions) if not d.admitted)


def changed(index: int, change: Callable[[Decision], Decision]) -> Run:
    decisions = list(RUN.decisions)
    decisions[index] = change(decisions[index])
    return replace(RUN, decisions=tuple(decisions))


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (ADMITTED, lambda d: replace(d, completion=d.completion + 1)),
        (ADMITTED, lambda d: replace(d, payoff=1e9)),
        (ADMITTED, lambda d: replace(d, cost=-5.0, payoff=d.utility + 5.0)),
        (ADMITTED, lambda d: replace(d, admitted=False)),
        (REJECTED, lambda d: replace(d, admitted=True)),
        (REJECTED, lambda d: replace(d, payoff=1.0)),
        (REJECTED, lambda d: replace(d, job_id="nobody")),
    ],
    ids=["completion", "payoff", "cost", "rejected", "admitted", "idle payoff", "job"],
)
def test_false_statement_about_a_decision_is_refused(
    index: int, change: Callable[[Decision], Decision]
) -> None:
    with pytest.raises(VerificationError, match="decisions"):
        oasis.verify(INSTANCE, changed(index, change))


def test_missing_and_repeated_decisions_are_refused() -> None:
    for decisions in (RUN.decisions[:-1], (*RUN.decisions, RUN.decisions[REJECTED])):
        with pytest.raises(VerificationError, match="one for each job"):
            oasis.verify(INSTANCE, replace(RUN, decisions=decisions))


def test_swapped_utilities_are_refused_although_their_sum_is_right() -> None:
    first, second = [k for k, d in enumerate(RUN.decisions) if d.admitted][:2]
    decisions = list(RUN.decisions)
    for here, there in ((first, second), (second, first)):
        decisions[here] = replace(RUN.decisions[here], utility=RUN.decisions[there].utility)
    with pytest.raises(VerificationError, match="decisions"):
        oasis.verify(INSTANCE, replace(RUN, decisions=tuple(decisions)))


def test_payoff_far_below_the_utility_may_differ_in_the_digits_of_the_utility() -> None:
    """Utilities agree to the last bit or so; near-equal cost leaves the payoff no digits."""
    decision = RUN.decisions[ADMITTED]
    cost = decision.utility * (1 - 1e-12)
    stated = float(np.nextafter(decision.utility, np.inf))
    narrow = replace(decision, cost=cost, utility=stated, payoff=stated - cost)
    oasis.verify(INSTANCE, changed(ADMITTED, lambda _: narrow))


def test_admission_without_a_positive_payoff_is_refused() -> None:
    def worthless(decision: Decision) -> Decision:
        return replace(decision, cost=decision.utility, payoff=0.0)

    with pytest.raises(VerificationError, match="payoff"):
        oasis.verify(INSTANCE, changed(ADMITTED, worthless))
