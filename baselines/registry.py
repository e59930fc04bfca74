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

Make = Callable[[int], Policy]

# The rivals of OASiS: comparisons on instances take all of them where none is named.
POLICIES: dict[str, Make] = {
    "fifo": FIFO,
    "drf": lambda seed: DRF(),
    "rrh": RRH,
    "dorm": lambda seed: Dorm(),
    "srtf": SRTF,
    "las": LAS,
}
# Kubernetes controllers, at home on elastic workloads.
CONTROLLERS: dict[str, Make] = {
    "kubernetes-default": KubernetesDefault,
}
ALL: dict[str, Make] = POLICIES | CONTROLLERS


def make(name: str, seed: int = 0) -> Policy:
    """A new policy; `seed` draws its fixed counts, if it has any.

    Raises
    ------
    ValueError
        If there is no policy of this name.

    Examples
    --------
    >>> make("fifo", seed=3).parameters
    {'seed': 3}
    """
    if name not in ALL:
        raise ValueError(f"policy: expected one of {', '.join(ALL)}, got {name!r}")
    return ALL[name](seed)
