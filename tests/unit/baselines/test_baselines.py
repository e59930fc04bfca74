"""The baselines on cases worked out by hand."""

import numpy as np
import pytest

import baselines
import oasis
from baselines.counts import FixedCounts
from baselines.dorm import Dorm
from baselines.fair_shares import DRF
from baselines.rrh import RRH, DelayCosts, worth_by_slot
from oasis import Cluster, Constant, Deadline, Instance, Piecewise, Server
from oasis.scheduling import EmptyCluster
from oasis.simulator import (
    PlainJob,
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
