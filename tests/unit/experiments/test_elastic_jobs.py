"""All policies on the same elastic jobs: the model's view of them, the slots, the comparison."""

from __future__ import annotations

import pytest

import oasis
from experiments.cli.results import read_workload
from experiments.evaluation.comparison import replay_each
from experiments.evaluation.elastic_jobs import (
    BySlots,
    compare_elastic,
    elastic_policy,
    utility_of,
)
from experiments.evaluation.tables import comparison_table
from experiments.figures.controllers import at_load, drawn
from oasis.driver import loop
from oasis.model.errors import InstanceError
from oasis.model.examples import example_text
from oasis.model.utility import Deadline
from oasis.online.recourse.planner import Replanner
from oasis.simulator import (
    Outage,
    elastic_from_dict,
    replay,
)
from tests.builders import elastic, elastic_file

SLOW_FAST = ("slow", "fast")
WORTH = {"kind": "deadline", "value": 3.0, "deadline": 4000.0}


def document(*jobs, count=1, gpus=4, gb=8):
    return elastic_file(jobs, {"id": "m", "count": count, "capacity": {"gpu": gpus, "gb": gb}})


def job(name, arrival=0.0, work=600.0, least=1, most=1, **others):
    return {
        "id": name,
        "arrival": arrival,
        "work": work,
        "workers": {"min": least, "initial": others.pop("asked", most), "max": most},
        "worker": {"gpu": 1},
        "utility": WORTH,
        **others,
    }


def run(data, name, slot=100.0, **options):
    made = elastic_from_dict(data)
    return made, replay(made, elastic_policy(name, {}, made, slot), **options)


# --- the model's view -----------------------------------------------------------------------------


def translated(made, slot=0):
    return elastic_policy("recourse", {}, made, 100.0).translate(made.jobs[0], slot)


def test_a_worker_slot_is_what_one_of_the_workers_asked_for_does():
    made = elastic_from_dict(document(job("a", most=4, asked=2, speedup=[1.0, 1.6, 2.0, 2.1])))
    seen = translated(made)
    assert seen.speeds == (pytest.approx(80.0),)  # 1.6 / 2 of one worker for 100 s
    assert seen.seen.source.work(100.0) == 8  # 600 / 80, rounded up
    assert seen.seen.max_workers == 4


def test_parameter_servers_are_reserved_beside_the_workers():
    data = document(job("a", most=4, least=2, parameter_servers=1, ps={"gb": 3}))
    made = elastic_from_dict(data)
    source = translated(made).seen.source
    assert dict(source.worker) == {"gpu": 1.0, "gb": 1.5}  # one server for two workers at least
    assert not source.needs_ps


def test_delays_are_counted_to_the_end_of_the_slot_from_the_true_arrival():
    made = elastic_from_dict(document(job("a", arrival=130.0)))
    source = translated(made, 2).seen.source
    assert source.utility([0, 38, 39]).tolist() == [3.0, 3.0, 0.0]  # 170, 3970, 4070 s
    by_slots = BySlots(Deadline(5.0, 250.0), 100.0, 70.0)
    assert by_slots.log_value([1, 2]).tolist() == [pytest.approx(1.6094379), float("-inf")]


def of_kinds(*jobs):
    """The same on one machine of each of three kinds."""
    data = document(*jobs)
    (machine,) = data["machines"]
    kinds = [machine | {"id": kind, "labels": {"gpu": kind}} for kind in ("slow", "fast", "host")]
    return data | {"machines": kinds}


def test_forms_that_fit_are_the_model_s_with_their_speeds_and_machines():
    wide, slow, fast = {"worker": {"gpu": 9}}, {"requires": {"gpu": ["slow"]}}, {"work": 150.0}
    fast |= {"requires": {"gpu": ["fast"]}, "workers": 2, "parameter_servers": 1, "ps": {"gb": 4}}
    made = elastic_from_dict(of_kinds(job("a", most=4, forms=[wide, slow, fast])))
    seen = translated(made)
    assert (seen.ways, seen.speeds) == ((1, 2), (100.0, 100.0))
    first, second = seen.seen.source.in_forms
    assert [one.work(100.0) for one in (first, second)] == [6, 2]
    assert [dict(one.requires) for one in (first, second)] == [{"gpu": (k,)} for k in SLOW_FAST]
    assert [dict(one.worker) for one in (first, second)] == [{"gpu": 1.0}, {"gpu": 1.0, "gb": 2.0}]
    elsewhere = fast | {"ps_requires": {"gpu": ["host"]}}  # not beside the workers
    made = elastic_from_dict(of_kinds(job("a", most=4, forms=[elsewhere])))
    seen = translated(made)
    assert dict(seen.seen.source.worker) == {"gpu": 1.0}


def test_a_job_without_utility_is_refused_by_name():
    data = document(job("a"), job("b"))
    del data["jobs"][1]["utility"]
    with pytest.raises(InstanceError, match=r"jobs\[1\].utility: expected a utility"):
        elastic_policy("oasis", {}, elastic_from_dict(data))
    with pytest.raises(ValueError, match="slot_seconds"):
        elastic_policy("recourse", {}, elastic_from_dict(document(job("a"))), 0.0)


def test_options_without_a_meaning_here_are_refused():
    made = elastic_from_dict(document(job("a")))
    with pytest.raises(ValueError, match=r"oasis.granularity: expected none"):
        elastic_policy("oasis", {"granularity": "chunk"}, made)
    scaled = elastic_policy("oasis", {"scale": 2.0}, made)
    assert scaled.parameters["slot_seconds"] == 600.0


# --- slots in continuous time ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_a_job_waits_for_the_next_slot_and_its_end_is_its_own(name):
    _, outcome = run(document(job("a", arrival=130.0, work=250.0)), name)
    (only,) = outcome.jobs
    assert (only.start, only.end) == (200.0, 450.0)


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_work_that_takes_longer_than_the_model_thinks_is_planned_again(name):
    slow = job("a", work=300.0, most=2, asked=1, speedup=[1.0, 1.1])
    made, outcome = run(document(slow), name)
    assert outcome.jobs[0].end is not None
    assert utility_of(made, outcome) == 3.0


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_a_job_gets_the_fewest_workers_that_it_works_with(name):
    _, outcome = run(document(job("a", least=3, most=3, work=300.0)), name)
    assert outcome.jobs[0].end == 100.0


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_who_never_fits_is_rejected(name):
    data = document(job("a", least=2, most=2, parameter_servers=1, ps={"gb": 9}), job("b"))
    _, outcome = run(data, name)
    assert [each.refusal for each in outcome.jobs] == ["does not fit the empty cluster", None]


ALWAYS = {"utility": {"kind": "constant", "value": 3.0}}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            of_kinds(job("a", speeds={"label": "gpu", "values": {"slow": 0.1, "none": 9.0}})),
            id="the best speed is that of no machine",
        ),
        pytest.param(
            document(job("a", work=2000.0, most=2, speedup=[1.0, 1.1]), gpus=1),
            id="one worker is faster than each of the workers asked for",
        ),
        pytest.param(
            document(
                job("a", worker={"gpu": 1, "gb": 6}, parameter_servers=1, ps={"gb": 6}), count=2
            ),
            id="a parameter server finds no room beside a worker",
        ),
    ],
)
@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_no_job_that_finds_room_alone_waits_for_ever(name, data, monkeypatch):
    monkeypatch.setattr(loop, "MOST_IDLE_CALLS", 200)
    data["jobs"] = [one | ALWAYS for one in data["jobs"]]
    _, outcome = run(data, name)
    assert outcome.jobs[0].end is not None


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_where_machines_are_lost_for_good_the_run_ends(name, monkeypatch):
    monkeypatch.setattr(loop, "MOST_IDLE_CALLS", 200)
    _, outcome = run(document(job("a", work=900.0) | ALWAYS), name, outages=[Outage(0, 150.0)])
    assert outcome.jobs[0].end is None


@pytest.mark.parametrize("name", ["oasis", "recourse"])
def test_the_form_is_chosen_by_who_plans_and_kept(name):
    """All on the fast one, where one takes a slot and two find room."""
    speeds = {"label": "gpu", "values": {"slow": 1.0, "fast": 4.0}}
    worth = {"kind": "piecewise", "delays": [0.0, 4000.0], "values": [9.0, 0.0]}
    told = {"speeds": speeds, "utility": worth, "worker": {"gpu": 2}, "switch": "restart"}
    jobs = [job(f"j{k}", least=1, most=1, work=400.0, **told) for k in range(3)]
    made, outcome = run(of_kinds(*jobs), name)
    ends = sorted(each.end for each in outcome.jobs)
    assert ends == ([100.0, 100.0, 200.0] if name == "recourse" else [100.0, 200.0, 300.0])
    assert sum(each.restarts for each in outcome.jobs) == 0
    assert made.jobs[0].may_switch


def test_oasis_turns_away_what_does_not_pay():
    jobs = [job(f"j{k}", work=4000.0) for k in range(6)]
    _, outcome = run(document(*jobs, gpus=1), "oasis")
    assert sum(each.refusal is not None for each in outcome.jobs) >= 4


# --- the comparison -------------------------------------------------------------------------------


def test_utilities_stand_beside_the_bound():
    made = elastic_from_dict(document(job("a"), job("b")))
    found = compare_elastic(made, {"fifo": {}, "recourse": {}}, slot_seconds=100.0)
    assert found.about["bound"] == pytest.approx(6.0, rel=1e-3)
    for row in found.policies.values():
        assert row["of_bound"] == row["total_utility"] / found.about["bound"]
        assert row["finished"] == row["admitted"] == 2
    assert type(found).from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_without_utilities_there_is_no_bound_but_all_that_a_replay_says():
    found = compare_elastic(elastic(3), {"dragon": {}})
    replayed = replay_each(elastic(3), {"dragon": {}}).policies["dragon"]
    assert replayed.keys() <= found.policies["dragon"].keys()
    assert replayed["mean_completion"] == found.policies["dragon"]["mean_completion"]
    assert found.about["bound"] is None
    assert found.policies["dragon"]["total_utility"] is None


def test_where_nothing_can_be_earned_there_is_no_share_of_the_bound():
    never = {"kind": "deadline", "value": 5.0, "deadline": 10.0}
    made = elastic_from_dict(document(job("a", utility=never)))
    found = compare_elastic(made, {"fifo": {}})
    assert found.about["bound"] == found.policies["fifo"]["total_utility"] == 0.0
    assert found.policies["fifo"]["of_bound"] is None
    assert comparison_table(found)[1][0][1:4] == ("0", "-", "1")


def test_instances_and_elastic_jobs_are_told_apart_in_one_reading(tmp_path):
    (tmp_path / "jobs").write_text(example_text("elastic"))
    assert len(read_workload(tmp_path / "jobs").site.machines) == 2
    drawn = oasis.generate("testbed", jobs=2, seed=1)
    oasis.write(drawn, tmp_path / "instance")
    assert read_workload(tmp_path / "instance") == drawn


def test_recourse_plans_once_for_all_jobs_that_are_behind(monkeypatch):
    """At the beginning of a slot; their speed is not linear, so that many are."""
    revised, planned = [], []
    revise, replan = Replanner.revise, Replanner.replan

    def noted(self, key, remaining):
        revised.append(self.now)
        revise(self, key, remaining)

    def counted(self, arrivals, forms):
        planned.append(self.now)
        return replan(self, arrivals, forms)

    monkeypatch.setattr(Replanner, "revise", noted)
    monkeypatch.setattr(Replanner, "replan", counted)
    made = at_load(drawn(0, 6), 2.0, 0)
    replay(made, elastic_policy("recourse", {"rounds": 2}, made))
    assert max(map(revised.count, revised)) >= 3
    assert len(set(planned)) == len(planned)
