"""Jobs without parameter servers, on clusters without machines for them: everything works.

A machine for parameter servers that no job uses must change nothing: the tests compare an instance
without any with the same one that has such a machine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments.evaluation.policies import POLICIES, entry_of
from oasis import Instance, Job, PriceBounds, Server
from oasis.solvers import TRUST, Status
from offline import METHODS, learn_prices, solve
from offline.column_generation.bound import configuration_bound
from tests.properties.test_offline_methods import (
    INEXACT,
    assert_encloses,
    enumerated,
    limit,
)
from tests.strategies import (
    BANDWIDTH,
    all_instances,
    crowded_instances,
    fewer,
    small_instances,
)


def all_reduced(job: Job, *, keep_demand: bool) -> Job:
    """The job with workers that exchange gradients without parameter servers."""
    worker = {name: amount for name, amount in job.worker.items() if name != BANDWIDTH}
    time = job.minibatch_time or 0.5
    ps = job.ps if keep_demand else {}
    return replace(job, worker=worker, ps=ps, gradient_mb=0.0, minibatch_time=time)


def without_servers(instance: Instance, *, keep_demand: bool = False) -> Instance:
    """The instance with jobs and a cluster without parameter servers."""
    jobs = tuple(all_reduced(job, keep_demand=keep_demand) for job in instance.jobs)
    return replace(instance, jobs=jobs, cluster=replace(instance.cluster, ps_servers=()))


def with_unused(instance: Instance) -> Instance:
    """The same with machines for parameter servers, which no job needs."""
    # no larger than what is there: recourse rounds demands by the largest machine
    capacity = instance.cluster.worker_servers[0].capacity
    unused = Server("unused", capacity, count=2)
    return replace(instance, cluster=replace(instance.cluster, ps_servers=(unused,)))


@st.composite
def bare(draw: st.DrawFn, made: st.SearchStrategy[Instance]) -> Instance:
    """Instances without parameter servers; the jobs of some say what one would demand."""
    return without_servers(draw(made), keep_demand=draw(st.booleans()))


def assert_same(instance: Instance, name: str, **options: object) -> None:
    """The same decisions and schedules with a machine that no job uses; feasible ones."""
    runs = [
        oasis.simulate(i, entry_of(name).make(i, options))
        for i in (instance, with_unused(instance))
    ]
    one, other = runs
    assert [d.to_dict() for d in one.decisions] == [d.to_dict() for d in other.decisions]
    assert one.schedules == other.schedules
    assert one.total_utility == other.total_utility
    assert oasis.verify(instance, one) == one.total_utility


@pytest.mark.parametrize("name", POLICIES)
@given(bare(st.one_of(all_instances(), crowded_instances())))
@fewer(8)
def test_policies_decide_the_same_without_machines_that_no_job_uses(
    name: str, instance: Instance
) -> None:
    assert_same(instance, name)


@pytest.mark.parametrize("method", METHODS)
@given(bare(small_instances()))
@fewer(8)
def test_offline_methods_enclose_the_enumerated_optimum(method: str, instance: Instance) -> None:
    optimum = enumerated(instance)
    for written in (instance, with_unused(instance)):
        result = solve(written, method, **limit(method))
        assert_encloses(written, result, optimum)
        assert result.status is Status.OPTIMAL or method in INEXACT


@fewer(3)
@given(bare(st.one_of(all_instances(), crowded_instances())))
def test_bounds_hold_without_servers(instance: Instance) -> None:
    scheduler = oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    ledger = scheduler.ledger
    final = [ledger.worker_prices, ledger.ps_prices]
    assert final[1].shape == (instance.horizon, 0, len(instance.cluster.resources))
    other = with_unused(instance)
    idle = np.zeros((instance.horizon, *other.cluster.ps_capacity.shape))
    dual = oasis.dual_bound(instance, *final)
    assert dual == oasis.dual_bound(other, final[0], idle)
    assert run.bounds.to_dict() == PriceBounds.from_instance(other).to_dict()
    certificate = oasis.certify(instance, run)
    again = oasis.certify(other, oasis.simulate(other, oasis.OASiS.from_instance(other)))
    assert certificate.upper_bound == pytest.approx(again.upper_bound)
    for bound in (dual, certificate.upper_bound, configuration_bound(instance).bound):
        assert bound >= run.total_utility * (1 - TRUST)
    learned = learn_prices([instance], time_limit=None, work_limit=0.1)
    assert learned.ps.shape == learned.worker.shape
    assert not learned.ps.any()
