"""Intervals over seeds keep to what can be: no share below 0 or above 1, no ratio below 1."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import baselines
import oasis
from experiments.evaluation.comparison import AVERAGED, compare
from experiments.evaluation.intervals import (
    LIMITS,
    WIDEST,
    Interval,
    interval_of,
    scale_of,
)
from experiments.evaluation.tables import interval as as_text
from experiments.evaluation.tables import number, percent, seconds
from experiments.figures import figure as rows
from experiments.sweep.summary import notes_of, rows_of, summarise

VALUES = {
    "any": st.integers(-(10**9), 10**9).map(lambda k: k / 1000),
    "amount": st.integers(0, 10**9).map(lambda k: k / 1000),
    "fraction": st.integers(0, 1000).map(lambda k: k / 1000),
    "ratio": st.integers(1000, 10**9).map(lambda k: k / 1000),
}


@pytest.mark.parametrize("scale", LIMITS)
@given(data=st.data())
def test_an_interval_holds_its_mean_and_only_what_can_be(scale: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[scale], min_size=2, max_size=8))
    found = interval_of(values, scale)
    least, most = LIMITS[scale]
    assert least <= found.low <= found.mean <= found.high <= most
    assert min(values) - 1e-6 <= found.mean <= max(values) + 1e-6
    if scale == "ratio":
        seen = max(values) / min(values)
        assert found.high / found.low <= max(WIDEST, seen) * (1 + 1e-9)


@pytest.mark.parametrize("scale", ["any", "amount", "ratio"])
@pytest.mark.parametrize("values", [[math.inf, 2.0], [math.inf, math.inf]])
def test_infinite_values_have_no_interval(values: list[float], scale: str) -> None:
    found = interval_of(values, scale)
    assert (found.mean, found.n, found.kind) == (math.inf, 2, "none")
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.to_dict() == {"mean": None, "low": None, "high": None, "n": 2, "interval": "none"}
    assert as_text(found.to_dict()) == "-"


def test_infinities_that_cancel_out_have_no_mean_and_what_is_too_large_is_refused() -> None:
    assert math.isnan(interval_of([math.inf, -math.inf, 1.0]).mean)
    with pytest.raises(ValueError, match=r"values: expected at most 1e\+150 in size, got 1e\+308"):
        interval_of([1e308, 1e308, 1.0])


@given(st.lists(VALUES["any"], min_size=2, max_size=8))
@example([3.0, 5.0, 10.0])
def test_uncut_it_is_that_of_student(values: list[float]) -> None:
    found = interval_of(values)
    if len(set(values)) > 1:
        spread = stats.sem(values)
        low, high = stats.t.interval(0.95, len(values) - 1, loc=found.mean, scale=spread)
        assert (found.low, found.high) == (
            pytest.approx(low, rel=1e-6, abs=1e-6),
            pytest.approx(high, rel=1e-6, abs=1e-6),
        )


def test_no_interval_of_a_count_of_jobs_ends_beyond_their_number() -> None:
    instance = oasis.generate("testbed", jobs=3, seed=2, horizon=14)
    found = compare(instance, {"rrh": baselines.RRH}, {"rrh": [0, 1, 2]})
    admitted = found.policies["rrh"]["over_seeds"]["figures"]["admitted"]
    assert (admitted["values"], admitted["high"], admitted["interval"]) == ([3, 2, 3], 3.0, "cut")
    cells = {"seed": [0, 1, 2], "status": "done", "jobs": 3, "admitted": [3, 2, 3]}
    (row,) = summarise(pd.DataFrame({"policy.name": "rrh", **cells}), ["admitted"]).to_dict(
        "records"
    )
    assert (row["admitted.high"], row["admitted.interval"]) == (3.0, "cut")


def test_a_sweep_says_that_a_mean_is_of_fewer_seeds() -> None:
    cells = {"seed": [0, 1], "status": "done", "ratio_lower": [1.5, None], "total_utility": 0.0}
    means = summarise(pd.DataFrame({"policy.name": "drf", **cells}), ["ratio_lower"])
    assert rows_of(means, ["ratio_lower"])[0][-1] == "1.5 (of 1)"
    note = (
        "(of n): of the n seeds on which it is defined; no ratio is where a policy earned nothing"
    )
    assert note in notes_of(means, ["ratio_lower"])


def test_interval_of_ratios_ends_at_one_where_no_ratio_is_less():
    found = rows.interval([1.0, 2.0, 8.0], "x", "ratio")  # uncut, it would begin at 0.18
    _, high = stats.t.interval(0.95, 2, *(f([0, 1, 3]) for f in (lambda v: 4 / 3, stats.sem)))
    found["x_high"] = math.log2(found["x_high"])
    assert found == pytest.approx({"x": 16 ** (1 / 3), "x_low": 1.0, "x_high": high})


def test_two_ratios_far_apart_have_a_range_and_not_ten_powers_of_ten() -> None:
    found = interval_of([1.0, 100.0], "ratio")
    assert found == Interval(pytest.approx(10.0), 1.0, 100.0, 2, "range")


def test_values_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 1 to inf for ratio, got 0\.5"):
        interval_of([2.0, 0.5], "ratio")
    with pytest.raises(ValueError, match=r"expected 0 to 1 for fraction, got 1\.5"):
        interval_of([1.5], "fraction")


def test_few_values_have_no_interval() -> None:
    assert interval_of([5.0]).to_dict() == {
        "mean": 5.0, "low": None, "high": None, "n": 1, "interval": "none"
    }  # fmt: skip
    assert math.isnan(interval_of([]).mean)
    assert interval_of([2.0, 2.0, 2.0], "ratio").kind == "student"


def test_texts_say_plus_minus_only_where_it_is_symmetrical() -> None:
    assert as_text(interval_of([9.0, 11.0, 10.0], "amount").to_dict()) == "10.0 ± 2.5"
    assert as_text(interval_of([0.0, 4.0, 2.0], "amount").to_dict()) == "2 (0 to 6.97)"
    assert as_text(interval_of([3.0, 3.0]).to_dict()) == "3 ± 0"
    assert as_text(interval_of([3.0]).to_dict()) == "3"
    assert as_text(interval_of([]).to_dict()) == "-"
    assert (number(None), percent(0.5), seconds(0.001)) == ("-", "50%", "1 ms")


def test_scales_are_known_by_the_name_of_the_figure() -> None:
    assert {scale_of(name) for name in AVERAGED} == {"amount", "fraction"}
    assert scale_of("ratio_lower") == "ratio"


def _make(name: str, seed: int | None = None) -> Any:
    return baselines.make(name, seed or 0)


def test_figures_over_seeds_are_means_of_single_runs() -> None:
    instance = oasis.generate("testbed", jobs=10, seed=1)
    seeds = [3, 4, 5]
    makers = {name: partial(_make, name) for name in ("rrh", "drf")}
    found = compare(instance, makers, {"rrh": seeds})
    singles = [
        compare(instance, {"rrh": partial(baselines.make, "rrh", seed)}).policies["rrh"]
        for seed in seeds
    ]
    row = found.policies["rrh"]
    values = [single["total_utility"] for single in singles]
    assert len(set(values)) > 1
    assert row["total_utility"] == pytest.approx(sum(values) / 3)
    assert row["over_seeds"]["seeds"] == seeds
    said = row["over_seeds"]["figures"]["total_utility"]
    assert said["values"] == values
    expected = interval_of(values, "amount").to_dict()
    assert {name: said[name] for name in expected} == expected
    assert "over_seeds" not in found.policies["drf"]
    shares = [single["utilisation"]["worker"]["gpu"] for single in singles]
    assert row["utilisation"]["worker"]["gpu"] == pytest.approx(sum(shares) / 3)
