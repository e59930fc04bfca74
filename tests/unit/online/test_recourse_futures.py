"""Sampled futures at small: rates, what a future earns, which trades are accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oasis import Cluster, InstanceError, Job, LearnedPrices, PriceBounds, Server
from oasis.online.recourse import Replanner, SampledFutures
from oasis.online.recourse.admission import AdmissionRule, AtPrices
from oasis.online.recourse.futures import utility_earned
from oasis.online.recourse.learned import AtLearnedPrices
from oasis.online.recourse.rules import admission_rule, rule_name
from tests import builders

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


def test_rates_of_arrival_are_those_so_far_or_of_past_days() -> None:
    """Half of the present slot is left."""
    rule = SampledFutures()
    rule.reset(CLUSTER, 8)
    for arrival in (2, 2, 3):
        rule.learn(job(f"j{arrival}", arrival, 1.0))
    assert rule.rates(3, 6).tolist() == [0.75, 1.5, 1.5]
    rule = SampledFutures(past(0.0))
    rule.reset(CLUSTER, 8)
    assert rule.rates(0, 4).tolist() == [0.5, 0.5, 1.0, 0.5]


def test_what_a_future_earns_is_what_fits_in_this_order() -> None:
    rule = SampledFutures()
    plan = planner(rule).plan
    rule.learn(job("known", 0, 3.0, latest=1))
    (_, known) = rule._known[0]
    three = [known.arriving(100 + k, 2, 8) for k in range(3)]
    assert utility_earned(plan, three) == 6.0  # slots 2 and 3; the third would be late
    assert not plan.ledger.worker_used.any()


@pytest.mark.parametrize(("share", "both"), [(None, False), (1.0, True), (0.8, True)])
def test_a_job_that_was_promised_a_late_slot_gives_way_to_one_in_a_hurry(
    share: float | None, both: bool
) -> None:
    """The first is planned in slot 0 and has until slot 3; the second is worth nothing later."""
    made = planner(SampledFutures(promise_share=share))
    made.replan({0: job("patient", 0, 5.0, latest=3)})
    assert made.plan.live[0].promise == (3 if both else 0)
    gone = made.replan({1: job("urgent", 0, 50.0)})
    assert (gone == {}) == both
    assert made.plan.live[0].schedule is not None


def test_the_share_that_a_promise_is_worth_is_more_than_nothing() -> None:
    with pytest.raises(ValueError, match=r"^promise_share: expected 0 < share <= 1, got 0$"):
        SampledFutures(promise_share=0)


@pytest.mark.parametrize(("price", "admitted"), [(2.4, True), (2.5, False), (2.6, False)])
def test_learned_prices_admit_what_is_worth_more_than_two_gpus_cost(
    price: float, admitted: bool
) -> None:
    made = planner(AtLearnedPrices(past(price), 0.0))
    gone = made.replan({0: job("new", 0, 5.0)})
    assert (gone == {}) == admitted
    made.advance(1)
    if admitted:
        made.finish(0)
    assert made.replan({1: job("next", 1, 5.0)}) == {}  # slot 1 is free


def test_rules_by_name_and_the_one_that_is_taken_where_none_is_named() -> None:
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
def test_what_does_not_go_with_a_rule_is_named(
    name: str, given: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        admission_rule(name, **given)  # type: ignore[arg-type]


def test_prices_of_other_resources_are_refused_when_a_run_begins() -> None:
    other = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),), 1.0)
    for rule in (SampledFutures(past(1.0)), AtLearnedPrices(past(1.0), 0.0)):
        with pytest.raises(InstanceError, match="resources: expected"):
            rule.reset(other, 8)
