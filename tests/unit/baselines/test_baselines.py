"""The baselines on cases worked out by hand."""

import re

import numpy as np
import pytest

import baselines
import oasis
from baselines.fair_shares import DRF
from baselines.registry import ALL, CONTROLLERS, POLICIES, QUEUES, make
from baselines.rrh import RRH, DelayCosts, worth_by_slot
from oasis import Cluster, Constant, Deadline, Instance, Piecewise, Server
from oasis.simulator import Workload
from tests import builders
from tests.builders import rows


def job(name="a", arrival=0, work=4, chunks=4, **changes):
    given = {"chunks": chunks, "minibatch_time": 1.0 / chunks, "utility": Constant(10.0)}
    return builders.job(name, arrival, work, **(given | changes))


WRONG = rows(__file__, "wrong_options.toml")["wrong"]


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
    run = oasis.simulate(jobs, RRH(threshold=5.0, discount=0.0, weight=0.0))
    assert [d.admitted for d in run.decisions] == [True, False, False]
    assert "needs more than 5" in run.decisions[1].reason


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


@pytest.mark.parametrize("name", baselines.POLICIES)
def test_what_never_fits_is_rejected_at_once(name):
    big = job("big", worker={"gpu": 3.0})
    run = oasis.simulate(instance(big, job("small")), baselines.make(name))
    assert [d.admitted for d in run.decisions] == [False, True]
    assert run.decisions[0].reason == "does not fit the empty cluster"
    assert run.decisions[1].completion is not None


def test_every_policy_is_known_by_its_name_and_in_one_list():
    lists = (POLICIES, QUEUES, CONTROLLERS)
    assert set(ALL) == {name for names in lists for name in names}
    assert len(ALL) == sum(map(len, lists))
    assert [make(name).name for name in ALL] == list(ALL)


@pytest.mark.parametrize("name", ALL)
def test_the_seed_goes_to_those_that_draw(name):
    parameters = make(name, 5).parameters
    assert parameters.get("seed", 5) == 5
    draws_nothing = {"drf", "dorm", *CONTROLLERS} - {"kubernetes-default"}
    assert ("seed" in parameters) == (name not in draws_nothing)


def test_an_unknown_name_or_option_is_refused():
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        make("best")
    assert str(caught.value) == f"policy: expected one of {', '.join(ALL)}, got 'best'"
    with pytest.raises(ValueError, match="placement: expected one of "):
        make("fifo", placement="anywhere")
    with pytest.raises(TypeError, match="thresholds"):
        make("fifo", thresholds=(1.0,))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["says"])
def test_a_wrong_option_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=re.escape(wrong["says"])):
        ALL[wrong["policy"]](**wrong["options"])
