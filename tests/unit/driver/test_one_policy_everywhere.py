"""A policy is written once and runs unchanged in a simulation, a service and on a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import oasis
from baselines import ALL
from oasis.driver.driver import Driver
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.scheduling import BasePolicy, BestFit, Plan, Room, View
from oasis.simulator import Workload, replay
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of


class InTurn(BasePolicy):
    """Jobs in order of arrival, each with as many workers as fit, up to a maximum."""

    def __init__(self, most: int = 6) -> None:
        self.most = most

    def decide(self, view: View) -> Plan:
        plan, room = Plan(), Room(self.site, view.free(), view.down())
        for job in view.waiting():
            for workers in range(min(self.most, job.max_workers), job.min_workers - 1, -1):
                found = BestFit().place(room, job, workers, job.ps_needed(workers))
                if found is not None:
                    plan.changes[job.index] = found
                    break
        return plan


class Thrifty(InTurn):
    """Turns away every third job, and remembers whom: a policy with a state of its own."""

    def reset(self, site: Any) -> None:
        super().reset(site)
        self.seen: list[str] = []
        self.refused: dict[str, Any] = {}

    def decide(self, view: View) -> Plan:
        plan = super().decide(view)
        for job in view.arrived:
            self.seen.append(job.id)
            if len(self.seen) % 3 == 0:
                self.refused[job.id] = (job, view.now)
                plan.changes.pop(job.index, None)
                plan.rejected[job.index] = f"number {len(self.seen)}"
        return plan


MAKERS: dict[str, Callable[[], BasePolicy]] = {
    "in turn": InTurn,
    "one worker at most": lambda: InTurn(most=1),
    "with a state": Thrifty,
}
Ends = dict[str, int]


def shipped() -> tuple[oasis.Instance, dict[str, Any], Any]:
    """Jobs as a cluster's objects give them back, so that all four drivers have the same ones."""
    made = replace(oasis.generate("testbed", jobs=14, seed=3), horizon=60)
    specs, site = specs_of(made), site_for(made, made.horizon)
    return instance_of(specs.values(), site, made.horizon, {}), specs, site


def in_a_service(instance: oasis.Instance, make: Callable[[], Any], path: Path) -> Ends:
    """A journal that is killed after every third call, and reopened with a policy never used."""
    ends: Ends = {}
    scheduler = oasis.LiveScheduler(make(), instance.cluster)
    scheduler.open_journal(path)
    calls = 0

    def again() -> None:
        nonlocal calls, scheduler
        calls += 1
        if calls % 3 == 0:
            scheduler = oasis.LiveScheduler.reopen(path, make())

    for job in instance.jobs_by_arrival():
        ends |= {done.job_id: done.slot for done in scheduler.advance(job.arrival).completed}
        again()
        scheduler.submit(job)
        again()
    ends |= {done.job_id: done.slot for done in scheduler.advance(instance.horizon).completed}
    return ends


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_decisions_in_every_driver(name, tmp_path):
    instance, specs, site = shipped()
    make = MAKERS[name]
    run = oasis.simulate(instance, make())
    oasis.verify(instance, run)
    ends = {d.job_id: d.completion for d in run.decisions if d.completion is not None}
    assert len(ends) >= 8

    outcome = replay(Workload.from_instance(instance), make())
    assert {
        job.job_id: math.ceil(job.end - 1e-9) - 1 for job in outcome.jobs if job.end is not None
    } == ends

    assert in_a_service(instance, make, tmp_path / "journal") == ends

    cluster = FakeCluster(Driver(make(), site), specs)
    cluster.run(instance.horizon + 1)
    assert {f"default/{uid[4:]}": slot for uid, slot in cluster.completed.items()} == ends


def test_a_policy_of_another_making_is_refused(tmp_path):
    instance = shipped()[0]
    scheduler = oasis.LiveScheduler(InTurn(most=2), instance.cluster)
    scheduler.open_journal(tmp_path / "journal")
    with pytest.raises(oasis.OasisError, match="policy: expected one like the one that was saved"):
        oasis.LiveScheduler.reopen(tmp_path / "journal")
    with pytest.raises(oasis.OasisError, match=r"expected 'InTurn' with .'most': 2., got 'InTurn'"):
        oasis.LiveScheduler.reopen(tmp_path / "journal", InTurn(most=3))
    assert oasis.LiveScheduler.reopen(tmp_path / "journal", InTurn(most=2)).now == 0


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("rrh", "dorm")])
def test_every_rival_runs_in_a_service(name, tmp_path):
    """With a journal that is reopened after every third call, as without one."""
    instance = shipped()[0]

    def make() -> Any:
        return ALL[name]()

    scheduler = oasis.LiveScheduler(make(), instance.cluster)
    ends: Ends = {}
    for job in instance.jobs_by_arrival():
        ends |= {done.job_id: done.slot for done in scheduler.advance(job.arrival).completed}
        scheduler.submit(job)
    ends |= {done.job_id: done.slot for done in scheduler.advance(instance.horizon).completed}
    assert ends
    assert in_a_service(instance, make, tmp_path / "journal") == ends
