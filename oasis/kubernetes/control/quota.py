"""What Kueue's quota leaves to the Workloads that are planned here: one more limit of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from oasis.driver.entry import Entry
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.objects.conditions import said
from oasis.kubernetes.objects.existing import WORKLOAD, own_uid
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.quantities import Amounts, ResourceMap, quantity, summed
from oasis.kubernetes.objects.workload import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    WORKLOADS,
    key_of,
    left_alone,
)
from oasis.model.groups import GROUPS
from oasis.scheduling.site import Site

Object = Mapping[str, Any]
Kind = tuple[str, str]  # flavor and resource
Share = tuple[Fraction, Fraction, Fraction | None]
_amount = partial(quantity, path=CLUSTER_QUEUES.plural)
Used = dict[str, defaultdict[Kind, Fraction]]  # by name of the ClusterQueue
NOTHING = Fraction(0)


class Quota:
    """Limits the plan to what ClusterQueues have and may borrow, less what others use."""

    # It is read at each boundary. What Kueue gives to others in between it says on the Workloads.
    def __init__(self, resources: ResourceMap) -> None:
        self._resources = resources
        self._queues: dict[str, str] = {}  # ClusterQueue of each Workload, by uid of its owner
        self._free: dict[str, Amounts] = {}  # for all Workloads of ours in a ClusterQueue
        self._total: Amounts = {}  # for all of them, of what every such queue limits
        self._off: dict[int, list[float]] = {}  # taken off each machine, by index of the resource
        self._usable = frozenset[str]()  # names of nodes

    def read_queues(self, seen: Seen) -> None:
        """Read how much quota is left for the Workloads that have not ended."""
        self._usable = seen.usable
        # Those that are left alone are no part of the plan: what they have is not free.
        planned = (i for kind, i in seen.jobs if kind is WORKLOAD and left_alone(i) is None)
        items = [item for item in planned if said(item, "Finished").get("status") != "True"]
        local = {key_of(q["metadata"]): q["spec"] for q in seen.of(LOCAL_QUEUES)}
        self._queues.clear()
        for item in items:
            meta, spec = item["metadata"], item["spec"]
            name = spec["target"] or spec.get("queueName", "")
            if (queue := local.get(key_of(meta, name))) is not None:
                self._queues[meta["uid"]] = queue["clusterQueue"]
        queues = {q["metadata"]["name"]: q for q in seen.of(CLUSTER_QUEUES)}
        # Not by the status of the queues, which lags behind that of the Workloads.
        mine_too = {own_uid(item["metadata"]) for item in items}
        running = (w for w in seen.of(WORKLOADS) if said(w, "Finished").get("status") != "True")
        others = [w for w in running if w["metadata"]["uid"] not in mine_too]
        used = _used(queues, others)
        mine = sorted(set(self._queues.values()) & queues.keys())
        remaining = {name: _left(name, queues, used) for name in mine}
        self._free = {name: _summed(amounts) for name, amounts in remaining.items()}
        self._total = self._over_all(queues, used, remaining)

    @staticmethod
    def _over_all(
        queues: Mapping[str, Object], used: Used, left: Mapping[str, Mapping[Kind, Fraction]]
    ) -> Amounts:
        """Return what is left of the resources that all these queues limit, summed over them."""
        # Queues of one cohort borrow the same quota, which counts once.
        cohorts: defaultdict[str, list[str]] = defaultdict(list)
        for name in left:
            cohorts[queues[name]["spec"].get("cohortName") or f"/{name}"].append(name)
        totals = []
        for cohort, names in cohorts.items():
            total = summed(left[name] for name in names)
            if len(names) > 1:
                whole = {n: q for n, q in queues.items() if q["spec"].get("cohortName") == cohort}
                for kind in total:
                    free = (_shares(q)[kind][0] - used[name][kind] for name, q in whole.items())
                    total[kind] = min(total[kind], max(NOTHING, sum(free, NOTHING)))
            totals.append(_summed(total))
        covered = set.intersection(*map(set, totals)) if totals else set()
        return {name: sum((each[name] for each in totals), NOTHING) for name in covered}

    def excess(self, spec: JobSpec) -> str:
        """Return why a job exceeds the quota, whatever else is planned; empty if it does not."""
        queue = self._queues.get(spec.uid, "")
        for name, amount in self._free.get(queue, {}).items():
            requested = spec.min_workers * spec.worker_requests.get(name, NOTHING)
            requested += (spec.ps_count or 0) * spec.ps_requests.get(name, NOTHING)
            if requested > amount:
                leaves = f"leaves {float(amount):g} of {name} to the jobs planned here"
                return f"ClusterQueue {queue} {leaves}, and it asks for {float(requested):g}"
        return ""

    def shrunk(self, site: Site, entries: Iterable[Entry[JobSpec]]) -> Site:
        """Return `site` with machines reduced to the quota; room that `entries` use goes last."""
        limits = {
            site.resources.index(name): float(self._total[resource] / unit)
            for name, resource, unit in self._resources.entries
            if resource in self._total
        }
        if not limits:
            return site
        use = self._held(site, entries)
        # Nothing runs on a node that cannot be used, so its part of the limit goes to the others.
        nodes = [machine.id.partition("/")[0] for machine in site.machines]
        up = [node in self._usable for node in nodes]
        rows = [
            list(machine.amounts) if is_up else [0.0] * len(site.resources)
            for machine, is_up in zip(site.machines, up, strict=True)
        ]
        for r, limit in limits.items():
            excess = sum(row[r] for row in rows) - limit
            if excess > 0:
                for row, off in zip(rows, self._take_off(r, excess, rows, use), strict=True):
                    row[r] -= off
        limited = (
            replace(machine, amounts=tuple(row)) if is_up else machine
            for machine, row, is_up in zip(site.machines, rows, up, strict=True)
        )
        return replace(site, machines=tuple(limited))

    def _held(self, site: Site, entries: Iterable[Entry[JobSpec]]) -> list[list[float]]:
        """Return what live jobs hold of each machine, by index of the resource."""
        totals = [[0.0] * len(site.resources) for _ in site.machines]
        for entry in entries:
            per_group = (entry.spec.worker_requests, entry.spec.ps_requests)
            for group, requests in zip(GROUPS, per_group, strict=True):
                amounts = self._resources.amounts(requests)
                for machine, count in group.placed(entry.allocation):
                    for r, name in enumerate(site.resources):
                        totals[machine][r] += count * amounts[name]
        return totals

    def _take_off(
        self, r: int, excess: float, rows: list[list[float]], held: list[list[float]]
    ) -> list[float]:
        """Return what to take off each machine of resource `r`, `excess` in all: free first."""
        free = [max(0.0, row[r] - use[r]) for row, use in zip(rows, held, strict=True)]
        before = self._off.get(r, [])
        is_known = len(before) == len(rows) and sum(before) == excess
        if is_known and all(off <= room for off, room in zip(before, free, strict=True)):
            return before
        off = [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda k: (-free[k], -k))
        for most in (free, [row[r] for row in rows]):  # what is held goes last
            for k in order:
                more = min(excess - sum(off), most[k] - off[k])
                off[k] += max(0.0, more)
        self._off[r] = off
        return off


def _used(queues: Iterable[str], workloads: Iterable[Object]) -> Used:
    """Return what Workloads have reserved of each ClusterQueue, by flavor and resource."""
    used: Used = {name: defaultdict(Fraction) for name in queues}
    for item in workloads:
        admission = (item.get("status") or {}).get("admission") or {}
        use = used.get(admission.get("clusterQueue", ""))
        if use is not None:
            for part in admission.get("podSetAssignments") or ():
                flavors = part.get("flavors") or {}  # without one a resource is under no quota
                for name, amount in (part.get("resourceUsage") or {}).items():
                    if name in flavors:
                        use[flavors[name], name] += _amount(amount)
    return used


def _summed(amounts: Mapping[Kind, Fraction]) -> Amounts:
    """Return the amount of each resource, summed over its flavors."""
    return summed({resource: amount} for (_, resource), amount in amounts.items())


def _shares(queue: Object) -> defaultdict[Kind, Share]:
    """Return what a ClusterQueue has, what of it others may borrow, and how much it may borrow."""
    shares: defaultdict[Kind, Share] = defaultdict(lambda: (NOTHING, NOTHING, NOTHING))
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for each in flavor["resources"]:
                nominal = _amount(each["nominalQuota"])
                lent, most = each.get("lendingLimit"), each.get("borrowingLimit")
                lends = nominal if lent is None else _amount(lent)
                limits = lends, None if most is None else _amount(most)
                shares[flavor["name"], each["name"]] = nominal, *limits
    return shares


def _left(name: str, queues: Mapping[str, Object], used: Used) -> dict[Kind, Fraction]:
    """Return what a ClusterQueue has and can borrow now, less what others use."""
    spec = queues[name]["spec"]
    cohort = spec.get("cohortName")
    others = {n: _shares(q) for n, q in queues.items() if q["spec"].get("cohortName") == cohort}
    reclaims = (spec.get("preemption") or {}).get("reclaimWithinCohort", "Never") != "Never"
    remaining = {}
    for kind, (nominal, _, most) in _shares(queues[name]).items():
        pool = NOTHING
        for other, shares in others.items() if cohort else ():
            if other != name:
                has, lends, _ = shares[kind]
                pool += lends - max(NOTHING, used[other][kind] - (has - lends))
        if most is not None:
            pool = min(pool, most)
        if reclaims:
            pool = max(pool, NOTHING)  # it is negative where others borrow from this one
        remaining[kind] = max(NOTHING, nominal + pool - used[name][kind])
    return remaining
