"""What a run states of each decision is checked, not only that its utilities add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import Decision, Run, VerificationError
from oasis.certify.verify import verify_decisions

INSTANCE = oasis.generate("testbed", seed=3)
RUN = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
ADMITTED = next(k for k, d in enumerate(RUN.decisions) if d.admitted)
REJECTED = next(k for k, d in enumerate(RUN.decisions) if not d.admitted)


def changed(index: int, change: Callable[[Decision], Decision], *, priced: bool = True) -> Run:
    """The run with one decision changed, as of a policy with prices or without."""
    decisions = list(RUN.decisions)
    decisions[index] = change(decisions[index])
    return replace(RUN, decisions=tuple(decisions), bounds=RUN.bounds if priced else None)


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


# -- jobs that were admitted but did not finish ----------------------------------------------------


def unfinished(decision: Decision) -> Decision:
    return Decision(decision.job_id, True, reason="did not finish within the horizon")


def test_policy_without_prices_may_leave_an_admitted_job_unfinished() -> None:
    verify_decisions(INSTANCE, changed(REJECTED, unfinished, priced=False))


def test_policy_with_prices_may_not_leave_an_admitted_job_unfinished() -> None:
    with pytest.raises(VerificationError, match="admitted is True, schedule is None"):
        verify_decisions(INSTANCE, changed(REJECTED, unfinished))


@pytest.mark.parametrize("priced", [False, True])
def test_rejected_job_has_no_schedule(priced: bool) -> None:
    with pytest.raises(VerificationError, match="admitted is False, schedule is <Schedule: "):
        verify_decisions(
            INSTANCE, changed(ADMITTED, lambda d: replace(d, admitted=False), priced=priced)
        )


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"utility": 1.0, "payoff": 1.0}, "states"),
        ({"payoff": 1e-9}, "states"),
        ({"completion": 3}, "states"),
        ({"cost": 1e-3, "payoff": -1e-3}, "cost 0.001"),
        ({"cost": 5.0, "payoff": -5.0}, "cost 5.0"),
        ({"cost": -1.0, "payoff": 1.0}, "cost -1.0"),
    ],
)
def test_unfinished_job_earns_and_costs_nothing(stated: dict[str, float], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        verify_decisions(
            INSTANCE, changed(REJECTED, lambda d: replace(unfinished(d), **stated), priced=False)
        )


def test_rejected_job_costs_nothing() -> None:
    with pytest.raises(VerificationError, match=r"cost 0\.5"):
        verify_decisions(
            INSTANCE, changed(REJECTED, lambda d: replace(d, cost=0.5, payoff=-0.5), priced=False)
        )


@pytest.mark.parametrize("payoff", [0.0, -0.5])
def test_policy_without_prices_may_admit_at_no_gain(payoff: float) -> None:
    def no_gain(decision: Decision) -> Decision:
        return replace(decision, cost=decision.utility - payoff, payoff=payoff)

    verify_decisions(INSTANCE, changed(ADMITTED, no_gain, priced=False))
    with pytest.raises(VerificationError, match="admitted at the payoff"):
        verify_decisions(INSTANCE, changed(ADMITTED, no_gain))


def test_a_schedule_may_be_free_of_charge_but_never_below_it() -> None:
    verify_decisions(INSTANCE, changed(ADMITTED, lambda d: replace(d, cost=0.0, payoff=d.utility)))
    with pytest.raises(VerificationError, match=r"cost -0\.001"):
        verify_decisions(
            INSTANCE,
            changed(
                ADMITTED, lambda d: replace(d, cost=-1e-3, payoff=d.utility + 1e-3), priced=False
            ),
        )
