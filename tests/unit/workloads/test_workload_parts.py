"""The parts of the generator: shares, demands, settings, and how jobs are drawn until they fit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.cluster import Cluster, Server
from oasis.model.resources import BANDWIDTH
from oasis.workloads.generator import GeneratorSettings, resolve
from oasis.workloads.presets import DECAY, MIX, PRESETS, PRIORITY, RESOURCES, fitting
from oasis.workloads.work import (
    MAX_ROUNDS,
    Columns,
    bandwidth_of,
    calibrated,
    demands,
    exchange_slots,
    paper,
    parallelism,
    redraw,
    rows,
    set_bandwidth,
    shares,
    utilities,
    whole,
)
from oasis.workloads.work import (
    testbed as draw_testbed,
)

PAPER, TESTBED = PRESETS["paper"], PRESETS["testbed"]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


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


def test_both_ends_of_a_range_of_integers_are_drawn() -> None:
    drawn = whole(rng(), (2, 4), 300)
    assert set(drawn.tolist()) == {2, 3, 4}
    assert whole(rng(), (7, 7), 3).tolist() == [7, 7, 7]


def test_bandwidth_is_one_column_of_the_demands() -> None:
    table = np.ones((2, len(RESOURCES)))
    set_bandwidth(table, np.array([5.0, 6.0]))
    assert bandwidth_of(table).tolist() == [5.0, 6.0]
    assert table.sum() == 2 * (len(RESOURCES) - 1) + 11.0


@pytest.mark.parametrize("preset", [PAPER, TESTBED])
def test_demands_stay_in_their_ranges_and_a_parameter_server_keeps_up(preset: Any) -> None:
    columns = demands(rng(1), preset, 500)
    for group in ("worker", "ps"):
        for name, (low, high) in getattr(preset, group).items():
            column = columns[group][:, RESOURCES.index(name)]
            assert column.min() >= low
            assert column.max() <= high
            assert np.array_equal(column, np.floor(column))
    worker, ps = bandwidth_of(columns["worker"]), bandwidth_of(columns["ps"])
    assert (worker <= ps).all()
    assert preset.ps_bandwidth[0] <= ps.min()
    assert ps.max() <= preset.ps_bandwidth[1]


def test_sensitivity_follows_the_mix_exactly_and_in_random_order() -> None:
    columns = utilities(rng(), PAPER, (2.0, 3.0), MIX, 200)
    decay = columns["decay"]
    assert (decay == 0.0).sum() == 20
    assert ((decay >= DECAY[2][0]) & (decay <= DECAY[2][1])).sum() == 70
    assert (np.diff(decay == 0.0) != 0).sum() > 2
    assert columns["priority"].min() >= 2.0
    assert columns["priority"].max() <= 3.0
    assert columns["target"].min() >= PAPER.target[0]


def test_rows_are_plain_numbers_by_name() -> None:
    columns: Columns = {
        "epochs": np.array([3, 4]),
        "worker": np.arange(2 * len(RESOURCES)).reshape(2, -1),
        "ps": np.zeros((2, len(RESOURCES))),
    }
    first, second = rows(columns)
    assert first["epochs"] == 3
    assert type(first["epochs"]) is int
    assert first["worker"] == {name: k for k, name in enumerate(RESOURCES)}
    assert second["worker"][BANDWIDTH] == 2 * len(RESOURCES) - 1


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


def settings(preset: str = "paper", **changes: Any) -> GeneratorSettings:
    return resolve(preset, **(GIVEN | changes))


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_what_is_not_given_comes_from_the_preset(preset: str) -> None:
    found, default = settings(preset), PRESETS[preset]
    for name in ("jobs", "worker_servers", "ps_servers", "horizon", "slot_seconds"):
        assert getattr(found, name) == getattr(default, name)
    assert (found.arrivals, found.counts) == ("uniform", None)


def test_what_is_given_stays() -> None:
    found = settings(jobs=3, slot_seconds=60, arrivals="poisson", priority=[5, 6])
    assert (found.jobs, found.slot_seconds, found.arrivals) == (3, 60.0, "poisson")
    assert found.priority == (5.0, 6.0)


def test_hourly_counts_choose_the_arrivals_of_google() -> None:
    found = settings(counts=[1.0, 2.0, 0.0])
    assert found.arrivals == "google"
    assert found.counts is not None
    assert found.counts.tolist() == [1.0, 2.0, 0.0]


def test_metadata_are_plain_and_name_the_counts_by_their_fingerprint() -> None:
    document = json.loads(json.dumps(settings(counts=[1.0, 2.0]).metadata()))
    assert (document["preset"], document["seed"]) == ("paper", 1)
    assert document["parameters"]["mix"] == list(MIX)
    other = json.loads(json.dumps(settings(counts=[1.0, 2.5]).metadata()))
    assert document["parameters"]["counts"] != other["parameters"]["counts"]


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("big", {}, f"preset: expected one of {', '.join(PRESETS)}, got 'big'"),
        (["paper"], {}, f"preset: expected one of {', '.join(PRESETS)}, got ['paper']"),
        ("paper", {"jobs": 0}, "jobs: expected an integer >= 1, got 0"),
        ("paper", {"horizon": 2.5}, "horizon: expected an integer >= 1, got 2.5"),
        ("paper", {"seed": -1}, "seed: expected an integer >= 0, got -1"),
        ("paper", {"slot_seconds": 0}, "slot_seconds: expected a finite number > 0, got 0"),
        ("paper", {"arrivals": "often"}, "arrivals: expected one of "),
        (
            "paper",
            {"arrivals": "google"},
            "counts: expected hourly counts (a path or an array) with arrivals='google'",
        ),
        (
            "paper",
            {"arrivals": "uniform", "counts": [1.0]},
            "counts: expected no counts with arrivals='uniform'",
        ),
        (
            "testbed",
            {"machines": "as_printed"},
            "machines: expected one of gpu_workers, got 'as_printed'",
        ),
        ("paper", {"priority": (3.0,)}, "priority: expected 2 numbers, got (3.0,)"),
        ("paper", {"priority": (3.0, 2.0)}, "priority: expected low <= high, got (3.0, 2.0)"),
        ("paper", {"priority": (-1.0, 2.0)}, "priority[0]: expected a finite number >= 0"),
        ("paper", {"mix": (0.5, 0.5)}, "mix: expected 3 numbers, got (0.5, 0.5)"),
        (
            "paper",
            {"mix": (0.5, 0.5, 0.1)},
            "mix: expected shares with sum 1, got (0.5, 0.5, 0.1)",
        ),
    ],
)
def test_a_bad_argument_is_named(preset: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        settings(preset, **changes)
    assert str(caught.value).startswith(message)


# -- work ------------------------------------------------------------------------------------------


def test_gradients_are_pushed_and_pulled() -> None:
    """500 MB are 4 Gbit: at 2 Gbit/s 2 s there and 2 s back, in slots of 100 s."""
    found = exchange_slots(np.array([500.0, 0.0]), np.array([2.0, 1.0]), 100.0)
    assert found.tolist() == pytest.approx([0.04, 0.0])


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


def test_as_printed_every_parameter_is_in_its_range() -> None:
    columns = paper(rng(), PAPER, 300)
    for name in ("chunks", "epochs", "minibatches"):
        low, high = getattr(PAPER, name)
        assert low <= columns[name].min()
        assert columns[name].max() <= high
    low, high = PAPER.minibatch_time
    assert ((columns["minibatch_time"] >= low) & (columns["minibatch_time"] <= high)).all()


def test_calibrated_jobs_meet_their_slots_with_all_their_workers() -> None:
    """E M kappa slots, with N_i workers on N_i chunks; at most what each was allowed."""
    allowed = np.array([1, 2, 5, 15] * 10)
    columns = calibrated(rng(), PAPER, allowed, 3600.0)
    exchange = exchange_slots(columns["gradient_mb"], bandwidth_of(columns["worker"]), 3600.0)
    length = columns["epochs"] * columns["minibatches"] * (columns["minibatch_time"] + exchange)
    assert (length <= allowed * (1 + 1e-9)).all()
    assert columns["minibatch_time"].min() >= PAPER.minibatch_time[0]
    assert columns["minibatch_time"].max() <= PAPER.minibatch_time[1]


def test_slots_too_short_for_the_gradients_are_named() -> None:
    with pytest.raises(ValueError, match=r"^slot_seconds: 1 s is too short for the preset"):
        calibrated(rng(), PAPER, np.array([5]), 1.0)


def test_testbed_jobs_can_end_on_the_machines_by_the_horizon() -> None:
    arrival = np.array([0, 2, 5, 8])
    cluster = machines(6, 4)
    columns = draw_testbed(rng(), TESTBED, arrival, 10, cluster)
    exchange = exchange_slots(columns["gradient_mb"], bandwidth_of(columns["worker"]), 1200.0)
    each = columns["epochs"] * columns["minibatches"] * (columns["minibatch_time"] + exchange)
    work = np.ceil(columns["chunks"] * each - 1e-9)
    slots = np.ceil(work / parallelism(columns, cluster))
    assert (slots <= np.minimum(TESTBED.duration[1], 10 - arrival)).all()
    with pytest.raises(ValueError, match=r"^horizon: expected room for a job of the preset"):
        draw_testbed(rng(), TESTBED, np.array([10]), 10, cluster)


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
