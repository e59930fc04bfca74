"""Files of elastic jobs: what they say, one line for what is wrong."""

import copy
import json
import pickle
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import FIFO
from oasis import InstanceError
from oasis.simulator.elastic import (
    FormEntry,
    MachineEntry,
    ServerShare,
    elastic_from_dict,
    elastic_schema,
)
from oasis.simulator.run import replay
from oasis.simulator.speed import Linear
from tests.unit.model.test_schema import JSON, places, with_change

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "elastic.json"
ENTRIES = (MachineEntry, ServerShare, FormEntry)
SMALL = {
    "format": "oasis-elastic-workload",
    "version": 1,
    "resources": ["gpu", "memory_gb"],
    "machines": [
        {"id": "n", "count": 2, "capacity": {"gpu": 4, "memory_gb": 64}, "cpu_cores": 16},
        {"id": "cpu", "capacity": {"memory_gb": 32}, "link_gbps": 10.0},
    ],
    "costs": {"start": 5.0, "resize": 50.0, "save": 3.0, "checkpoint_interval": 600.0},
    "observation": {"interval": 30.0, "noise": 0.01, "seed": 4},
    "jobs": [
        {
            "id": "a",
            "arrival": 0.0,
            "work": 3600.0,
            "workers": {"min": 1, "initial": 2, "max": 4},
            "worker": {"gpu": 1, "memory_gb": 8},
            "ps": {"memory_gb": 4},
            "parameter_servers": 1,
            "worker_cpu": 4.0,
            "ps_cpu": 2.0,
            "gradient_mb": 100.0,
            "step_seconds": 0.2,
            "speedup": [1.0, 1.7, 2.1],
            "curve": [[0, 2.3], [0.5, 0.4], [1, 0.1]],
            "utility": {"kind": "deadline", "value": 5.0, "deadline": 7200.0},
        },
        {"id": "b", "arrival": 10, "work": 60, "workers": 3, "worker": {"gpu": 1}},
    ],
}


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


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "x", "format: expected 'oasis-elastic-workload', got 'x'"),
        (("resources",), [], "resources: expected at least one entry"),
        (("resources",), ["gpu", "gpu", "memory_gb"], r"resources\[1\]: duplicate resource 'gpu'"),
        (
            ("machines", 0, "capacity"),
            {"tpu": 1},
            r"machines\[0\].capacity.tpu: expected one of the",
        ),
        (("machines", 0, "capacity", "gpu"), -1, r"machines\[0\].capacity.gpu: expected a finite"),
        (("machines", 1, "link_gbps"), 0, r"machines\[1\].link_gbps: expected a finite number > 0"),
        (("machines", 1, "id"), "n#1", r"machines\[2\].id: duplicate id 'n#1'"),
        (("jobs", 1, "id"), "a", r"jobs\[1\].id: duplicate id 'a'"),
        (("jobs", 0, "arrival"), float("nan"), r"jobs\[0\].arrival: expected a finite number"),
        (("jobs", 0, "workers", "max"), 0, r"jobs\[0\].workers.max: expected an integer >= 1"),
        (("jobs", 0, "workers", "initial"), 5, r"jobs\[0\].workers.initial: .* <= 4"),
        (("jobs", 0, "parameter_servers"), 1.5, r"jobs\[0\].parameter_servers: expected an int"),
        (("jobs", 0, "step_seconds"), 0, r"jobs\[0\].step_seconds: expected a number > 0 where"),
        (("jobs", 0, "speedup"), [1, 0], r"jobs\[0\].speedup\[1\]: expected a finite number > 0"),
        (("jobs", 0, "curve"), [[0, 1]], r"jobs\[0\].curve: expected shares that increase"),
        (("jobs", 0, "curve"), [[0, 1], [1]], r"jobs\[0\].curve\[1\]: expected \[share, value\]"),
        (
            ("jobs", 0, "utility", "kind"),
            "x",
            r"jobs\[0\].utility(.kind)?: expected (one of|an object)",
        ),
        (("jobs", 0, "colour"), 1, r"jobs\[0\].colour: unknown key; expected one of id"),
        (("costs", "checkpoint_interval"), 0, "costs.checkpoint_interval: .* > 0"),
        (("observation", "interval"), 0, "observation.interval: expected a finite number > 0"),
        (("crowding_loss",), -0.1, "crowding_loss: expected a finite number >= 0, got -0.1"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_field(path, value, message):
    with pytest.raises(InstanceError, match=message) as caught:
        elastic_from_dict(with_change(SMALL, path, value))
    assert "\n" not in str(caught.value)


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


# -- machines with labels, jobs in several forms ---------------------------------------------------

OF_KINDS = {
    "format": "oasis-elastic-workload",
    "version": 1,
    "resources": ["gpu", "gb"],
    "machines": [
        {"id": kind, "capacity": {"gpu": 4, "gb": 8}, "labels": {"gpu": kind}} for kind in "abc"
    ],
    "jobs": [
        {
            **{"id": "x", "arrival": 0.0, "work": 60.0, "workers": 2, "worker": {"gpu": 1}},
            **{"gradient_mb": 1.0, "step_seconds": 3.0, "requires": {"gpu": ["a", "b"]}},
            "speeds": {"label": "gpu", "values": {"a": 1.0, "b": 4.0}},
            "switch": "restart",
        },
        {
            **{"id": "y", "arrival": 5.0, "work": 60.0, "workers": 1, "worker": {"gpu": 1}},
            "ps_requires": {"gpu": ["c"]},
            "forms": [
                {"work": 80.0},
                {"workers": {"min": 1, "max": 3}, "worker": {"gb": 2}, "requires": {"gpu": ["c"]}},
                {"parameter_servers": 1, "ps": {"gb": 1}, "worker_cpu": 2, "step_seconds": 1.0},
            ],
        },
    ],
}


def of_kinds(job: dict, k: int = 0) -> dict:
    """The file with these keys of a job instead."""
    data = copy.deepcopy(OF_KINDS)
    data["jobs"][k] |= job
    return data


def test_forms_are_the_job_with_what_they_say():
    made = elastic_from_dict(OF_KINDS)
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
    (x, _) = elastic_from_dict(of_kinds({"speeds": {"label": "gpu", "values": {"b": 4.0}}})).jobs
    assert (x.forms, x.work, sorted(x.worker.machines)) == ((), 15.0, [1])


def test_a_job_that_no_machine_admits_is_rejected_for_the_label():
    made = elastic_from_dict(of_kinds({"requires": {"gpu": ["h100"]}, "forms": []}, 1))
    refusals = [job.refusal for job in replay(made, FIFO()).jobs]
    reason = "label gpu of the worker servers; its workers require gpu is h100"
    assert refusals == [None, f"no machine admits it: {reason}"]


@pytest.mark.parametrize(
    ("k", "job", "message"),
    [
        (0, {"forms": [{}]}, "jobs[0].speeds: expected either speeds or forms, not both"),
        (
            *(0, {"requires": {"gpu": ["a"]}}),
            "jobs[0].speeds.values.b: expected one of the values that requires.gpu admits",
        ),
        (0, {"speeds": {"label": "gpu", "values": {}}}, "jobs[0].speeds.values: expected at least"),
        (0, {"switch": "pause"}, "jobs[0].switch: expected 'restart', got 'pause'"),
        (1, {"forms": [], "switch": "restart"}, "jobs[1].switch: expected forms or speeds beside"),
        (1, {"forms": [{"chunks": 2}]}, "jobs[1].forms[0]"),
        (1, {"forms": [{"workers": {"min": 3, "max": 2}}]}, "jobs[1].forms[0].workers.max"),
        (1, {"forms": [{}, {"worker": {"tpu": 1}}]}, "jobs[1].forms[1].worker"),
        (1, {"forms": [{"gradient_mb": 1.0}]}, "jobs[1].forms[0].step_seconds: expected a number"),
        (1, {"requires": {"gpu": []}}, "jobs[1].requires.gpu: expected at least one value"),
    ],
    ids=str,
)
def test_what_is_wrong_with_forms_is_one_line(k, job, message):
    with pytest.raises(InstanceError) as caught:
        elastic_from_dict(of_kinds(job, k))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# -- the schema, which refuses nothing that the reader takes ---------------------------------------

VALIDATOR = jsonschema.Draft202012Validator(elastic_schema())
WHOLE = copy.deepcopy(SMALL) | {"partial_gangs": True, "share_links": False}
WHOLE["machines"][0]["labels"] = {"gpu": "a"}
WHOLE["jobs"][0] |= {
    "ps_requires": {"gpu": ["a"]},
    "forms": [{"requires": {"gpu": ["a"]}, "workers": 2}, {"work": 9.0, "ps": {}}],
    "switch": "restart",
}
WHOLE["jobs"][1] |= {
    "parameter_servers": {"per_worker": 0.5},
    "speeds": {"label": "gpu", "values": {"a": 1.0, "b": 2.0}},
}


def test_it_takes_what_is_shipped_and_all_fields():
    jsonschema.Draft202012Validator.check_schema(elastic_schema())
    VALIDATOR.validate(json.loads(EXAMPLE.read_text(encoding="utf-8")))
    VALIDATOR.validate(WHOLE)
    elastic_from_dict(WHOLE)


def test_it_describes_every_field_of_a_job():
    assert set(WHOLE["jobs"][0]) <= set(elastic_schema()["$defs"]["job"]["properties"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), True),
        (("machines",), []),
        (("machines", 0, "count"), 0),
        (("machines", 0, "cpu_cores"), 0),
        (("partial_gangs",), "yes"),
        (("costs", "start"), -1),
        (("costs", "stop"), 1),
        (("observation",), {}),
        (("jobs", 0, "arrival"), 1e17),
        (("jobs", 0, "work"), 0),
        (("jobs", 0, "workers"), 0),
        (("jobs", 0, "workers"), {"min": 1}),
        (("jobs", 0, "parameter_servers"), {"per_worker": 2}),
        (("jobs", 0, "worker", "gpu"), 1e300),
        (("jobs", 0, "gradient_mb"), 1e300),
        (("jobs", 0, "speedup"), [0]),
        (("jobs", 0, "curve"), [[0, 1, 2]]),
        (("machines", 0, "labels"), {"gpu": 1}),
        (("jobs", 0, "requires"), {"gpu": []}),
        (("jobs", 0, "forms", 0), {"speedup": [1]}),
        (("jobs", 0, "forms", 0, "work"), None),
        (("jobs", 0, "switch"), "pause"),
        (("jobs", 1, "speeds", "values"), {"a": 0}),
    ],
    ids=str,
)
def test_it_refuses_what_the_reader_refuses_there(path, value):
    data = with_change(WHOLE, path, value)
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(InstanceError):
        elastic_from_dict(data)


@given(st.sampled_from(places(WHOLE)), JSON)
def test_it_refuses_nothing_that_the_reader_takes(path, value):
    data = with_change(WHOLE, path, value)
    if not VALIDATOR.is_valid(data):
        with pytest.raises(InstanceError):
            elastic_from_dict(data)


def test_classes_of_entries_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(ENTRIES)) == ENTRIES
