"""No change of structure changes a decision: the golden runs are those recorded."""

from __future__ import annotations

import json

import pytest

from tests.recorded.__main__ import KEPT_RUNS, run_differences
from tests.recorded.runs import runs


def test_a_run_that_differs_is_named_with_what_differs() -> None:
    kept = {"a": {"total": 1.0, "decisions": "x"}, "b": {"total": 2.0, "decisions": "y"}}
    found = {"a": {"total": 1.5, "decisions": "x"}, "c": {"total": 2.0, "decisions": "y"}}
    assert run_differences(kept, found) == [
        "a: total 1.0 -> 1.5",
        "b: is gone",
        "c: not recorded",
    ]
    assert run_differences(kept, kept) == []


def test_every_driver_and_policy_is_among_the_recorded_runs() -> None:
    kept = json.loads(KEPT_RUNS.read_text())
    assert list(kept) == [name for name, _ in runs()]
    assert len(kept) >= 200
    assert {name.split()[0] for name in kept} == {
        *("simulate", "replay", "elastic", "live", "cluster")
    }


@pytest.mark.nightly
def test_golden_runs_are_those_recorded() -> None:
    kept = json.loads(KEPT_RUNS.read_text())
    assert run_differences(kept, {name: make() for name, make in runs()}) == []
