"""The bound on elastic jobs against its LP written out, that on the mean against all that there is.

In the LP a job completes in a slot c or after the last; x[i, c, t, n] are the seconds of slot t in
which it works with n workers on its way to c; who may switch has such seconds of all forms on one
way to c. No prices, no envelopes, no columns.
"""

import math
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.simulator import elastic_from_dict
from offline.elastic_bound import (
    GAP,
    best_rates,
    elastic_bound,
    envelope,
    mean_completion_bound,
    shortest_first,
)
from tests.builders import elastic_file
from tests.strategies import fewer
from tests.unit.offline.test_whatif_bound import least_sum

scipy_optimize = pytest.importorskip("scipy.optimize", reason="needs the sweep extra")

LENGTH = 60.0


@st.composite
def documents(draw):
    """Up to three jobs on up to two machines."""
    jobs = []
    for k in range(draw(st.integers(1, 3))):
        least = draw(st.integers(1, 2))
        most = least + draw(st.integers(0, 2))
        speeds = draw(st.sampled_from([[], [1.0, 1.5, 2.4, 2.5], [1.0, 0.5, 0.5, 4.0]]))
        jobs.append(
            {
                "id": f"j{k}",
                "arrival": draw(st.sampled_from([0.0, 30.0, 90.0])),
                "work": draw(st.sampled_from([30.0, 100.0, 240.0])),
                "workers": {"min": least, "max": most},
                "worker": {"gpu": draw(st.integers(1, 2)), "gb": draw(st.integers(0, 3))},
                "speedup": speeds,
                "utility": draw(
                    st.sampled_from(
                        [
                            {"kind": "deadline", "value": 3.0, "deadline": 100.0},
                            {"kind": "sigmoid", "priority": 5.0, "decay": 0.05, "target": 120.0},
                            {"kind": "constant", "value": 1.0},
                        ]
                    )
                ),
            }
        )
    machine = {"id": "m", "count": draw(st.integers(1, 2)), "capacity": {"gpu": 2, "gb": 4}}
    return elastic_file(jobs, machine)


def gangs(made, forms, totals):
    """Demand of each gang that fits, and the share of the work that it does in a second."""
    found = []
    for form in forms:
        for n, rate in enumerate(best_rates(made, form)):
            load = {r: n * a for r, a in dict(form.worker).items()}
            if n and all(a <= totals[r] for r, a in load.items()):
                found.append((load, rate / form.work))
    return found


def written_out(made, slots):
    """Optimum of the LP."""
    machines = made.site.machines
    totals = [sum(machine.capacity[r] for machine in machines) for r in range(2)]
    gains, rows, limits = [], {}, []

    def row(key, limit):
        if key not in rows:
            rows[key] = (len(rows), {})
            limits.append(limit)
        return rows[key][1]

    def variable(gain):
        gains.append(gain)
        return len(gains) - 1

    ways = []
    for i, job in enumerate(made.jobs):
        each = [[form] for form in job.in_forms]
        ways += [(i, f, forms) for f, forms in enumerate([job.forms] if job.may_switch else each)]
    for i, f, forms in ways:
        job, able = forms[0], gangs(made, forms, totals)
        top = max((pace for _, pace in able), default=0.0)
        if not top:
            continue
        fastest = 1.0 / top
        never = variable(float(job.utility(max(slots * LENGTH - job.arrival, fastest))))
        row(("job", i), 1.0)[never] = 1.0
        for c in range(slots):
            y = variable(float(job.utility(max(c * LENGTH - job.arrival, fastest))))
            row(("job", i), 1.0)[y] = 1.0
            row(("work", i, f, c), 0.0)[y] = 1.0
            for t in range(c + 1):
                seconds = min(LENGTH, max(0.0, (t + 1) * LENGTH - job.arrival))
                row(("open", i, f, c, t), 0.0)[y] = -seconds
                for load, pace in able:
                    x = variable(0.0)
                    row(("open", i, f, c, t), 0.0)[x] = 1.0
                    row(("work", i, f, c), 0.0)[x] = -pace
                    for r, amount in load.items():
                        row(("room", t, r), totals[r] * LENGTH)[x] = float(amount)
    if not gains:
        return 0.0
    table = [[0.0] * len(gains) for _ in rows]
    for k, entries in rows.values():
        for column, value in entries.items():
            table[k][column] = value
    found = scipy_optimize.linprog([-gain for gain in gains], A_ub=table, b_ub=limits)
    assert found.status == 0
    return -found.fun


@given(data=documents())
def test_it_is_the_optimum_of_the_lp(data):
    made = elastic_from_dict(data)
    slots = 5
    bound = elastic_bound(made, LENGTH, slots=slots)
    exact = written_out(made, slots)
    assert bound.value >= exact - 1e-6 * (1 + exact)
    assert bound.value <= exact * (1 + 2 * GAP) + 1e-6
    assert bound.reached <= exact * (1 + 1e-6) + 1e-6


@given(data=documents(), rest=st.data())
@fewer(2)
def test_it_is_the_optimum_over_the_forms_of_jobs(data, rest):
    made = elastic_from_dict(data)
    jobs = []
    for job in made.jobs:
        work = rest.draw(st.sampled_from([0.25, 0.5, 1.0, 2.0])) * job.work
        needs = rest.draw(st.sampled_from([((0, 1),), ((0, 2),), ((1, 2),)]))
        other = replace(job, work=work, worker=needs)
        jobs.append(replace(job, forms=(job, other), may_switch=rest.draw(st.booleans())))
    both = replace(made, jobs=tuple(jobs))
    bound, exact = elastic_bound(both, LENGTH, slots=5), written_out(both, 5)
    assert bound.value >= exact - 1e-6 * (1 + exact)
    assert bound.value <= exact * (1 + 2 * GAP) + 1e-6
    kept = tuple(replace(job, may_switch=False) for job in jobs)
    one = replace(made, jobs=kept)
    assert exact >= written_out(one, 5) - 1e-6  # who may switch need not
    assert mean_completion_bound(both) == mean_completion_bound(one)
    alone = [tuple(job.forms[f] for job in jobs) for f in (0, 1)]
    others = [replace(made, jobs=own) for own in alone]
    assert exact >= max(written_out(other, 5) for other in others) - 1e-6
    mean = mean_completion_bound(both)
    assert mean <= min(mean_completion_bound(other) for other in others) * (1 + 1e-9)


def test_who_may_switch_goes_where_there_is_room_in_each_slot():
    """Two slots; x is on the GPU in the second one only, and y can end there on memory in time."""
    worth = [
        {"kind": "deadline", "value": v, "deadline": d} for v, d in ((9.0, 59.5), (4.0, 119.5))
    ]
    base = {"workers": 1, "worker": {"gpu": 1}}
    x = base | {"id": "x", "arrival": 60.0, "work": 59.0, "utility": worth[0]}
    z = x | {"id": "z", "arrival": 0.0, "worker": {"gb": 1}}
    y = base | {"id": "y", "arrival": 0.0, "work": 119.0, "utility": worth[1]}
    y |= {"forms": [{}, {"worker": {"gb": 1}}]}
    found = []
    for extra in ({}, {"switch": "restart"}):
        machine = {"id": "m", "capacity": {"gpu": 1, "gb": 1}}
        made = elastic_from_dict(elastic_file([x, z, y | extra], machine))
        found.append((elastic_bound(made, LENGTH).value, written_out(made, 6)))
    (kept, exact_kept), (switched, exact) = found
    assert exact == pytest.approx(22.0)
    assert switched == pytest.approx(22.0, rel=2 * GAP)
    assert kept == pytest.approx(exact_kept, rel=2 * GAP)
    assert kept < 21.0


def test_a_job_that_never_fits_is_worth_nothing():
    job = {"id": "a", "arrival": 0.0, "work": 9.0, "workers": 1, "worker": {"gpu": 3}}
    job["utility"] = {"kind": "constant", "value": 7.0}
    data = elastic_file([job], {"id": "m", "capacity": {"gpu": 2}})
    assert elastic_bound(elastic_from_dict(data), 60.0).value == 0.0
    switching = {"forms": [{"work": 9.0}, {"work": 8.0}], "switch": "restart"}
    one = data | {"jobs": [job | switching]}
    assert elastic_bound(elastic_from_dict(one), 60.0).value == 0.0
    data["machines"][0]["capacity"]["gpu"] = 3
    assert elastic_bound(elastic_from_dict(data), 60.0).value == pytest.approx(7.0)


def test_what_it_refuses():
    job = {"id": "a", "arrival": 0.0, "work": 9.0, "workers": 1, "worker": {"gpu": 1}}
    made = elastic_from_dict(elastic_file([job], {"id": "m", "capacity": {"gpu": 2}}))
    with pytest.raises(ValueError, match="utility: expected one for each job, got none for 'a'"):
        elastic_bound(made, 60.0)
    with pytest.raises(ValueError, match="slot_seconds"):
        elastic_bound(made, 0.0)


def test_envelopes_leave_out_counts_that_are_no_good():
    widths, slopes = envelope([0.0, 0.0, 0.0, 3.0, 2.0])
    assert widths.tolist() == [3.0]
    assert slopes.tolist() == [1.0]
    assert envelope([0.0, 0.0])[0].tolist() == []
    # From the second corner on, too, the steepest step and not the highest count is the next.
    assert envelope([0.0, 2.0, 3.0, 3.5])[1].tolist() == [2.0, 1.0, 0.5]


# -- the mean completion time ----------------------------------------------------------------------


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
