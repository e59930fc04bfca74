"""Parts of the bound on elastic jobs; its value is compared with the LP written out elsewhere."""

from __future__ import annotations

from oasis.simulator import elastic_from_dict, generate_elastic
from offline.elastic_bound import best_rates, elastic_bound, slots_needed


def made_of(*jobs, gpus=2):
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["gpu"],
            "machines": [{"id": "m", "capacity": {"gpu": gpus}, "link_gbps": 1.0}],
            "jobs": list(jobs),
        }
    )


def job(name, **others):
    worth = {"kind": "deadline", "value": 4.0, "deadline": 100.0}
    base = {"id": name, "arrival": 0.0, "work": 100.0, "workers": 1, "worker": {"gpu": 1}}
    return base | {"utility": worth} | others


def test_speeds_are_those_of_a_job_alone_on_one_machine():
    made = made_of(job("a", workers={"min": 2, "max": 3}, speedup=[1.0, 1.5, 1.8]))
    assert best_rates(made, made.workload.jobs[0]) == [0.0, 0.0, 1.5, 1.8]
    linear = made_of(job("a", workers={"min": 1, "max": 3}))
    assert best_rates(linear, linear.workload.jobs[0]) == [0.0, 1.0, 2.0, 3.0]


def test_who_has_room_is_worth_everything_and_who_has_not_shares():
    assert elastic_bound(made_of(job("a"), job("b")), 50.0).value == 8.0
    four = made_of(*(job(name) for name in "abcd"))
    assert 8.0 <= elastic_bound(four, 50.0).value < elastic_bound(four, 100.0).value <= 16.0


def test_shorter_slots_are_never_worse_where_they_divide_the_longer_ones():
    made = made_of(*(job(f"j{k}", arrival=20.0 * k) for k in range(8)))
    values = [
        elastic_bound(made, length, slots=int(1600 / length)).value for length in (80.0, 20.0)
    ]
    assert values[1] <= values[0] * (1 + 1e-3)


def test_slots_reach_past_the_last_arrival():
    made = generate_elastic(jobs=6, seed=2)
    last = made.workload.jobs[-1].arrival
    assert slots_needed(made, 60.0) * 60.0 > last
