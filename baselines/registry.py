"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable

from baselines.dorm import Dorm
from baselines.drf import DRF
from baselines.fifo import FIFO
from baselines.kubernetes_default import KubernetesDefault
from baselines.las import LAS
from baselines.rrh import RRH
from baselines.srtf import SRTF
from oasis.scheduling import Policy

POLICIES: dict[str, Callable[[int], Policy]] = {
    "fifo": FIFO,
    "drf": lambda seed: DRF(),
    "rrh": RRH,
    "dorm": lambda seed: Dorm(),
    "srtf": SRTF,
    "las": LAS,
    "kubernetes-default": KubernetesDefault,
}


def make(name: str, seed: int = 0) -> Policy:
    """A new policy; `seed` draws its fixed counts, if it has any.

    Raises
    ------
    ValueError
        If there is no policy of this name.
    """
    if name not in POLICIES:
        raise ValueError(f"policy: expected one of {', '.join(POLICIES)}, got {name!r}")
    return POLICIES[name](seed)
