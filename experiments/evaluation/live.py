"""Live schedulers from the options of the registry: for quotes, and for real clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import oasis
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE
from oasis.kubernetes.planning.live_policy import LivePolicy
from oasis.online.live.answers import Quote
from oasis.online.prices import PriceBounds
from oasis.online.recourse import RecourseParams


def live_recourse(
    cluster: oasis.Cluster, lookahead: int, options: Mapping[str, Any]
) -> oasis.LiveScheduler:
    """Recourse as a service runs it.

    Parameters
    ----------
    cluster : Cluster
        Servers and the length of a slot.
    lookahead : int
        Slots that the plan reaches ahead.
    options : mapping
        Options of the policy ``recourse`` that differ from their defaults.

    Raises
    ------
    OptionError
        If an option does not exist or has a wrong value.

    Examples
    --------
    >>> import oasis
    >>> cluster = oasis.generate("testbed", jobs=2, seed=1).cluster
    >>> live_recourse(cluster, 10, {"rounds": 3}).now
    0
    """
    whole = POLICIES[RECOURSE].resolve(options)
    steering = RecourseParams(**{entry.name: whole[entry.name] for entry in fields(RecourseParams)})
    only_on_arrival = {name: whole[name] for name in ("admission", "prices")}
    return oasis.LiveScheduler.recourse(
        cluster,
        lookahead,
        whole["commitment"],
        params=steering,
        seed=whole["seed"],
        seconds=whole["seconds"],
        samples=whole["samples"],
        min_utility_fraction=whole["admission_floor"],
        **only_on_arrival,
    )


def planning_policy(
    name: str,
    options: Mapping[str, Any],
    slots: int,
    *,
    reach: int,
    bounds: Callable[[oasis.Cluster], PriceBounds] | None = None,
    horizon: int | None = None,
) -> LivePolicy:
    """OASiS or recourse as a policy that plans in slots, on whatever cluster it meets.

    Parameters
    ----------
    name : {"oasis", "recourse"}
        Of the registry.
    options : mapping
        Its options that differ from their defaults; OASiS heeds ``scale`` alone, the others are
        part of the bounds.
    slots : int
        Slots that its plan reaches ahead.
    reach : int
        Slots that the utility of a job that is planned anew is known for.
    bounds : callable, optional
        U and L of OASiS for a cluster.
    horizon : int, optional
        Slots after which nothing counts, as in an instance.

    Raises
    ------
    OptionError
        If an option of recourse does not exist or has a wrong value.
    ValueError
        If OASiS has no bounds.

    Examples
    --------
    >>> planning_policy("recourse", {"rounds": 3}, 10, reach=40).name
    'recourse'
    """
    if name == OASIS and bounds is None:
        raise ValueError("bounds: expected U and L of OASiS, got None")
    if name == RECOURSE:
        POLICIES[RECOURSE].resolve(options)  # says what is wrong before there is a cluster

    def make(cluster: oasis.Cluster) -> oasis.LiveScheduler:
        if bounds is None:
            return live_recourse(cluster, slots, options)
        found, scale = bounds(cluster), float(options.get("scale", 1.0))
        scaled = found if scale == 1.0 else found.scaled(scale)
        return oasis.LiveScheduler.oasis(cluster, slots, scaled)

    load = oasis.LiveScheduler.load
    is_oasis = name == OASIS
    return LivePolicy(name, make, load, reach=reach, horizon=horizon, keeps_promises=is_oasis)


def quote_recourse(instance: oasis.Instance, job: oasis.Job, options: Mapping[str, Any]) -> Quote:
    """What would become of `job`, and of the others, after the jobs that arrive no later than it.

    The jobs run as in a service: the plan reaches as far ahead as the instance has slots, and the
    end of the instance is no end.

    Raises
    ------
    InstanceError
        If the job is one of the instance's.
    """
    scheduler = live_recourse(instance.cluster, instance.horizon, options)
    for earlier in instance.jobs_by_arrival():
        if earlier.arrival <= job.arrival:
            scheduler.advance(earlier.arrival)
            scheduler.submit(earlier)
    scheduler.advance(job.arrival)
    return scheduler.quote(job)
