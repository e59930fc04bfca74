"""What a run states of each decision is checked, not only that its utilities add up."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Decision, Run, VerificationError
from oasis.certify.verify import verify_decisions

INSTANCE = oasis.generate("testbed", seed=3)
RUN = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
ADMITTED = next(d for d in RUN.decisions if d.admitted)
REJECTED = next(d for d in RUN.decisions if not d.admitted)
UNFINISHED = Decision(REJECTED.job_id, True, reason="did not finish within the horizon")
WORTH, LATER = ADMITTED.utility, (ADMITTED.completion or 0) + 1
PRICED, UNPRICED, EITHER = (True,), (False,), (True, False)


def said(decision: Decision, is_priced: bool) -> Run:
    """The run with this decision on its job, as of a policy with prices or without."""
    decisions = tuple(decision if d.job_id == decision.job_id else d for d in RUN.decisions)
    return replace(RUN, decisions=decisions, bounds=RUN.bounds if is_priced else None)


@pytest.mark.parametrize(
    ("decision", "changes", "policies", "says"),
    [
        (ADMITTED, {"completion": LATER}, EITHER, "states"),
        (ADMITTED, {"payoff": 1e9}, EITHER, "states"),
        (ADMITTED, {"cost": -5.0, "payoff": WORTH + 5.0}, EITHER, "cost -5.0"),
        (ADMITTED, {"cost": -1e-3, "payoff": WORTH + 1e-3}, EITHER, "cost -0.001"),
        (ADMITTED, {"admitted": False}, EITHER, "admitted is False, schedule is <Schedule: "),
        (ADMITTED, {"cost": WORTH, "payoff": 0.0}, PRICED, "admitted at the payoff 0.0"),
        (ADMITTED, {"cost": WORTH + 0.5, "payoff": -0.5}, PRICED, "admitted at the payoff"),
        (REJECTED, {"payoff": 1.0}, EITHER, "states"),
        (REJECTED, {"cost": 0.5, "payoff": -0.5}, EITHER, "cost 0.5"),
        (UNFINISHED, {}, PRICED, "admitted is True, schedule is None"),
        (UNFINISHED, {"utility": 1.0, "payoff": 1.0}, UNPRICED, "states"),
        (UNFINISHED, {"payoff": 1e-9}, UNPRICED, "states"),
        (UNFINISHED, {"completion": 3}, UNPRICED, "states"),
        (UNFINISHED, {"cost": 1e-3, "payoff": -1e-3}, UNPRICED, "cost 0.001"),
        (UNFINISHED, {"cost": -1.0, "payoff": 1.0}, UNPRICED, "cost -1.0"),
    ],
)
def test_a_false_statement_about_a_decision_is_refused(
    decision: Decision, changes: dict[str, Any], policies: tuple[bool, ...], says: str
) -> None:
    for is_priced in policies:
        with pytest.raises(VerificationError, match=f"^decisions.*{re.escape(says)}"):
            oasis.verify(INSTANCE, said(replace(decision, **changes), is_priced))


@pytest.mark.parametrize(
    ("decision", "changes", "policies"),
    [
        (ADMITTED, {"cost": 0.0, "payoff": WORTH}, EITHER),
        (ADMITTED, {"cost": WORTH, "payoff": 0.0}, UNPRICED),
        (ADMITTED, {"cost": WORTH + 0.5, "payoff": -0.5}, UNPRICED),
        (UNFINISHED, {}, UNPRICED),
    ],
)
def test_what_a_policy_may_say_passes(
    decision: Decision, changes: dict[str, Any], policies: tuple[bool, ...]
) -> None:
    for is_priced in policies:
        verify_decisions(INSTANCE, said(replace(decision, **changes), is_priced))


def test_decisions_are_one_for_each_job_in_order_and_with_its_own_utility() -> None:
    strange = tuple(replace(d, job_id="nobody") if d is REJECTED else d for d in RUN.decisions)
    for decisions in (RUN.decisions[:-1], (*RUN.decisions, REJECTED), strange):
        with pytest.raises(VerificationError, match="one for each job"):
            oasis.verify(INSTANCE, replace(RUN, decisions=decisions))
    first, second = [k for k, d in enumerate(RUN.decisions) if d.admitted][:2]
    swapped = list(RUN.decisions)
    for here, there in ((first, second), (second, first)):
        swapped[here] = replace(RUN.decisions[here], utility=RUN.decisions[there].utility)
    with pytest.raises(VerificationError, match="decisions"):
        oasis.verify(INSTANCE, replace(RUN, decisions=tuple(swapped)))


def test_payoff_far_below_the_utility_may_differ_in_the_digits_of_the_utility() -> None:
    """Utilities agree to the last bit or so; near-equal cost leaves the payoff no digits."""
    cost, stated = WORTH * (1 - 1e-12), float(np.nextafter(WORTH, np.inf))
    narrow = replace(ADMITTED, cost=cost, utility=stated, payoff=stated - cost)
    oasis.verify(INSTANCE, said(narrow, is_priced=True))
