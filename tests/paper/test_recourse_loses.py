"""Where planning again loses to never changing one's mind: the instances of docs/commitment.

One server with one GPU. Each job wants it in slots of its own choice: from its arrival on, or it is
worth nothing.
"""

from dataclasses import replace

import pytest

import oasis
from oasis import Cluster, Instance, OASiS, Recourse, Server
from tests import builders


def job(name, arrival, slots, worth):
    """A job that has to run in each of `slots` slots from its arrival on."""
    return builders.job(name, arrival, slots, worth, slots - 1.0)


def on_one_gpu(horizon, *jobs):
    cluster = Cluster(("gpu",), (Server("w", {"gpu": 1}),), (Server("p", {}),), 3600.0)
    return Instance(horizon, cluster, jobs)


def chain(worths):
    """Jobs of two slots each, one arriving in each slot: each is in the way of the next."""
    jobs = (job(f"j{k}", k, 2, worth) for k, worth in enumerate(worths))
    return on_one_gpu(len(worths) + 1, *jobs)


def recourse(**changes):
    """With parameters of its searches that are otherwise."""
    return Recourse(params=replace(Recourse().params, **changes))


def earned(instance, policy):
    run = oasis.simulate(instance, policy)
    oasis.verify(instance, run)
    return run.total_utility


def test_two_jobs_are_enough():
    """A plan for later counts a little less: what is worth nearly as much now takes its place."""
    instance = on_one_gpu(4, job("long", 0, 3, 10.0), job("short", 1, 1, 9.9))
    assert earned(instance, OASiS.from_instance(instance)) == 10.0
    assert earned(instance, Recourse()) == 9.9
    assert earned(instance, recourse(discount=1.0)) == 10.0


def test_one_job_is_not_enough():
    for slots in range(1, 6):
        instance = on_one_gpu(6, job("alone", 0, slots, 10.0))
        assert earned(instance, Recourse()) == earned(instance, OASiS.from_instance(instance)) == 10


@pytest.mark.parametrize("discount", [0.98, 1.0])
def test_three_jobs_are_enough_whatever_the_discount(discount):
    instance = chain([10.0, 11.0, 12.0])
    assert earned(instance, OASiS.from_instance(instance)) == 22.0
    assert earned(instance, recourse(discount=discount)) == 12.0


@pytest.mark.parametrize("commitment", ["start", "arrival"])
def test_with_commitment_the_first_job_stays(commitment):
    assert earned(chain([10.0, 11.0, 12.0]), Recourse(commitment)) == 22.0


@pytest.mark.parametrize("jobs", [5, 9, 15])
def test_no_fixed_ratio_holds_without_commitment(jobs):
    """Each job is worth a tenth more than the last: all are given up but the last."""
    worths = [10.0 * 1.1**k for k in range(jobs)]
    instance = chain(worths)
    assert earned(instance, Recourse()) == pytest.approx(worths[-1])
    assert earned(instance, OASiS.from_instance(instance)) == pytest.approx(sum(worths[::2]))


def test_a_bonus_for_what_has_begun_breaks_the_chain():
    assert earned(chain([10.0, 11.0, 12.0]), recourse(started_bonus=0.25)) == 22.0
