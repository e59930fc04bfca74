"""Bounds on elastic and rigid jobs, and what past days teach; every short day is tried."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from functools import cache
from itertools import accumulate, combinations, product

import numpy as np
import pytest

import oasis
from baselines import EASY, FIFO, SJF, SRSF, SRTF
from experiments.evaluation.elastic_jobs import utility_of
from experiments.figures.controllers import at_load, drawn
from oasis import Cluster, Instance, Job, PriceBounds, Server
from oasis.model.errors import InputError
from oasis.model.utility import Constant, Deadline, Sigmoid, UtilityColumns
from oasis.simulator import PlainJob, elastic_from_dict, replay, rigid_workload
from oasis.solvers import Status
from offline import configuration_bound
from offline.elastic_bound import (
    GAP,
    ROUNDING,
    _Configurations,
    best_rates,
    elastic_bound,
    mean_completion_bound,
)
from offline.learning import learn_prices
from offline.rigid_bound import (
    MULTIPLES,
    _dual_value,
    _least_work_first,
    _prices,
    busy_periods,
    rigid_mean_bound,
)
from offline.rigid_utility import STEPS, _Period, rigid_utility_bound
from tests import builders
from tests.builders import elastic, elastic_file


def made_of(*jobs, gpus=2):
    machine = {"id": "m", "capacity": {"gpu": gpus, "fpga": 0}, "link_gbps": 1.0}
    return elastic_from_dict(elastic_file(jobs, machine))


def elastic_job(name, **others):
    worth = {"kind": "deadline", "value": 4.0, "deadline": 100.0}
    base = {"id": name, "arrival": 0.0, "work": 100.0, "workers": 1, "worker": {"gpu": 1}}
    return base | {"utility": worth} | others


def test_who_may_switch_between_equal_forms_is_worth_as_much_as_who_has_one():
    worth = {"kind": "sigmoid", "decay": 0.05, "target": 120.0}
    ways = {"workers": {"min": 1, "max": 2}, "speedup": [1.0, 1.5]}
    jobs = (elastic_job(f"j{k}", utility=worth | {"priority": 5.0 + k}, **ways) for k in range(6))
    one = made_of(*jobs)
    forms = (replace(each, forms=(each, each), may_switch=True) for each in one.jobs)
    both = elastic_bound(replace(one, jobs=tuple(forms)), 50.0).value
    assert both == pytest.approx(elastic_bound(one, 50.0).value, rel=2 * GAP)


def test_shorter_slots_are_never_worse_where_they_divide_the_longer_ones():
    made = made_of(*(elastic_job(f"j{k}", arrival=20.0 * k) for k in range(8)))
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
    made = made_of(elastic_job("a", arrival=arrival, utility=worth, **others), gpus=3)
    earned = utility_of(made, replay(made, FIFO()))
    assert earned == elastic_bound(made, 60.0).value == 5.0


def test_utilities_may_be_as_small_as_one_likes():
    worth = {"kind": "deadline", "value": 1e-10, "deadline": 60.0}
    jobs = [elastic_job(name, work=60.0, worker={"gpu": 2}, utility=worth) for name in "abcde"]
    # the LP lets one complete in the first minute, and one at the very beginning of the second
    assert elastic_bound(made_of(*jobs), 60.0).value == pytest.approx(2e-10, rel=1e-3)
    nothing = [entry | {"utility": {"kind": "constant", "value": 0.0}} for entry in jobs]
    assert elastic_bound(made_of(*nothing), 60.0).value == 0.0


def test_memory_grows_with_the_slots_and_not_with_their_square():
    linear = {"kind": "piecewise", "delays": [0.0, 4000.0], "values": [9.0, 0.0]}
    speeds = {"workers": {"min": 1, "max": 4}, "speedup": [1.0, 1.7, 2.2, 2.4]}
    made = made_of(elastic_job("a", arrival=15.0, work=300.0, utility=linear, **speeds), gpus=4)
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


# -- rigid jobs ------------------------------------------------------------------------------------


def test_busy_periods_begin_where_all_work_before_is_done():
    """Who comes in the moment in which it is done still belongs to it. Every short day is tried."""
    for later, seconds in product(product(range(3), repeat=3), product(range(4), repeat=4)):
        came = list(accumulate(later, initial=1))
        begins, done = [0], came[0] + seconds[0]
        for k in (1, 2, 3):
            if came[k] > done:
                begins.append(k)
            done = max(came[k], done) + seconds[k]
        found = busy_periods(np.array(came, float), np.array(seconds, float))
        assert [part.start for part in found] == begins, (came, seconds)


def test_the_best_of_several_multiples_of_the_prices_is_what_counts():
    """In whole seconds, with the cost of each start added up second by second."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        prices = np.sort(rng.integers(0, 5, 6))[::-1]
        jobs = [tuple(rng.integers((0, 1, 1), (6, 5, 4)).tolist()) for _ in range(3)]
        values = [0.0]
        for factor in MULTIPLES:
            value = -factor * 3 * sum(prices)
            for came, lasts, wide in jobs:
                starts = range(came, 7)
                value += min(s - came + factor * wide * sum(prices[s : s + lasts]) for s in starts)
            values.append(value)
        came, lasts, wide = np.array(jobs, float).T
        found = _dual_value(came, lasts, wide, 3.0, np.arange(7.0), prices.astype(float))
        assert found == sum(lasts) + max(values), (prices, jobs)


def test_the_fluid_machine_takes_the_least_work_first():
    lengths, jobs = _least_work_first([0.0, 1.0, 2.0], [5.0, 1.0, 9.0])
    assert (jobs.tolist(), lengths.tolist()) == ([0, 1, 0, 2], [1.0, 1.0, 4.0, 9.0])


def test_prices_never_rise_and_end_at_nothing():
    rng = np.random.default_rng(1)
    came, seconds = np.sort(rng.uniform(0, 50, 60)), rng.exponential(1.0, 60)
    _, prices = _prices(came, seconds, 8.0)
    assert (np.diff(prices) <= 1e-12).all()
    assert prices[-1] >= 0
    edges, prices = _prices(np.zeros(1), np.full(1, 2.0), 1.0)
    # The integral of one over the work of the only job, from the middle of each step on.
    np.testing.assert_allclose(prices, 1.0 - (edges[1:] + edges[:-1]) / 4)


def test_what_cannot_be_bounded_and_what_ends_as_it_comes():
    none = np.zeros(3)
    assert rigid_mean_bound(none, none, np.array([8, 8, 8]), 8.0) == 0.0
    ones = np.ones(1)
    assert rigid_mean_bound(ones, ones, np.array([9]), 8.0) == math.inf
    with pytest.raises(InputError, match="jobs"):
        rigid_mean_bound(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 8.0)


def test_neither_order_nor_a_later_begin_of_all_matters():
    rng = np.random.default_rng(2)
    came, lasts, wide = rng.uniform(0, 9, 40), rng.exponential(5.0, 40), rng.integers(1, 9, 40)
    order = rng.permutation(40)
    one = rigid_mean_bound(came, lasts, wide, 8.0)
    assert rigid_mean_bound(came[order], lasts[order], wide[order], 8.0) == pytest.approx(one)
    assert rigid_mean_bound(came + 100.0, lasts, wide, 8.0) == pytest.approx(one)


def test_a_run_that_subtracts_rounded_times_is_no_better():
    came, lasts = np.array([0.0, 1e9]), np.array([0.0, 0.3])
    times = (came + lasts) - came
    assert times[1] < lasts[1]
    assert rigid_mean_bound(came, lasts, np.array([1, 1]), 1.0) <= times.mean()


# -- the bound on their utility --------------------------------------------------------------------

Worth = Sigmoid | Constant | Deadline


def utility_bound_of(jobs: list[PlainJob], worth: list[Worth], gpus: int) -> float:
    columns = [np.array([getattr(job, name) for job in jobs]) for name in ("submitted", "duration")]
    wide = np.array([job.gpus for job in jobs])
    return rigid_utility_bound(*columns, wide, UtilityColumns.of(worth), float(gpus))


def most_worth(jobs: list[tuple[int, int, int]], worth: list[Worth], gpus: int) -> float:
    """The most that integer jobs can earn, by trying in each second every set that fits."""
    last = max(came for came, _, _ in jobs) + sum(lasts for _, lasts, _ in jobs)
    table = [worth[k](np.arange(last + 1.0)).tolist() for k in range(len(jobs))]

    @cache
    def best(now: int, left: tuple[int, ...]) -> float:
        there = [k for k, rest in enumerate(left) if rest and jobs[k][0] <= now]
        if now == last:
            return 0.0
        found = best(now + 1, left)
        for count in range(1, len(there) + 1):
            for run in combinations(there, count):
                if sum(jobs[k][2] for k in run) <= gpus:
                    rest = tuple(each - (k in run) for k, each in enumerate(left))
                    ended = sum(table[k][now + 1 - jobs[k][0]] for k in run if not rest[k])
                    found = max(found, ended + best(now + 1, rest))
        return found

    return best(0, tuple(lasts for _, lasts, _ in jobs))


def drawn_worth(rng: np.random.Generator, lasts: float) -> Worth:
    value = float(rng.integers(1, 20))
    match rng.integers(3):
        case 0:
            return Deadline(value, float(np.ceil(lasts * rng.uniform(0.8, 3.0))))
        case 1:
            return Constant(value)
        case _:
            return Sigmoid(value, float(rng.choice([0.0, 0.3, 2.0])), float(rng.integers(1, 12)))


def test_bound_optimum_and_policies_are_in_this_order():
    """On integer jobs that change at whole seconds, which these policies keep."""
    closest = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gpus = int(rng.integers(1, 5))
        rows = [
            (int(rng.integers(0, 4)), int(rng.integers(1, 4)), int(rng.integers(1, gpus + 1)))
            for _ in range(int(rng.integers(2, 5)))
        ]
        rows.sort()
        worth = [drawn_worth(rng, lasts) for _, lasts, _ in rows]
        jobs = [PlainJob(f"j{k}", *map(float, row[:2]), row[2]) for k, row in enumerate(rows)]
        most = most_worth(rows, worth, gpus)
        bound = utility_bound_of(jobs, worth, gpus)
        assert bound >= most, seed
        closest.append(most / bound)
        for policy in (FIFO(), SJF(), SRTF(), SRSF(), EASY()):
            outcome = replay(rigid_workload(jobs, 1, gpus), policy)
            earned = sum(
                float(worth[int(job.job_id[1:])](job.end - job.arrival))
                for job in outcome.jobs
                if job.end is not None
            )
            assert earned <= most + 1e-9, (seed, policy.name)
    assert np.mean(closest) > 0.9


def test_a_step_in_which_a_job_just_fits_is_one_in_which_it_may_end():
    """Steps and times are whole seconds here: what each job gains is added up one by one."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        # Four jobs keep two GPUs busy for as many seconds as there are steps.
        cuts = np.sort(rng.choice(np.arange(1, STEPS), 3, replace=False))
        lasts, wide = np.diff([0, *cuts, STEPS]), np.full(4, 2)
        came = np.sort(rng.integers(0, STEPS, 4))
        came[0] = 0
        worth = [Deadline(float(rng.integers(1, 99)), rng.integers(1, 60) + 0.5) for _ in came]
        prices = rng.integers(0, 4, STEPS)
        bound = 2 * sum(prices)
        for k, job in enumerate(worth):
            gains = [0]
            for end in range(STEPS + 1):
                open_for = sorted(prices[came[k] : end + 1])
                if end == STEPS:  # afterwards all costs nothing
                    open_for = [0] * lasts[k] + open_for
                if len(open_for) >= lasts[k]:
                    delay = max(lasts[k], end - came[k])
                    gains.append(job(delay) - 2 * sum(open_for[: lasts[k]]))
            bound += max(gains)
        columns = came.astype(float), lasts.astype(float), wide.astype(float)
        period = _Period(*columns, UtilityColumns.of(worth), 2.0)
        assert period.value(prices.astype(float)) == bound


def test_a_job_of_no_length_counts_though_it_comes_as_the_last_work_ends():
    """Only one of the others can end in time."""
    worth: list[Worth] = [Deadline(30.0, 1.0), Deadline(20.0, 1.0), Constant(7.0)]
    done = 2 * (1 - ROUNDING)  # as soon as the bound takes the work to be done
    jobs = [PlainJob("a", 0.0, 1.0, 2), PlainJob("b", 0.0, 1.0, 2), PlainJob("c", done, 0.0, 1)]
    assert 37.0 <= utility_bound_of(jobs, worth, 2) < 39.0


# -- learning from past days -----------------------------------------------------------------------

CLUSTER = builders.cluster(gpus=1.0, servers=2)


def job(name: str, arrival: int, value: float, latest: int = 0) -> Job:
    """Needs both GPUs for one slot."""
    return builders.job(name, arrival, 1, value, latest, workers=2)


def contested(high: float, low: float, slot: int, horizon: int = 4) -> Instance:
    """Two jobs want both GPUs in `slot` and no other; the optimal dual value is `low` to `high`."""
    return Instance(horizon, CLUSTER, (job("a", slot, high), job("b", slot, low)))


def test_prices_are_the_dual_values_averaged_by_slot_of_the_day_by_hand():
    """Equal values leave one dual: 6 for two GPUs in slot 1 of the first day, 10 in slot 3.

    A day has two slots, so slots 1 and 3 are the same slot of the day, and both files have two
    days each. Its price is (3 + 0 + 0 + 5) / 4 for one GPU, and the other slot is free.
    """
    learned = learn_prices([contested(6, 6, 1), contested(10, 10, 3)], slots_per_day=2)
    assert learned.days.tolist() == [4.0, 4.0]
    assert learned.worker.ravel() == pytest.approx([0.0, 2.0])
    assert learned.ps.ravel().tolist() == [0.0, 0.0]
    assert [(past.id, past.arrival) for past in learned.jobs] == [
        ("a", 1), ("b", 1), ("a", 1), ("b", 1),
    ]  # fmt: skip


def test_prices_of_one_day_are_those_that_prove_its_bound():
    """All capacity costs the same at the mean prices as at the duals of each server."""
    instance = oasis.generate("testbed", jobs=8, seed=3)
    found = configuration_bound(instance)
    learned = learn_prices([instance])
    for name, prices in (("worker", found.worker_prices), ("ps", found.ps_prices)):
        capacity = getattr(instance.cluster, f"{name}_capacity")
        cost = (getattr(learned, name) * capacity.sum(axis=0)).sum(axis=1)
        assert cost == pytest.approx((prices * capacity).sum(axis=(1, 2)))
        assert cost.sum() > 0


def test_a_slot_that_only_some_days_have_is_averaged_over_those():
    learned = learn_prices([contested(6, 6, 1, horizon=2), contested(8, 8, 3, horizon=4)])
    assert learned.days.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert learned.worker.ravel() == pytest.approx([0.0, 1.5, 0.0, 4.0])


def test_bounds_are_the_smallest_lower_and_the_largest_upper_of_the_days():
    past = [oasis.generate("testbed", jobs=5, seed=seed) for seed in (1, 2, 3)]
    each = [PriceBounds.from_instance(day) for day in past]
    learned = learn_prices(past).bounds
    for name in ("worker", "ps"):
        days = [getattr(bounds, name) for bounds in each]
        both = getattr(learned, name)
        assert both.lower == pytest.approx(np.min([day.lower for day in days], axis=0))
        assert both.upper == pytest.approx(np.max([day.upper for day in days], axis=0))


def test_a_day_without_jobs_teaches_that_resources_are_free_and_no_bounds():
    empty, busy = Instance(3, CLUSTER, ()), contested(6, 2, 1)
    learned = learn_prices([empty])
    assert not learned.worker.any()
    assert learned.jobs == ()
    assert np.isneginf(learned.bounds.worker.log_lower).all()
    both = learn_prices([empty, busy]).bounds.worker.lower
    assert both == pytest.approx(PriceBounds.from_instance(busy).worker.lower)


DAY = contested(1, 1, 0)
CPU = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)


@pytest.mark.parametrize(
    ("days", "options", "says"),
    [
        (
            [DAY, replace(DAY, cluster=replace(CLUSTER, slot_seconds=2.0))],
            {},
            r"past\[1\].slot_seconds: expected 1, got 2",
        ),
        ([DAY, Instance(4, CPU, ())], {}, r"past\[1\].resources: expected \['gpu'\]"),
        ([], {}, "past: expected at least one instance"),
        ([DAY], {"slots_per_day": 0}, "slots_per_day: expected an integer >= 1"),
        ([DAY], {"gap": -1.0}, "^gap: expected a share >= 0"),
    ],
)
def test_days_that_do_not_go_together_and_bad_options_are_refused(days, options, says):
    with pytest.raises(ValueError, match=says):
        learn_prices(days, **options)


def test_criteria_end_the_search_for_prices():
    day = oasis.generate("testbed", jobs=6, seed=1)
    exact, rough = learn_prices([day]), learn_prices([day], gap=math.inf)
    assert not np.array_equal(exact.worker, rough.worker)
    patient = learn_prices([day], no_improvement=math.inf)
    assert np.array_equal(exact.worker, patient.worker)
    assert configuration_bound(day, gap=math.inf).status is Status.GAP_LIMIT
    assert configuration_bound(day, no_improvement=0.0).status is Status.NO_IMPROVEMENT
