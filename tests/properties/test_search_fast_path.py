"""The fast search through the public interface: next to no demand, streams of jobs, memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import OASiS
from tests.strategies import Market, all_instances, schedulers

ROOT = Path(__file__).resolve().parents[2]


# -- streams ---------------------------------------------------------------------------------------


def check_changes(scheduler):
    """The slots that differ from the one before it, by comparing everything."""
    ledger = scheduler.ledger
    differs = np.zeros(scheduler.horizon, dtype=bool)
    for used in (ledger.worker_used, ledger.ps_used):
        differs[1:] |= (used[1:] != used[:-1]).any(axis=(1, 2))
    assert ledger.changes.tolist() == differs.tolist()


def market_of(scheduler, job):
    ledger = scheduler.ledger
    arrays = (ledger.worker_prices, ledger.ps_prices, ledger.worker_used, ledger.ps_used)
    return Market(job, scheduler.cluster, scheduler.horizon, *arrays)


@given(all_instances(), schedulers())
def test_the_ledger_gives_the_search_what_its_arrays_give(instance, make):
    """Runs, columns and kept prices against the same amounts as plain arrays."""
    scheduler = make(instance)
    for job in instance.jobs_by_arrival():
        market = market_of(scheduler, job)
        plain = oasis.best_schedule(
            **market.arguments,
            granularity=scheduler.granularity,
            min_utility_fraction=scheduler.bounds.min_utility_fraction,
        )
        decision = scheduler.submit(job)
        assert (decision.payoff, decision.cost) == (plain.payoff, plain.cost)
        assert decision.schedule == plain.schedule
        assert decision.reason == plain.reason
        assert decision.rejection == plain.rejection
        check_changes(scheduler)


PROGRAM = """
import json, oasis
for preset, horizon in (("calibrated", 60), ("testbed", 12)):
    instance = oasis.generate(preset, jobs=40, worker_servers=6, ps_servers=6, horizon=horizon)
    scheduler = oasis.OASiS.from_instance(instance)
    for job in instance.jobs_by_arrival():
        print(json.dumps(scheduler.submit(job).to_dict()))
"""


def test_ties_break_the_same_way_in_every_process():
    """Idle clusters of equal prices and many equal schedules; other hash seeds, other threads."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ
            | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert sum(json.loads(line)["admitted"] for line in outputs[0]) > 10


# -- memory ----------------------------------------------------------------------------------------


def one_array(scheduler):
    """Bytes of one (T, H + K, R) float64 array."""
    cluster = scheduler.cluster
    servers = len(cluster.worker_capacity) + len(cluster.ps_capacity)
    return 8 * scheduler.horizon * servers * len(cluster.resources)


@pytest.mark.parametrize("servers", [6, 20])
@pytest.mark.parametrize("horizon", [1, 12, 40])
def test_ledger_is_at_most_four_arrays(horizon, servers):
    """At the start and after a stream, with the five resources of the presets."""
    instance = oasis.generate(
        "calibrated", jobs=60, worker_servers=servers, ps_servers=servers, horizon=horizon
    )
    scheduler = OASiS.from_instance(instance)
    assert scheduler.ledger.nbytes <= 4 * one_array(scheduler)
    for job in instance.jobs_by_arrival():
        scheduler.submit(job)
    assert sum(decision.admitted for decision in scheduler.decisions) > 0
    assert scheduler.ledger.nbytes <= 4 * one_array(scheduler)
