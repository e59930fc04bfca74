"""A solve that is limited in work gives the same result every time, however busy the machine is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import oasis
from experiments import competitive_ratio
from offline import solve
from tests.background import beside

METHODS = ("milp", "benders", "colgen", "auto")
WORK = 0.1


def instance(seed: int, jobs: int = 8, worker_servers: int = 5) -> oasis.Instance:
    return oasis.generate("testbed", jobs=jobs, worker_servers=worker_servers, seed=seed)


@contextmanager
def busy() -> Iterator[None]:
    """Another thread takes as much of the processor as it can get."""

    def spin(over: threading.Event) -> None:
        while not over.is_set():
            sum(range(1000))

    with beside(spin):
        yield


def repeatable(document: dict[str, object]) -> str:
    """The document as text, without the measured times."""

    def cleaned(value: object) -> object:
        if isinstance(value, dict):
            return {k: cleaned(v) for k, v in value.items() if not k.endswith("seconds")}
        return [cleaned(entry) for entry in value] if isinstance(value, list) else value

    return json.dumps(cleaned(document))


@pytest.mark.parametrize("method", METHODS[:-1])  # the ratio below is found by "auto"
def test_the_same_work_gives_the_same_bytes_on_a_busy_machine(method: str) -> None:
    problem = instance(0)
    first = solve(problem, method, work_limit=WORK, seed=3)
    with busy():
        second = solve(problem, method, work_limit=WORK, seed=3)
    assert repeatable(first.to_dict()) == repeatable(second.to_dict())
    assert first.parameters["work_limit"] == WORK
    assert first.parameters["seed"] == 3
    assert first.status in ("optimal", "work_limit")


@pytest.mark.parametrize("method", METHODS)
def test_no_work_at_all_keeps_the_schedules_of_oasis(method: str) -> None:
    problem = instance(0)
    result = solve(problem, method, work_limit=0.0)
    online = oasis.simulate(problem, oasis.OASiS.from_instance(problem))
    assert result.status == "work_limit"
    assert result.objective == pytest.approx(online.total_utility)


@pytest.mark.parametrize("method", ["milp", "benders", "auto"])
def test_unlimited_work_ends_with_a_proof(method: str) -> None:
    result = solve(instance(1, 5, 4), method, work_limit=float("inf"))
    assert result.status == "optimal"
    assert result.parameters["work_limit"] is None


def test_a_ratio_repeats() -> None:
    problem = instance(0)
    first, second = (
        competitive_ratio(problem, work_limit=WORK, seed=1).to_dict() for _ in range(2)
    )
    assert repeatable(first) == repeatable(second)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), True, "2"])
def test_a_limit_that_is_none_is_refused(limit: float) -> None:
    with pytest.raises(ValueError, match=r"^work_limit: expected units of work >= 0"):
        solve(instance(0), work_limit=limit)
