"""Properties of the online scheduler on every instance and with every option."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oasis
from oasis import Constant, Instance, OASiS, PriceBounds, Sigmoid
from oasis.testing import crowded_instances, utilities
from tests import builders
from tests.oracle import kinds
from tests.strategies import all_instances, bare, fewer, more, of, schedulers


def submit_all(scheduler, jobs):
    return [scheduler.submit(job) for job in jobs]


def ledger_of(scheduler):
    names = ("worker_prices", "ps_prices", "worker_used", "ps_used")
    return {name: getattr(scheduler.ledger, name).copy() for name in names}


def same(one, other):
    return all((one[name] == other[name]).all() for name in one)


@given(all_instances(), schedulers(), st.data())
def test_later_arrivals_never_change_an_earlier_decision(instance, make, data):
    """Non-anticipation: the price bounds are held fixed, the future is cut off or exchanged."""
    bounds = make(instance).bounds
    jobs = instance.jobs_by_arrival()
    cut = data.draw(st.integers(0, len(jobs)))
    others = [
        replace(job, utility=Constant(1e6), chunks=job.chunks + 1)
        for job in reversed(jobs[cut:])
        if not jobs[:cut] or job.arrival >= jobs[cut - 1].arrival
    ]

    def decide(future):
        known = Instance(instance.horizon, instance.cluster, (*jobs[:cut], *future))
        scheduler = OASiS(
            instance.cluster, instance.horizon, bounds, granularity=make.options["granularity"]
        )
        return oasis.simulate(known, scheduler).decisions[:cut]

    whole = decide(jobs[cut:])
    assert decide([]) == whole
    assert decide(others) == whole


@given(all_instances(), schedulers())
def test_decisions_are_irrevocable_and_the_ledger_only_grows(instance, make):
    """A quote before each commits nothing, and is what the decision then is."""
    scheduler = make(instance)
    made: list[oasis.Decision] = []
    before = ledger_of(scheduler)
    for job in instance.jobs_by_arrival():
        quote = scheduler.quote(job)
        assert quote == scheduler.quote(job)
        assert same(before, ledger_of(scheduler))
        assert scheduler.decisions == made
        made.append(scheduler.submit(job))
        assert made[-1] == quote
        assert scheduler.decisions == made
        after = ledger_of(scheduler)
        for name, array in after.items():
            assert (array >= before[name] * (1 - 1e-12)).all()
        if not made[-1].admitted:
            assert same(before, after)
            # also of jobs that could only complete when they are worth nothing any more
            precious = replace(job, id=f"{job.id}!", utility=Constant(1e12))
            explained = made[-1].rejection is not None
            assert explained == scheduler.quote(precious).admitted
        before = after


@given(all_instances(), schedulers())
def test_ledger_is_the_sum_of_the_schedules_and_prices_follow_from_it(instance, make):
    scheduler = make(instance)
    run = oasis.simulate(instance, scheduler)
    cluster = instance.cluster
    jobs = {job.id: job for job in instance.jobs}
    ledger = ledger_of(scheduler)
    for group, capacity in (("worker", cluster.worker_capacity), ("ps", cluster.ps_capacity)):
        used = np.zeros((instance.horizon, *capacity.shape))
        for job_id, schedule in run.schedules.items():
            rows = schedule.workers if group == "worker" else schedule.ps
            for t, s, n in rows.tolist():
                for r, name in enumerate(cluster.resources):
                    used[t, s, r] += n * getattr(jobs[job_id], group).get(name, 0.0)
        np.testing.assert_allclose(ledger[f"{group}_used"], used, rtol=1e-12)
        assert (ledger[f"{group}_used"] <= capacity + 1e-9 * np.maximum(1.0, capacity)).all()
        price = getattr(scheduler.bounds, group)
        expected = price(ledger[f"{group}_used"], np.broadcast_to(capacity, used.shape))
        np.testing.assert_allclose(ledger[f"{group}_prices"], expected, rtol=1e-12)


def scaled(utility, factor):
    """`factor` times `utility`."""
    if isinstance(utility, Sigmoid):
        return replace(utility, priority=utility.priority * factor)
    if isinstance(utility, oasis.Piecewise):
        return replace(utility, values=tuple(value * factor for value in utility.values))
    return replace(utility, value=utility.value * factor)


def gain(scheduler, job, told):
    """What `job` is worth at the completion that it gets if it reports `told`, minus the price."""
    found = scheduler.quote(replace(job, utility=told))
    if found.completion is None:
        return 0.0
    return float(job.utility(found.completion - job.arrival)) - found.cost


@fewer(2)
@given(crowded_instances(most_jobs=4), schedulers(), utilities())
def test_no_false_report_pays_where_the_bounds_are_fixed(instance, make, other):
    """No multiple of the utility does and, without a floor, which is relative, no other utility."""
    scheduler = make(instance)
    for job in instance.jobs_by_arrival():
        told = [scaled(job.utility, factor) for factor in (0.01, 0.6, 1.2, 100.0)]
        if scheduler.bounds.min_utility_fraction == 0.0:
            told.append(other)
        honest = gain(scheduler, job, job.utility)
        for false in told:
            assert gain(scheduler, job, false) <= honest + 1e-9 * max(1.0, honest)
        scheduler.submit(job)


def test_a_low_bid_pays_where_the_bounds_are_computed_from_the_bids():
    """With half of a job's priority U and L halve, and with them the price of its schedule."""
    job = builders.job(slots=2, value=8.0)
    honest, low = (
        OASiS.from_instance(builders.instance(replace(job, utility=told)))
        for told in (job.utility, scaled(job.utility, 0.5))
    )
    assert gain(honest, job, job.utility) < gain(low, job, scaled(job.utility, 0.5)) < 8.0


def test_a_patient_bid_pays_where_a_floor_hides_late_completions():
    first = builders.job("first", workers=3, value=30.0)
    job = builders.job("late", utility=oasis.Piecewise((0.0, 1.0), (10.0, 6.0)))
    instance = builders.instance(first, job, horizon=2)
    gains = []
    for floor in (0.7, 0.0):
        scheduler = OASiS.from_instance(instance, min_utility_fraction=floor)
        scheduler.submit(first)
        gains += [gain(scheduler, job, told) for told in (job.utility, Constant(10.0))]
    assert gains[0] < gains[1] < 6.0
    assert gains[2] == gains[3] < 6.0


def rejections(instance, make):
    """Each rejected job that there is room for, with the scheduler as it was."""
    found = []
    jobs = instance.jobs_by_arrival()
    for k, job in enumerate(jobs):
        scheduler = make(instance)
        submit_all(scheduler, jobs[:k])
        rejection = scheduler.quote(job).rejection
        if rejection is not None:
            found.append((scheduler, job, rejection))
    assume(found)
    return found


@fewer(3)
@given(crowded_instances(most_jobs=8), schedulers())
def test_a_rejection_says_what_would_be_admitted_and_what_is_short(instance, make):
    for scheduler, job, rejection in rejections(instance, make):
        assert_smallest_utility_is_the_threshold(scheduler, job, rejection)
        assert_utility_factor_is_the_threshold(scheduler, job, rejection)
        assert_bottleneck_is_part_of_the_cost(instance.cluster, job, rejection)


def assert_smallest_utility_is_the_threshold(scheduler, job, rejection):
    smallest = rejection.smallest_utility
    above = scheduler.quote(replace(job, utility=Constant(smallest * (1 + 1e-9) + 1e-300)))
    assert above.admitted
    assert above.completion is not None
    assert above.completion <= rejection.smallest_utility_completion
    assert above.cost == pytest.approx(smallest, rel=1e-9)
    assert not scheduler.quote(replace(job, utility=Constant(smallest * (1 - 1e-9)))).admitted


def assert_utility_factor_is_the_threshold(scheduler, job, rejection):
    """The floor is relative, so a multiple of a utility has the same completions that count."""

    def admitted(factor):
        return scheduler.quote(replace(job, utility=scaled(job.utility, factor))).admitted

    factor = rejection.utility_factor
    if factor is None:
        assert not admitted(1e9)
    else:
        assert factor >= 1 - 1e-9
        assert admitted(factor * (1 + 1e-6))
        assert not admitted(factor * (1 - 1e-6))


def assert_bottleneck_is_part_of_the_cost(cluster, job, rejection):
    spot = rejection.bottleneck
    if spot is None:
        return
    assert spot.cost == pytest.approx(spot.share * rejection.smallest_utility, rel=1e-9)
    assert 0 < spot.share <= 1 + 1e-12
    assert getattr(job, spot.group)[spot.resource] > 0
    assert set(spot.servers) <= set(getattr(cluster, f"{spot.group}_ids"))
    assert list(spot.slots) == sorted(set(spot.slots))
    assert job.arrival <= spot.slots[0]
    assert spot.slots[-1] <= rejection.smallest_utility_completion


@more(2)
@given(
    st.one_of(all_instances(), bare(all_instances()), kinds.instances()), schedulers(), st.data()
)
def test_save_and_load_equals_never_having_stopped(
    tmp_path_factory,
    instance,
    make,
    data,
):
    """Bit for bit, at any cut point: decisions, usage and prices."""
    jobs = instance.jobs_by_arrival()
    cut = data.draw(st.integers(0, len(jobs)))
    path = tmp_path_factory.getbasetemp() / "checkpoint.npz"
    steady, stopped = make(instance), make(instance)
    submit_all(steady, jobs)
    submit_all(stopped, jobs[:cut])
    stopped.save(path)
    resumed = OASiS.load(path)
    assert same(ledger_of(stopped), ledger_of(resumed))
    submit_all(resumed, jobs[cut:])
    assert resumed.decisions == steady.decisions
    assert same(ledger_of(resumed), ledger_of(steady))
    assert resumed.now == steady.now
    assert resumed.parameters == steady.parameters
    assert resumed.bounds.to_dict() == steady.bounds.to_dict()
    assert resumed.cluster == steady.cluster
    stopped.save(path)
    written = path.read_bytes()
    OASiS.load(path).save(path)
    assert path.read_bytes() == written


@given(all_instances(), of(1.0, 0.2, 5.0), of("worker-slot", "chunk"))
def test_estimated_bounds_still_give_feasible_runs(instance, scale, granularity):
    """U and L estimated from the first job alone, in operation: feasible all the same."""
    bounds = PriceBounds.from_jobs(instance.jobs[:1], instance.cluster, instance.horizon)
    scheduler = OASiS(
        instance.cluster, instance.horizon, bounds.scaled(scale), granularity=granularity
    )
    oasis.verify(instance, oasis.simulate(instance, scheduler))
