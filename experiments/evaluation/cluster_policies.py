"""Policies for a real cluster, where there is no instance to take anything from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.live import planning_policy
from experiments.evaluation.policies import OASIS, RECOURSE, SEED, entry_of
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
            raise oasis.OasisError(
                "--bounds: expected a file with U and L, or with past jobs: a cluster has no "
                "instance to take them from"
            )
        others = sorted(set(options) - {"scale"})
        if others:
            raise oasis.OasisError(f"--set oasis.{others[0]}: is part of the bounds on a cluster")
        reach = horizon or lookahead
        return lambda: planning_policy(  # type: ignore[return-value]
            OASIS, options, reach, reach=max(REACH, 2 * reach), bounds=bounds, horizon=horizon
        )
    if name == RECOURSE and horizon is None:
        reach = max(REACH, 2 * lookahead)
        planning_policy(name, options, lookahead, reach=reach)  # refuses bad options now, not later
        return lambda: planning_policy(  # type: ignore[return-value]
            name, options, lookahead, reach=reach
        )
    entry = entry_of(name)
    if horizon is None and SEED in entry.options:
        options = {SEED: None, **options}
    return lambda: entry.make(None, options)  # type: ignore[return-value]


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
