"""Jobs without parameter servers, on clusters without machines for them: everything works.

A machine for parameter servers that no job uses must change nothing: the tests compare an instance
without any with the same one that has such a machine.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES, entry_of
from oasis import Cluster, Instance, Job, LiveScheduler, PriceBounds, Server
from oasis.driver.driver import Driver
from oasis.model.instance_file import instance_to_dict
from oasis.online.recourse import RecourseParams
from oasis.solvers import TRUST, Status
from offline import METHODS, learn_prices, solve
from offline.column_generation.bound import configuration_bound
from offline.params import ConfigurationParams
from offline.processes import Message, ProcessTask
from offline.state import Phase
from offline.tasks import Child
from tests.properties.test_offline_methods import (
    DIGITS,
    INEXACT,
    PROOF,
    assert_encloses,
    enumerated,
    limit,
)
from tests.strategies import (
    BANDWIDTH,
    PRICES,
    all_instances,
    crowded_instances,
    fewer,
    levels,
    of,
    small_instances,
)
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of
from tests.unit.offline.test_benders import FRACTIONS, SMALL, WHOLE, hurried, proven, unaided

COMMITMENTS = ("none", "start", "arrival")


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


@pytest.mark.parametrize("commitment", COMMITMENTS)
@given(bare(st.one_of(all_instances(), crowded_instances())))
@fewer(8)
def test_recourse_decides_the_same_without_machines_that_no_job_uses(
    commitment: str, instance: Instance
) -> None:
    assert_same(instance, "recourse", commitment=commitment)


@pytest.mark.parametrize("method", METHODS)
@given(bare(small_instances()))
@fewer(8)
def test_offline_methods_enclose_the_enumerated_optimum(method: str, instance: Instance) -> None:
    optimum = enumerated(instance)
    for written in (instance, with_unused(instance)):
        result = solve(written, method, **limit(method))
        assert_encloses(written, result, optimum)
        assert result.status is Status.OPTIMAL or method in INEXACT


@pytest.mark.parametrize(("small", "phase"), [(SMALL, WHOLE), (0, FRACTIONS)])
@given(bare(small_instances()))
@fewer(2)
def test_masters_alone_prove_the_enumerated_optimum(
    small: int, phase: str, instance: Instance
) -> None:
    best = pytest.approx(enumerated(instance), rel=PROOF, abs=DIGITS)
    with pytest.MonkeyPatch.context() as patch:
        unaided(patch)
        assert proven(instance, {}, Counter(), hurried(small)) == best


@given(bare(all_instances()))
def test_a_job_that_needs_no_parameter_server_need_not_say_what_one_would_demand(
    instance: Instance,
) -> None:
    silent = without_servers(instance)
    runs = [oasis.simulate(i, oasis.OASiS.from_instance(i)) for i in (instance, silent)]
    assert runs[0].schedules == runs[1].schedules
    assert runs[0].bounds.to_dict() == runs[1].bounds.to_dict()


@fewer(3)
@given(st.one_of(all_instances(), crowded_instances()))
def test_jobs_of_both_kinds_share_a_cluster(instance: Instance) -> None:
    """Jobs without parameter servers may leave their demand out also where others have some."""
    jobs = tuple(job if job.needs_ps else replace(job, ps={}) for job in instance.jobs)
    mixed = replace(instance, jobs=jobs)
    for name in ("oasis", "recourse", "fifo", "drf"):
        runs = [oasis.simulate(i, entry_of(name).make(i, {})) for i in (instance, mixed)]
        assert runs[0].schedules == runs[1].schedules


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


@given(bare(all_instances()), st.data())
def test_the_best_schedule_at_any_prices_takes_empty_arrays(
    instance: Instance, data: st.DataObject
) -> None:
    cluster, horizon = instance.cluster, instance.horizon
    worker = data.draw(levels((horizon, *cluster.worker_capacity.shape), PRICES))
    nothing = np.zeros_like(worker)
    for granularity in ("worker-slot", "chunk"):
        found = []
        for where in (instance, with_unused(instance)):
            ps = np.zeros((horizon, *where.cluster.ps_capacity.shape))
            given = where.cluster, horizon, worker, ps, nothing, ps, granularity
            found += [[oasis.best_schedule(job, *given) for job in instance.jobs]]
        for one, other in zip(*found, strict=True):
            assert (one.payoff, one.cost, one.reason) == (other.payoff, other.cost, other.reason)
            assert one.schedule == other.schedule


@given(bare(st.one_of(all_instances(), crowded_instances())))
@fewer(2)
def test_a_scheduler_is_saved_and_loaded_half_way(instance: Instance) -> None:
    whole = oasis.OASiS.from_instance(instance)
    jobs = instance.jobs_by_arrival()
    expected = [whole.submit(job).to_dict() for job in jobs]
    half = oasis.OASiS.from_instance(instance)
    found = [half.submit(job).to_dict() for job in jobs[: len(jobs) // 2]]
    with TemporaryDirectory() as folder:
        half.save(Path(folder, "state.npz"))
        loaded = oasis.OASiS.load(Path(folder, "state.npz"))
    found += [loaded.submit(job).to_dict() for job in jobs[len(jobs) // 2 :]]
    assert found == expected


def live(kind: str, instance: Instance) -> LiveScheduler:
    cluster, lookahead = instance.cluster, max(2, instance.horizon)
    if kind == "oasis":
        bounds = PriceBounds.from_jobs(instance.jobs, cluster, lookahead)
        return LiveScheduler.oasis(cluster, lookahead, bounds)
    few = RecourseParams(rounds=2)
    return LiveScheduler.recourse(cluster, lookahead, kind, params=few)  # type: ignore[arg-type]


def lived(scheduler: LiveScheduler, instance: Instance, folder: Path | None) -> list[Any]:
    """Answers of a life in which a machine is lost; with a journal it is reopened half way."""
    if folder is not None:
        scheduler.open_journal(folder)
    answers: list[Any] = []
    for job in instance.jobs_by_arrival():
        answers.append(scheduler.advance(job.arrival).to_dict())
        answers.append(scheduler.submit(job).to_dict())
        if len(answers) == 2:
            answers.append(scheduler.lose(instance.cluster.worker_ids[0]).to_dict())
        elif len(answers) == 5:
            answers.append(scheduler.restore(instance.cluster.worker_ids[0]).to_dict())
            if folder is not None:
                scheduler.close()
                scheduler = LiveScheduler.reopen(folder)
    answers.append(scheduler.advance(scheduler.now + 2 * instance.horizon).to_dict())
    scheduler.close()
    return answers


@pytest.mark.parametrize("kind", ["none", "start", "arrival", "oasis"])
@given(bare(st.one_of(all_instances(), crowded_instances())))
@fewer(4)
def test_live_schedulers_decide_the_same_and_reopen_their_journal(
    kind: str, instance: Instance
) -> None:
    with TemporaryDirectory() as folder:
        one = lived(live(kind, instance), instance, Path(folder, "journal"))
    assert one == lived(live(kind, with_unused(instance)), instance, None)


@given(bare(all_instances()))
def test_a_parameter_server_on_no_machine_is_no_schedule(instance: Instance) -> None:
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    for job_id, schedule in run.schedules.items():
        slot = schedule.start
        placed = oasis.Schedule(job_id, schedule.workers, [[slot, 0, 1]])
        with pytest.raises(oasis.VerificationError, match="server 0 outside the instance"):
            oasis.verify(instance, {job_id: placed})


def test_prices_of_no_machine_reach_another_process() -> None:
    instance = oasis.generate("testbed", jobs=3, ps_servers=0, worker_servers=2, seed=1)
    scheduler = oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    prices = scheduler.ledger.worker_prices, scheduler.ledger.ps_prices
    known: Any = {"instance": instance_to_dict(instance), "schedules": run.schedules}
    known |= {"bound": run.total_utility * (1 + 1e-9), "seconds": 5.0}
    params, said = ConfigurationParams(), list[Message]()
    task = ProcessTask("heuristics", Phase.WINDOWS, params, 0, prices, **known)
    child = Child(pickle.loads(pickle.dumps(task)), said.append)
    assert child.start.prices is not None
    assert child.start.prices.ps.shape == prices[1].shape
    child.run()
    assert said[-1] == ("status", "optimal")


@given(bare(all_instances()), of(True, False))
def test_a_job_that_needs_parameter_servers_is_refused_by_name(
    instance: Instance, gradients: bool
) -> None:
    last = len(instance.jobs) - 1
    needs = replace(
        instance.jobs[last],
        worker={BANDWIDTH: 1.5},
        ps={BANDWIDTH: 2.0},
        gradient_mb=10.0 * gradients,
    )
    found = "expected 0, as there is no server in ps_servers, got 1.5"
    with pytest.raises(oasis.InstanceError) as caught:
        replace(instance, jobs=(*instance.jobs[:last], needs))
    assert str(caught.value) == f"jobs[{last}].worker.{BANDWIDTH}: {found}"


@given(bare(all_instances()))
def test_a_scheduler_finds_no_room_for_parameter_servers_without_a_machine(
    instance: Instance,
) -> None:
    """Which machines there are may change in the life of a cluster: such a job has no schedule."""
    job = instance.jobs_by_arrival()[-1]
    needs = replace(job, worker={BANDWIDTH: 1.5}, ps={"cpu": 0.1, BANDWIDTH: 2.0})
    assert not oasis.OASiS.from_instance(instance).submit(needs).admitted
    for kind in (*COMMITMENTS, "oasis"):
        scheduler = live(kind, instance)
        scheduler.advance(job.arrival)
        assert scheduler.submit(needs).schedule is None
    roomy = Cluster(("cpu", BANDWIDTH), (Server("w", {"cpu": 9.0, BANDWIDTH: 9.0}),), (), 1.0)
    prices = PriceBounds.from_jobs([], roomy, 9, may_know_nothing=True)
    rich = replace(needs, arrival=0, utility=oasis.Constant(10.0))
    decision = oasis.OASiS(roomy, 9, prices).quote(rich)
    assert decision.rejection is None
    assert decision.reason is not None
    assert decision.reason.startswith("no room: 0 of ")
    assert decision.reason.endswith("of the ps servers")


def on_a_cluster(instance: Instance, name: str) -> tuple[Any, ...]:
    """What a policy decides on a cluster in memory, one machine of which is down for a while."""
    bounds = PriceBounds.from_instance(instance)
    make = cluster_policy(name, {}, lookahead=instance.horizon + 1, bounds=lambda _: bounds)
    cluster = FakeCluster(Driver(make(), site_for(instance, None)), specs_of(instance))
    cluster.down = {slot: {0} for slot in range(1, 3)}
    cluster.run(3 * instance.horizon)
    return cluster.completed, cluster.rejected, cluster.history


@pytest.mark.parametrize("name", POLICIES)
def test_a_cluster_needs_no_node_for_parameter_servers(name: str) -> None:
    sizes = {"jobs": 5, "worker_servers": 3, "horizon": 8}
    instance = oasis.generate("testbed", **sizes, ps_servers=0, seed=2)
    found = on_a_cluster(instance, name)
    assert found[0]
    assert found == on_a_cluster(with_unused(instance), name)
