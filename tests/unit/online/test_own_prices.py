"""OASiS at prices of one's own: what it takes, what it proves, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import InputError, OASiS, OwnPrices, PriceBounds, competitive_ratio
from oasis.certify.certificate import WeakDuality
from oasis.model.rounding import FloatArray
from offline import solve
from tests import builders
from tests.strategies import all_instances, fewer


class Flat:
    def __init__(self, price: float) -> None:
        self.price = price

    def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        return np.full(used.shape, self.price)


class Linear:
    def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
        share = np.divide(used, capacity, out=np.ones_like(used), where=capacity > 0)
        return 3.0 * share


class Answer:
    """Prices that always answer the same."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def at(self, used: FloatArray, capacity: FloatArray) -> Any:
        return self.answer


@given(all_instances())
def test_the_paper_prices_given_as_ones_own_decide_alike(instance):
    bounds = PriceBounds.from_instance(instance)
    own = OASiS.from_instance(instance, prices=(bounds.worker, bounds.ps))
    paper = OASiS.from_instance(instance)
    runs = [oasis.simulate(instance, scheduler) for scheduler in (own, paper)]
    assert runs[0].decisions == runs[1].decisions
    assert runs[0].total_utility == runs[1].total_utility


@fewer(4)
@given(all_instances())
def test_no_schedule_earns_more_than_the_bound_of_any_prices(instance):
    for prices in (Flat(0.7), Linear()):
        scheduler = OASiS.from_instance(instance, prices=prices)
        run = oasis.simulate(instance, scheduler)
        certificate = oasis.certify(instance, run)
        assert isinstance(certificate, WeakDuality)
        ledger = scheduler.ledger
        dual = oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices)
        assert certificate.upper_bound == pytest.approx(dual, rel=1e-9)
        assert solve(instance).objective <= certificate.upper_bound * (1 + 1e-9) + 1e-12


def test_free_machines_take_all_that_fits_and_dear_ones_nothing():
    instance = builders.instance(*(builders.job(name, gpus=2.0) for name in "abc"), horizon=1)
    taken = [
        oasis.simulate(instance, OASiS.from_instance(instance, prices=Flat(price))).admitted
        for price in (0.0, 0.4, 0.6)
    ]
    assert taken == [2, 2, 0]  # a job pays twice the price of a GPU for its worth of 1


def test_a_result_has_the_name_of_the_prices_and_the_bound_that_they_prove():
    instance = oasis.read_example()
    result = competitive_ratio(instance, OASiS.from_instance(instance, prices=Linear()))
    document = json.loads(json.dumps(result.to_dict()))
    assert document["parameters"]["prices"] == "Linear"
    assert document["bounds"] is document["alpha"] is None
    assert document["corrected_bound"] == result.certificate.upper_bound
    again = oasis.CompetitiveRatio.from_dict(document)
    assert json.loads(json.dumps(again.to_dict())) == document
    assert result.bound_2alpha is None
    assert "weak duality only" in repr(result.certificate)


def test_prices_of_machines_without_a_resource_do_not_matter():
    class Nan:
        def at(self, used: FloatArray, capacity: FloatArray) -> FloatArray:
            return np.where(capacity > 0, 0.1, np.nan)

    instance = oasis.generate("testbed", jobs=3, seed=1)  # parameter servers have no GPUs
    assert oasis.simulate(instance, OASiS.from_instance(instance, prices=Nan())).admitted > 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(3), r"Answer.at: expected an array of shape \(1, 1\), got \(3,\)"),
        (np.array([[-1.0]]), r"Answer.at: expected prices from 0 to 1e\+100, got -1"),
        (np.array([[np.nan]]), r"Answer.at: expected prices from 0 to 1e\+100, got nan"),
        (np.array([[1e308]]), r"Answer.at: expected prices from 0 to 1e\+100, got 1e\+308"),
        (np.array([[1j]]), r"Answer.at: failed with \w*TypeError: Cannot cast .* from .*complex"),
    ],
)
def test_wrong_answers_are_named(answer, message):
    instance = builders.instance(builders.job())
    with pytest.raises(InputError, match=message):
        OASiS.from_instance(instance, prices=Answer(answer))


@pytest.mark.parametrize("wrong", [3, "flat", (Flat(1.0),), Flat])
def test_what_has_no_prices_is_refused(wrong):
    instance = builders.instance(builders.job())
    with pytest.raises(TypeError, match="prices: expected prices: an object with a method at"):
        OASiS.from_instance(instance, prices=wrong)


def test_a_scheduler_with_prices_of_ones_own_is_not_saved(tmp_path):
    instance = builders.instance(builders.job())
    scheduler = OASiS(instance.cluster, instance.horizon, OwnPrices(Flat(1.0), Flat(0.0)))
    with pytest.raises(InputError, match="prices: expected the paper's"):
        scheduler.save(tmp_path / "state.json")
