"""Policies for a real cluster, where there is no instance to take anything from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.live import live_recourse
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE
from oasis.kubernetes.planning.live_policy import LivePolicy
from oasis.model.instance_file import instance_from_dict, read_json
from oasis.online.prices import PriceBounds
from oasis.online.recourse.learned import LearnedPrices
from oasis.scheduling.policy import Policy

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
        `oasis.simulate` does, and recourse is the policy of the simulator itself.
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
    """
    if name == OASIS:
        if bounds is None:
            raise oasis.OasisError(
                "--bounds: expected a file with U and L, or with past jobs: a cluster has no "
                "instance to take them from"
            )
        others = sorted(set(options) - {"scale"})
        if others:
            raise oasis.OasisError(f"--set oasis.{others[0]}: is part of the bounds on a cluster")
        return _oasis(bounds, float(options.get("scale", 1.0)), horizon or lookahead, horizon)
    if name == RECOURSE and horizon is None:
        return _recourse(options, lookahead)
    return lambda: POLICIES[name].make(None, options)  # type: ignore[return-value]


def _oasis(bounds: Bounds, scale: float, reach: int, horizon: int | None) -> Callable[[], Policy]:
    def make(cluster: oasis.Cluster) -> oasis.LiveScheduler:
        found = bounds(cluster)
        return oasis.LiveScheduler.oasis(
            cluster, reach, found if scale == 1.0 else found.scaled(scale)
        )

    return lambda: LivePolicy(  # type: ignore[return-value]
        OASIS,
        make,
        oasis.LiveScheduler.load,
        reach=max(REACH, 2 * reach),
        horizon=horizon,
        keeps_promises=True,
    )


def _recourse(options: Mapping[str, Any], lookahead: int) -> Callable[[], Policy]:
    def make(cluster: oasis.Cluster) -> oasis.LiveScheduler:
        return live_recourse(cluster, lookahead, options)

    POLICIES[RECOURSE].resolve(options)  # what is wrong is said before the cluster is looked at
    return lambda: LivePolicy(  # type: ignore[return-value]
        RECOURSE, make, oasis.LiveScheduler.load, reach=max(REACH, 2 * lookahead)
    )


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
        try:
            bounds = PriceBounds.from_dict(found)
        except (KeyError, TypeError, ValueError) as error:
            raise oasis.InstanceError("", f"expected bounds as JSON: {error}") from None
        return lambda _: bounds
    past = instance_from_dict(found)

    def of(cluster: oasis.Cluster) -> PriceBounds:
        scaled = replace(cluster, slot_seconds=past.slot_seconds)
        return PriceBounds.from_jobs(past.jobs, scaled, lookahead)

    return of
