"""Jobs that were admitted but did not finish: allowed to policies without prices, to no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import oasis
from oasis import Decision, Run, VerificationError
from oasis.certify.verify import verify_decisions

INSTANCE = oasis.generate("testbed", seed=3)
PRICED = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
INDEX = next(k for k, d in enumerate(PRICED.decisions) if not d.admitted)
ADMITTED = next(k for k, d in enumerate(PRICED.decisions) if d.admitted)


def run(change: Callable[[Decision], Decision], *, priced: bool = False, at: int = INDEX) -> Run:
    """The run with one decision changed, as of a policy with prices or without."""
    decisions = list(PRICED.decisions)
    decisions[at] = change(decisions[at])
    bounds = PRICED.bounds if priced else None
    return replace(PRICED, decisions=tuple(decisions), bounds=bounds)


def unfinished(decision: Decision) -> Decision:
    return Decision(decision.job_id, True, reason="did not finish within the horizon")


def test_policy_without_prices_may_leave_an_admitted_job_unfinished() -> None:
    verify_decisions(INSTANCE, run(unfinished))


def test_policy_with_prices_may_not_leave_an_admitted_job_unfinished() -> None:
    with pytest.raises(VerificationError, match="admitted is True, schedule is None"):
        verify_decisions(INSTANCE, run(unfinished, priced=True))


@pytest.mark.parametrize("priced", [False, True])
def test_rejected_job_has_no_schedule(priced: bool) -> None:
    with pytest.raises(VerificationError, match="admitted is False, schedule is <Schedule: "):
        verify_decisions(
            INSTANCE, run(lambda d: replace(d, admitted=False), priced=priced, at=ADMITTED)
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
        verify_decisions(INSTANCE, run(lambda d: replace(unfinished(d), **stated)))


def test_rejected_job_costs_nothing() -> None:
    with pytest.raises(VerificationError, match=r"cost 0\.5"):
        verify_decisions(INSTANCE, run(lambda d: replace(d, cost=0.5, payoff=-0.5)))


@pytest.mark.parametrize("payoff", [0.0, -0.5])
def test_policy_without_prices_may_admit_at_no_gain(payoff: float) -> None:
    def no_gain(decision: Decision) -> Decision:
        return replace(decision, cost=decision.utility - payoff, payoff=payoff)

    verify_decisions(INSTANCE, run(no_gain, at=ADMITTED))
    with pytest.raises(VerificationError, match="admitted at the payoff"):
        verify_decisions(INSTANCE, run(no_gain, at=ADMITTED, priced=True))


def test_a_schedule_may_be_free_of_charge_but_never_below_it() -> None:
    verify_decisions(
        INSTANCE, run(lambda d: replace(d, cost=0.0, payoff=d.utility), at=ADMITTED, priced=True)
    )
    with pytest.raises(VerificationError, match=r"cost -0\.001"):
        verify_decisions(
            INSTANCE,
            run(lambda d: replace(d, cost=-1e-3, payoff=d.utility + 1e-3), at=ADMITTED),
        )
