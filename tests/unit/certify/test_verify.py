"""Every constraint (2)-(13) is checked: one thing is broken in a valid run, and it is named."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, Piecewise, Schedule, Server, VerificationError
from tests import builders

CLUSTER = Cluster(
    ("cpu", "bandwidth_gbps"),
    (Server("w", {"cpu": 4.0, "bandwidth_gbps": 4.0}, 2),),
    (
        Server("p0", {"cpu": 2.0, "bandwidth_gbps": 4.0}),
        Server("p1", {"cpu": 2.0, "bandwidth_gbps": 1.0}),
    ),
    1.0,
)


def job(name: str, arrival: int, **changes: Any) -> Job:
    """Four worker-slots, at most three workers at once, one parameter server for two workers."""
    fields: dict[str, Any] = {
        "minibatch_time": 4 / 3,
        "worker": {"cpu": 1.0, "bandwidth_gbps": 0.5},
        "ps": {"cpu": 1.0, "bandwidth_gbps": 1.0},
        "utility": Piecewise((0.0, 4.0), (10.0, 6.0)),
    }
    return builders.job(name, arrival, workers=3, **(fields | changes))


INSTANCE = Instance(5, CLUSTER, (job("a", 1), job("b", 0)))
WORKERS = [[1, 0, 2], [1, 1, 1], [2, 0, 1]]
PS = [[1, 0, 2], [2, 1, 1]]
VALID = {
    "a": Schedule("a", WORKERS, PS),
    "b": Schedule("b", [[0, 0, 2], [1, 1, 2]], [[0, 0, 1], [1, 1, 1]]),
}


def with_a(workers: list[list[int]] = WORKERS, ps: list[list[int]] = PS) -> dict[str, Schedule]:
    return VALID | {"a": Schedule("a", workers, ps)}


def test_valid_schedules_are_worth_what_their_utilities_say() -> None:
    """a completes in slot 2 after arriving in 1, b in slot 1 after 0: one slot of delay each."""
    assert oasis.verify(INSTANCE, VALID) == 9.0 + 9.0
    assert oasis.verify(INSTANCE, {}) == 0.0
    assert oasis.verify(INSTANCE, SimpleNamespace(schedules=VALID, objective=18.0)) == 18.0


BROKEN = tomllib.loads(Path(__file__).with_name("broken_schedules.toml").read_text())


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_schedule_names_constraint_job_slot_and_server(case: dict[str, Any]) -> None:
    with pytest.raises(VerificationError) as caught:
        oasis.verify(INSTANCE, with_a(case["workers"], case["ps"]))
    error = caught.value
    assert error.constraint.split()[0] == case["constraint"]
    found = (error.job, error.slot, error.server)
    assert found == ("a", case.get("slot"), case.get("server"))
    assert str(error).startswith(f"{error.constraint} [job a")


def test_a_slot_with_fewer_workers_than_the_minimum_is_named() -> None:
    """Job a has three workers in slot 1 and one in slot 2."""
    wide = Instance(5, CLUSTER, (job("a", 1, min_workers=2), job("b", 0, min_workers=2)))
    with pytest.raises(VerificationError) as caught:
        oasis.verify(wide, VALID)
    assert str(caught.value) == "minimum of workers [job a, slot 2]: 1 < 2"
    enough = with_a([[1, 0, 1], [1, 1, 1], [3, 0, 2]], [[1, 0, 1], [3, 1, 1]])
    assert oasis.verify(wide, enough) == 8.0 + 9.0


def test_worker_capacity_is_shared_by_all_jobs() -> None:
    """(4): three workers of a beside two of b make 5 CPUs on a server of 4."""
    with pytest.raises(VerificationError) as caught:
        oasis.verify(INSTANCE, with_a([[1, 1, 3], [2, 0, 1]], PS))
    assert (caught.value.slot, caught.value.server) == (1, "w#1")
    expected = "(4) worker capacity [slot 1, server w#1]: cpu: 5 used, capacity 4"
    assert str(caught.value) == expected


def test_parameter_server_capacity_is_shared_by_all_jobs() -> None:
    """(5): p1 has CPUs for one parameter server of each job, but bandwidth for one in all."""
    with pytest.raises(VerificationError) as caught:
        oasis.verify(INSTANCE, with_a(ps=[[1, 0, 1], [1, 1, 1], [2, 1, 1]]))
    assert (caught.value.slot, caught.value.server) == (1, "p1")
    expected = "bandwidth_gbps: 2 used, capacity 1"
    assert str(caught.value) == f"(5) parameter-server capacity [slot 1, server p1]: {expected}"


def test_capacity_of_a_single_job_counts_too() -> None:
    big = job("a", 0, worker={"cpu": 3.0, "bandwidth_gbps": 0.5})
    with pytest.raises(VerificationError, match=r"\(4\) .* cpu: 6 used, capacity 4"):
        oasis.verify(
            Instance(5, CLUSTER, (big,)),
            {"a": Schedule("a", [[0, 0, 2], [1, 0, 2]], [[0, 0, 1], [1, 0, 1]])},
        )


def test_a_full_server_is_not_overfull_by_rounding() -> None:
    """Ten workers of 0.1 use 0.9999999999999999 or 1.0 of one CPU; 1.000001 is too much."""
    cluster = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {}),), 1.0)
    for demand, fits in ((0.1, True), (0.1 + 1e-12, True), (0.1 + 1e-7, False)):
        one = Job("j", 0, 1, 10, 1, 1.0, 0.0, {"cpu": demand}, {}, Constant(1.0))
        instance, schedules = Instance(1, cluster, (one,)), {"j": Schedule("j", [[0, 0, 10]], [])}
        if fits:
            assert oasis.verify(instance, schedules) == 1.0
        else:
            with pytest.raises(VerificationError, match=r"\(4\)"):
                oasis.verify(instance, schedules)


def test_schedule_of_an_unknown_job_is_refused() -> None:
    with pytest.raises(VerificationError, match=r"\(1\) jobs \[job x\]: the instance has no such"):
        oasis.verify(INSTANCE, {"x": Schedule("x", WORKERS, PS)})


def test_schedule_filed_under_another_job_is_refused() -> None:
    with pytest.raises(VerificationError, match=r"\(1\) jobs \[job a\]: is filed for 'b'"):
        oasis.verify(INSTANCE, {"a": VALID["b"]})


@pytest.mark.parametrize("name", ["total_utility", "objective"])
def test_stated_objective_must_be_the_recomputed_one(name: str) -> None:
    result = SimpleNamespace(schedules=VALID, **{name: 18.5})
    with pytest.raises(VerificationError, match=rf"\(1\) objective: {name} is 18.5, recomputed 18"):
        oasis.verify(INSTANCE, result)


def test_completion_counts_from_the_last_slot_with_a_worker() -> None:
    """(8): a worker more in the last slot costs delay, whether or not the work was done before."""
    late = with_a([*WORKERS, [4, 0, 1]], [*PS, [4, 0, 1]])
    assert oasis.verify(INSTANCE, late) == 7.0 + 9.0


def test_runs_with_a_tampered_schedule_or_utility_are_refused() -> None:
    run = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    oasis.verify(INSTANCE, run)
    first = run.decisions[0]
    assert first.schedule is not None
    fewer = dataclasses.replace(first.schedule, workers=first.schedule.workers[:-1])
    for broken in (
        dataclasses.replace(first, utility=first.utility + 1),
        dataclasses.replace(first, schedule=fewer),
    ):
        with pytest.raises(VerificationError):
            oasis.verify(INSTANCE, dataclasses.replace(run, decisions=(broken, *run.decisions[1:])))
