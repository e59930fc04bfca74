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


FULL = Allocation(((0, 4),), ((0, 2),))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(),
        Plan(wake_at=5.5),
        Plan(wake_at=6),
        changing(NOTHING),
        changing(Allocation(((0, 2),), ((0, 1),))),
        changing(Allocation(((0, 2),), ((0, 2),))),
        changing(Allocation(((0, 1), (1, 3)), ((0, 2),))),
        Plan(rejected={0: "no", 1: "neither"}),
    ],
)
def test_what_can_run_passes(plan: Plan) -> None:
    check_plan(plan, state(), "mine")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (None, "policy mine: expected a Plan, got None"),
        ({"changes": {}}, "policy mine: expected a Plan, got {'changes': {}}"),
        (
            Plan(wake_at=5.0),
            "policy mine: wake_at: expected a finite time after 5, got 5.0",
        ),
        (
            Plan(wake_at=math.inf),
            "policy mine: wake_at: expected a finite time after 5, got inf",
        ),
        (
            Plan(wake_at=math.nan),
            "policy mine: wake_at: expected a finite time after 5, got nan",
        ),
        (
            Plan(wake_at="soon"),  # type: ignore[arg-type]
            "policy mine: wake_at: expected a finite time after 5, got 'soon'",
        ),
        (
            changing(NOTHING, 7),
            "policy mine [job 7]: expected the index of an unfinished job",
        ),
        (
            changing(NOTHING, True),
            "policy mine [job True]: expected the index of an unfinished job",
        ),
        (
            Plan(rejected={"j0": "no"}),  # type: ignore[dict-item]
            "policy mine [job 'j0']: expected the index of an unfinished job",
        ),
        (
            Plan(rejected={0: 5}),  # type: ignore[dict-item]
            "policy mine [job j0]: rejected: expected a reason in words, got 5",
        ),
        (
            Plan(changes={0: FULL}, rejected={0: "no"}),
            "policy mine [job j0]: both changed and rejected",
        ),
    ],
)
def test_answers_that_are_none_are_refused(plan: Any, message: str) -> None:
    assert refusal(plan) == message


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        ((), "[job j0]: expected an Allocation, got ()"),
        ((((0, 2),), ()), "[job j0]: expected an Allocation, got (((0, 2),), ())"),
        (Allocation([(0, 2)]), "[job j0]: worker: expected a tuple, got [(0, 2)]"),  # type: ignore[arg-type]
        (Allocation(((0, 2),), None), "[job j0]: ps: expected a tuple, got None"),  # type: ignore[arg-type]
        (
            Allocation(((0, 2),), np.zeros(0)),  # type: ignore[arg-type]
            "[job j0]: ps: expected a tuple, got array([], dtype=float64)",
        ),
        (
            Allocation(((0, 2),), np.array([0, 1])),  # type: ignore[arg-type]
            "[job j0]: ps: expected a tuple, got array([0, 1])",
        ),
        (
            Allocation(((0, 2.0),)),  # type: ignore[arg-type]
            "[job j0]: worker: expected (machine, count), got (0, 2.0)",
        ),
        (
            Allocation(((0,),)),  # type: ignore[arg-type]
            "[job j0]: worker: expected (machine, count), got (0,)",
        ),
        (Allocation(((3, 2),)), "[job j0]: worker: expected a machine 0..2, got 3"),
        (Allocation(((-1, 2),)), "[job j0]: worker: expected a machine 0..2, got -1"),
        (
            Allocation(((0, 0),)),
            "[job j0, server n0]: expected a positive count of worker tasks, got 0",
        ),
        (
            Allocation(((0, 1), (0, 1)), ((0, 1),)),
            "[job j0, server n0]: named twice for worker tasks",
        ),
        (Allocation(((0, 2),), ((1, 1),)), "[job j0, server n1]: hosts no ps tasks"),
        (Allocation(((2, 2),), ((0, 1),)), "[job j0, server n2]: is down"),
        (Allocation(((0, 1),), ((0, 1),)), "[job j0]: expected 2..4 workers (3), got 1"),
        (
            Allocation(((0, 4), (1, 1)), ((0, 3),)),
            "[job j0]: expected 2..4 workers (3), got 5",
        ),
        (Allocation((), ((0, 1),)), "[job j0]: expected 2..4 workers (3), got 0"),
        (
            Allocation(((0, 3),), ((0, 1),)),
            "[job j0]: expected 2..3 parameter servers (6)(7), got 1",
        ),
        (
            Allocation(((0, 2),), ((0, 3),)),
            "[job j0]: expected 1..2 parameter servers (6)(7), got 3",
        ),
    ],
)
def test_allocations_that_cannot_be_are_refused(allocation: Any, message: str) -> None:
    assert refusal(changing(allocation)) == f"policy mine {message}"


def test_more_than_is_free_names_job_server_and_resource() -> None:
    """Four workers of two cores each leave nothing of eight cores for a parameter server there."""
    assert refusal(changing(FULL)) == (
        "policy mine [job j0, server n0, resource cpu]: more than is free"
    )


def test_the_last_job_that_takes_the_resource_is_named() -> None:
    two = Allocation(((0, 2),), ((0, 1),))
    assert refusal(Plan(changes={0: two, 1: two})) == (
        "policy mine [job j1, server n0, resource cpu]: more than is free"
    )


def test_what_a_job_gives_up_is_there_for_the_others_of_the_plan() -> None:
    held = Allocation(((0, 3),), ((0, 2),))
    made = state(j0=held)
    assert "more than is free" in refusal(changing(held, 1), made)
    check_plan(Plan(changes={0: NOTHING, 1: held}), made, "mine")
    check_plan(Plan(changes={1: held}, rejected={0: "no"}), made, "mine")
    check_plan(Plan(changes={0: held}), made, "mine")  # and what it keeps is counted once


def test_checking_changes_nothing() -> None:
    made = state(j0=Allocation(((0, 2),), ((0, 1),)))
    before = made.free.copy(), made.used.copy()
    check_plan(Plan(changes={0: NOTHING}, rejected={1: "no"}), made, "mine")
    assert (made.free, made.used) == before
    assert sorted(made.jobs) == [0, 1]


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        (Allocation(((0, 1),)), None),
        (Allocation((), ((0, 2),)), None),
        (Allocation(((0, 1),), ((0, 4),)), None),
        (Allocation(((0, 4), (1, 1))), "[job j0]: expected 0..4 workers, got 5"),
        (Allocation((), ((0, 5),)), "[job j0]: expected 0..4 parameter servers, got 5"),
    ],
)
def test_incomplete_gangs_may_hold_anything_that_they_may_use(
    allocation: Allocation, message: str | None
) -> None:
    made = state(partial_gangs=True)
    if message is None:
        check_plan(changing(allocation), made, "mine")
    else:
        assert refusal(changing(allocation), made) == f"policy mine {message}"
