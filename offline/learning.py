"""Learning from past days: the prices of the configuration LP, averaged by slot of the day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from oasis.model.errors import InputError, InstanceError, describe, located_at
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance, expect_instance
from oasis.model.rounding import FloatArray
from oasis.model.validation import LARGEST_SIZE, integer
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION, PriceBounds, PriceFunction
from oasis.online.recourse.learned import LearnedPrices
from oasis.solvers import Status
from oasis.solvers.budget import Stop
from offline.column_generation.bound import ConfigurationBound, configuration_bound


def learn_prices(
    past: Sequence[Instance],
    *,
    slots_per_day: int | None = None,
    time_limit: float | None = None,
    work_limit: float | None = None,
    gap: float | None = None,
    no_improvement: float | None = None,
    min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION,
    on_bound: Callable[[ConfigurationBound], None] | None = None,
) -> LearnedPrices:
    """Learn what resources were worth from instances of the past.

    The dual values of the configuration LP say what one more unit of a resource would have earned
    in each slot. They are averaged over the servers of a group, weighed by capacity, and over all
    slots that are the same slot of the day. U and L are the largest and the smallest of the days.

    Parameters
    ----------
    past : sequence of Instance
        At least one; each begins at the first slot of a day. All have the same resources and length
        of a slot, servers may differ.
    slots_per_day : int, optional
        Slots of a day, after which prices repeat. Default: the longest horizon.
    time_limit, work_limit, gap, no_improvement : float, optional
        For the configuration LP of each instance, as in `configuration_bound`. Prices are less
        exact where one of these ends it.
    min_utility_fraction : float
        phi of the bounds U and L.
    on_bound : callable, optional
        Called with the configuration LP of each instance, in their order; its status says whether
        a limit has ended it.

    Raises
    ------
    InstanceError
        If instances do not go together; names the first that differs from the one before.
    ValueError
        If there is no instance, or a limit or fraction is not allowed.
    KeyboardInterrupt
        At Ctrl-C: prices of an LP that it has cut short would pass for those of the day.

    References
    ----------
    arXiv 1801.00936, (19)-(21) and (23)-(26).

    Examples
    --------
    >>> import oasis
    >>> from offline import learn_prices
    >>> learned = learn_prices([oasis.generate("testbed", jobs=6, seed=1)])
    >>> bool((learned.worker >= 0).all()), learned.resources[0]
    (True, 'gpu')
    """
    if not isinstance(past, Sequence) or isinstance(past, str):
        got = f"got {describe(past)}; [instance] is one of a single day"
        raise TypeError(f"past: expected a sequence of oasis.Instance, {got}")
    for k, instance in enumerate(past):
        expect_instance(instance, f"past[{k}]")
    if not past:
        raise InputError("past", "expected at least one instance")
    _check_alike(past)
    longest = max(instance.horizon for instance in past)
    size = longest if slots_per_day is None else slots_per_day
    size = integer(size, "slots_per_day", minimum=1, maximum=LARGEST_SIZE)
    stop = Stop(time_limit, work_limit, gap, no_improvement)
    days = np.zeros(size)
    sums = {group: np.zeros((size, len(past[0].cluster.resources))) for group in GROUPS}
    bounds, jobs = [], []
    for instance in past:
        slots = np.arange(instance.horizon) % size
        np.add.at(days, slots, 1.0)
        bound = configuration_bound(instance, stop=stop)
        if bound.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if on_bound is not None:
            on_bound(bound)
        for group, prices in zip(GROUPS, (bound.worker_prices, bound.ps_prices), strict=True):
            by_slot = group_prices(prices, group.capacity(instance.cluster))
            np.add.at(sums[group], slots, by_slot)
        bounds.append(
            PriceBounds.from_instance(instance, min_utility_fraction=min_utility_fraction)
        )
        jobs += [replace(job, arrival=job.arrival % size) for job in instance.jobs_by_arrival()]
    means = {group: total / np.maximum(days, 1.0)[:, None] for group, total in sums.items()}
    first = past[0]
    widest = widest_bounds(bounds)
    return LearnedPrices(
        first.cluster.resources, first.slot_seconds, days, **means, bounds=widest, jobs=tuple(jobs)
    )


def group_prices(prices: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return mean prices (T, R) of a unit of the group's capacity, from prices (T, S, R)."""
    total = capacity.sum(axis=0)
    cost: FloatArray = (prices * capacity).sum(axis=1)
    mean: FloatArray = np.divide(cost, total, out=np.zeros_like(cost), where=total > 0)
    return mean


def widest_bounds(bounds: Sequence[PriceBounds]) -> PriceBounds:
    """Return price bounds of the smallest L and the largest U of several days."""
    worker, ps = _widest([one.worker for one in bounds]), _widest([one.ps for one in bounds])
    return replace(bounds[0], worker=worker, ps=ps)


def _widest(functions: Sequence[PriceFunction]) -> PriceFunction:
    lowers = np.array([function.log_lower for function in functions])
    uppers = lowers + np.array([function.log_ratio for function in functions])
    known = np.isfinite(lowers)
    lower = np.where(known, lowers, np.inf).min(axis=0)
    upper = np.where(known, uppers, -np.inf).max(axis=0)
    some = known.any(axis=0)
    etas = np.array([function.eta for function in functions])
    eta = float(np.fmax.reduce(etas))
    width = np.subtract(upper, lower, out=np.zeros_like(lower), where=some)
    return PriceFunction(np.where(some, lower, -np.inf), width, eta)


def _check_alike(past: Sequence[Instance]) -> None:
    first = past[0]
    for k, instance in enumerate(past):
        with located_at(f"past[{k}]"):
            if instance.cluster.resources != first.cluster.resources:
                names = [list(day.cluster.resources) for day in (first, instance)]
                raise InstanceError("resources", "expected {}, got {}".format(*names))
            if instance.slot_seconds != first.slot_seconds:
                expected = f"expected {first.slot_seconds:g}, got {instance.slot_seconds:g}"
                raise InstanceError("slot_seconds", expected)
