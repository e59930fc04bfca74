"""The baselines on cases worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

import baselines
import oasis
from baselines.counts import FixedCounts
from baselines.dorm import Dorm
from baselines.fair_shares import DRF
from baselines.preemptive import LAS
from baselines.rrh import RRH, DelayCosts, worth_by_slot
from oasis import Cluster, Constant, Deadline, Instance, Piecewise, Server
from oasis.scheduling import EmptyCluster
from oasis.simulator import (
    BestFit,
    PlainJob,
    Room,
    RoundRobin,
    Workload,
    replay,
    rigid_workload,
)
from tests import builders


def plain(*rows):
    return [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)]


def job(name="a", arrival=0, work=4, chunks=4, **changes):
    given = {"chunks": chunks, "minibatch_time": 1.0 / chunks, "utility": Constant(10.0)}
    return builders.job(name, arrival, work, **(given | changes))


def instance(*jobs, horizon=10, gpus=2.0, servers=2):
    cluster = Cluster(
        ("gpu", "cpu", "bandwidth_gbps"),
        (Server("w", {"gpu": gpus, "cpu": 9, "bandwidth_gbps": 9}, servers),),
        (Server("p", {"cpu": 4, "bandwidth_gbps": 20}),),
        1.0,
    )
    return Instance(horizon, cluster, jobs)


def test_las_finishes_nothing_while_a_slot_exceeds_its_threshold_and_jobs_keep_coming():
    """Four GPUs for a slot of an hour; a job each slot, two slots of work each."""
    hours = Cluster(("gpu",), (Server("w", {"gpu": 4.0}),), (Server("p", {"gpu": 0.0}),), 3600.0)
    jobs = tuple(
        job(f"j{k}", k, work=2, chunks=4, minibatch_time=1.0, worker={"gpu": 1.0}) for k in range(6)
    )
    busy = Instance(6, hours, jobs)
    finished = {}
    for hours_before_falling in (1.0, 9.0):
        policy = LAS(seed=4, thresholds=(hours_before_falling,))
        finished[hours_before_falling] = len(oasis.simulate(busy, policy).outcome.completions)
    assert finished == {1.0: 0, 9.0: 3}


def test_drf_equalises_dominant_shares():
    """The example of Ghodsi et al., section 4.1: 9 CPUs and 18 GB; 3 tasks of a and 2 of b."""
    first = job("a", chunks=9, work=99, worker={"cpu": 1.0, "gpu": 4.0}, minibatch_time=1.0)
    second = job("b", chunks=9, work=99, worker={"cpu": 3.0, "gpu": 1.0}, minibatch_time=1.0)
    run = oasis.simulate(instance(first, second, gpus=18.0, servers=1, horizon=1), DRF())
    gpu, cpu, *_ = run.outcome.timeline[0][1]
    assert (cpu, gpu) == (3 * 1 + 2 * 3, 3 * 4 + 2 * 1)


def test_rrh_rejects_what_gains_no_more_than_the_threshold():
    jobs = instance(job("a"), job("b", utility=Constant(1.0)), job("c", utility=Constant(0.0)))
    run = oasis.simulate(jobs, RRH(threshold=5.0, discount=0.0))
    assert [d.admitted for d in run.decisions] == [True, False, False]
    assert "needs more than 5" in run.decisions[1].reason


def test_rrh_rejects_a_job_that_cannot_earn_anything():
    late = job(work=8, utility=Deadline(10.0, 0.0))
    assert not oasis.simulate(instance(late), RRH()).decisions[0].admitted


def test_rrh_pauses_a_job_for_a_more_rewarding_one():
    """Four GPUs in all; either job takes them whole."""
    long = job("long", work=16, chunks=4, utility=Constant(10.0), worker={"gpu": 2.0})
    quick = job("quick", 1, work=2, chunks=2, utility=Deadline(50.0, 1.0), worker={"gpu": 2.0})
    run = oasis.simulate(instance(long, quick, horizon=30), RRH(seed=2))
    assert run.decisions[1].completion <= 2


def test_dorm_repeats_though_the_node_limit_stops_it_and_says_so():
    busy = oasis.generate("calibrated", jobs=25, worker_servers=8, ps_servers=8, horizon=20, seed=1)
    runs = [oasis.simulate(busy, Dorm(node_limit=1, places=300)) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].outcome == runs[1].outcome
    assert runs[0].report["node_limit"] > 0
    assert runs[0].to_dict()["report"] == runs[0].report
    assert runs[0].parameters["node_limit"] == 1


def test_dorm_refuses_limits_that_are_none():
    with pytest.raises(ValueError, match="theta_1 and theta_2"):
        Dorm(theta_1=1.5)
    with pytest.raises(ValueError, match="node_limit and places of at least 1, got 0, 600"):
        Dorm(node_limit=0)
    assert Dorm().report["milps"] == 0


def test_costs_of_waiting_are_what_the_others_lose():
    jobs = Workload.from_instance(
        instance(job("a", work=4, chunks=1), job("b", work=2, utility=Deadline(8.0, 2.0)))
    ).jobs
    tables = [worth_by_slot(each, 10) for each in jobs]
    assert tables[1].tolist() == [8.0] * 3 + [0.0] * 8
    delays = DelayCosts(0.0, np.array([4.0, 2.0]), tables, [0.5, 1.0], 0.25)
    assert delays.present.tolist() == [5.0, 8.0 / 1.5]
    assert delays.cost(0) == 4.0
    assert delays.cost(1) == 0.0


def test_a_job_of_absurd_length_ends_after_the_horizon() -> None:
    jobs = Workload.from_instance(instance(job("a", chunks=1), job("b", work=2))).jobs
    tables = [worth_by_slot(each, 10) for each in jobs]
    delays = DelayCosts(0.0, np.array([1e30, 2.0]), tables, [0.5, 1.0], 0.25)
    assert delays.present[0] == 0.0
    assert delays.cost(0) == 0.5 * tables[1][1]  # all of b, for as long, on half the cluster


def test_the_cost_of_waiting_is_decay_times_time_where_utilities_are_linear_down_to_a_bound():
    """The opportunity cost of Irwin et al.: decay_j min(RPT_i, time to the bound), summed."""
    decays, spans, left = [2.0, 0.5, 3.0], [10, 30, 4], np.array([4.0, 2.0, 1.0])
    tables = [
        worth_by_slot(each, 40)
        for each in Workload.from_instance(
            instance(
                *(
                    job(f"j{k}", utility=Piecewise((0, span), (decay * span + 1.0, 1.0)))
                    for k, (decay, span) in enumerate(zip(decays, spans, strict=True))
                ),
                horizon=40,
            )
        ).jobs
    ]
    delays = DelayCosts(0.0, left, tables, [0.5, 1.0, 0.25], 0.1)
    for i in range(3):
        expires = [span - (left[j] - 1) for j, span in enumerate(spans)]  # delay 0 is one slot
        expected = sum(decays[j] * min(left[i], expires[j]) for j in range(3) if j != i)
        assert delays.cost(i) == pytest.approx(expected * [0.5, 1.0, 0.25][i])
    costs = np.array([delays.cost(i) for i in range(3)])
    expected = (0.3 * delays.present - 0.7 * costs) / left
    assert delays.rewards(0.3) == pytest.approx(expected)


def test_in_the_candidate_schedule_jobs_wait_for_those_before_and_cost_those_behind():
    jobs = Workload.from_instance(
        instance(*(job(name, utility=Deadline(8.0, 5.0)) for name in "abc"), horizon=20)
    ).jobs
    tables = [worth_by_slot(each, 20) for each in jobs]
    delays = DelayCosts(0.0, np.array([4.0, 2.0, 3.0]), tables, [0.6, 0.6, 0.4], 0.0)
    assert delays.candidate(1, [0, 1, 2]) == (8.0, 0.0)  # from 4 to 6, and c ends by 6 with it
    assert delays.candidate(2, [0, 2, 1]) == (8.0, 0.0)  # beside a, at once; b ends by 5
    assert delays.candidate(0, [0, 1, 2]) == (8.0, pytest.approx(0.6 * 8.0))  # c would end at 7
    assert delays.candidate(0, [1, 2, 0]) == (8.0, 0.0)
    late = DelayCosts(2.0, np.array([4.0, 2.0, 3.0]), tables, [0.6, 0.6, 0.4], 0.0)
    assert late.candidate(1, [0, 1, 2]) == (0.0, 0.6 * 8.0)  # from 6 to 8, too late; c to 7


def test_rrh_rejects_a_job_that_would_have_to_wait_too_long():
    """The first is worth more a slot and takes every GPU for four slots."""
    first = job("first", work=16, chunks=4, minibatch_time=0.25, utility=Constant(900.0))
    late = job("late", work=4, chunks=4, minibatch_time=0.25, utility=Deadline(10.0, 2.0))
    seed = 4  # draws all four workers for both
    alone = oasis.simulate(instance(late), RRH(seed))
    assert [d.admitted for d in alone.decisions] == [True]
    both = oasis.simulate(instance(first, late), RRH(seed))
    assert [d.admitted for d in both.decisions] == [True, False]


def test_fixed_counts_are_the_same_for_every_policy_with_the_seed():
    work = Workload.from_instance(oasis.generate("testbed", seed=3))

    def counts(seed):
        drawn = FixedCounts(seed)
        drawn.reset(EmptyCluster(work.site))
        return [drawn.draw(each) for each in work.jobs]

    assert counts(5) == counts(5) != counts(6)
    for each, found in zip(work.jobs, counts(5), strict=True):
        workers, ps = found
        assert 1 <= workers <= each.max_workers
        assert each.ps_needed(workers) <= ps <= workers


@pytest.mark.parametrize("name", baselines.POLICIES)
def test_what_never_fits_is_rejected_at_once(name):
    big = job("big", worker={"gpu": 3.0})
    run = oasis.simulate(instance(big, job("small")), baselines.make(name))
    assert [d.admitted for d in run.decisions] == [False, True]
    assert run.decisions[0].reason == "does not fit the empty cluster"
    assert run.decisions[1].completion is not None


@pytest.mark.parametrize("name", baselines.POLICIES)
def test_every_policy_runs_plain_jobs_rigidly(name):
    rows = [(0, 10, 3), (1, 5, 2), (2, 1, 1), (2, 7, 4)]
    work = rigid_workload(plain(*rows), 2, 4, "whole")
    outcome = replay(work, baselines.make(name))
    assert [times.running for times in outcome.jobs] == [10.0, 5.0, 1.0, 7.0]


def test_round_robin_goes_on_where_it_stopped_and_best_fit_fills():
    work = Workload.from_instance(instance(job("a"), gpus=2.0, servers=3))
    (each,) = work.jobs
    free = [machine.capacity for machine in work.site.machines]
    room, turn = Room(work.site, free.copy()), RoundRobin()
    assert turn.place(room, each, 2, 0).workers == ((0, 1), (1, 1))
    assert turn.place(room, each, 2, 0).workers == ((0, 1), (2, 1))
    assert BestFit().place(Room(work.site, free.copy()), each, 3, 0).workers == ((0, 2), (1, 1))
    before = room.free.copy()
    assert turn.place(room, each, 3, 0) is None
    assert room.free == before


def test_a_rigid_job_draws_nothing():
    jobs = plain((0, 1, 1))
    work = rigid_workload(jobs, 1, 4)
    drawn = FixedCounts(0)
    drawn.reset(EmptyCluster(work.site))
    assert drawn.draw(work.jobs[0]) == (1, 0)
    assert drawn.draw(replace(work.jobs[0], min_workers=5, max_workers=5)) is None
