"""Live schedulers from the options of the registry: for quotes, and for real clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE, SEED, entry_of
from oasis.model.errors import InputError
from oasis.model.instance_file import instance_from_dict, read_json
from oasis.online.live.answers import Quote
from oasis.online.live.policy import LivePolicy
from oasis.online.prices import PriceBounds
from oasis.online.recourse import RecourseParams
from oasis.online.recourse.learned import LearnedPrices
from oasis.scheduling.policy import Policy


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
    InputError
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
    InputError
        If an option of recourse does not exist or has a wrong value.
    ValueError
        If OASiS has no bounds.

    Examples
    --------
    >>> planning_policy("recourse", {"rounds": 3}, 10, reach=40).name
    'recourse'
    """
    if name == OASIS and bounds is None:
        raise InputError("bounds", "expected U and L of OASiS, got None")
    if name == RECOURSE:
        POLICIES[RECOURSE].resolve(options)  # says what is wrong before there is a cluster

    def make(cluster: oasis.Cluster) -> oasis.LiveScheduler:
        if bounds is None:
            return live_recourse(cluster, slots, options)
        found, scale = bounds(cluster), float(options.get("scale", 1.0))
        scaled = found if scale == 1.0 else found.scaled(scale)
        return oasis.LiveScheduler.oasis(cluster, slots, scaled)

    is_oasis = name == OASIS
    return LivePolicy(name, make, reach=reach, horizon=horizon, keeps_promises=is_oasis)


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


REACH = 1000  # slots that the utility of a job that is planned anew is known for
Bounds = Callable[[oasis.Cluster], PriceBounds]


def cluster_policy(
    name: str,
    options: Mapping[str, Any],
    *,
    lookahead: int,
    horizon: int | None = None,
    bounds: Bounds | None = None,
) -> Callable[[], Policy]:
    """How to make a policy for a cluster, again and again.

    Parameters
    ----------
    name : str
        Of the registry.
    options : mapping
        Its options that differ from their defaults.
    lookahead : int
        Slots that OASiS and recourse plan ahead.
    horizon : int, optional
        Slots after which nothing counts, as in an instance. OASiS then decides as
        `oasis.simulate` does, recourse is the policy of the simulator itself, and policies that
        draw the counts of jobs draw those of the simulator. Without it they draw nothing unless
        `options` has a seed: a job without an initial number of workers gets its maximum.
    bounds : callable, optional
        U and L of OASiS for a cluster.

    Raises
    ------
    OasisError
        If OASiS has no bounds, or gets an option that only an instance can serve.

    Examples
    --------
    >>> cluster_policy("fifo", {"seed": 3}, lookahead=100)().parameters
    {'seed': 3, 'line': 'strict', 'placement': None}
    >>> cluster_policy("fifo", {}, lookahead=100)().parameters["seed"] is None
    True
    """
    if name == OASIS:
        if bounds is None:
            raise oasis.InputError(
                "--bounds",
                "expected a file with U and L, or with past jobs: a cluster has no "
                "instance to take them from",
            )
        others = sorted(set(options) - {"scale"})
        if others:
            raise oasis.InputError(f"--set oasis.{others[0]}", "is part of the bounds on a cluster")
        reach = horizon or lookahead
        return lambda: planning_policy(
            OASIS, options, reach, reach=max(REACH, 2 * reach), bounds=bounds, horizon=horizon
        )
    if name == RECOURSE and horizon is None:
        reach = max(REACH, 2 * lookahead)
        planning_policy(name, options, lookahead, reach=reach)  # refuses bad options now, not later
        return lambda: planning_policy(name, options, lookahead, reach=reach)
    entry = entry_of(name)
    if horizon is None and SEED in entry.options:
        options = {SEED: None, **options}
    return lambda: entry.make(None, options)


def read_bounds(path: Path, lookahead: int) -> Bounds:
    """U and L from a file: what `oasis learn` wrote, bounds as JSON, or an instance of past jobs.

    Parameters
    ----------
    path : Path
        The file.
    lookahead : int
        Horizon for which the bounds of past jobs are computed.

    Raises
    ------
    InstanceError
        If it is none of them.
    """
    found = read_json(path)
    if isinstance(found, Mapping) and found.get("format") == "oasis-prices":
        learned = LearnedPrices.read(path).bounds
        return lambda _: learned
    if isinstance(found, Mapping) and {"worker", "ps", "normalize"} <= found.keys():
        bounds = PriceBounds.from_dict(found)
        return lambda _: bounds
    past = instance_from_dict(found)

    def of(cluster: oasis.Cluster) -> PriceBounds:
        scaled = replace(cluster, slot_seconds=past.slot_seconds)
        return PriceBounds.from_jobs(past.jobs, scaled, lookahead)

    return of
