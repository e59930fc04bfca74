"""The bound on the mean completion time against all that can be done, second by second."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.simulator import elastic_from_dict
from offline.elastic_bound import mean_completion_bound, shortest_first
from tests.builders import elastic_file
from tests.unit.offline.test_whatif_bound import least_sum


def made_of(jobs, gpus, count=1, memory=100):
    machine = {"id": "m", "count": count, "capacity": {"gpu": gpus, "gb": memory}}
    return elastic_from_dict(elastic_file(jobs, machine))


def job(name, arrival, work, **others):
    base = {"id": name, "arrival": arrival, "work": work, "workers": 1, "worker": {"gpu": 1}}
    return base | others


@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_shortest_first_is_the_least_that_there_is(rows):
    arrivals, work = [at for at, _ in rows], [amount for _, amount in rows]
    assert shortest_first(arrivals, work) == pytest.approx(
        least_sum([(*row, 1) for row in rows], 1)
    )


def elastic_least(arrivals, work, speeds, gpus):
    """The least sum on `gpus` GPUs, where n workers do speeds[n] in a second, tried out."""

    @cache
    def best(now, left):
        if not any(left):
            return 0.0
        if now > 14:
            return math.inf
        found = math.inf
        for given_ in _splits(gpus, len(left)):
            rest = tuple(
                max(0.0, each - (speeds[n] if arrivals[k] <= now else 0.0))
                for k, (each, n) in enumerate(zip(left, given_, strict=True))
            )
            ended = sum(now + 1 - arrivals[k] for k in range(len(left)) if left[k] and not rest[k])
            found = min(found, ended + best(now + 1, rest))
        return found

    return best(0, tuple(work))


def _splits(gpus, jobs):
    if not jobs:
        return [()]
    return [(n, *rest) for n in range(min(2, gpus) + 1) for rest in _splits(gpus - n, jobs - 1)]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([1.0, 2.0, 3.0])), max_size=3
    ).filter(len),
    second=st.sampled_from([1.0, 1.5, 2.0]),
    gpus=st.integers(1, 3),
)
def test_whatever_is_done_in_whole_seconds_takes_at_least_as_long(rows, second, gpus):
    speeds = [0.0, 1.0, second]
    arrivals, work = [at for at, _ in rows], [amount for _, amount in rows]
    jobs = [
        job(f"j{k}", float(at), amount, workers={"min": 1, "max": 2}, speedup=speeds[1:])
        for k, (at, amount) in enumerate(rows)
    ]
    bound = mean_completion_bound(made_of(jobs, gpus))
    assert bound <= elastic_least(arrivals, work, speeds, gpus) / len(rows) + 1e-9


def test_it_is_met_where_jobs_are_alone_and_where_they_stand_in_line():
    alone = [job("a", 0.0, 60.0), job("b", 1000.0, 40.0)]
    assert mean_completion_bound(made_of(alone, 1)) == pytest.approx(50.0)
    line = [job(f"j{k}", 0.0, 30.0) for k in range(4)]
    assert mean_completion_bound(made_of(line, 1)) == pytest.approx(75.0)


def test_the_scarcest_resource_counts_and_a_job_that_never_fits_takes_for_ever():
    hungry = [job(f"j{k}", 0.0, 30.0, worker={"gpu": 1, "gb": 100}) for k in range(4)]
    assert mean_completion_bound(made_of(hungry, 8)) == pytest.approx(75.0)
    assert mean_completion_bound(made_of([job("a", 0.0, 1.0, worker={"gpu": 9})], 8)) == math.inf
