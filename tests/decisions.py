"""Logs of decisions, to compare a policy on the simulator with the same policy on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oasis.driver.driver import Driver
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.site import Site
from oasis.simulator.workload import Workload

Decision = tuple[float, str, Any]


class Logged:
    """A policy that writes down each change that it asks for: time, job, and what it is to hold.

    Changes of one instant are in order of the jobs' names, as a plan has no order in itself.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name, self.slotted = policy.name, policy.slotted
        self.told_remaining = policy.told_remaining
        self.decided: list[Decision] = []

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._policy.parameters

    def reset(self, site: Site) -> None:
        self._policy.reset(site)

    def decide(self, view: View) -> Plan:
        names = {job.index: job.id for job in view.jobs()}
        plan = self._policy.decide(view)
        found: list[tuple[str, Any]] = [(names[k], reason) for k, reason in plan.rejected.items()]
        for k, allocation in plan.changes.items():
            if allocation != view.allocation(_job(view, k)):
                found.append((names[k], allocation))
        found.sort(key=lambda entry: (isinstance(entry[1], Allocation), entry[0]))
        self.decided += [(view.now, *entry) for entry in found]
        return plan


def _job(view: View, index: int) -> PolicyJob:
    return next(job for job in view.jobs() if job.index == index)


def workload_of(
    jobs: Mapping[str, tuple[JobSpec, int]], site: Site, curves: Mapping[str, Any] | None = None
) -> Workload:
    """For the simulator: jobs as the controller of a cluster shows them to a policy.

    Parameters
    ----------
    jobs : mapping of str to (JobSpec, int)
        Jobs and the slots of their arrivals, by uid.
    site : Site
        The machines.
    curves : mapping, optional
        What is seen of their training, by uid.
    """
    from dataclasses import replace

    driver = Driver(_Nobody(), site)
    found = []
    for uid, (spec, arrival) in jobs.items():
        job = driver.as_seen(spec, spec.job, -1, spec.initial_workers)
        curve = (curves or {}).get(uid)
        found.append(replace(job, arrival=float(arrival), curve=curve))
    return Workload.of(site, found)


class _Nobody:
    name, slotted, told_remaining, parameters = "nobody", False, False, {}

    def reset(self, site: Site) -> None:
        pass

    def decide(self, view: View) -> Plan:
        return Plan()
