"""Which amounts of a cluster are counted together when shares of it are told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from oasis.model.rounding import FloatArray
from oasis.scheduling.site import GROUPS, Site


class Pools:
    """The resources of which tasks take shares.

    Where no machine hosts both workers and parameter servers, a resource of the ones' hosts and the
    same resource of the others' are two. Where any machine hosts both, there is one of each, over
    all machines: a machine that hosts both counts once.

    Parameters
    ----------
    site : Site
        The machines.

    Attributes
    ----------
    totals : (K,) float array
        Capacity of each, in its unit; K is 2 R or R for R resources.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> hosts = Machine("n0", (12.0,), frozenset({"worker"})), Machine("n1", (4.0,))
    >>> Pools(Site(("cpu",), hosts)).totals
    array([16.])
    >>> apart = hosts[0], Machine("n1", (4.0,), frozenset({"ps"}))
    >>> Pools(Site(("cpu",), apart)).totals
    array([12.,  4.])
    """

    def __init__(self, site: Site) -> None:
        self._site, size = site, len(site.resources)
        shared = any(len(machine.hosts) == len(GROUPS) for machine in site.machines)
        self._offsets = {group: 0 if shared else k * size for k, group in enumerate(GROUPS)}
        self._size = size if shared else size * len(GROUPS)
        self.totals = self.sums([machine.amounts for machine in site.machines])

    def place(self, group: str, resource: int) -> int:
        """Where the `resource` of the machines that host `group` is among the K."""
        return self._offsets[group] + resource

    def sums(self, rows: Sequence[Sequence[float]]) -> FloatArray:
        """What all machines have together, shape (K,), from what each of them has, (R,)."""
        amounts: list[list[float]] = [[] for _ in range(self._size)]
        for machine, row in zip(self._site.machines, rows, strict=True):
            for offset in {self._offsets[group] for group in machine.hosts}:
                for resource, amount in enumerate(row):
                    amounts[offset + resource].append(amount)
        return np.array([math.fsum(each) for each in amounts])
