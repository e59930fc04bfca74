"""Parts of the bound on elastic jobs; its value is compared with the LP written out elsewhere."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from baselines import FIFO
from experiments.evaluation.elastic_jobs import utility_of
from oasis.simulator import elastic_from_dict, replay
from offline.elastic_bound import GAP, _Configurations, best_rates, elastic_bound, slots_needed
from tests.builders import elastic, elastic_file


def made_of(*jobs, gpus=2):
    machine = {"id": "m", "capacity": {"gpu": gpus, "fpga": 0}, "link_gbps": 1.0}
    return elastic_from_dict(elastic_file(jobs, machine))


def job(name, **others):
    worth = {"kind": "deadline", "value": 4.0, "deadline": 100.0}
    base = {"id": name, "arrival": 0.0, "work": 100.0, "workers": 1, "worker": {"gpu": 1}}
    return base | {"utility": worth} | others


def test_who_has_room_is_worth_everything_and_who_has_not_shares():
    assert elastic_bound(made_of(job("a"), job("b")), 50.0).value == 8.0
    four = made_of(*(job(name) for name in "abcd"))
    assert 8.0 <= elastic_bound(four, 50.0).value < elastic_bound(four, 100.0).value <= 16.0


def test_who_may_switch_between_equal_forms_is_worth_as_much_as_who_has_one():
    worth = {"kind": "sigmoid", "decay": 0.05, "target": 120.0}
    ways = {"workers": {"min": 1, "max": 2}, "speedup": [1.0, 1.5]}
    one = made_of(*(job(f"j{k}", utility=worth | {"priority": 5.0 + k}, **ways) for k in range(6)))
    forms = (replace(each, forms=(each, each), may_switch=True) for each in one.jobs)
    both = elastic_bound(replace(one, jobs=tuple(forms)), 50.0).value
    assert both == pytest.approx(elastic_bound(one, 50.0).value, rel=2 * GAP)


def test_shorter_slots_are_never_worse_where_they_divide_the_longer_ones():
    made = made_of(*(job(f"j{k}", arrival=20.0 * k) for k in range(8)))
    values = [
        elastic_bound(made, length, slots=int(1600 / length)).value for length in (80.0, 20.0)
    ]
    assert values[1] <= values[0] * (1 + 1e-3)


def test_slots_reach_past_the_last_arrival():
    made = elastic(6)
    last = made.jobs[-1].arrival
    assert slots_needed(made, 60.0) * 60.0 > last


@pytest.mark.parametrize(
    ("arrival", "others", "deadline"),
    [
        # the slopes of the envelope add up to a little more than 3.6, the speed of three workers
        (0.0, {"work": 36.0, "workers": 3, "speedup": [1.0, 1.1, 3.6]}, 10.0),
        (0.0, {"work": 0.5}, 0.5),
        # (743.1 + 300) - 743.1 is a little less than 300
        (743.1, {"work": 300.0}, (743.1 + 300.0) - 743.1),
    ],
)
def test_what_is_earned_at_the_last_moment_is_below_the_bound(arrival, others, deadline):
    worth = {"kind": "deadline", "value": 5.0, "deadline": deadline}
    made = made_of(job("a", arrival=arrival, utility=worth, **others), gpus=3)
    earned = utility_of(made, replay(made, FIFO()))
    assert earned == elastic_bound(made, 60.0).value == 5.0


def test_utilities_may_be_as_small_as_one_likes():
    worth = {"kind": "deadline", "value": 1e-10, "deadline": 60.0}
    jobs = [job(name, work=60.0, worker={"gpu": 2}, utility=worth) for name in "abcde"]
    # the LP lets one complete in the first minute, and one at the very beginning of the second
    assert elastic_bound(made_of(*jobs), 60.0).value == pytest.approx(2e-10, rel=1e-3)
    nothing = [entry | {"utility": {"kind": "constant", "value": 0.0}} for entry in jobs]
    assert elastic_bound(made_of(*nothing), 60.0).value == 0.0


def configurations(slots):
    linear = {"kind": "piecewise", "delays": [0.0, 4000.0], "values": [9.0, 0.0]}
    speeds = {"workers": {"min": 1, "max": 4}, "speedup": [1.0, 1.7, 2.2, 2.4]}
    made = made_of(job("a", arrival=15.0, work=300.0, utility=linear, **speeds), gpus=4)
    (only,) = made.jobs
    return _Configurations(only, best_rates(made, only), 4, 10.0, slots, np.ones(1))


def test_memory_grows_with_the_slots_and_not_with_their_square():
    own = configurations(4000)
    tracemalloc.start()
    own.best(np.ones((4000, 1)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
