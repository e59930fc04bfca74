"""Jobs without parameter servers, on clusters without machines for them: everything works.

A machine for parameter servers that no job uses must change nothing: the tests compare an instance
without any with the same one that has such a machine.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, LiveScheduler, PriceBounds, Server, make_policy
from oasis.testing import crowded_instances
from tests.builders import policies
from tests.strategies import BANDWIDTH, all_instances, bare, fewer, without_servers

COMMITMENTS = ("none", "start", "arrival")


def with_unused(instance):
    """The same with machines for parameter servers, which no job needs."""
    # no larger than what is there: recourse rounds demands by the largest machine
    capacity = instance.cluster.worker_servers[0].capacity
    unused = Server("unused", capacity, count=2)
    return replace(instance, cluster=replace(instance.cluster, ps_servers=(unused,)))


def assert_same(instance, name, **options):
    """The same decisions and schedules with a machine that no job uses; feasible ones."""
    runs = [
        oasis.simulate(i, make_policy(name, i, **options))
        for i in (instance, with_unused(instance))
    ]
    one, other = runs
    assert [d.to_dict() for d in one.decisions] == [d.to_dict() for d in other.decisions]
    assert one.schedules == other.schedules
    assert one.total_utility == other.total_utility
    assert oasis.verify(instance, one) == one.total_utility


RECOURSE = [("recourse", {"commitment": name}) for name in COMMITMENTS]


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in policies()), *RECOURSE])
@given(bare(st.one_of(all_instances(), crowded_instances())))
@fewer(8)
def test_policies_decide_the_same_without_machines_that_no_job_uses(name, options, instance):
    assert_same(instance, name, **options)


@given(bare(all_instances()))
def test_a_job_that_needs_no_parameter_server_need_not_say_what_one_would_demand(
    instance,
):
    silent = without_servers(instance)
    runs = [oasis.simulate(i, oasis.OASiS.from_instance(i)) for i in (instance, silent)]
    assert runs[0].schedules == runs[1].schedules
    assert runs[0].bounds.to_dict() == runs[1].bounds.to_dict()


@fewer(3)
@given(st.one_of(all_instances(), crowded_instances()))
def test_jobs_of_both_kinds_share_a_cluster(instance):
    """Jobs without parameter servers may leave their demand out also where others have some."""
    jobs = tuple(job if job.needs_ps else replace(job, ps={}) for job in instance.jobs)
    mixed = replace(instance, jobs=jobs)
    for name in ("oasis", "recourse", "fifo", "drf"):
        runs = [oasis.simulate(i, make_policy(name, i)) for i in (instance, mixed)]
        assert runs[0].schedules == runs[1].schedules


@fewer(3)
@given(bare(st.one_of(all_instances(), crowded_instances())))
def test_bounds_are_the_same_with_machines_that_no_job_uses(instance):
    other, found = with_unused(instance), []
    for each in (instance, other):
        scheduler = oasis.OASiS.from_instance(each)
        run, ledger = oasis.simulate(each, scheduler), scheduler.ledger
        dual = oasis.dual_bound(each, ledger.worker_prices, np.zeros_like(ledger.ps_prices))
        found.append((dual, run.bounds.to_dict(), oasis.certify(each, run).upper_bound))
    assert found[0] == found[1]
    learned = oasis.learn_prices([instance], time_limit=None, work_limit=0.1)
    assert learned.ps.shape == learned.worker.shape
    assert not learned.ps.any()


def live(kind, instance):
    cluster, lookahead = instance.cluster, max(2, instance.horizon)
    if kind == "oasis":
        bounds = PriceBounds.from_jobs(instance.jobs, cluster, lookahead)
        return LiveScheduler.oasis(cluster, lookahead, bounds)
    return LiveScheduler(oasis.Recourse.rolling(lookahead, kind, rounds=2), cluster)


def lived(scheduler, instance, folder):
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
def test_live_schedulers_decide_the_same_and_reopen_their_journal(kind, instance):
    with TemporaryDirectory() as folder:
        one = lived(live(kind, instance), instance, Path(folder, "journal"))
    assert one == lived(live(kind, with_unused(instance)), instance, None)


@given(bare(all_instances()))
def test_a_scheduler_finds_no_room_for_parameter_servers_without_a_machine(
    instance,
):
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
