"""Limits with units, on the command line and in the file of a sweep."""

from __future__ import annotations

import math
from typing import Any

import pytest

import oasis
from experiments.cli.options import Limits
from experiments.evaluation.options import Duration, read_seconds, read_share
from experiments.sweep import expand, sweep_config
from experiments.sweep.tasks import RatioOptions


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("2m", 120.0),
        ("2min", 120.0),
        ("1h", 3600.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("1h30m", 5400.0),
        ("1 h 30 m 10 s", 5410.0),
        ("1d", 86400.0),
        ("60", 60.0),
        ("1e2", 100.0),
        ("0", 0.0),
        ("inf", math.inf),
        (" 5s ", 5.0),
        (7, 7.0),
    ],
)
def test_a_time_has_a_unit_or_is_seconds(text: Any, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "s", "5s5", "m5", "-5s", "1h-30m", "5%", "1:30", True])
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected seconds >= 0, or inf \(such as 90, 90s, 5m"):
        read_seconds(text)


@pytest.mark.parametrize("text", ["-1", "nan", "-inf", -3])
def test_a_negative_time_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected seconds >= 0, or inf, got "):
        read_seconds(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [("5%", 0.05), ("0.05", 0.05), ("0.5 %", 0.005), ("inf", math.inf), (0.1, 0.1), ("100%", 1.0)],
)
def test_a_share_is_a_number_or_a_percentage(text: Any, share: float) -> None:
    assert read_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    "text", ["", "%", "5 percent", "5%%", "-1%", "nan", "nan%", False, 5, "101%"]
)
def test_what_is_no_share_is_refused(text: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^expected a share from 0 to 1, such as 0.05 or 5%, or inf, got "
    ):
        read_share(text)


def test_units_of_work_are_no_time() -> None:
    with pytest.raises(ValueError, match=r"^expected units of work >= 0, or inf, got '5s'$"):
        read_seconds("5s", "units of work", is_time=False)
    assert isinstance(read_seconds("5s"), Duration)
    units = {"work_limit": 3.0, "no_improvement": 5.0}
    assert Limits(**units).given() == units
    with pytest.raises(ValueError, match="--no-improvement: expected units of work with --work"):
        Limits(None, 3.0, no_improvement=read_seconds("5s")).given()


def ratio_options(**task: Any) -> RatioOptions:
    grid = {
        "instances": [{"preset": "testbed", "jobs": 2}],
        "policies": [{"name": "drf"}],
        "task": {"name": "ratio", **task},
    }
    (cell,) = expand(sweep_config(grid))
    assert isinstance(cell.options, RatioOptions)
    return cell.options


def test_a_sweep_reads_the_same_units() -> None:
    made = ratio_options(time_limit="2m", gap="5%", no_improvement="500ms")
    assert made == ratio_options(time_limit=120.0, gap=0.05, no_improvement=0.5)
    assert ratio_options(time_limit="inf").time_limit is None


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"time_limit": "5x"}, r"task.time_limit: expected seconds >= 0, or inf \(such as"),
        ({"gap": "5x"}, r"task.gap: expected a share from 0 to 1, such as"),
        ({"work_limit": "5s"}, r"task.work_limit: expected units of work >= 0, or inf, got '5s'"),
        ({"work_limit": 5, "no_improvement": "5s"}, "no_improvement: expected units of work with"),
    ],
)
def test_a_sweep_names_the_limit_that_is_none(task: dict[str, Any], message: str) -> None:
    with pytest.raises(oasis.OasisError, match=message):
        ratio_options(**task)
