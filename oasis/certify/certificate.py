"""The corrected form of Theorem 4: a constant that holds on every finite run.

With Delta what one job adds to one (slot, server, resource), x = ln(U/L) Delta / c,
alpha_x = max(1, ln(U/L) (e^x - 1) / x) over all updates of the run, P the online utility, D_0 the
dual value of the initial prices and G = sum_i max(0, best empty-cluster payoff of i at the final
prices - mu_i):  OPT <= D_0 + alpha_x P + G  (docs/theory, "Theorem 4 on finite instances").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from oasis.certify.duality import dual_objective
from oasis.certify.verify import HasDecisions
from oasis.model.cluster import Cluster
from oasis.model.document import entry, mapping, optional, real
from oasis.model.errors import InputError, describe_or_read
from oasis.model.groups import GROUPS, PerGroup, TaskGroup
from oasis.model.instance import Instance, Job, expect_instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SERVER, Schedule, committed
from oasis.model.summary import Facts, Summarised, short
from oasis.model.validation import number
from oasis.online.ledger import Ledger
from oasis.online.own_prices import OwnPrices
from oasis.online.prices import PriceBounds, Prices
from oasis.online.search import searches


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Summarised):
    """Numbers of a run of OASiS from which a bound on its distance from the optimum follows.

    Parameters
    ----------
    alpha : float
        max(1, ln U/L) of the printed Theorem 4; ``2 alpha`` is the printed ratio.
    log_alpha_x : float
        ln alpha_x: the finite-step constant (a logarithm, because it overflows).
    initial_dual : float
        D_0 = sum of the initial prices times the capacities.
    payoff_gap : float
        G: the payoff that jobs would have on the empty cluster at the final prices, beyond what
        they had when they were decided on; summed over the jobs.
    online_utility : float
        P, the total utility of the run.

    Examples
    --------
    >>> from oasis.certify.certificate import Certificate
    >>> certificate = Certificate(
    ...     alpha=4.0, log_alpha_x=2.0, initial_dual=0.5, payoff_gap=1.0, online_utility=10.0
    ... )
    >>> round(certificate.upper_bound, 2), round(certificate.ratio_bound, 2)
    (75.39, 7.54)
    """

    alpha: float
    log_alpha_x: float
    initial_dual: float
    payoff_gap: float
    online_utility: float

    @property
    def upper_bound(self) -> float:
        """An upper bound on the optimum: D_0 + alpha_x P + G >= OPT; inf where it overflows."""
        if self.online_utility == 0:
            return self.initial_dual + self.payoff_gap
        # alpha_x grows like e^x and overflows where its logarithm is
        # harmless: only the product is needed.
        log_product = self.log_alpha_x + math.log(self.online_utility)
        product = math.exp(log_product) if log_product < 709 else math.inf
        return self.initial_dual + product + self.payoff_gap

    @property
    def ratio_bound(self) -> float | None:
        """`upper_bound` / P >= OPT / P; None if P = 0 or where it overflows."""
        ratio = self.upper_bound / self.online_utility if self.online_utility else math.inf
        return ratio if math.isfinite(ratio) else None

    def summary(self) -> tuple[str, Facts]:
        """Return the title, the bounds, and the constants from which they are computed."""
        return "Certificate", [
            ("optimum at most", short(self.upper_bound)),
            ("ratio at most", short(self.ratio_bound)),
            ("2 alpha", short(2 * self.alpha)),
            ("ln alpha_x", short(self.log_alpha_x)),
            ("D_0", short(self.initial_dual)),
            ("G", short(self.payoff_gap)),
        ]

    def to_dict(self) -> dict[str, float]:
        """Return the bounds as plain data for JSON, the inverse of `from_dict`."""
        return {name: getattr(self, name) for name in CONSTANTS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Rebuild from `to_dict`; `InstanceError` with the path of what is missing or wrong.

        Examples
        --------
        >>> from oasis.certify.certificate import Certificate
        >>> certificate = Certificate(
        ...     alpha=4.0, log_alpha_x=2.0, initial_dual=0.5, payoff_gap=1.0, online_utility=10.0
        ... )
        >>> Certificate.from_dict(certificate.to_dict()) == certificate
        True
        """
        constants = {name: entry(data, name, real) for name in CONSTANTS}
        number(constants["online_utility"], "online_utility")  # its logarithm is taken
        return cls(**constants)


CONSTANTS = tuple(constant.name for constant in fields(Certificate))


@dataclass(frozen=True, slots=True, repr=False)
class WeakDuality(Summarised):
    """The bound that a run of OASiS at prices of one's own proves, by weak duality alone.

    Theorem 16 needs the paper's prices. Any prices prove the bound of `oasis.dual_bound`; these are
    those at the end of the run.

    Parameters
    ----------
    upper_bound : float
        D(p, q) at the final prices, at least the optimum.
    online_utility : float
        P, the total utility of the run.

    Examples
    --------
    >>> from oasis.certify.certificate import WeakDuality
    >>> WeakDuality(upper_bound=12.0, online_utility=8.0).ratio_bound
    1.5
    """

    upper_bound: float
    online_utility: float

    @property
    def ratio_bound(self) -> float | None:
        """`upper_bound` / P >= OPT / P; None if P = 0."""
        ratio = self.upper_bound / self.online_utility if self.online_utility else math.inf
        return ratio if math.isfinite(ratio) else None

    def summary(self) -> tuple[str, Facts]:
        """Return the title and the bounds, with their source."""
        return "WeakDuality", [
            ("optimum at most", short(self.upper_bound)),
            ("ratio at most", short(self.ratio_bound)),
            ("because of", "weak duality only: these are not the paper's prices"),
        ]

    def to_dict(self) -> dict[str, float | None]:
        """Return the bounds as plain data for JSON, the inverse of `from_dict`."""
        # JSON has no infinity.
        bound = self.upper_bound if math.isfinite(self.upper_bound) else None
        return {"upper_bound": bound, "online_utility": self.online_utility}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WeakDuality:
        """Rebuild from `to_dict`; `InstanceError` with the path of what is missing or wrong."""
        bound = entry(data, "upper_bound", optional(real))
        return cls(math.inf if bound is None else bound, entry(data, "online_utility", real))


def any_certificate(data: Mapping[str, Any]) -> Certificate | WeakDuality:
    """Rebuild a certificate of either kind from plain data."""
    kind = Certificate if "alpha" in mapping(data) else WeakDuality
    return kind.from_dict(data)


class PricedRun(HasDecisions, Protocol):
    """A run of a policy that prices resources, such as OASiS."""

    @property
    def policy(self) -> str:
        """Name of the policy."""
        ...

    @property
    def bounds(self) -> PriceBounds | OwnPrices | None:
        """The price bounds or prices of the policy; None if it has none."""
        ...

    @property
    def total_utility(self) -> float:
        """P, the total utility of the run."""
        ...


def certify(instance: Instance, run: PricedRun) -> Certificate | WeakDuality:
    """Compute the corrected Theorem 4 for a run of OASiS on `instance`.

    A run at prices of one's own (`OwnPrices`) gets the bound of weak duality.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> certificate = oasis.certify(instance, run)
    >>> print(f"{certificate.alpha:.3f} {certificate.log_alpha_x:.3f} {certificate.payoff_gap:.3f}")
    14.609 11.491 0.000
    """
    expect_instance(instance)
    if not (hasattr(run, "bounds") and hasattr(run, "decisions")):
        got = describe_or_read(run, "read_result")
        raise TypeError(f"run: expected a Run of OASiS, got {got}")
    if run.bounds is None:
        raise InputError(
            "", f"policy {run.policy!r} has no prices, so Theorem 4 says nothing of it"
        )
    bounds, cluster = run.bounds, instance.cluster
    laws: PerGroup[Prices] = bounds
    # Usage is added up from the schedules: the run's own ledger
    # is not trusted with its certificate.
    used = committed(instance, run.schedules)
    prices = [
        group.of(laws).at(amounts, np.broadcast_to(group.capacity(cluster), amounts.shape))
        for group, amounts in zip(GROUPS, used, strict=True)
    ]
    if isinstance(bounds, OwnPrices):
        return WeakDuality(dual_objective(instance, *prices), run.total_utility)
    payoffs = {decision.job_id: decision.payoff for decision in run.decisions}
    # The final prices, but nothing in use: D(p, q) asks for the best schedule on the empty cluster.
    empty = Ledger.of_arrays(cluster, *prices, *map(np.zeros_like, used))
    # Where mu_i is not dual feasible for (20), raising it by its gap makes it so.
    gaps = (_best_payoff(job, empty) - payoffs[job.id] for job in instance.jobs)
    return Certificate(
        alpha=bounds.alpha,
        initial_dual=initial_dual(instance, bounds),
        log_alpha_x=_log_alpha_x(instance, run, bounds),
        payoff_gap=math.fsum(max(0.0, gap) for gap in gaps),
        online_utility=run.total_utility,
    )


def _best_payoff(job: Job, empty: Ledger) -> float:
    """Return the best payoff of `job` in any form on an empty ledger, by its own utility; >= 0."""
    splits = [search.best() for search in searches(job, empty)]
    # Without a schedule that pays mu_i = 0 is feasible.
    return max((split.payoff for split in splits if split is not None), default=0.0)


def initial_dual(instance: Instance, bounds: PriceBounds) -> float:
    """Return D_0, the dual objective (19) before the first job: <= half the smallest utility."""
    cluster = instance.cluster
    rent = [(group.of(bounds).lower * group.capacity(cluster)).sum() for group in GROUPS]
    return float(instance.horizon * math.fsum(rent))


def _log_alpha_x(instance: Instance, run: PricedRun, bounds: PriceBounds) -> float:
    largest = 0.0  # alpha_x is at least 1
    for job in instance.jobs:
        schedule = run.schedules.get(job.id)
        if schedule is None:
            continue
        for group in GROUPS:
            growth = _log_growth(instance.cluster, group, job, schedule, group.of(bounds).log_ratio)
            largest = max(largest, growth)
    return largest


def _log_growth(
    cluster: Cluster, group: TaskGroup, job: Job, schedule: Schedule, log_ratio: FloatArray
) -> float:
    """Return the largest ln(ln(U/L) (e^x - 1) / x) for x = ln(U/L) * step > 0; 0 without any."""
    # One commit adds all tasks of a job on a server at once: this step, a share of the capacity,
    # is what the printed proof takes for infinitesimal.
    rows, demand = group.placed(schedule), group.of(job.in_form(schedule.form))
    added = rows[:, COUNT, None] * as_array(demand, cluster.resources)
    limit = group.capacity(cluster)[rows[:, SERVER]]
    steps = np.divide(added, limit, out=np.zeros_like(added), where=limit > 0)
    x = (log_ratio * steps)[steps * log_ratio > 0]
    rates = np.broadcast_to(log_ratio, steps.shape)[steps * log_ratio > 0]
    if not x.size:
        return 0.0
    # ln(e^x - 1) = x + ln(1 - e^-x), finite where e^x is not
    return float((np.log(rates) + x + np.log(-np.expm1(-x)) - np.log(x)).max())
