"""Figures of a run from its notes; every run can be read back, and says the same again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

import oasis
from baselines import FIFO
from experiments.evaluation.policies import RIVALS, make_policy
from oasis.certify.certificate import Certificate
from oasis.model.decision import Decision
from oasis.model.schedule import Schedule
from oasis.results import READERS, read_result, result_from_dict
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Machine, Site
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.outcome import JobTimes, Outcome
from oasis.simulator.result import Run
from oasis.simulator.run import replay
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import Workload

SITE = Site(
    ("gpu", "cpu"),
    (Machine("n0", (4.0, 8.0)), Machine("n1", (0.0, 8.0), frozenset({"ps"}))),
)


def times(name: str, arrival: float, end: float | None, **more: Any) -> JobTimes:
    start = arrival + 1.0 if end is not None else None
    return JobTimes(name, arrival, start, end, waiting=1.0, running=2.0, overhead=0.5, **more)


def outcome(*jobs: JobTimes, **changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "jobs": jobs,
        "site": SITE,
        "timeline": ((0.0, (0, 0, 0, 0)), (2.0, (4, 4, 0, 2)), (6.0, (2, 2, 0, 1))),
        "until": 10.0,
        "calls": 3,
        "policy_seconds": 0.1,
        "simulator_seconds": 0.2,
        "policy": "mine",
        "parameters": {"seed": 4},
        "seed": None,
        "version": "1",
    }
    return Outcome(**(fields | changes))


def test_rounding_leaves_no_negative_waiting():
    progress = JobProgress(PolicyJob("a", 0.0, 1.0, ((0, 1),)))
    progress.end, progress.running = 0.3, 0.1 + 0.2
    assert JobTimes.of(progress).waiting == 0.0


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 1.0), (0.25, 1.0), (0.26, 2.0), (0.5, 2.0), (0.95, 4.0), (1.0, 4.0)],
)
def test_a_quantile_is_a_completion_time_that_occurred(share, expected):
    made = outcome(*(times(str(k), 0.0, float(k)) for k in (3, 1, 4, 2)))
    assert made.completion_quantile(share) == expected


def test_without_finished_jobs_there_are_no_completion_times():
    made = outcome(times("a", 0.0, None))
    assert made.mean_completion is None
    assert made.completion_quantile(0.5) is None
    assert made.unfinished == 1
    assert made.makespan == made.until == 10.0
    assert made.wasted_share is None


def test_a_job_that_is_left_makes_the_makespan_that_of_the_whole_run():
    """A policy that leaves the long jobs does not look as if it were done early."""
    done, left = times("a", 1.0, 3.0), times("b", 2.0, None)
    assert outcome(done).makespan == 2.0  # from the first arrival
    assert outcome(done, left).makespan == 9.0
    assert outcome(done, times("b", 2.0, None, refusal="no room")).makespan == 2.0
    assert outcome(times("b", 2.0, None, refusal="no room")).makespan is None


def test_the_wasted_share_is_of_all_work_done():
    made = outcome(
        times("a", 0.0, 9.0, work_done=30.0, lost_work=6.0),
        replace(times("b", 0.0, None, work_done=10.0), start=1.0),
    )
    assert made.wasted_share == pytest.approx((6.0 + 10.0) / 40.0)
    assert made.given_up_after_start == 1


def test_utilisation_is_the_mean_over_time_by_group():
    """GPUs of workers: 4 for 4 time units, then 2 for 4 more, of 4 over 10.

    Cores: workers 4 x 4 + 2 x 4 of 8 x 10; parameter servers 2 x 4 + 1 x 4 of 16 x 10.
    """
    found = outcome(times("a", 0.0, 9.0)).utilisation
    assert found["worker"] == {"gpu": 24.0 / 40.0, "cpu": 24.0 / 80.0}
    assert found["ps"] == {"gpu": 0.0, "cpu": 12.0 / 160.0}


def test_utilisation_begins_with_the_first_arrival_unless_there_is_a_horizon():
    late = times("a", 2.0, 9.0)
    assert outcome(late).utilisation["worker"]["gpu"] == pytest.approx(24.0 / 32.0)
    bounded = outcome(late, site=replace(SITE, horizon=10.0))
    assert bounded.utilisation["worker"]["gpu"] == pytest.approx(24.0 / 40.0)


def test_there_is_no_utilisation_of_what_is_not_there():
    bare = Site(("gpu",), (Machine("n0", (0.0,)),))
    made = outcome(times("a", 0.0, 9.0), site=bare, timeline=((0.0, (0, 0)),))
    assert made.utilisation == {"worker": {"gpu": None}, "ps": {"gpu": None}}
    assert made.use == {"gpu": None}


def test_machines_that_host_both_kinds_count_once_in_use():
    """Cores: (24 + 12) of 16 x 10; with saving 4 more."""
    assert outcome(times("a", 0.0, 9.0)).use == {"gpu": 0.6, "cpu": 36.0 / 160.0}
    saved = outcome(times("a", 0.0, 9.0), saving=(2.0, 4.0)).use
    assert saved == {"gpu": 26.0 / 40.0, "cpu": 40.0 / 160.0}


def test_measured_times_are_no_part_of_equality_or_of_the_document():
    made = outcome(times("a", 0.0, 9.0))
    assert made == replace(made, policy_seconds=9.0, simulator_seconds=9.0)
    assert made.to_dict() == replace(made, policy_seconds=9.0).to_dict()
    document = json.loads(json.dumps(made.to_dict()))
    assert list(document)[:2] == ["policy", "parameters"]
    assert (document["waiting"], document["running"], document["overhead"]) == (1.0, 2.0, 0.5)
    assert document["finished"] == 1
    assert document["p95_completion"] == 9.0


SCHEDULE = Schedule("a", [[0, 0, 1]], [])
ADMITTED = Decision("a", True, 6.0, 10.0, 4.0, 0, SCHEDULE)


def run(*decisions: Decision, seconds: tuple[float, ...] = (0.2, 0.1)) -> Run:
    return Run("mine", {"seed": 1}, decisions, None, seconds, seed=7, version="1")


def test_latency_is_measured_and_no_part_of_equality_nor_is_the_outcome():
    assert run(ADMITTED).latency == pytest.approx({"median": 0.15, "p99": 0.199, "max": 0.2})
    assert run(ADMITTED, seconds=(1.0,)) == run(ADMITTED, seconds=(2.0,))
    assert run(seconds=()).latency == {"median": 0.0, "p99": 0.0, "max": 0.0}
    simulated = replace(run(ADMITTED), outcome=outcome(times("a", 0.0, 9.0)))
    assert simulated.to_dict()["simulation"]["finished"] == 1
    assert simulated == run(ADMITTED)


def test_a_run_counts_its_decisions_and_adds_utilities_exactly():
    """Also one of a job that was admitted and never finished."""
    tenth = replace(ADMITTED, utility=0.1)
    many = [replace(tenth, job_id=str(k)) for k in range(10)]
    made = run(*many, Decision("b", False), replace(ADMITTED, schedule=None, utility=0.0))
    assert (made.admitted, made.rejected, made.total_utility) == (11, 1, 1.0)
    assert made.schedules == {str(k): SCHEDULE for k in range(10)}


def test_a_run_has_the_costs_of_its_workload_unless_it_is_given_others():
    made = replace(
        Workload.of(SITE, [PolicyJob("a", 0.0, 1.0, ((0, 1),))]),
        costs=ChangeCosts(start=5.0),
    )
    assert replay(made, FIFO()).completions == [6.0]
    assert replay(made, FIFO(), costs=ChangeCosts()).completions == [1.0]


INSTANCE = oasis.generate("testbed", jobs=5, seed=3)


def run_of(name: str) -> Run:
    return oasis.simulate(INSTANCE, make_policy(name, INSTANCE))


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("name", RIVALS)
def test_a_run_is_read_back_as_it_was(name):
    run = run_of(name)
    document = run.to_dict()
    for data in (document, through_json(document)):
        again = Run.from_dict(data)
        assert again.to_dict() == document
        assert again.decisions == run.decisions
        assert again.schedules == run.schedules
        assert oasis.verify(INSTANCE, again) == oasis.verify(INSTANCE, run)
    if run.bounds is not None:
        certificate = oasis.certify(INSTANCE, again)
        assert certificate == oasis.certify(INSTANCE, run)
        assert Certificate.from_dict(through_json(certificate.to_dict())) == certificate


def test_a_file_is_read_by_its_kind(tmp_path):
    path = tmp_path / "run.json"
    document = run_of("fifo").to_dict()
    path.write_text(json.dumps(document | {"added": "by a command"}))
    found = read_result(path)
    assert isinstance(found, Run)
    assert oasis.read_result(path).to_dict() == found.to_dict() == document


def test_every_kind_names_a_class_that_reads():
    for kind in READERS:
        with pytest.raises(oasis.InstanceError, match="missing; this key is required"):
            result_from_dict({"kind": kind})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": None},
            f"kind: expected one of {', '.join(READERS)}, got None",
        ),
        ({"decisions": {}}, "decisions: expected a list, got {}"),
        ({"decisions": [1]}, "decisions[0]: expected an object, got 1"),
        ({"seed": "x"}, "seed: expected an integer, got 'x'"),
        ({"bounds": {}}, "bounds.worker: missing; this key is required"),
        ({"policy": 3}, "policy: expected text, got 3"),
        ({"decision_seconds": {}}, "decision_seconds.median: missing; this key is required"),
        ({"simulation": 1}, "simulation: expected an object, got 1"),
    ],
)
def test_what_is_wrong_in_a_document_is_said_with_its_path(change, message):
    with pytest.raises(oasis.InstanceError, match=f"^{re.escape(message)}$"):
        result_from_dict(run_of("fifo").to_dict() | change)


def test_a_frame_has_a_row_for_each_decision():
    run = run_of("oasis")
    frame = run.to_frame()
    assert list(frame["job_id"]) == [decision.job_id for decision in run.decisions]
    assert frame["utility"].sum() == pytest.approx(run.total_utility)
    assert set(frame["job_id"][frame["start"].notna()]) == set(run.schedules)
    for job_id, slots in zip(frame["job_id"], frame["worker_slots"], strict=True):
        assert job_id not in run.schedules or slots == run.schedules[job_id].worker_slots
