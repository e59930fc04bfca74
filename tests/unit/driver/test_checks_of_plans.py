"""Answers that cannot run are refused whole, with the job, the server and the resource named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oasis.driver.books import check_plan
from oasis.model.errors import PolicyError
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import Machine, Site
from oasis.simulator.state import JobProgress, State
from tests import builders
from tests.builders import rows

BOTH = frozenset({"worker", "ps"})
MACHINES = (
    Machine("n0", (4.0, 8.0), BOTH),
    Machine("n1", (4.0, 8.0), frozenset({"worker"})),
    Machine("n2", (4.0, 8.0), BOTH),
)


def job(index: int) -> PolicyJob:
    return builders.gang(f"j{index}", index)


def state(partial_gangs: bool = False, **held: Allocation) -> State:
    """Two jobs, at time 5; the third machine is down."""
    made = State(Site(("gpu", "cpu"), MACHINES, partial_gangs=partial_gangs))
    made.now = 5.0
    for k in range(2):
        progress = made.jobs[k] = JobProgress(job(k))
        if f"j{k}" in held:
            made.hold(progress, held[f"j{k}"], coupled=False)
    made.lose(2)
    return made


def refusal(plan: Any, made: State | None = None) -> str:
    with pytest.raises(PolicyError) as caught:
        check_plan(plan, made or state(), "mine")
    return str(caught.value)


def changing(allocation: Any, index: Any = 0) -> Plan:
    return Plan(changes={index: allocation})


def held(row: dict[str, Any]) -> Allocation:
    return Allocation(*(tuple(map(tuple, row.get(name, []))) for name in ("workers", "ps")))


FULL = Allocation(((0, 4),), ((0, 2),))
ROWS = rows(__file__, "plans.toml")


@pytest.mark.parametrize("partial", [False, True])
def test_what_can_run_passes_and_what_cannot_is_refused(partial):
    before = "partial_" if partial else ""
    for row in ROWS[f"{before}allowed"]:
        check_plan(changing(held(row)), state(partial), "mine")
    for row in ROWS[f"{before}refused"]:
        assert refusal(changing(held(row)), state(partial)) == f"policy mine {row['says']}"
    for plan in (Plan(), Plan(wake_at=5.5), Plan(rejected={0: "no", 1: "neither"})):
        check_plan(plan, state(partial), "mine")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (None, ": expected a Plan, got None"),
        ({"changes": {}}, ": expected a Plan, got {'changes': {}}"),
        *(
            (Plan(wake_at=time), f": wake_at: expected a finite time after 5, got {time!r}")
            for time in (5.0, math.inf, math.nan, "soon")
        ),
        (changing(NOTHING, 7), " [job 7]: expected the index of an unfinished job"),
        (changing(NOTHING, True), " [job True]: expected the index of an unfinished job"),
        (Plan(rejected={"j0": "no"}), " [job 'j0']: expected the index of an unfinished job"),
        (Plan(rejected={0: 5}), " [job j0]: rejected: expected a reason in words, got 5"),
        (Plan({0: FULL}, {0: "no"}), " [job j0]: both changed and rejected"),
        (changing(()), " [job j0]: expected an Allocation, got ()"),
        (changing((((0, 2),), ())), " [job j0]: expected an Allocation, got (((0, 2),), ())"),
        *(
            (changing(Allocation(((0, 2),), odd)), f" [job j0]: ps: expected a tuple, got {odd!r}")
            for odd in (None, [(0, 2)], np.zeros(0), np.array([0, 1]))
        ),
    ],
)
def test_answers_that_are_none_are_refused(plan, message):
    assert refusal(plan) == f"policy mine{message}"


def test_the_last_job_that_takes_the_resource_is_named():
    two = Allocation(((0, 2),), ((0, 1),))
    assert refusal(Plan(changes={0: two, 1: two})) == (
        "policy mine [job j1, server n0, resource cpu]: more than is free"
    )


def test_what_a_job_gives_up_is_there_for_the_others_of_the_plan():
    held = Allocation(((0, 3),), ((0, 2),))
    made = state(j0=held)
    assert "more than is free" in refusal(changing(held, 1), made)
    check_plan(Plan(changes={0: NOTHING, 1: held}), made, "mine")
    check_plan(Plan(changes={1: held}, rejected={0: "no"}), made, "mine")
    check_plan(Plan(changes={0: held}), made, "mine")  # and what it keeps is counted once


def test_checking_changes_nothing():
    made = state(j0=Allocation(((0, 2),), ((0, 1),)))
    before = made.free.copy(), made.used.copy()
    check_plan(Plan(changes={0: NOTHING}, rejected={1: "no"}), made, "mine")
    assert (made.free, made.used) == before
    assert sorted(made.jobs) == [0, 1]
