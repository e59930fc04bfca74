"""Payments of namespaces, for as long as they count against their budgets."""

from __future__ import annotations

from typing import Any

from oasis.kubernetes.objects.utility_class import NamespaceBudget

Payer = tuple[str, str]  # utility class and namespace
# What is paid within this part of a window rolls out of it together, when the last of it does.
TOGETHER = 0.01


class Payments:
    """Payments by utility class and namespace; times are seconds since 1970.

    Examples
    --------
    >>> payments, budget = Payments(), NamespaceBudget(amount=10.0, window_seconds=100.0)
    >>> payments.pay(("research", "team-a"), 7.0, budget, now=0.0)
    >>> payments.spent(("research", "team-a"), budget, now=99.0)
    7.0
    >>> payments.fits_at(("research", "team-a"), 5.0, budget, now=50.0)
    100.0
    """

    def __init__(self) -> None:
        self._paid: dict[Payer, list[list[float]]] = {}  # first time, last time, amount

    def pay(self, payer: Payer, amount: float, budget: NamespaceBudget, now: float) -> None:
        """Record a payment at time `now`."""
        if amount <= 0.0:
            return
        paid, window = self._paid.setdefault(payer, []), budget.window_seconds
        paid[:] = [each for each in paid if each[1] + window > now]
        # Measured from the first payment: a steady stream would otherwise never roll out.
        if paid and paid[-1][0] <= now <= paid[-1][0] + TOGETHER * window:
            paid[-1][1:] = max(paid[-1][1], now), paid[-1][2] + amount
        else:
            paid.append([now, now, amount])

    def spent(self, payer: Payer, budget: NamespaceBudget, now: float) -> float:
        """Amount that counts against the budget now."""
        window = budget.window_seconds
        return sum(amount for _, last, amount in self._paid.get(payer, ()) if last + window > now)

    def fits_at(
        self, payer: Payer, amount: float, budget: NamespaceBudget, now: float
    ) -> float | None:
        """First time from `now` on at which this amount can be paid; None: never."""
        if amount > budget.amount:
            return None
        window = budget.window_seconds
        ends = sorted(last + window for _, last, _ in self._paid.get(payer, ()))
        for at in (now, *(end for end in ends if end > now)):
            if self.spent(payer, budget, at) + amount <= budget.amount:
                return at
        raise AssertionError("unreachable: at the last end nothing counts any more")

    def payers(self) -> list[Payer]:
        """Namespaces with known payments."""
        return sorted(self._paid)

    def state(self) -> list[Any]:
        """Return plain data that `restore` accepts."""
        return [[*payer, paid] for payer, paid in sorted(self._paid.items())]

    def restore(self, state: list[Any]) -> None:
        """Restore the payments from the data of `state`."""
        self._paid = {
            (name, namespace): [list(each) for each in paid] for name, namespace, paid in state
        }
