"""What files of elastic jobs say."""

import json
from pathlib import Path

import pytest

from baselines import FIFO
from oasis.simulator import Linear, elastic_from_dict, replay
from tests.builders import GONE, changed

SMALL = json.loads(Path(__file__).with_name("small.json").read_text(encoding="utf-8"))
KINDS = json.loads(Path(__file__).with_name("kinds.json").read_text(encoding="utf-8"))


def test_a_file_says_what_the_jobs_and_machines_are():
    made = elastic_from_dict(SMALL)
    site, (first, second) = made.site, made.jobs
    assert [machine.id for machine in site.machines] == ["n#0", "n#1", "cpu"]
    assert [machine.capacity for machine in site.machines] == [(4, 64), (4, 64), (0, 32)]
    assert [machine.cpu_cores for machine in site.machines] == [16.0, 16.0, float("inf")]
    assert (site.partial_gangs, site.slotted, site.horizon) == (True, False, None)
    assert (first.min_workers, first.initial_workers, first.max_workers) == (1, 2, 4)
    assert (first.ps_needed(4), first.worker, first.ps) == (1, ((0, 1), (1, 8)), ((1, 4),))
    assert first.curve.at(0.5) == 0.4
    assert first.utility(7200.0) == 5.0
    assert (second.fixed_workers, second.ps_needed(3), second.step_time) == (3, 0, 0.0)
    assert made.costs.checkpoint_interval == 600.0
    assert made.observation.seed == 4
    assert made.speed.scaling.speedup == {"a": (1.0, 1.7, 2.1)}
    assert [first.speed(workers) for workers in range(5)] == [0.0, 1.0, 1.7, 2.1, 2.1]
    assert [second.speed(workers) for workers in (0, 3)] == [0.0, 3.0]


def test_what_changes_nothing_is_left_out_of_the_speed_model():
    speed = elastic_from_dict(SMALL | {"jobs": SMALL["jobs"][1:]}).speed
    assert (type(speed.scaling), speed.communication, speed.sharing) == (Linear, None, None)
    assert not speed.coupled


def test_a_crowded_machine_costs_more_than_its_cores():
    """Two jobs that want all cores share them; with a loss of 0.5 each also runs at two thirds."""
    both = {
        "arrival": 0.0,
        "work": 60.0,
        "workers": 1,
        "worker": {"gpu": 1},
        "worker_cpu": 16.0,
    }
    plain = {**SMALL, "machines": SMALL["machines"][:1], "costs": {}}
    plain["machines"] = [plain["machines"][0] | {"count": 1}]
    plain["jobs"] = [both | {"id": name} for name in "ab"]

    def ends(**more):
        made = elastic_from_dict(plain | more)
        return [job.end for job in replay(made, FIFO()).jobs]

    assert ends() == [120.0, 120.0]
    assert ends(crowding_loss=0.5) == pytest.approx([180.0, 180.0])


def test_forms_are_the_job_with_what_they_say():
    made = elastic_from_dict(KINDS)
    x, y = made.jobs
    assert [dict(m.labels) for m in made.site.machines] == [{"gpu": k} for k in "abc"]
    assert (x.may_switch, y.may_switch) == (True, False)
    assert [(f.work, f.step_time, f.gradient_mb) for f in x.forms] == [(60, 3, 1), (15, 0.75, 1)]
    assert [sorted(form.worker.machines) for form in x.forms] == [[0], [1]]
    assert [(f.work, f.min_workers, f.max_workers) for f in y.forms] == [
        (80.0, 1, 1),
        (60.0, 1, 3),
        (60.0, 1, 1),
    ]
    assert [tuple(form.worker) for form in y.forms] == [((0, 1),), ((1, 2),), ((0, 1),)]
    assert y.forms[1].worker.machines == y.forms[2].ps.machines == frozenset({2})
    assert [form.ps_needed(1) for form in y.forms] == [0, 0, 1]
    assert [(form.worker_cpu, form.step_time) for form in y.forms] == [(0, 0), (0, 0), (2, 1)]
    assert {form.index for form in y.forms} == {1}


def test_one_form_is_the_job_itself():
    (x, _) = elastic_from_dict(changed(KINDS, "jobs[0].speeds.values.a", GONE)).jobs
    assert (x.forms, x.work, sorted(x.worker.machines)) == ((), 15.0, [1])
