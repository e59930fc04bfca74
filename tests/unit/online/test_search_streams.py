"""Room on degenerate markets, what a stream of jobs leaves behind, machines that are told apart."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import oasis
from oasis import Cluster, Constant, Job, OASiS, PriceBounds, Server
from oasis.model.resources import as_array
from oasis.model.schedule import SERVER
from oasis.online.best_schedule import found_by
from oasis.online.ledger import Ledger
from oasis.online.search import Search, searches
from tests.builders import nightly
from tests.oracle import kinds
from tests.oracle.reference_search import Question
from tests.strategies import TWISTS, degenerate_markets


@pytest.mark.parametrize("twist", TWISTS)
def test_room_counts_workers_with_their_parameter_servers(twist):
    @given(degenerate_markets(twist))
    def check(market):
        question = Question(**market.arguments)
        most = min(market.job.chunks, question.work)
        fits = [
            max(n for n in range(most + 1) if question.slot_cost(t, n) < np.inf)
            for t in range(len(question.slots))
        ]
        arrays = (market.worker_prices, market.ps_prices, market.worker_used, market.ps_used)
        found = Search(market.job, Ledger.of_arrays(market.cluster, *arrays))
        rooms = [found.room_until(slot) for slot in range(market.job.arrival, market.horizon)]
        assert rooms == np.cumsum(fits).tolist()

    check()


def tiny_stream(jobs):
    """Jobs of a few worker-slots on a cluster that they fill."""
    horizon, capacity = 50, {"gpu": 4.0, "cpu": 8.0}
    groups = [tuple(Server(f"{group}{k}", capacity) for k in range(4)) for group in "wp"]
    cluster = Cluster(("gpu", "cpu", "bandwidth_gbps", "disk", "memory"), *groups, 1.0)
    made = [
        Job(f"j{i}", i * horizon // jobs, 1, 1 + i % 3, 1, 1.0, 0.0, {"gpu": 1.0}, {}, Constant(v))
        for i, v in enumerate(np.random.default_rng(0).uniform(1, 100, jobs).tolist())
    ]
    bounds = PriceBounds.from_jobs(made[:100], cluster, horizon)
    return OASiS(cluster, horizon, bounds), made


def left_behind(jobs):
    """Bytes that the second half of the jobs adds, apart from decisions and the names of jobs.

    What was committed belongs to the decisions: it explains those that were rejections. A job keeps
    its demands as arrays once they were asked for, which is done here before it is measured.
    """
    scheduler, made = tiny_stream(jobs)
    for job in made:
        for demand in (job.worker, job.ps):
            as_array(demand, scheduler.cluster.resources)
    half = jobs // 2
    tracemalloc.start()
    try:
        sizes = []
        for part in (made[:half], made[half:]):
            for job in part:
                scheduler.submit(job)
                scheduler.decisions.clear()
                scheduler.history._committed.clear()
            scheduler.ids = set()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return sizes[1] - sizes[0]


@pytest.mark.parametrize("jobs", [1000, *nightly(10_000)])
def test_many_jobs_leave_nothing_behind(jobs):
    assert left_behind(jobs) < 10_000


def test_machines_are_told_apart_however_a_ledger_came_about():
    """Shared columns, opened ones, arrays; rolled on, and with a machine lost."""
    placed = 0
    for seed in range(150):
        small = kinds.instance(seed)
        groups = {
            name: tuple(replace(server, count=3) for server in getattr(small.cluster, name))
            for name in ("worker_servers", "ps_servers")
        }
        given = replace(small, cluster=replace(small.cluster, **groups), horizon=small.horizon + 2)
        cluster, probe = given.cluster, replace(given.jobs[0], id="probe", arrival=1)
        scheduler = OASiS.from_instance(given, min_utility_fraction=0.0)
        for job in given.jobs_by_arrival():
            scheduler.submit(job)
        ledger = scheduler.ledger
        ledger.roll(1, scheduler.bounds)
        prices, used = (
            (ledger.worker_prices, ledger.ps_prices),
            (ledger.worker_used, ledger.ps_used),
        )
        flat = replace(Ledger.of_arrays(cluster, *prices, *used), origin=1)
        found = []
        for each in (ledger, flat):
            each.worker.lose(seed % 3)
            found.append(found_by(searches(probe, each)))
        schedules = [None if best is None else best.schedule for best in found]
        assert schedules[0] == schedules[1], seed
        if schedules[0] is not None:
            placed += 1
            alone = replace(given, jobs=(probe,), horizon=ledger.end)
            assert oasis.verify(alone, {"probe": schedules[0]}) > 0
            assert seed % 3 not in schedules[0].workers[:, SERVER]
    assert placed > 80
