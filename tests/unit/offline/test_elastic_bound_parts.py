"""Parts of the bounds on elastic jobs; oracles compare their values with all that can be done."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from baselines import FIFO
from experiments.evaluation.elastic_jobs import utility_of
from experiments.figures.controllers import at_load, drawn
from oasis.simulator import elastic_from_dict, replay
from offline.elastic_bound import (
    _Configurations,
    best_rates,
    elastic_bound,
    mean_completion_bound,
)
from tests.builders import elastic, elastic_file


def made_of(*jobs, gpus=2):
    machine = {"id": "m", "capacity": {"gpu": gpus, "fpga": 0}, "link_gbps": 1.0}
    return elastic_from_dict(elastic_file(jobs, machine))


def job(name, **others):
    worth = {"kind": "deadline", "value": 4.0, "deadline": 100.0}
    base = {"id": name, "arrival": 0.0, "work": 100.0, "workers": 1, "worker": {"gpu": 1}}
    return base | {"utility": worth} | others


def test_shorter_slots_are_never_worse_where_they_divide_the_longer_ones():
    made = made_of(*(job(f"j{k}", arrival=20.0 * k) for k in range(8)))
    values = [
        elastic_bound(made, length, slots=int(1600 / length)).value for length in (80.0, 20.0)
    ]
    assert values[1] <= values[0] * (1 + 1e-3)


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


def test_memory_grows_with_the_slots_and_not_with_their_square():
    linear = {"kind": "piecewise", "delays": [0.0, 4000.0], "values": [9.0, 0.0]}
    speeds = {"workers": {"min": 1, "max": 4}, "speedup": [1.0, 1.7, 2.2, 2.4]}
    made = made_of(job("a", arrival=15.0, work=300.0, utility=linear, **speeds), gpus=4)
    rates = best_rates(made, made.jobs[0])
    own = _Configurations(made.jobs[0], rates, 4, 10.0, 4000, np.ones(1))
    tracemalloc.start()
    own.best(np.ones((4000, 1)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_the_mean_bound_grows_with_the_load_and_is_that_of_lonely_jobs_where_there_is_none():
    bounds = [mean_completion_bound(at_load(drawn(0), load, 0)) for load in (0.01, 1.0, 20.0)]
    assert bounds[0] == pytest.approx(bounds[1])
    assert bounds[2] > bounds[1]


def test_rounding_of_late_times_is_allowed_for_and_next_to_no_work_may_end_as_it_comes():
    made = elastic(1)
    assert mean_completion_bound(made) <= replay(made, FIFO()).mean_completion
    late = replace(made.jobs[0], arrival=1e6, work=1e-9)
    assert mean_completion_bound(replace(made, jobs=(late,))) == 0.0
