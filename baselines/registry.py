"""Policies by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from baselines.dorm import Dorm
from baselines.dragon import Dragon, LocalityAware
from baselines.elasticflow import ElasticFlow
from baselines.fair_shares import DRF, FinishTimeFairness
from baselines.gavel import Gavel
from baselines.gittins import Gittins
from baselines.kod2 import Kod2
from baselines.kubernetes_default import KubernetesDefault
from baselines.optimus import Optimus
from baselines.preemptive import LAS, SRSF, SRTF
from baselines.priority_queue import PriorityQueue
from baselines.queues import EASY, FIFO, SJF
from baselines.rrh import RRH
from baselines.specon import SpeCon
from oasis.model.choices import choice
from oasis.scheduling import Policy

# The rivals of OASiS: comparisons on instances take all of them where none is named.
POLICIES: dict[str, Callable[..., Policy]] = {
    "fifo": FIFO,
    "drf": DRF,
    "rrh": RRH,
    "dorm": Dorm,
    "srtf": SRTF,
    "las": LAS,
}
# Policies of simulators of GPU clusters, at home on plain traces.
QUEUES: dict[str, Callable[..., Policy]] = {
    "sjf": SJF,
    "srsf": SRSF,
    "easy": EASY,
    "gittins": Gittins,
    "finish-time-fairness": FinishTimeFairness,
    "gavel": Gavel,
}
# Kubernetes controllers and elastic schedulers, at home on elastic workloads.
CONTROLLERS: dict[str, Callable[..., Policy]] = {
    "kubernetes-default": KubernetesDefault,
    "locality-aware": LocalityAware,
    "dragon": Dragon,
    "kod2": Kod2,
    "priority-queue": PriorityQueue,
    "specon": SpeCon,
    "optimus": Optimus,
    "elasticflow": ElasticFlow,
}
ALL: dict[str, Callable[..., Policy]] = POLICIES | QUEUES | CONTROLLERS


def make(name: str, seed: int = 0, **options: Any) -> Policy:
    """Make a new policy by its name.

    Parameters
    ----------
    name : str
        One of `ALL`.
    seed : int
        Draws the fixed counts of a policy that has them; the others take no seed.
    **options
        As for the constructor of the policy.

    Raises
    ------
    ValueError
        If there is no policy of this name, or an option has a wrong value.

    Examples
    --------
    >>> make("srtf", 3, line="fit").parameters
    {'seed': 3, 'line': 'fit', 'placement': None}
    """
    policy = ALL[choice(name, ALL, "policy")]
    if "seed" in inspect.signature(policy).parameters:
        options["seed"] = seed
    return policy(**options)
