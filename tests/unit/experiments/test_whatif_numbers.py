"""The numbers of ``oasis whatif`` against plain loops, and of what really happened by a replay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import EASY, FIFO, LAS, SJF, SRTF
from experiments.evaluation import whatif
from experiments.evaluation import whatif_result as texts
from experiments.evaluation.comparison import CHOSEN
from experiments.evaluation.tables import SPACE, duration_text
from experiments.evaluation.whatif_result import RECORDED, SIZES, Goal, Setting, WhatIf, next_count
from experiments.plotting import whatif as pictures
from oasis.model.errors import InputError
from oasis.scheduling.job import Allocation
from oasis.scheduling.policy import BasePolicy, Plan, View
from oasis.simulator import PlainJob, Policy, replay, rigid_workload
from tests.unit.experiments.test_plotting import assert_readable


def jobs_frame(jobs: list[PlainJob]) -> pd.DataFrame:
    """Let the records be the frame of a trace."""
    fields = PlainJob.__dataclass_fields__
    return whatif.jobs_frame(
        pd.DataFrame([{name: getattr(job, name) for name in fields} for job in jobs])
    )


def drawn(count: int = 60, *, recorded: bool = True, seed: int = 1) -> list[PlainJob]:
    rng = np.random.default_rng(seed)
    came = np.sort(rng.integers(0, 40 * count, count)).astype(float).tolist()
    lasts = rng.integers(1, 900, count).astype(float).tolist()
    wide = rng.choice([1, 2, 3, 8, 16], count).tolist()
    waits = (rng.integers(0, 300, count) * (rng.random(count) < 0.6)).astype(float).tolist()
    owners = rng.choice(["ann", "bob", "eve"], count).tolist()
    return [
        PlainJob(f"j{k}", *row, owner, came[k] + wait if recorded else None)
        for k, (*row, owner, wait) in enumerate(zip(came, lasts, wide, owners, waits, strict=True))
    ]


class AsItWas(BasePolicy):
    """Starts each job at the time at which the trace says that it started."""

    name = "as-it-was"

    def __init__(self, started: Mapping[str, float]) -> None:
        self._started = started
        self._left: dict[float, list[Any]] = {}

    def decide(self, view: View) -> Plan:
        for job in view.arrived:
            self._left.setdefault(self._started[job.id], []).append(job)
        begin = [
            job for time in list(self._left) if time <= view.now for job in self._left.pop(time)
        ]
        plan = Plan({job.index: Allocation(((0, 1),)) for job in begin})
        plan.wake_at = min(self._left, default=None)
        return plan


@pytest.mark.parametrize("held", [(), ((-50.0, 900.0, 30), (400.0, 1e6, 7))])
def test_what_really_happened_replayed_with_its_own_start_times_gives_its_numbers_back(held):
    """The replay is one of the simulator; the numbers of the trace are taken without it."""
    jobs = drawn(200)
    columns = jobs_frame(jobs)
    gpus = whatif.busiest_moment(columns, held)
    policy = AsItWas({job.id: job.started or 0.0 for job in jobs})
    replayed, _ = whatif.policy_figures(whatif.Scenario(columns, (gpus,), held=held), policy)
    told = whatif.recorded_figures(columns, gpus, held)
    assert told.pop("peak") == gpus
    for name in ("told", "parameters"):
        assert replayed.pop(name) == told.pop(name) or name == "parameters"
    assert set(replayed) == set(told)
    for name, value in told.items():
        assert _flat(replayed[name]) == pytest.approx(_flat(value), rel=1e-6, abs=1e-6), name


def _flat(value: Any) -> list[float]:
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _flat(part)]
    if isinstance(value, list):
        return [one for part in value for one in _flat(part)]
    return [math.nan if value is None else float(value)]


@pytest.mark.parametrize("policy", [FIFO, SRTF, LAS])
def test_figures_are_those_of_plain_loops(policy):
    jobs = drawn(80, recorded=False)
    columns = jobs_frame(jobs)
    outcome = replay(rigid_workload(jobs, 2, 8), policy())
    found = whatif.figures(whatif.run(whatif.Scenario(columns, (8, 8)), policy()), 16)
    ends = sorted(job.end - job.arrival for job in outcome.jobs)
    waits = sorted(job.waiting for job in outcome.jobs)
    for share, name in ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99")):
        least = next(k for k in range(80) if k + 1 >= share * 80 - 1e-9)
        for times, told in ((ends, found["completion"]), (waits, found["waiting"])):
            assert told[name] == (median(times) if share == 0.5 else times[least])
    assert found["completion"]["mean"] == pytest.approx(outcome.mean_completion)
    assert found["completion"]["p50"] == outcome.median_completion
    assert found["completion"]["p95"] == outcome.completion_quantile(0.95)
    assert found["gpu_utilisation"] == pytest.approx(outcome.use["gpu"])
    assert found["preemptions"] == sum(job.restarts for job in outcome.jobs)
    slow = [
        max(1.0, (done.end - done.arrival) / max(job.duration, 10.0))
        for done, job in zip(outcome.jobs, jobs, strict=True)
    ]
    assert found["slowdown"]["mean"] == pytest.approx(sum(slow) / 80)
    for name, part in (
        ("by_owner", [[k for k, job in enumerate(jobs) if job.owner == o]
                      for o in ("ann", "bob", "eve")]),
        ("by_size", [[k for k, job in enumerate(jobs) if low <= job.gpus <= (high or 99)]
                     for low, high, _ in SIZES]),
    ):  # fmt: skip
        for place, those in enumerate(part):
            row = {key: values[place] for key, values in found[name].items()}
            waited = sorted(outcome.jobs[k].waiting for k in those)
            assert row["jobs"] == len(those)
            hours = sum(jobs[k].gpus * jobs[k].duration for k in those) / 3600.0
            assert row["gpu_hours"] == pytest.approx(hours)
            assert row["mean_waiting"] == pytest.approx(sum(waited) / len(those))
            assert row["p95_waiting"] == waited[math.ceil(0.95 * len(those) - 1e-9) - 1]


@pytest.mark.parametrize("policy", [FIFO, SRTF, LAS])
def test_the_queue_over_time_adds_up_to_all_waiting(policy):
    jobs = jobs_frame(drawn(120, recorded=False))
    times = whatif.run(whatif.Scenario(jobs, (16,)), policy())
    series = whatif.figures(times, 16)["series"]
    length = (series["end"] - series["begin"]) / len(series["waiting"])
    assert sum(series["waiting"]) * length == pytest.approx(times.jobs.waiting.sum(), rel=1e-4)
    held = sum(series["in_use"]) * length
    assert held == pytest.approx(float(jobs.gpus @ jobs.duration), rel=1e-4)
    assert times.queue[1].min() >= 0
    assert times.queue[1][-1] == 0


def test_a_job_that_paused_waited_for_the_pause_too():
    paused = PlainJob("a", 0.0, 60.0, 8, "ann", started=10.0, ended=100.0)
    found = whatif.recorded_figures(jobs_frame([paused]), 8)
    assert found["waiting"]["mean"] == 40.0
    assert found["preemptions"] == 1


def test_machines_that_hold_the_busiest_moment():
    jobs = jobs_frame([PlainJob("a", 0.0, 10.0, 5), PlainJob("b", 0.0, 9.0, 12)])
    assert whatif.smallest_machines(jobs, 8, "pooled")[0] == (8, 8, 8)
    late = jobs_frame([PlainJob("a", 0.0, 10.0, 5), PlainJob("b", 0.0, 9.0, 12, started=10.0)])
    assert whatif.smallest_machines(late, 8, "pooled")[0] == (8, 8)
    assert whatif.smallest_machines(late, 8, "pooled", ((-5.0, 11.0, 5),))[0] == (8, 8, 8)


def test_a_load_moves_submissions_and_nothing_else():
    jobs = jobs_frame(drawn(20))
    faster = whatif.Scenario(jobs, (16,), load=2.0).jobs
    assert (faster.submitted * 2 == jobs.submitted).all()
    assert (faster.duration == jobs.duration).all()
    assert whatif.is_recorded(jobs)
    assert not whatif.is_recorded(faster)


def result(jobs: list[PlainJob], *policies: Policy, machines: tuple[int, ...] = (16,)) -> WhatIf:
    columns = jobs_frame(jobs)
    scenario = whatif.Scenario(columns, machines)
    rows = {one.name: whatif.policy_figures(scenario, one)[0] for one in policies}
    if whatif.is_recorded(columns):
        rows = {RECORDED: whatif.recorded_figures(columns, sum(machines)), **rows}
    setting = Setting(1.0, machines, 100.0, rows, None, *scenario.offered)
    return WhatIf((setting,), tuple(columns.owner.cat.categories), {"jobs": len(jobs)})


def test_the_answer_says_what_the_numbers_say():
    found = result(drawn(60, recorded=False), FIFO(), SRTF())
    first, second, third, *_ = texts.answer(found)
    mean = duration_text(found.first.policies["srtf"]["completion"]["mean"])
    assert "srtf serves these 60 jobs best" in first
    assert mean in first
    assert "It is told how long jobs take; of the policies that are not, fifo" in first
    assert "1 min 40 s" in second.replace(SPACE, " ")
    assert (
        "3 of 3 owners wait less; no size of jobs waits longer on average; jobs of 1 GPU (" in third
    )
    jobs, policies = drawn(40), [FIFO(), SRTF(), EASY(), SJF()]
    # what really happened is worse than all of these
    first = texts.answer(result(jobs, *policies[:3], machines=(999,)))[0]
    assert "fifo serves these 40 jobs best (srtf and easy as well, within 0.1%): a job" in first
    first = texts.answer(result(jobs, *policies, machines=(999,)))[0]
    assert "best (3 other policies as well, within 0.1%)" in first
    found = result(drawn(30, recorded=False), FIFO(), SRTF(), machines=(999,))
    assert "no job waits for GPUs, whatever the policy" in texts.answer(found)[0]


@pytest.mark.parametrize("unit", [1.0, 86400.0])
def test_the_words_of_the_pictures_are_whole_and_apart(unit):
    jobs = [
        replace(job, submitted=unit * job.submitted, duration=unit * job.duration)
        for job in drawn(40, recorded=False)
    ]
    found = result(jobs, FIFO())
    many = dict.fromkeys(CHOSEN, found.first.policies["fifo"])  # a legend of many rows
    loads = [replace(found.first, load=load, policies=many) for load in (1.0, 1.5)]
    found = replace(found, settings=tuple(loads))
    assert_readable(pictures.loads_figure(found))
    assert_readable(pictures.waiting_figure(found))
    assert_readable(pictures.over_time_figure(found, "waiting"))


def test_what_really_happened_is_the_reference_only_where_it_is_known_of_every_job():
    jobs = drawn(40)
    assert result(jobs, FIFO(), SRTF()).reference == RECORDED
    jobs[3] = PlainJob("j3", jobs[3].submitted, 60.0, 1, "ann")
    found = result(jobs, FIFO(), SRTF())
    assert found.reference == "fifo"
    assert "known of 39 of 40 jobs" in " ".join(texts.notes(found))


def test_a_document_is_read_back_and_a_wrong_one_is_named():
    document = result(drawn(20), FIFO(), SRTF()).to_dict()
    assert WhatIf.from_dict(document).to_dict() == document
    document["settings"][0]["policies"]["fifo"]["by_owner"]["jobs"].pop()
    with pytest.raises(InputError, match=r"policies.fifo.by_owner.jobs: expected 3 numbers, got 2"):
        WhatIf.from_dict(document)
    del document["settings"][0]["policies"]["fifo"]["waiting"]
    with pytest.raises(InputError, match=r"settings\[0\].policies.fifo.waiting"):
        WhatIf.from_dict(document)


@pytest.mark.parametrize(("gap", "grows"), [(3600.0, False), (1800.0, False), (1799.0, True)])
def test_wanted_gpu_hours_beside_those_there_are(gap, grows):
    """Three jobs of 4 GPU-hours each, two gaps apart in all, on 12 GPUs; exact, by hand."""
    jobs = [PlainJob(f"j{k}", k * gap, 3600.0, 4, "ann") for k in range(3)]
    found = result(jobs, FIFO(), machines=(12,))
    (row,) = found.first.policies.values()
    assert row["by_owner"]["gpu_hours"] == [12.0]
    assert (found.first.wanted_gpu_hours, found.first.gpu_hours) == (12.0, 24.0 * gap / 3600.0)
    assert any(texts.GROWS in sentence for sentence in texts.answer(found)) == grows
    assert texts.tables(found)[-1][2][0][-1] == ("grows for ever" if grows else "does not grow")


def test_goals_are_read_in_letters_of_any_case():
    assert Goal.read("P95 Wait <= 10 MIN") == replace(
        Goal.read("p95 wait <= 10 min"), text="P95 Wait <= 10 MIN"
    )
    assert Goal.read("Mean SLOWDOWN <= 1").reached(1.0)


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 60))
def test_a_search_ends_at_the_fewest_and_one_fewer_was_tried(least, more, at):
    goal, tried = Goal.read("mean wait < 10 s"), dict[int, float | None]()
    while (count := next_count(goal, least, least + more, tried)) is not None:
        assert least <= count <= least + more
        assert count not in tried
        tried[count] = 5.0 if count >= at else 10.0  # which is not below 10
    fewest = max(at, least)
    if fewest > least + more:
        assert list(tried) == [least + more]
    else:
        assert fewest in tried
        assert fewest == least or fewest - 1 in tried
    assert len(tried) <= 8
