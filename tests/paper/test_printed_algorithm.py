"""Where Algorithm 2 and (22)-(26), taken to the letter, differ from what Theorem 1 proves."""

from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import (
    Cluster,
    Constant,
    Instance,
    Job,
    OASiS,
    PriceBounds,
    Server,
    Sigmoid,
)


def one_server(capacity, **more):
    amounts = {"cpu": capacity, **more}
    return Cluster(tuple(amounts), (Server("w", amounts),), (Server("p", amounts),), 1.0)


def search(job, cluster, horizon, granularity):
    """At the price 1 for everything, on the empty cluster."""
    shape = (horizon, 1, len(cluster.resources))
    arrays = [np.ones(shape), np.ones(shape), np.zeros(shape), np.zeros(shape)]
    return oasis.best_schedule(job, cluster, horizon, *arrays, granularity)


def plain_job(chunks, chunk_time, value=100.0):
    return Job("j", 0, 1, chunks, 1, chunk_time, 0.0, {"cpu": 1.0}, {}, Constant(value))


def test_whole_chunks_a_slot_cost_more_than_the_work():
    """Two chunks of 1.2 slots each: 2.4 worker-slots, so 3 workers in all.

    As printed, one chunk in a slot needs ceil(1.2) = 2 workers and both need ceil(2.4) = 3 > N = 2;
    so each chunk takes a slot of its own, and 4 workers are paid for.
    """
    job, cluster = plain_job(2, 1.2), one_server(5.0)
    exact, printed = (search(job, cluster, 3, g) for g in ("worker-slot", "chunk"))
    assert (exact.cost, printed.cost) == (3.0, 4.0)
    assert (exact.payoff, printed.payoff) == (97.0, 96.0)


def test_a_chunk_longer_than_all_workers_can_do_in_a_slot_is_never_done():
    """Two chunks of 3 slots: one chunk asks for 3 workers in a slot, but N = 2 caps them.

    So the printed algorithm rejects whatever the job is worth; 2 workers for 3 slots do the work.
    """
    job, cluster = plain_job(2, 3.0), one_server(5.0)
    exact, printed = (search(job, cluster, 4, g) for g in ("worker-slot", "chunk"))
    assert printed.schedule is None
    assert "no room" in printed.reason
    assert (exact.completion, exact.cost) == (2, 6.0)


def test_summing_gpus_and_gigabytes_makes_printed_prices_depend_on_units():
    """(25) adds demands of different resources; a megabyte is a thousandth of a gigabyte.

    The printed alpha changes with the unit of memory, the normalised one does not.
    """
    job = Job("j", 0, 1, 1, 1, 1.0, 0.0, {"gpu": 1.0, "memory": 1.0}, {}, Constant(1.0))
    other = replace(job, id="k", worker={"gpu": 1.0, "memory": 8.0})

    def bounds(unit, normalize):
        machine = {"gpu": 1.0, "memory": 8.0 * unit}
        cluster = Cluster(("gpu", "memory"), (Server("w", machine),), (Server("p", machine),), 1.0)
        demands = ({n: v * unit if n == "memory" else v for n, v in j.worker.items()} for j in jobs)
        scaled = [replace(j, worker=d) for j, d in zip(jobs, demands, strict=True)]
        return PriceBounds.from_jobs(scaled, cluster, 4, normalize=normalize)

    jobs = (job, other)
    printed = [bounds(unit, normalize=False).alpha for unit in (1.0, 1000.0)]
    normalised = [bounds(unit, normalize=True).alpha for unit in (1.0, 1000.0)]
    assert normalised[0] == pytest.approx(normalised[1], rel=1e-12)
    assert printed[1] > printed[0] + 0.5


def test_without_a_floor_one_hopeless_completion_takes_the_price_away():
    """A time-critical sigmoid at the end of the horizon is e^-594, and so is the printed L.

    With the floor, L follows from the last completion that is worth a thousandth of the best.
    """
    cluster = one_server(10.0)
    critical = Job("c", 0, 1, 1, 1, 1.0, 0.0, {"cpu": 1.0}, {}, Sigmoid(1.0, 6.0, 1.0))
    problem = Instance(101, cluster, (critical,))
    printed = PriceBounds.from_instance(problem, min_utility_fraction=0.0)
    floored = PriceBounds.from_instance(problem)
    assert printed.worker.log_lower[0] == pytest.approx(
        critical.utility.log_value(100) - np.log(4 * 1010.0), rel=1e-12
    )
    assert printed.alpha > 590
    assert floored.alpha < 25
    for fraction in (0.0, 1e-3):  # prices that small break nothing
        run = oasis.simulate(problem, OASiS.from_instance(problem, min_utility_fraction=fraction))
        assert run.admitted == 1


def test_a_job_finishing_in_its_arrival_slot_has_no_delay():
    """(1): d = that - a, counted in slots; the sigmoid at d = 0 is what it is worth."""
    job = Job("j", 2, 1, 1, 1, 1.0, 0.0, {"cpu": 1.0}, {}, Sigmoid(10.0, 1.0, 3.0))
    problem = Instance(4, one_server(1.0), (job,))
    (decision,) = oasis.simulate(problem, OASiS.from_instance(problem)).decisions
    assert decision.completion == 2
    assert decision.utility == job.utility(0) == pytest.approx(10 / (1 + np.exp(-3.0)))


def test_equal_payoff_completes_earliest_in_earlier_slots_on_lower_servers():
    """The rule for ties: they moved totals by up to 20 %, so they are fixed and tested."""
    cluster = Cluster(("cpu",), (Server("w", {"cpu": 2.0}, 3),), (Server("p", {"cpu": 1.0}),), 1.0)
    job = Job("j", 0, 2, 2, 1, 1.0, 0.0, {"cpu": 1.0}, {}, Constant(10.0))
    arrays = [np.full((5, 3, 1), 0.5), np.zeros((5, 1, 1)), np.zeros((5, 3, 1))]
    found = oasis.best_schedule(job, cluster, 5, *arrays, np.zeros((5, 1, 1)))
    assert found.completion == 1
    assert found.schedule.workers.tolist() == [[0, 0, 2], [1, 0, 2]]
