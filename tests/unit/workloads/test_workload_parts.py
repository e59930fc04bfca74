"""The parts of the generator: shares, demands, settings, and how jobs are drawn until they fit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Cluster, Server
from oasis.model.resources import BANDWIDTH
from oasis.workloads.generator import resolve
from oasis.workloads.presets import MIX, PRIORITY, RESOURCES, fitting
from oasis.workloads.work import (
    MAX_ROUNDS,
    Columns,
    parallelism,
    redraw,
    set_bandwidth,
    shares,
)

WRONG = tomllib.loads(Path(__file__).with_name("wrong_arguments.toml").read_text())["wrong"]

# -- shares and ranges -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mix", "size", "expected"),
    [
        ((0.10, 0.55, 0.35), 100, [10, 55, 35]),
        ((0.10, 0.55, 0.35), 1, [0, 1, 0]),
        ((0.10, 0.55, 0.35), 10, [1, 6, 3]),
        ((0.5, 0.5, 0.0), 3, [2, 1, 0]),
        ((1.0, 0.0, 0.0), 7, [7, 0, 0]),
        ((0.10, 0.55, 0.35), 0, [0, 0, 0]),
    ],
)
def test_classes_get_their_shares_with_largest_remainders_first(
    mix: tuple[float, ...], size: int, expected: list[int]
) -> None:
    assert shares(mix, size).tolist() == expected


@given(st.integers(0, 500), st.lists(st.integers(0, 20), min_size=3, max_size=3))
def test_shares_add_up_and_are_off_by_less_than_one(size: int, parts: list[int]) -> None:
    if not sum(parts):
        parts = [1, 1, 1]
    mix = tuple(part / sum(parts) for part in parts)
    found = shares(mix, size)
    assert found.sum() == size
    assert (np.abs(found - np.array(mix) * size) < 1 + 1e-9).all()


# -- settings --------------------------------------------------------------------------------------

GIVEN: dict[str, Any] = {
    "seed": 1,
    "jobs": None,
    "worker_servers": None,
    "ps_servers": None,
    "horizon": None,
    "slot_seconds": None,
    "arrivals": None,
    "counts": None,
    "machines": "gpu_workers",
    "priority": PRIORITY,
    "mix": MIX,
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["says"])
def test_a_bad_argument_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(wrong['says'])}"):
        resolve(wrong["preset"], **(GIVEN | wrong.get("changes", {})))


# -- work ------------------------------------------------------------------------------------------


def test_units_that_fit_are_counted_machine_by_machine() -> None:
    """Two of (2, 1) on a machine of (4, 9), one on each of two of (3, 1); what asks for nothing."""
    capacity = np.array([[4.0, 9.0], [3.0, 1.0], [3.0, 1.0]])
    demand = np.array([[2.0, 1.0], [5.0, 0.0], [0.0, 3.0]])
    assert fitting(demand, capacity).tolist() == [4.0, 0.0, 3.0]


def machines(workers: int, ps: int) -> Cluster:
    shape = dict.fromkeys(RESOURCES, 100.0)
    w = tuple(Server(f"w{k}", {**shape, "gpu": 2.0}) for k in range(workers))
    p = tuple(Server(f"p{k}", {**shape, BANDWIDTH: 6.0}) for k in range(ps))
    return Cluster(RESOURCES, w, p, 1200.0)


@pytest.mark.parametrize(
    ("chunks", "workers", "ps", "most"), [(9, 2, 1, 4), (3, 2, 1, 3), (9, 4, 1, 6)]
)
def test_workers_at_once_are_limited_by_chunks_machines_and_parameter_servers(
    chunks: int, workers: int, ps: int, most: int
) -> None:
    """A GPU a worker; two parameter servers of 3 Gbit/s fit, each serves three of 1 Gbit/s."""
    worker, server = np.zeros((2, 1, len(RESOURCES)))
    worker[0, RESOURCES.index("gpu")] = 1.0
    set_bandwidth(worker, np.array([1.0]))
    set_bandwidth(server, np.array([3.0]))
    columns: Columns = {"worker": worker, "ps": server, "chunks": np.array([chunks])}
    assert parallelism(columns, machines(workers, ps)).tolist() == [most]


# -- drawing again ---------------------------------------------------------------------------------


def test_each_job_gets_its_first_good_candidate() -> None:
    """Candidates are 0, 1, 2, ..; job k wants the first that divides by k + 2 with rest 1."""
    asked: list[int] = []

    def draw(job: Any) -> tuple[Columns, Any]:
        asked.append(len(job))
        number = np.concatenate([np.arange(np.sum(job == k)) for k in np.unique(job)])
        return {"value": number}, number % (job + 2) == 1

    found = redraw(3, draw)
    assert found is not None
    assert found["value"].tolist() == [1, 1, 1]
    assert len(asked) == 1


def test_only_jobs_without_a_good_candidate_are_drawn_for_again() -> None:
    asked: list[list[int]] = []

    def draw(job: Any) -> tuple[Columns, Any]:
        asked.append(np.unique(job).tolist())
        return {"round": np.full(len(job), len(asked))}, job < len(asked)

    found = redraw(3, draw)
    assert found is not None
    assert found["round"].tolist() == [1, 2, 3]
    assert asked == [[0, 1, 2], [1, 2], [2]]


def test_a_job_that_never_gets_one_ends_the_search() -> None:
    rounds = 0

    def draw(job: Any) -> tuple[Columns, Any]:
        nonlocal rounds
        rounds += 1
        return {"value": job}, job == 0

    assert redraw(2, draw) is None
    assert rounds == MAX_ROUNDS
