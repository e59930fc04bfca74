"""Two policies on shared seeds: the interval is scipy's, covers as it promises, and is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from experiments.evaluation.pairs import MOST_SAID, against_first, pair, pairs_of_sweep, said
from experiments.plotting.comparison import plot_pairs
from experiments.sweep import summarise
from experiments.sweep.summary import columns_of, notes_of, rows_of, shown_of
from tests.builders import exit_code as oasis_command

EXAMPLE = "docs/examples/congested.json"
CONFIDENCE = 0.95
UNCLEAR = "a and b do not differ clearly"
VALUE = st.integers(0, 10**6).map(lambda k: k / 1000)


@settings(max_examples=200)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=30))
def test_the_interval_is_that_of_scipy_for_paired_samples(rows: list[tuple[float, float]]) -> None:
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
def test_intervals_cover_the_true_difference_as_often_as_they_promise(seeds: int) -> None:
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


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ([11, 12, 13], [10, 11, 12], "a beats b by 9.09% (95%: 9.09 to 9.09%) on 3 shared seeds"),
        ([9, 12], [12, 16], f"{UNCLEAR}: -25% (95%: -70.4 to 20.4%) on 2 shared seeds"),
        ([5, 7, 6], [10, 14, 12], "a earns 50% less than b (95%: 29.3 to 70.7%) on 3 shared seeds"),
        ([1, 2], [1, 2], "a and b earn the same on 2 shared seeds"),
        ([1, 2], [0, 0], "a and b: b earned nothing on 2 shared seeds"),
    ],
)  # fmt: skip
def test_a_sentence_says_who_earns_more_and_how_certain_that_is(
    first: list[float], second: list[float], sentence: str
) -> None:
    columns = {"a": dict(enumerate(first)), "b": dict(enumerate(second))}
    assert [str(one) for one in against_first(columns)] == [sentence]


def test_one_shared_seed_is_no_pair_and_many_pairs_are_counted() -> None:
    assert pair("a", "b", {"a": {0: 1.0, 1: 2.0}, "b": {1: 2.0, 2: 3.0}}) is None
    many = {f"p{k}": {0: 1.0 + k, 1: 2.0} for k in range(MOST_SAID + 3)}
    sentences = said(list(against_first(many)))
    assert len(sentences) == MOST_SAID + 1
    assert sentences[-1] == "2 more pairs: the JSON document has them"


def _swept(**columns: Any) -> pd.DataFrame:
    policies = ["oasis", "oasis", "drf", "drf"]
    rows = {"policy.name": policies, "seed": [0, 1, 0, 1], "status": "done"}
    return pd.DataFrame(rows | columns)


def test_a_sweep_pairs_cells_of_one_seed_and_leaves_out_what_failed() -> None:
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
def test_proven_is_a_count_beside_the_seeds_or_leaves_one_column_of_ratios(
    proven: list[bool],
) -> None:
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
    assert not any(
        note.startswith("*:") for note in notes_of(table, ["proven"]) if "proven" in figures
    )


def test_a_comparison_over_seeds_says_it_in_the_table_the_document_and_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, page = tmp_path / "c.json", tmp_path / "report.html"
    chosen = ("--policies", "oasis,fifo,drf", "--seeds", 3, "-o", kept)
    assert oasis_command("compare", EXAMPLE, *chosen) == 0
    document = json.loads(kept.read_text(encoding="utf-8"))
    (found,) = document["paired"]  # neither oasis nor drf draws, so they are no pair
    assert (found["first"], found["second"], found["seeds"]) == ("oasis", "fifo", 3)
    begin = "oasis beats fifo by "
    assert begin in capsys.readouterr().out
    assert oasis_command("report", kept, "-o", page) == 0
    assert begin in page.read_text(encoding="utf-8")
    del document["policies"]["fifo"]["over_seeds"]["figures"]["total_utility"]["values"][0]
    kept.write_text(json.dumps(document), encoding="utf-8")
    capsys.readouterr()
    assert oasis_command("report", kept, "-o", page) == 2
    expected = "policies.fifo.over_seeds.figures.total_utility.values: expected a value for each"
    assert expected in capsys.readouterr().err
