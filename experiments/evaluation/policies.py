"""Policies by name, OASiS among them, with the options that experiments vary."""

from __future__ import annotations

from typing import cast

import baselines
import oasis
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.online.search import Granularity
from oasis.simulator import Policy, Scheduler

OASIS = "oasis"
POLICIES = (OASIS, *baselines.POLICIES)


def scheduler_for(
    instance: oasis.Instance,
    *,
    scale: float,
    min_utility_fraction: float,
    granularity: str,
    raw_units: bool,
) -> oasis.OASiS:
    """OASiS with the exact bounds of `instance` and the given options."""
    return oasis.OASiS.from_instance(
        instance,
        normalize=not raw_units,
        min_utility_fraction=min_utility_fraction,
        scale=scale,
        granularity=cast(Granularity, granularity),  # checked by the constructor
    )


def check_policy(name: str, option: str) -> str:
    """`name` if there is such a policy."""
    if name not in POLICIES:
        raise ValueError(f"{option}: expected one of {', '.join(POLICIES)}, got {name!r}")
    return name


def policy_for(
    name: str,
    instance: oasis.Instance,
    *,
    seed: int,
    scale: float = 1.0,
    min_utility_fraction: float = DEFAULT_MIN_UTILITY_FRACTION,
    granularity: str = "worker-slot",
    raw_units: bool = False,
) -> Policy | Scheduler:
    """A policy by its name; `seed` is for the baselines, the other options are for OASiS."""
    if name != OASIS:
        return baselines.make(name, seed)
    return scheduler_for(
        instance,
        scale=scale,
        min_utility_fraction=min_utility_fraction,
        granularity=granularity,
        raw_units=raw_units,
    )
