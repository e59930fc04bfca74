"""Explanations that are asked for later are those of the moment of the decision."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest

import oasis
from oasis.online.rejection import explanation
from oasis.online.search import Granularity, searches


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
def test_it_does_not_matter_when_and_in_which_order_reasons_are_asked_for(
    seed: int, granularity: Granularity
) -> None:
    instance = congested(seed)
    expected = asked_at_once(oasis.OASiS.from_instance(instance, granularity=granularity), instance)
    assert sum(not decision.admitted for decision in expected) >= 5
    for order in ("as they came", "backwards", "shuffled"):
        scheduler = oasis.OASiS.from_instance(instance, granularity=granularity)
        decisions = [scheduler.submit(job) for job in instance.jobs_by_arrival()]
        asked = list(range(len(decisions)))
        if order == "backwards":
            asked.reverse()
        elif order == "shuffled":
            random.Random(seed).shuffle(asked)
        for k in asked:
            assert decisions[k].reason == expected[k].reason
            assert decisions[k].rejection == expected[k].rejection


def test_a_quote_is_explained_as_of_its_moment() -> None:
    instance = congested(0)
    *earlier, last = instance.jobs_by_arrival()
    scheduler = oasis.OASiS.from_instance(instance)
    quotes = []
    for job in earlier:
        quotes.append((job, scheduler.quote(job)))
        decision = scheduler.submit(job)
        assert quotes[-1][1] == decision
    assert not scheduler.submit(last).admitted
    assert [q.reason for _, q in quotes] == [d.reason for d in scheduler.decisions[:-1]]


def test_a_saved_scheduler_explains_what_was_rejected_before_and_after(tmp_path: Path) -> None:
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


def test_a_decision_travels_with_its_explanation() -> None:
    instance = congested(2)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    again = pickle.loads(pickle.dumps(run.decisions))
    assert again == run.decisions
    assert [oasis.Decision.from_dict(d.to_dict()) for d in again] == list(run.decisions)


def test_reasons_are_not_looked_for_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = congested(3)
    scheduler = oasis.OASiS.from_instance(instance)
    monkeypatch.setattr("oasis.online.oasis.explanation", lambda search: 1 / 0)
    run = oasis.simulate(instance, scheduler)
    rejected = next(decision for decision in run.decisions if not decision.admitted)
    with pytest.raises(ZeroDivisionError):
        _ = rejected.reason


def test_a_misspelt_name_is_no_attribute_of_a_decision() -> None:
    with pytest.raises(AttributeError, match="Decision has no attribute 'reasons'"):
        _ = oasis.Decision("j", False).reasons
