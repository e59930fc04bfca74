"""Labels of machines, and jobs in several forms: the file, the checks, and the verification."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import oasis
from oasis.model.forms import Labels, Requirement
from oasis.model.groups import TaskGroup
from oasis.model.instance_file import instance_from_dict, instance_to_dict
from oasis.model.records import parse
from tests import builders

WORKER, PS = {"gpu": 1, "cpu": 2, "bandwidth_gbps": 1.0}, {"cpu": 1, "bandwidth_gbps": 4.0}


def job(**changes: Any) -> oasis.Job:
    given = {"id": "a", "minibatch_time": 0.5, "worker": WORKER, "ps": PS} | changes
    worth = oasis.Constant(10.0)
    return builders.job(given.pop("id"), slots=6, workers=4, utility=worth, **given)


def instance(*jobs: oasis.Job) -> oasis.Instance:
    """Two machines of one kind, one of another, one without a label, and a host of servers."""
    each = {"gpu": 4, "cpu": 16, "bandwidth_gbps": 10.0}
    machines = (
        oasis.Server("old", each, count=2, labels={"gpu": "t4", "zone": "b"}),
        oasis.Server("new", each, labels={"gpu": "h100"}),
        oasis.Server("bare", each),
    )
    hosts = (oasis.Server("p", {"cpu": 16, "bandwidth_gbps": 40.0}, labels={"zone": "b"}),)
    cluster = oasis.Cluster(("gpu", "cpu", "bandwidth_gbps"), machines, hosts, 60.0)
    return oasis.Instance(12, cluster, jobs)


TWO = {"forms": (oasis.Form(requires={"gpu": ["t4"]}), oasis.Form(chunks=2, worker={"cpu": 1}))}


def test_a_file_keeps_labels_and_forms():
    jobs = (
        job(requires={"gpu": ["t4", "h100"]}, ps_requires={"zone": ["b"]}, **TWO),
        job(id="b", speeds=oasis.Speeds("gpu", {"t4": 1.0, "h100": 2.2})),
    )
    given = instance(*jobs)
    data = json.loads(json.dumps(instance_to_dict(given)))
    assert instance_from_dict(data) == given == pickle.loads(pickle.dumps(given))
    assert copy.deepcopy(given) == given
    assert data["worker_servers"][0]["labels"] == {"gpu": "t4", "zone": "b"}
    assert data["jobs"][0]["forms"] == [
        {"requires": {"gpu": ["t4"]}},
        {"worker": {"cpu": 1.0}, "chunks": 2},
    ]
    assert "requires" not in instance_to_dict(instance(job()))["jobs"][0]


def test_what_a_form_leaves_out_is_the_jobs_own():
    """And speeds are forms that differ in time alone."""
    first, second = job(requires={"zone": ["b"]}, **TWO).in_forms
    assert (first.requires, second.requires) == ({"gpu": ("t4",)}, {"zone": ("b",)})
    assert (first.chunks, second.chunks) == (4, 2)
    assert (first.worker, second.worker) == (WORKER, {"cpu": 1.0})
    assert first.in_forms == (first,)
    assert {one.id for one in (first, second)} == {"a"}
    speeds = oasis.Speeds("gpu", {"t4": 1.0, "h100": 2.0})
    slow, fast = job(speeds=speeds, requires={"zone": ["b"], "gpu": ["h100", "t4"]}).in_forms
    assert (slow.work(60.0), fast.work(60.0)) == (12, 6)
    assert fast.requires == {"zone": ("b",), "gpu": ("h100",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forms": [{"chunk": 2}]}, r"forms\[0\].chunk: unknown key"),
        ({"forms": [{}, {"min_workers": 5}]}, r"forms\[1\].min_workers: expected at most chunks"),
        ({"forms": [{"requires": None}]}, r"forms\[0\].requires: expected an object of lists"),
        ({"forms": [{"minibatch_time": -1}]}, r"forms\[0\].minibatch_time: expected a"),
        ({"speeds": {"label": "gpu", "values": {"t4": 0}}}, "speeds.values.t4: expected"),
        (
            {"speeds": {"label": "gpu", "values": {"t4": 1}}, "forms": [{}]},
            "speeds: expected either speeds or forms",
        ),
        (
            {"speeds": {"label": "gpu", "values": {"t4": 1}}, "requires": {"gpu": ["h100"]}},
            "speeds.values.t4: expected one of the values that requires.gpu admits",
        ),
    ],
)
def test_a_wrong_form_is_named(changes, message):
    data = instance_to_dict(instance(job()))["jobs"][0]
    with pytest.raises(oasis.InstanceError, match=f"^{message}"):
        parse(oasis.Job, {**data, **changes})


def test_the_label_that_keeps_all_machines_out_is_named():
    asked = Requirement({"zone": ["b"], "gpu": ["h100"]})
    machines = [Labels({"gpu": "t4", "zone": "b"}), Labels({"zone": "b"})]
    assert asked.unmet_by(machines) == "gpu"
    assert asked.unmet_by([*machines, Labels({"gpu": "h100", "zone": "b"})]) is None
    assert asked.unmet_by([Labels({"gpu": "h100"}), *machines]) == "zone"  # each by another one
    assert str(asked) == "zone is b, gpu is h100"


def test_which_machines_admit_a_job():
    cluster = instance().cluster
    assert cluster.admitted(job(), TaskGroup.WORKER) is None
    only = job(requires={"gpu": ["t4", "h100"]}, ps_requires={"zone": ["c"]})
    assert cluster.admitted(only, TaskGroup.WORKER).tolist() == [True, True, True, False]
    assert cluster.admitted(only, TaskGroup.PS).tolist() == [False]


def ran(server: int, count: int, slots: int, form: int, host: int = 0) -> dict[str, oasis.Schedule]:
    workers = [[slot, server, count] for slot in range(slots)]
    return {"a": oasis.Schedule("a", workers, [[slot, host, 1] for slot in range(slots)], form)}


def test_a_schedule_is_judged_in_its_form():
    given = instance(job(requires={"gpu": ["t4"]}, **TWO))
    assert oasis.verify(given, ran(0, 4, 3, form=0)) == 10.0
    with pytest.raises(oasis.VerificationError, match="training work"):
        oasis.verify(given, ran(0, 4, 2, form=0))
    without = {"a": oasis.Schedule("a", [[slot, 1, 2] for slot in range(3)], [], 1)}
    assert oasis.verify(given, without) == 10.0
    with pytest.raises(oasis.VerificationError, match=r"\(7\)|\(3\)"):
        oasis.verify(given, ran(0, 4, 3, form=1))
    with pytest.raises(oasis.VerificationError, match=r"forms.*form 2 of 2"):
        oasis.verify(given, ran(0, 4, 3, form=2))


@pytest.mark.parametrize("form", [-1, True, 1.0, "1", None])
def test_the_form_of_a_schedule_is_an_index(form):
    with pytest.raises(oasis.InputError, match=f"^form: expected an integer >= 0, got {form!r}"):
        oasis.Schedule("a", [[0, 0, 4]], [], form)


def test_a_task_on_a_machine_that_its_form_does_not_admit_is_refused():
    given = instance(job(requires={"gpu": ["t4"]}, ps_requires={"zone": ["c"]}))
    with pytest.raises(oasis.VerificationError, match=r"labels.*gpu is 'h100', required is t4"):
        oasis.verify(given, ran(2, 4, 3, form=0))
    with pytest.raises(oasis.VerificationError, match=r"labels.*gpu is None"):
        oasis.verify(given, ran(3, 4, 3, form=0))
    with pytest.raises(oasis.VerificationError, match="zone is 'b', required is c"):
        oasis.verify(given, ran(0, 4, 3, form=0))


def test_a_schedule_file_says_the_form_where_there_are_several():
    schedule = ran(0, 4, 3, form=1)["a"]
    assert oasis.Schedule.from_dict(schedule.to_dict()) == schedule
    assert "form" not in ran(0, 4, 3, form=0)["a"].to_dict()
    assert schedule != ran(0, 4, 3, form=0)["a"]
    rest = schedule.since(1)
    assert rest is not None
    assert rest.form == 1
