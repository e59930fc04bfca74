"""Recourse at small: what is told apart, what is refused, and what is reported."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, Recourse, Server
from oasis.online.recourse.admission import AtPrices
from oasis.online.recourse.live_job import grid_of, on_grid
from oasis.online.recourse.params import RecourseParams
from oasis.online.recourse.planner import Replanner
from oasis.simulator import Outage
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
job = partial(builders.job, workers=4)  # all four GPUs unless it says otherwise


def run(jobs: list[Job], horizon: int = 8, **options: object) -> oasis.Run:
    instance = Instance(horizon, CLUSTER, tuple(jobs))
    result = oasis.simulate(instance, Recourse(**options))
    oasis.verify(instance, result)
    return result


def test_without_commitment_a_better_job_takes_the_place_of_one_that_runs():
    jobs = [job("cheap", 0, 4, 1.0, 3), job("dear", 1, 4, 10.0, 3)]
    result = run(jobs)
    assert list(result.schedules) == ["dear"]
    assert result.report["given_up_after_start"] == ["cheap"]
    assert (result.report["worker_slots_wasted"], result.report["worker_slots_done"]) == (4, 20)


@pytest.mark.parametrize("commitment", ["start", "arrival"])
def test_a_job_that_was_promised_something_is_not_given_up(commitment):
    jobs = [job("cheap", 0, 4, 1.0, 3), job("dear", 1, 4, 10.0, 3)]
    at_prices = {"admission": "oasis"} if commitment == "arrival" else {}
    result = run(jobs, commitment=commitment, **at_prices)
    assert list(result.schedules) == ["cheap"]
    assert result.report["given_up_after_start"] == []


def test_work_done_counts_and_a_paused_job_goes_on():
    jobs = [job("long", 0, 4, 5.0, 9), job("urgent", 1, 2, 5.0, 1)]
    result = run(jobs)
    assert set(result.schedules) == {"long", "urgent"}
    assert result.schedules["long"].workers[:, 0].tolist() == [0, 0, 3, 3, 4, 4, 5, 5]


def test_a_bonus_for_what_has_begun_keeps_it():
    jobs = [job("cheap", 0, 4, 1.0, 3), job("better", 1, 4, 1.5, 3)]
    assert list(run(jobs).schedules) == ["better"]
    keep = RecourseParams(started_bonus=1.0)
    assert list(run(jobs, params=keep).schedules) == ["cheap"]


def test_a_lost_server_breaks_a_promise_and_the_report_names_it():
    instance = Instance(6, CLUSTER, (job("held", 0, 4, 5.0, 5), job("other", 0, 1, 1.0, 5)))
    outages = [Outage(0, 1.0), Outage(1, 1.0, 3.0)]
    result = oasis.simulate(instance, Recourse("arrival", admission="oasis"), outages=outages)
    assert "held" in result.report["broken_promises"]


def test_a_server_that_comes_back_is_used_again():
    instance = Instance(6, CLUSTER, (job("only", 0, 2, 5.0, 5),))
    outages = [Outage(k, 1.0, 3.0) for k in range(2)]
    result = oasis.simulate(instance, Recourse(), outages=outages)
    oasis.verify(instance, result)
    assert result.schedules["only"].workers[:, 0].tolist() == [0, 0, 3, 3]


def test_a_limit_of_no_seconds_leaves_no_time_for_rounds_and_is_reported():
    jobs = [job("a", 0, 1, 1.0, 5), job("b", 1, 1, 1.0, 5)]
    assert run(jobs, seconds=0.0).report["decisions_cut_short"] == 2
    assert run(jobs).report["decisions_cut_short"] == 0


def test_the_limit_is_measured_from_the_begin_of_the_decision(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("oasis.online.recourse.planner.perf_counter", lambda: next(ticks))
    planner = Replanner(CLUSTER, 8, seconds=2.5, params=RecourseParams(rounds=9))
    planner.replan({0: job("a", 0, 1, 1.0, 5)})
    assert planner.record.cut_short == 1
    assert next(ticks) == 4  # the begin, two rounds and the one that was too late


def test_demands_on_the_grid_add_up_exactly():
    cluster = Cluster(
        ("gpu", "bandwidth_gbps"),
        (Server("w", {"gpu": 3.0, "bandwidth_gbps": 20.1}),),
        (Server("p", {"bandwidth_gbps": 0.3}),),
        1.0,
    )
    worker, ps = {"gpu": 0.1, "bandwidth_gbps": 1 / 3}, {"bandwidth_gbps": 0.7}
    given = builders.job("j", workers=9, worker=worker, ps=ps)
    rounded = on_grid(given, grid_of(cluster))
    for group in ("worker", "ps"):
        for name, amount in getattr(rounded, group).items():
            assert amount == pytest.approx(getattr(given, group)[name], rel=1e-14)
            total = sum([amount] * 7)
            assert total - 5 * amount == 2 * amount
    assert (rounded.ps_needed(np.arange(10)) == given.ps_needed(np.arange(10))).all()


@pytest.mark.parametrize("demand", [(1 + 1.5e-9) / 3, (1 + 4e-9) / 3, 0.333333334, 0.3333333352])
def test_what_fits_on_the_grid_fits_in_raw_units_however_servers_differ(demand):
    """The grid of the large host is as coarse as 4e-9 of the small server."""
    cluster = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1e7}),), 1.0)
    jobs = [builders.job(f"j{k}", worker={"cpu": demand}, ps={"cpu": 1.0}) for k in range(3)]
    instance = Instance(1, cluster, jobs)
    assert oasis.verify(instance, oasis.simulate(instance, Recourse("none"))) == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commitment": "never"}, "commitment: expected one of arrival, start, none, got 'never'"),
        ({"rounds": -1}, "rounds: expected an integer >= 0, got -1"),
        ({"seconds": -1.0}, "seconds: expected a number >= 0, got -1.0"),
        ({"seconds": float("nan")}, "seconds: expected a number >= 0, got nan"),
        ({"admission": AtPrices()}, "admission: only jobs that are promised"),
        ({"discount": 0.0}, "discount"),
        ({"discount": 1.1}, "discount"),
        ({"noise": -1.0}, "noise"),
        ({"tries": 1.5}, "tries"),
        ({"widening": 1}, "widening"),
    ],
)
def test_bad_options_and_params_are_named(options, message):
    made: Any = Recourse if ":" in message else RecourseParams
    with pytest.raises(ValueError, match=message):
        made(**options)
