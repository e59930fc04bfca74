"""Intervals over seeds and of two policies on shared seeds: scipy's, of what can be, and said."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import baselines
import oasis
from experiments.evaluation import intervals
from experiments.evaluation.comparison import AVERAGED, compare
from experiments.evaluation.pairs import MOST_SAID, against_first, pair, pairs_of_sweep, said
from experiments.evaluation.tables import interval as as_text
from experiments.evaluation.tables import number, percent, seconds
from experiments.figures import figure as rows
from experiments.plotting.comparison import plot_pairs
from experiments.sweep.summary import columns_of, notes_of, rows_of, shown_of, summarise
from tests.unit.experiments.test_values import VALUES

DRAWN = {
    "any": st.integers(-(10**9), 10**9).map(lambda k: k / 1000),
    "amount": st.integers(0, 10**9).map(lambda k: k / 1000),
    "fraction": st.integers(0, 1000).map(lambda k: k / 1000),
    "ratio": st.integers(1000, 10**9).map(lambda k: k / 1000),
}


@pytest.mark.parametrize("scale", intervals.LIMITS)
@given(data=st.data())
def test_an_interval_holds_its_mean_and_only_what_can_be(scale, data):
    values = data.draw(st.lists(DRAWN[scale], min_size=2, max_size=8))
    found = intervals.interval_of(values, scale)
    least, most = intervals.LIMITS[scale]
    assert least <= found.low <= found.mean <= found.high <= most
    assert min(values) - 1e-6 <= found.mean <= max(values) + 1e-6
    if scale == "ratio":
        seen = max(values) / min(values)
        assert found.high / found.low <= max(intervals.WIDEST, seen) * (1 + 1e-9)


@pytest.mark.parametrize("scale", ["any", "amount", "ratio"])
@pytest.mark.parametrize("values", [[math.inf, 2.0], [math.inf, math.inf]])
def test_infinite_values_have_no_interval(values, scale):
    found = intervals.interval_of(values, scale)
    assert (found.mean, found.n) == (math.inf, 2)
    assert found.to_dict() == {"mean": None, "low": None, "high": None, "n": 2, "interval": "none"}
    assert as_text(found.to_dict()) == "-"


def test_which_values_have_an_interval():
    assert math.isnan(intervals.interval_of([math.inf, -math.inf, 1.0]).mean)
    assert math.isnan(intervals.interval_of([]).mean)
    assert (intervals.interval_of([5.0]).mean, intervals.interval_of([5.0]).to_dict()["low"]) == (
        5.0,
        None,
    )
    assert intervals.interval_of([2.0, 2.0, 2.0], "ratio").kind == "student"
    for values, scale, message in (
        ([1e308, 1e308, 1.0], "any", "values: expected at most 1e+150 in size, got 1e+308"),
        ([2.0, 0.5], "ratio", "expected 1 to inf for ratio, got 0.5"),
        ([1.5], "fraction", "expected 0 to 1 for fraction, got 1.5"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            intervals.interval_of(values, scale)
    assert {intervals.scale_of(name) for name in AVERAGED} == {"amount", "fraction"}
    assert intervals.scale_of("ratio_lower") == "ratio"


@given(st.lists(DRAWN["any"], min_size=2, max_size=8))
@example([3.0, 5.0, 10.0])
def test_uncut_it_is_that_of_student(values):
    found = intervals.interval_of(values)
    if len(set(values)) > 1:
        spread = stats.sem(values)
        low, high = stats.t.interval(0.95, len(values) - 1, loc=found.mean, scale=spread)
        assert (found.low, found.high) == (
            pytest.approx(low, rel=1e-6, abs=1e-6),
            pytest.approx(high, rel=1e-6, abs=1e-6),
        )


def test_no_interval_of_a_count_of_jobs_ends_beyond_their_number():
    instance = oasis.generate("testbed", jobs=3, seed=2, horizon=14)
    found = compare(instance, {"rrh": baselines.RRH}, {"rrh": [0, 1, 2]})
    admitted = found.policies["rrh"]["over_seeds"]["figures"]["admitted"]
    assert (admitted["values"], admitted["high"], admitted["interval"]) == ([3, 2, 3], 3.0, "cut")
    cells = {"seed": [0, 1, 2], "status": "done", "jobs": 3, "admitted": [3, 2, 3]}
    (row,) = summarise(pd.DataFrame({"policy.name": "rrh", **cells}), ["admitted"]).to_dict(
        "records"
    )
    assert (row["admitted.high"], row["admitted.interval"]) == (3.0, "cut")


def test_a_sweep_says_that_a_mean_is_of_fewer_seeds():
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


def test_two_ratios_far_apart_have_a_range_and_not_ten_powers_of_ten():
    found = intervals.interval_of([1.0, 100.0], "ratio")
    assert found == intervals.Interval(pytest.approx(10.0), 1.0, 100.0, 2, "range")


def test_texts_say_plus_minus_only_where_it_is_symmetrical():
    assert as_text(intervals.interval_of([9.0, 11.0, 10.0], "amount").to_dict()) == "10.0 ± 2.5"
    assert as_text(intervals.interval_of([0.0, 4.0, 2.0], "amount").to_dict()) == "2 (0 to 6.97)"
    assert as_text(intervals.interval_of([3.0, 3.0]).to_dict()) == "3 ± 0"
    assert as_text(intervals.interval_of([3.0]).to_dict()) == "3"
    assert as_text(intervals.interval_of([]).to_dict()) == "-"
    assert (number(None), percent(0.5), seconds(0.001)) == ("-", "50%", "1 ms")


def test_figures_over_seeds_are_means_of_single_runs():
    instance = oasis.generate("testbed", jobs=10, seed=1)
    seeds = [3, 4, 5]
    makers = {"rrh": baselines.RRH, "drf": lambda *_: baselines.DRF()}
    found = compare(instance, makers, {"rrh": seeds})
    singles = [
        compare(instance, {"rrh": partial(baselines.RRH, seed)}).policies["rrh"] for seed in seeds
    ]
    row = found.policies["rrh"]
    values = [single["total_utility"] for single in singles]
    assert len(set(values)) > 1
    assert row["total_utility"] == pytest.approx(sum(values) / 3)
    assert row["over_seeds"]["seeds"] == seeds
    said = row["over_seeds"]["figures"]["total_utility"]
    assert said == said | intervals.interval_of(values, "amount").to_dict() | {"values": values}
    assert "over_seeds" not in found.policies["drf"]
    shares = [single["utilisation"]["worker"]["gpu"] for single in singles]
    assert row["utilisation"]["worker"]["gpu"] == pytest.approx(sum(shares) / 3)


CONFIDENCE = 0.95
VALUE = st.integers(0, 10**6).map(lambda k: k / 1000)


@settings(max_examples=200)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=30))
def test_the_interval_is_that_of_scipy_for_paired_samples(rows):
    first, second = (dict(enumerate(column)) for column in zip(*rows, strict=True))
    found = pair("a", "b", {"a": first, "b": {**second, 99: 7.0}})
    assert found is not None
    assert found.seeds == len(rows)
    base = float(np.mean(list(second.values())))
    if base == 0:
        assert found.by is None
        return
    differences = np.array(list(first.values())) - np.array(list(second.values()))
    if len(set(differences)) == 1:
        assert found.low == found.by == found.high
        return
    whole = stats.ttest_rel(list(first.values()), list(second.values()))
    ends = whole.confidence_interval(CONFIDENCE)
    near = {"rel": 1e-7, "abs": 1e-7 * max(1.0, abs(differences).max() / base)}
    assert found.by == pytest.approx(differences.mean() / base, **near)
    assert (found.low, found.high) == (
        pytest.approx(ends.low / base, **near),
        pytest.approx(ends.high / base, **near),
    )


@pytest.mark.parametrize("seeds", [5, 20])
def test_intervals_cover_the_true_difference_as_often_as_they_promise(seeds):
    """Seeds differ by a factor of two and more, policies on one seed by a tenth."""
    rng = np.random.default_rng(61)
    draws, hits = 1000, 0
    for _ in range(draws):
        jobs = rng.normal(100.0, 15.0, seeds)
        first, second = (jobs * by + rng.normal(0.0, 5.0, seeds) for by in (1.12, 1.0))
        found = pair("a", "b", {"a": dict(enumerate(first)), "b": dict(enumerate(second))})
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.12 <= found.high
    assert hits / draws == pytest.approx(CONFIDENCE, abs=0.02)


@pytest.mark.parametrize(("sentence", "utilities"), VALUES["pairs"].items())
def test_a_sentence_says_who_earns_more_and_how_certain_that_is(sentence, utilities):
    first, second = (dict(enumerate(values)) for values in utilities)
    assert [str(one) for one in against_first({"a": first, "b": second})] == [sentence]


def test_one_shared_seed_is_no_pair_and_many_pairs_are_counted():
    assert pair("a", "b", {"a": {0: 1.0, 1: 2.0}, "b": {1: 2.0, 2: 3.0}}) is None
    many = {f"p{k}": {0: 1.0 + k, 1: 2.0} for k in range(MOST_SAID + 3)}
    sentences = said(list(against_first(many)))
    assert len(sentences) == MOST_SAID + 1
    assert sentences[-1] == "2 more pairs: the JSON document has them"


def _swept(**columns: Any) -> pd.DataFrame:
    policies = ["oasis", "oasis", "drf", "drf"]
    rows = {"policy.name": policies, "seed": [0, 1, 0, 1], "status": "done"}
    return pd.DataFrame(rows | columns)


def test_a_sweep_pairs_cells_of_one_seed_and_leaves_out_what_failed():
    frame = _swept(total_utility=[6.0, 9.0, 4.0, 6.0])
    (found,) = pairs_of_sweep(frame)
    assert (found.first, found.second, found.by) == ("oasis", "drf", pytest.approx(0.5))
    frame.loc[3, "total_utility"] = None
    assert pairs_of_sweep(frame) == []
    assert pairs_of_sweep(_swept(slowest=1.0)) == []
    ax = plot_pairs([found])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["oasis against drf"]
    assert ax.lines[1].get_xdata().tolist() == [pytest.approx(50.0)]


@pytest.mark.parametrize("proven", [[True] * 4, [True, True, True, False]], ids=["all", "most"])
def test_proven_is_a_count_beside_the_seeds_or_leaves_one_column_of_ratios(proven):
    ratios = [1.5, 1.25, 2.0, 2.5]
    bounds = {"ratio_lower": ratios, "ratio_upper": ratios, "ratio": ratios}
    frame = _swept(total_utility=[6.0, 9.0, 4.0, 6.0], proven=proven, **bounds)
    figures = shown_of(frame, ("proven", "total_utility", "ratio_lower", "ratio_upper"))
    table = summarise(frame, figures)
    headings = [name for name, _ in columns_of(figures)]
    rows = rows_of(table, figures)
    if all(proven):
        assert headings[3:] == ["total_utility", "ratio"]
    else:
        assert headings[3:] == ["proven", "total_utility", "ratio_lower", "ratio_upper"]
        assert [row[3] for row in rows] == ["2 of 2", "1 of 2"]
