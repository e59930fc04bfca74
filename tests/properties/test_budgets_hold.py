"""No namespace pays more than its budget in any window, whenever it asks and whoever restarts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from oasis.kubernetes.control.budgets import Payments
from oasis.kubernetes.objects.utility_class import NamespaceBudget

BUDGET = NamespaceBudget(amount=10.0, window_seconds=100.0)
PAYERS = [("a", "x"), ("a", "y"), ("b", "x")]

asked = st.lists(
    st.tuples(
        st.sampled_from(PAYERS),
        st.integers(0, 12).map(float),  # what is to be paid
        st.one_of(st.integers(0, 40).map(float), st.floats(0, 3)),  # seconds later
        st.booleans(),  # whether another controller takes over
    ),
    max_size=60,
)


def most_in_a_window(log: list[tuple[float, float]]) -> float:
    """Most that was paid in any window, from payments written down one by one."""
    return max(
        (
            sum(amount for at, amount in log if end - BUDGET.window_seconds < at <= end)
            for end, _ in log
        ),
        default=0.0,
    )


@given(asked)
def test_no_window_holds_more_than_the_budget(asked: list) -> None:
    payments, now = Payments(), 1e9
    logs: dict[tuple[str, str], list[tuple[float, float]]] = {payer: [] for payer in PAYERS}
    for payer, amount, later, restarts in asked:
        now += later
        if restarts:
            kept, payments = json.loads(json.dumps(payments.state())), Payments()
            payments.restore(kept)
        at = payments.fits_at(payer, amount, BUDGET, now)
        log = logs[payer]
        counted = sum(a for t, a in log if now - BUDGET.window_seconds < t)
        # What counts is never forgotten, and kept for a little too long at most.
        assert payments.spent(payer, BUDGET, now) >= counted - 1e-9
        much = sum(a for t, a in log if now - 1.01 * BUDGET.window_seconds - 1e-6 <= t)
        assert payments.spent(payer, BUDGET, now) <= much + 1e-9
        if at == now:
            payments.pay(payer, amount, BUDGET, now)
            log.append((now, amount))
        elif at is None:
            assert amount > BUDGET.amount
        else:  # it is true to its word, and says no later time than it must
            assert at > now
            assert payments.spent(payer, BUDGET, at) + amount <= BUDGET.amount
            assert at <= now + BUDGET.window_seconds
    for log in logs.values():
        assert most_in_a_window(log) <= BUDGET.amount + 1e-9
