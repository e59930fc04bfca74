"""The ledger rolls on, and explanations that are asked for later are those of their moment."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

import oasis
from oasis import Constant, Schedule
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds, PriceFunction
from oasis.online.rejection import explanation
from oasis.online.search import searches
from tests import builders

CLUSTER = builders.cluster(servers=3, worker={"cpu": 8.0, "gpu": 4.0}, ps={"cpu": 6.0, "gpu": 1.0})
PRICE = PriceFunction(np.log([1.0, 2.0]), np.array([2.0, 1.0]), 1.0)
BOUNDS = PriceBounds(PRICE, PRICE, True, 0.0)
JOB = builders.job(
    "a", workers=9, worker={"cpu": 2.0, "gpu": 1.0}, ps={"cpu": 3.0}, utility=Constant(1.0)
)
HORIZON = 7


@pytest.mark.parametrize("origin", [1, 0, -1])
def test_a_ledger_does_not_roll_back(origin):
    """What went is gone: the origin moved without the contents."""
    ledger = Ledger.idle(CLUSTER, HORIZON, BOUNDS)
    ledger.commit(JOB, Schedule("a", [[3, 0, 1], [5, 1, 1]], []), BOUNDS)
    ledger.roll(2, BOUNDS)
    before = ledger.worker_used
    with pytest.raises(ValueError, match=rf"^origin: expected slot 2 or .*, got {origin}$"):
        ledger.roll(origin, BOUNDS)
    ledger.roll(2, BOUNDS)
    assert ledger.origin == 2
    np.testing.assert_array_equal(ledger.worker_used, before)


def congested(seed: int) -> oasis.Instance:
    return oasis.generate(
        "calibrated", jobs=25, worker_servers=3, ps_servers=3, horizon=20, seed=seed
    )


def asked_at_once(scheduler: oasis.OASiS, instance: oasis.Instance) -> list[oasis.Decision]:
    decisions = []
    for job in instance.jobs_by_arrival():
        decision = scheduler.submit(job)
        if not decision.admitted:  # nothing was committed: the ledger is that of the decision
            fraction = scheduler.bounds.min_utility_fraction
            (search,) = searches(job, scheduler.ledger, scheduler.granularity, fraction)
            assert (decision.reason, decision.rejection) == explanation([search])
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize("granularity", ["worker-slot", "chunk"])
@pytest.mark.parametrize("seed", range(4))
def test_it_does_not_matter_when_and_in_which_order_reasons_are_asked_for(seed, granularity):
    instance = congested(seed)
    expected = asked_at_once(oasis.OASiS.from_instance(instance, granularity=granularity), instance)
    assert sum(not decision.admitted for decision in expected) >= 5
    indices = list(range(len(expected)))
    for order in (indices, indices[::-1], random.Random(seed).sample(indices, len(indices))):
        scheduler = oasis.OASiS.from_instance(instance, granularity=granularity)
        decisions = [scheduler.submit(job) for job in instance.jobs_by_arrival()]
        for k in order:
            assert decisions[k].reason == expected[k].reason
            assert decisions[k].rejection == expected[k].rejection


def test_a_saved_scheduler_explains_what_was_rejected_before_and_after(tmp_path):
    instance = congested(1)
    expected = asked_at_once(oasis.OASiS.from_instance(instance), instance)
    scheduler = oasis.OASiS.from_instance(instance)
    jobs = instance.jobs_by_arrival()
    for job in jobs[:12]:
        scheduler.submit(job)
    scheduler.save(tmp_path / "saved.npz")
    loaded = oasis.OASiS.load(tmp_path / "saved.npz")
    for job in jobs[12:]:
        loaded.submit(job)
    assert loaded.decisions == expected


def test_reasons_travel_and_are_not_looked_for_unless_asked_for(monkeypatch):
    instance = congested(3)
    decisions = oasis.simulate(instance, oasis.OASiS.from_instance(instance)).decisions
    assert pickle.loads(pickle.dumps(decisions)) == decisions
    scheduler = oasis.OASiS.from_instance(instance)
    monkeypatch.setattr("oasis.online.oasis.explanation", lambda search: 1 / 0)
    run = oasis.simulate(instance, scheduler)
    rejected = next(decision for decision in run.decisions if not decision.admitted)
    with pytest.raises(ZeroDivisionError):
        _ = rejected.reason
