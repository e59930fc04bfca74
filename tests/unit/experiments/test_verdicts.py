"""What the page says of the figures follows from the data beside it, and changes with them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.figures.figure import Row, read_csv
from experiments.figures.settings import PRINTED

DATA = Path(__file__).parents[3] / "docs" / "figures"
sys.path.insert(0, str(DATA.parent))

from verdicts import JUDGES, judge, verdicts_of  # noqa: E402


def kept(name: str) -> list[Row]:
    return read_csv(DATA / f"{name}.csv")


def verdict(name: str, rows: list[Row], policy: str, says: str) -> bool:
    """Whether the data agree with the one statement about this policy that begins so."""
    (found,) = [
        each for each in judge(name, rows) if each.policy == policy and each.says.startswith(says)
    ]
    return found.agrees


def change(rows: list[Row], where: dict[str, object], column: str, value: float) -> list[Row]:
    """The rows with another value in those that have all of `where`."""
    chosen = [all(row[key] == wanted for key, wanted in where.items()) for row in rows]
    assert any(chosen)
    return [
        row | {column: value} if is_chosen else row
        for row, is_chosen in zip(rows, chosen, strict=True)
    ]


# figure, policy, beginning of the statement, and a change of the data that turns the verdict
TURNS: list[tuple[str, str, str, dict[str, object], str, float]] = [
    ("fig3", "oasis", "OASiS earns most", {"policy": "las", "jobs": 200}, "utility", 1e6),
    ("fig3", "oasis", "OASiS earns more", {"policy": "oasis", "jobs": 100}, "utility", 5e3),
    ("fig3", "oasis", "total utility", {"policy": "oasis", "jobs": 400}, "utility", 4e3),
    ("fig3", "drf", "total utility", {"policy": "drf", "jobs": 300}, "utility", 4e3),
    ("fig4", "oasis", "90 %", {"policy": "oasis", "kind": "time-critical"}, "p5", -90.0),
    ("fig4", "oasis", "OASiS's completions", {"policy": "rrh"}, "p95", -80.0),
    ("fig4", "oasis", "OASiS's median", {"policy": "oasis"}, "median", 0.0),
    ("fig4", "fifo", "median", {"policy": "fifo"}, "median", 50.0),
    ("fig5", "oasis", "ratios", {"policy": "oasis"}, "ratio", 1.2),
    ("fig6", "oasis", "ten times", {"policy": "oasis", "scale": 10.0}, "relative", 0.7),
    ("fig8", "oasis", "OASiS earns most", {"policy": "rrh"}, "utility", 1.0),
    ("fig8", "oasis", "OASiS before", {"policy": "fifo"}, "utility", 1e6),
    ("fig8", "fifo", "total utility", {"policy": "fifo"}, "utility", 91.0),
    ("fig9", "oasis", "median", {"policy": "oasis"}, "median", 0.9),
]


@pytest.mark.parametrize(("name", "policy", "says", "where", "column", "value"), TURNS)
def test_another_number_is_another_verdict(
    name: str, policy: str, says: str, where: dict[str, object], column: str, value: float
) -> None:
    rows = kept(name)
    changed = change(rows, where, column, value)
    assert verdict(name, changed, policy, says) != verdict(name, rows, policy, says)


def test_no_trend_is_neither_up_nor_down() -> None:
    rows = kept("fig5")
    says = "no trend"
    by_servers = {workers: k for k, workers in enumerate((2, 4, 5, 6))}

    def ratios(of: Callable[[int], float]) -> list[Row]:
        return [row | {"ratio": of(by_servers[row["worker_servers"]])} for row in rows]

    assert not verdict("fig5", ratios(lambda k: 2.0 - 0.1 * k), "oasis", says)
    assert not verdict("fig5", ratios(lambda k: 1.0 + 0.1 * k), "oasis", says)
    assert verdict("fig5", ratios(lambda k: 1.0 + 0.1 * (k % 2)), "oasis", says)


def test_the_default_is_first_at_every_number_of_jobs_and_the_printed_form_is_not() -> None:
    rows = {(row["policy"], row["jobs"]): row for row in kept("fig3")}
    for jobs in (100, 200, 300, 400):
        here = {policy: row for (policy, count), row in rows.items() if count == jobs}
        assert here["oasis"]["first"] == here["oasis"]["seeds"] == 5
        assert max(here, key=lambda policy: here[policy]["utility"]) == "oasis"
    assert verdict("fig3", kept("fig3"), "oasis", "OASiS earns most")
    assert not verdict("fig3", kept("fig3"), PRINTED, "OASiS earns most")
    levels = [rows["oasis", jobs]["utility"] for jobs in (100, 200, 300, 400)]
    assert levels == pytest.approx([2773, 4640, 4894, 5924], rel=0.01)


def test_the_claim_of_fig_4_holds_for_the_default_alone() -> None:
    rows = kept("fig4")
    for says in ("90 %", "OASiS's completions spread least"):
        assert verdict("fig4", rows, "oasis", says)
        assert not verdict("fig4", rows, PRINTED, says)


def test_every_instance_of_fig_5_has_a_ratio_and_they_fall_with_servers() -> None:
    rows = [row for row in kept("fig5") if row["policy"] == "oasis"]
    assert all(row["ratios"] == row["proven"] == row["seeds"] for row in rows)
    means = [
        math.exp(
            sum(math.log(row["ratio"]) for row in rows if row["worker_servers"] == workers) / 4
        )
        for workers in (2, 4, 5, 6)
    ]
    assert means == pytest.approx([1.62, 1.31, 1.10, 1.05], rel=0.1)


def test_the_levels_of_oasis_and_fifo_on_the_testbed_are_the_published_ones() -> None:
    rows = kept("fig8")
    for policy in ("oasis", PRINTED, "fifo"):
        assert verdict("fig8", rows, policy, "total utility")
    assert verdict("fig8", rows, "oasis", "OASiS before Dorm before FIFO")


def test_our_rrh_earns_more_than_the_published_one_wherever_it_is_compared() -> None:
    """The pictures and the page say that it is stronger."""
    compared = [*kept("fig3"), *kept("fig8")]
    beyond = [row["utility"] / row["published"] for row in compared if row["policy"] == "rrh"]
    assert len(beyond) == 5
    assert min(beyond) > 1.5


def test_every_form_is_judged_in_every_figure_and_every_printed_rival() -> None:
    found = verdicts_of(DATA)
    for name in JUDGES:
        assert {"oasis", PRINTED} <= {each.policy for each in found if each.figure == name}
    rivals = {each.policy for each in found} - {"oasis", PRINTED}
    assert rivals == {"fifo", "drf", "rrh", "dorm"}
    assert all(each.found for each in found)
