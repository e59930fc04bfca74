"""Rules of admission of recourse: sampled futures, and files of learned prices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, InstanceError, Job, LearnedPrices, OASiS, PriceBounds, Server
from oasis.online.recourse import Replanner, SampledFutures
from oasis.online.recourse.admission import AdmissionRule, AtPrices
from oasis.online.recourse.futures import utility_earned
from oasis.online.recourse.learned import AtLearnedPrices, learned_from
from oasis.online.recourse.rules import admission_rule, rule_name
from tests import builders
from tests.builders import changed, malformed

CLUSTER = builders.cluster(gpus=2.0)


def job(name: str, arrival: int, value: float, latest: int = 0) -> Job:
    """Needs both GPUs for one slot."""
    return builders.job(name, arrival, 1, value, latest, workers=2)


def past(gpu_price: float) -> LearnedPrices:
    """Two past days of two slots; three jobs came, two of them in the first slots."""
    jobs = (job("a", 0, 5.0), job("b", 0, 5.0), job("c", 1, 5.0))
    return LearnedPrices(
        CLUSTER.resources,
        1.0,
        np.array([2.0, 2.0]),
        np.array([[gpu_price], [0.0]]),
        np.zeros((2, 1)),
        PriceBounds.from_jobs(jobs, CLUSTER, 2),
        jobs,
    )


def planner(rule: AdmissionRule) -> Replanner:
    return Replanner(CLUSTER, 8, commitment="arrival", admission=rule)


def test_rates_of_arrival_are_those_so_far_or_of_past_days():
    """Half of the present slot is left."""
    rule = SampledFutures()
    rule.reset(CLUSTER, 8)
    for arrival in (2, 2, 3):
        rule.learn(job(f"j{arrival}", arrival, 1.0))
    assert rule.rates(3, 6).tolist() == [0.75, 1.5, 1.5]
    rule = SampledFutures(past(0.0))
    rule.reset(CLUSTER, 8)
    assert rule.rates(0, 4).tolist() == [0.5, 0.5, 1.0, 0.5]


def test_what_a_future_earns_is_what_fits_in_this_order():
    rule = SampledFutures()
    plan = planner(rule).plan
    rule.learn(job("known", 0, 3.0, latest=1))
    (_, known) = rule._known[0]
    three = [known.arriving(100 + k, 2, 8) for k in range(3)]
    assert utility_earned(plan, three) == 6.0  # slots 2 and 3; the third would be late
    assert not plan.ledger.worker_used.any()


@pytest.mark.parametrize(("share", "both"), [(None, False), (1.0, True), (0.8, True)])
def test_a_job_that_was_promised_a_late_slot_gives_way_to_one_in_a_hurry(share, both):
    """The first is planned in slot 0 and has until slot 3; the second is worth nothing later."""
    made = planner(SampledFutures(promise_share=share))
    made.replan({0: job("patient", 0, 5.0, latest=3)})
    assert made.plan.live[0].promise == (3 if both else 0)
    gone = made.replan({1: job("urgent", 0, 50.0)})
    assert (gone == {}) == both
    assert made.plan.live[0].schedule is not None


def test_the_share_that_a_promise_is_worth_is_more_than_nothing():
    with pytest.raises(ValueError, match=r"^promise_share: expected 0 < share <= 1, got 0$"):
        SampledFutures(promise_share=0)


@pytest.mark.parametrize(("price", "admitted"), [(2.4, True), (2.5, False), (2.6, False)])
def test_learned_prices_admit_what_is_worth_more_than_two_gpus_cost(price, admitted):
    made = planner(AtLearnedPrices(past(price), 0.0))
    gone = made.replan({0: job("new", 0, 5.0)})
    assert (gone == {}) == admitted
    made.advance(1)
    if admitted:
        made.finish(0)
    assert made.replan({1: job("next", 1, 5.0)}) == {}  # slot 1 is free


def test_rules_by_name_and_the_one_that_is_taken_where_none_is_named():
    bounds, learned = past(1.0).bounds, past(1.0)
    assert rule_name(None, None, None) == "futures"
    assert rule_name(None, learned, None) == "learned"
    assert rule_name(None, None, bounds) == "oasis"
    assert rule_name("futures", learned, None) == "futures"
    assert isinstance(admission_rule("futures"), SampledFutures)
    assert isinstance(admission_rule("learned", prices=learned), AtLearnedPrices)
    at_prices = admission_rule("oasis", prices=learned)
    assert isinstance(at_prices, AtPrices)
    assert at_prices.given is learned.bounds


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("best", {}, "admission: expected one of futures, learned, oasis, got 'best'"),
        ("learned", {}, "prices: expected learned prices for admission 'learned', got none"),
        ("futures", {"bounds": past(1.0).bounds}, "bounds: expected with admission 'oasis' alone"),
        ("futures", {"samples": 0}, "samples: expected an integer >= 1, got 0"),
        ("futures", {"samples": True}, "samples: expected an integer >= 1, got True"),
        ("futures", {"min_utility_fraction": 1.0}, "min_utility_fraction: expected 0 <= phi < 1"),
        ("futures", {"prices": replace(past(1.0), jobs=())}, "prices: expected at least one past"),
    ],
)
def test_what_does_not_go_with_a_rule_is_named(name, given, message):
    with pytest.raises(ValueError, match=message):
        admission_rule(name, **given)


def test_prices_of_other_resources_are_refused_when_a_run_begins():
    other = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)
    for rule in (SampledFutures(past(1.0)), AtLearnedPrices(past(1.0), 0.0)):
        with pytest.raises(InstanceError, match="resources: expected"):
            rule.reset(other, 8)


DAY = oasis.generate("testbed", jobs=3, seed=1)


def learned(slots: int = 4) -> LearnedPrices:
    rng = np.random.default_rng(3)
    size = (slots, len(DAY.cluster.resources))
    jobs = [oasis.generate("testbed", jobs=1, seed=seed).jobs[0] for seed in range(3)]
    jobs = [replace(job, arrival=k) for k, job in enumerate(jobs)]
    return LearnedPrices(
        DAY.cluster.resources,
        DAY.slot_seconds,
        np.array([2.0, 2.0, 1.0, 1.0]),
        rng.random(size),
        rng.random(size) / 3,
        PriceBounds.from_instance(DAY),
        tuple(jobs),
    )


def test_a_file_that_was_written_and_read_is_the_same_to_the_last_bit(tmp_path):
    first, path = learned(), tmp_path / "prices.json"
    first.write(path)
    again = LearnedPrices.read(path)
    for name in ("days", "worker", "ps"):
        assert getattr(again, name).tobytes() == getattr(first, name).tobytes()
    assert again.bounds.to_dict() == first.bounds.to_dict()
    assert again.jobs == first.jobs
    assert again.digest == first.digest
    again.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("field", "value", "message", "_"), malformed(__file__, "learned_malformed.txt")
)
def test_what_is_wrong_in_a_file_is_named_in_one_line(field, value, message, _, tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(changed(learned().to_dict(), field, value)), encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        LearnedPrices.read(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "NaN", '{"a": 1, "a": 1}', "\x00"])
def test_what_is_no_file_of_prices_at_all_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError, match=r"prices: .*prices\.json: ") as caught:
        learned_from(str(path), "prices")
    assert "\n" not in str(caught.value)


def test_prices_of_other_slots_are_named_with_the_option_and_the_file(tmp_path):
    path = str(tmp_path / "p.json")
    hours = replace(DAY, cluster=replace(DAY.cluster, slot_seconds=3600.0))
    learned().write(path)
    with pytest.raises(InstanceError, match=r"^bounds: .*p\.json: slot_seconds: expected 3600"):
        OASiS.from_instance(hours, bounds=path)
    for admission in ("learned", "futures"):
        options: dict[str, Any] = {"commitment": "arrival", "admission": admission}
        policy = oasis.Recourse(prices=path, **options)
        with pytest.raises(InstanceError, match=r"^prices\.slot_seconds: expected 3600, got 1200"):
            oasis.simulate(hours, policy)


def test_oasis_takes_its_bounds_from_the_file_and_says_so(tmp_path):
    first, path = learned(), tmp_path / "prices.json"
    first.write(path)
    scheduler = OASiS.from_instance(DAY, bounds=str(path), scale=2.0)
    assert scheduler.bounds.to_dict() == first.bounds.scaled(2.0).to_dict()
    assert scheduler.parameters["bounds"] == str(path)
    scheduler.save(tmp_path / "saved")
    assert OASiS.load(tmp_path / "saved").parameters == scheduler.parameters
    assert OASiS.from_instance(DAY, bounds=first).parameters["bounds"] == first.name
    assert OASiS.from_instance(DAY).parameters["bounds"] is None
