"""Resource prices (22) and their bounds U, L, eta, alpha (23)-(26), in logarithms throughout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from oasis.model import document
from oasis.model.cluster import Cluster
from oasis.model.errors import InputError, InstanceError, located_at
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance, expect_instance
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised, Unchanging, short
from oasis.model.validation import number
from oasis.online.completions import completions_by_form

DEFAULT_MIN_UTILITY_FRACTION = 0.7  # chosen by a study: docs/floor
LARGEST_LOG = 709.0  # e^710 is no double


@runtime_checkable
class Prices(Protocol):
    """Prices of the resources of machines, by the amounts that are committed.

    Any class with the method `at` has them. OASiS asks for the prices of idle machines at first,
    and then for those of each machine and slot whose commitments changed.

    Examples
    --------
    Prices that rise linearly from 0 to the same price for a whole machine, whatever it has:

    >>> import numpy as np, oasis
    >>> class Linear:
    ...     def at(self, used, capacity):
    ...         share = np.divide(used, capacity, out=np.ones_like(used), where=capacity > 0)
    ...         return 2.0 * share
    >>> Linear().at(np.array([[0.0, 8.0]]), np.array([[4.0, 16.0]]))
    array([[0., 1.]])
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance, prices=Linear()))
    >>> run.admitted
    2
    """

    def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        """Return the prices at committed amounts.

        Parameters
        ----------
        used, capacity : (..., R) float arrays
            Amount of each resource that is committed on a machine in a slot, and what the machine
            has, both in the units of the instance. A capacity of 0 is a machine without the
            resource: no task that needs the resource runs there, so that its price is not used.

        Returns
        -------
        (..., R) float array
            Utility per unit of each resource: numbers from 0 to 1e100.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriceFunction(Summarised):
    """The price P(g) = L (U/L)^(g/c) of one server group (22).

    Parameters
    ----------
    log_lower : (R,) float array
        log L, utility per raw unit of each resource; -inf where the resource is free.
    log_ratio : (R,) float array
        log(U / L), at least 0.
    eta : float
        eta of (25) or (26), dimensionless; nan if no job defines it.

    Examples
    --------
    >>> import numpy as np
    >>> import oasis
    >>> price = oasis.PriceFunction(log_lower=np.log([1.0]), log_ratio=np.log([100.0]), eta=1.0)
    >>> price(np.array([0.0, 2.0, 4.0])[:, None], np.array([4.0])).ravel().round(6)
    array([  1.,  10., 100.])
    """

    log_lower: FloatArray
    log_ratio: FloatArray
    eta: float

    def __post_init__(self) -> None:
        for name in ("log_lower", "log_ratio"):
            values = np.array(getattr(self, name), dtype=np.float64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and the number of resources, the largest ln U/L, and eta."""
        largest = short(float(self.log_ratio.max(initial=0.0)))
        size = ("resources", str(len(self.log_ratio)))
        return "PriceFunction", [size, ("ln U/L at most", largest), ("eta", short(self.eta))]

    def __call__(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        """Return prices at committed amounts `used` (..., R) of `capacity` (..., R), same shape."""
        # A server without the resource counts as full, so its price is U.
        share = np.divide(used, capacity, out=np.ones(used.shape), where=capacity > 0)
        np.maximum(share, 0.0, out=share)  # np.clip takes three times as long on few numbers
        np.minimum(share, 1.0, out=share)
        # (22) as exp(ln L + (g / c) ln(U / L)): L may be smaller than any float.
        return _exp(self.log_lower + self.log_ratio * share)

    at = __call__

    @property
    def lower(self) -> FloatArray:
        """L, utility per unit of each resource, shape (R,)."""
        return _exp(self.log_lower)

    @property
    def upper(self) -> FloatArray:
        """U, utility per unit of each resource, shape (R,)."""
        return _exp(self.log_lower + self.log_ratio)

    def scaled(self, factor: float) -> PriceFunction:
        """Return prices with U multiplied by `factor`, but not below L: the paper's Fig. 6."""
        ratio = np.maximum(0.0, self.log_ratio + np.log(factor))
        # A resource without a range of prices (U = L) gets none by scaling.
        return replace(self, log_ratio=np.where(self.log_ratio > 0, ratio, 0.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; floats survive JSON exactly, -inf as null."""
        lower = [None if np.isneginf(v) else float(v) for v in self.log_lower]
        eta = None if np.isnan(self.eta) else self.eta
        return {"log_lower": lower, "log_ratio": self.log_ratio.tolist(), "eta": eta}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PriceFunction:
        """Rebuild from `to_dict`; `InstanceError` has the path of what is missing or wrong."""
        lower = document.entry(
            data, "log_lower", document.list_of(document.optional(document.real))
        )
        ratio = document.entry(data, "log_ratio", document.list_of(lambda v: number(v, "")))
        eta = document.entry(data, "eta", document.optional(lambda v: number(v, "")))
        if len(ratio) != len(lower):
            raise InstanceError("log_ratio", f"expected {len(lower)} numbers", list(ratio))
        known = np.array([-np.inf if v is None else v for v in lower])
        return cls(known, np.array(ratio), np.nan if eta is None else float(eta))


@dataclass(frozen=True, slots=True, repr=False)
class PriceBounds(Summarised, Unchanging):
    """Price functions of both server groups, and the options that they were computed with.

    Parameters
    ----------
    worker, ps : PriceFunction
        P (U1, L1, eta1) for worker servers and Q (U2, L2, eta2) for parameter-server hosts.
    normalize : bool
        Whether sums over resource types were taken over shares of the group's total.
    min_utility_fraction : float
        phi, the utility floor that the bounds, the search and admission share.
    scale : float
        What U/L was multiplied by since it was computed (`scaled`); 1 if it was not.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> bounds = oasis.PriceBounds.from_instance(instance)
    >>> round(bounds.alpha, 3)
    14.609
    >>> bool((bounds.worker.upper > bounds.worker.lower).all())
    True
    """

    worker: PriceFunction
    ps: PriceFunction
    normalize: bool
    min_utility_fraction: float
    scale: float = 1.0

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that the bounds were computed with."""
        names = ("normalize", "min_utility_fraction", "scale")
        return {name: getattr(self, name) for name in names}

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and alpha and the options the bounds were computed with."""
        floor = ("min_utility_fraction", short(self.min_utility_fraction))
        options = [("normalize", str(self.normalize)), floor, ("scale", short(self.scale))]
        return "PriceBounds", [("alpha", short(self.alpha)), *options]

    @property
    def alpha(self) -> float:
        """max(1, ln U1^r/L1, ln U2^r/L2) of Theorem 4."""
        return float(max(1.0, self.worker.log_ratio.max(), self.ps.log_ratio.max()))

    @classmethod
    def from_instance(
        cls,
        instance: Instance,
        *,
        normalize: bool = True,
        min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION,
    ) -> PriceBounds:
        """Compute exact bounds: U and L over all jobs of `instance`.

        Without a job that can finish and is worth something, all prices are 0: there is nothing to
        ration.
        """
        expect_instance(instance)
        return cls.from_jobs(
            instance.jobs,
            instance.cluster,
            instance.horizon,
            normalize=normalize,
            min_utility_fraction=min_utility_fraction,
            may_know_nothing=True,
        )

    @classmethod
    def from_jobs(
        cls,
        jobs: Iterable[Job],
        cluster: Cluster,
        horizon: int,
        *,
        normalize: bool = True,
        min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION,
        may_know_nothing: bool = False,
    ) -> PriceBounds:
        """Compute bounds U and L over `jobs`; past jobs give estimates for future ones.

        Each job counts in each of its forms. Left out are jobs, and forms, that could not finish
        within the horizon even with the cluster to themselves, that no machine admits, or that are
        worth nothing. If none is left, all prices are 0, so that every job with a schedule is
        admitted; without any job at all that must be asked for, with `may_know_nothing`.

        Raises
        ------
        ValueError
            If there is no job and `may_know_nothing` is not set.

        Examples
        --------
        >>> import oasis
        >>> instance = oasis.generate("testbed", jobs=3, seed=1)
        >>> oasis.PriceBounds.from_jobs([], instance.cluster, instance.horizon)
        Traceback (most recent call last):
        oasis.model.errors.InputError: jobs: expected at least one job
        """
        with located_at("min_utility_fraction"):
            _fraction(min_utility_fraction)
        worker, ps = [], []
        count = 0
        for job in jobs:
            count += 1
            forms = completions_by_form(job, cluster, horizon, min_utility_fraction)
            # (23)-(26) range over the schedules of a job, which are those of all its forms.
            for form, ends in zip(job.in_forms, forms, strict=True):
                # In such a form it can never be admitted; it must not move the prices for others.
                if ends.log_best == -np.inf:
                    continue
                entry = (ends.log_best, ends.log_smallest, form.work(cluster.slot_seconds))
                worker.append((*entry, as_array(form.worker, cluster.resources)))
                # What exchanges nothing says nothing about the price of parameter servers.
                if form.needs_ps:
                    ps.append((*entry, as_array(form.ps, cluster.resources)))
        if not count and not may_know_nothing:
            raise InputError("jobs", "expected at least one job")
        of_worker, of_ps = (
            _price_function(entries, group.capacity(cluster).sum(axis=0), horizon, normalize)
            for group, entries in zip(GROUPS, (worker, ps), strict=True)
        )
        return cls(of_worker, of_ps, normalize, min_utility_fraction)

    def scaled(self, factor: float) -> PriceBounds:
        """Return bounds with U/L multiplied by `factor` > 0, as in the paper's Fig. 6."""
        factor = number(factor, "factor", above=True)
        return replace(
            self,
            worker=self.worker.scaled(factor),
            ps=self.ps.scaled(factor),
            scale=self.scale * factor,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        return {
            **{str(group): group.of(self).to_dict() for group in GROUPS},
            "normalize": self.normalize,
            "min_utility_fraction": self.min_utility_fraction,
            "scale": self.scale,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PriceBounds:
        """Rebuild bounds from `to_dict`, bit for bit.

        Raises
        ------
        InstanceError
            With the path of what is missing or wrong.
        """
        worker, ps = (document.entry(data, group, PriceFunction.from_dict) for group in GROUPS)
        return cls(
            worker,
            ps,
            normalize=document.entry(data, "normalize", document.flag),
            min_utility_fraction=document.entry(data, "min_utility_fraction", _fraction),
            scale=number(data.get("scale", 1.0), "scale", above=True),
        )


def _fraction(value: Any) -> Any:
    """Return `value` if it is a number from 0 to below 1; else raise `InstanceError`."""
    if not (isinstance(value, Real) and 0 <= float(value) < 1):
        raise InstanceError("", "expected 0 <= phi < 1", value)
    return value


def _exp(logarithm: FloatArray) -> FloatArray:
    """Exponential of `logarithm`, at most e^709, beyond which a float overflows."""
    result: FloatArray = np.exp(np.minimum(logarithm, LARGEST_LOG))
    return result


def _price_function(
    entries: list[tuple[float, float, int, FloatArray]],
    total: FloatArray,
    horizon: int,
    normalize: bool,
) -> PriceFunction:
    """Price function (23)-(26) of a group; entries: log best f, log least f, ceil(W), demand."""
    usable = total > 0
    # (25) and (26) add up resource types. In shares of the group's total the sum does not depend on
    # units; in raw units, as printed, it adds GPUs to gigabytes.
    unit = np.where(usable, total, 1.0) if normalize else np.ones_like(total)
    demands = np.array([demand for *_, demand in entries]).reshape(-1, total.size)
    demands = np.where(usable, demands / unit, 0.0)
    demanding = demands.sum(axis=1) > 0
    # Nothing that these servers have is asked for, so there is nothing to ration: the price is 0.
    if not demanding.any():
        return PriceFunction(np.full(total.size, -np.inf), np.zeros(total.size), np.nan)
    log_best, log_smallest, work = (
        np.array([entry[k] for entry in entries], dtype=np.float64)[demanding] for k in range(3)
    )
    demands = demands[demanding]
    log_load = np.log(work) + np.log(demands.sum(axis=1))  # log ceil(W_i) sum_r w_i^r
    log_supply = np.log(horizon) + np.log((np.where(usable, total, 0.0) / unit).sum())
    # 1/eta <= ceil(W_i) sum_r w_i^r / (T sum c) for every form: eta is as small as that allows.
    log_eta = (log_supply - log_load).max()
    log_lower = -np.log(4.0) - log_eta + (log_smallest - log_load).min()  # (25), (26)
    with np.errstate(divide="ignore"):
        log_upper = (log_best[:, None] - np.log(demands)).max(  # (23), (24)
            axis=0, where=demands > 0, initial=-np.inf
        )
    # U is never below L, or prices would fall as servers fill up.
    log_ratio = np.maximum(0.0, np.where(usable, log_upper - log_lower, 0.0))
    # Back to a price per raw unit; the ratio U / L has no unit.
    lower = np.where(usable, log_lower - np.log(unit), -np.inf)
    return PriceFunction(lower, log_ratio, float(_exp(log_eta)))
