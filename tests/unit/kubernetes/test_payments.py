"""When a payment rolls out of its window, counted by hand."""

from __future__ import annotations

from itertools import accumulate, product

from oasis.kubernetes.control.budgets import Payments
from oasis.kubernetes.objects.utility_class import NamespaceBudget

BUDGET = NamespaceBudget(amount=10.0, window_seconds=100.0)


def rolling(log: list[tuple[int, int]], now: int) -> list[int]:
    """What still counts of the payments at these seconds: those within a second go together."""
    together: list[list[tuple[int, int]]] = []
    for at, amount in log:
        if together and together[-1][0][0] <= at <= together[-1][0][0] + 1:
            together[-1].append((at, amount))
        else:
            together.append([(at, amount)])
    return [sum(amount for _, amount in g) for g in together if max(g)[0] + 100 > now]


def test_a_payment_counts_until_the_second_in_which_it_rolls_out() -> None:
    """Every run of four payments whose times lie on the edges; one of nothing changes nothing."""
    payer = ("a", "x")
    for later, second in product(product((-1, 0, 1, 2, 99, 100), repeat=3), (0, 2)):
        times, payments = list(accumulate(later, initial=7)), Payments()
        log = list(zip(times, (1, second, 4, 3), strict=True))
        for at, amount in log:
            payments.pay(payer, amount, BUDGET, at)
        log = [each for each in log if each[1]]
        begin = max(times)
        spent = [sum(rolling(log, now)) for now in range(begin, begin + 102)]
        assert [payments.spent(payer, BUDGET, begin + k) for k in range(102)] == spent, log
        if times[-1] == begin:
            assert [group[2] for group in payments.state()[0][2]] == rolling(log, begin), log
        for amount in range(1, 11):
            first = begin + next(k for k in range(102) if spent[k] + amount <= BUDGET.amount)
            assert payments.fits_at(payer, amount, BUDGET, begin) == first, (log, amount)
    assert payments.fits_at(payer, 11, BUDGET, begin) is None
