"""What utility classes do to the jobs of a cluster, as a controller decides it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.objects.manifests import schema_of
from oasis.kubernetes.objects.utility_class import (
    Classes,
    UtilityClass,
    with_defaults,
)
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.played import Played, job
from tests.unit.kubernetes.test_existing_jobs import job as existing_job
from tests.unit.kubernetes.test_existing_jobs import read
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


def utility_class(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"maximum": 100, "default": True, **spec}}


def claiming(name: str, value: float, slots: float = 12.0, **spec: Any) -> dict[str, Any]:
    made = job(name, slots=slots)
    made["spec"] |= {"utility": {"kind": "constant", "value": value}, **spec}
    return made


def under(name: str, *classes: dict[str, Any]) -> Played:
    """A cluster with utility classes."""
    made = Played(policy(name))
    made.classes = list(classes)
    return made


@pytest.mark.parametrize("name", ["recourse", "oasis", "fifo", "drf"])
def test_a_claim_beyond_the_class_changes_nothing_for_the_others(name: str) -> None:
    """The property behind the classes: the others run as if the greedy one had not been there."""
    ends = []
    for greedy in (False, True):
        made = under(name, utility_class())
        uids = [made.submit(claiming(f"j{k}", 20 + k, slots=10.0 * (k + 1))) for k in range(3)]
        if greedy:
            made.submit(claiming("greedy", 1e30, slots=40.0))
        made.run(15)
        ends.append([made.status(uid).get("completionSlot") for uid in uids])
    assert ends[0] == ends[1]
    assert None not in ends[0]


def test_a_job_of_another_kind_names_its_class_in_an_annotation() -> None:
    classes = Classes([utility_class("a"), utility_class("b", default=False)])
    for name in ("a", "b"):
        found = classes.of(read(existing_job(UTILITY_CLASS=name)))
        assert isinstance(found, UtilityClass)
        assert found.name == name
    assert read(existing_job()).utility_class is None
    assert classes.of(read(existing_job(UTILITY_CLASS="c"))) == (
        "is of UtilityClass c, which does not exist"
    )


@pytest.mark.parametrize(
    ("spec", "notes", "said"),
    [
        ({}, {}, (7, 120)),
        ({"default": False}, {names.UTILITY_CLASS: "c"}, (7, 120)),
        ({}, {names.UTILITY: '{"kind": "constant", "value": 3}'}, (3, 120)),
        ({}, {names.WORK: '{"workerSeconds": 60}'}, (7, 60)),
        ({"default": False}, {}, None),
        ({"namespaces": ["other"]}, {names.UTILITY_CLASS: "c"}, None),
        ({"maximum": 6}, {}, None),  # which makes no sense, beside its own utility
    ],
)
def test_a_job_that_says_less_takes_utility_and_work_of_its_class(
    spec: dict[str, Any], notes: dict[str, str], said: tuple[int, int] | None
) -> None:
    worth = {"kind": "constant", "value": 7}
    made = utility_class(utility=worth, work={"workerSeconds": 120}, **spec)
    item = existing_job()
    item["metadata"]["annotations"] = notes
    seen = with_defaults({"jobs": [item], names.CLASS_PLURAL: [made], names.PLURAL: []})
    assert seen.keys() == {"jobs", names.CLASS_PLURAL, names.PLURAL}
    assert item["metadata"]["annotations"] == notes, "what was seen is not changed"
    (filled,) = seen["jobs"]
    if said is None:
        with pytest.raises(InstanceError, match="or a UtilityClass that says it; found nothing"):
            read(filled)
        return
    explicit = existing_job(
        UTILITY=json.dumps({"kind": "constant", "value": said[0]}),
        WORK=json.dumps({"workerSeconds": said[1]}),
    )
    assert read(filled).job == read(explicit).job


@pytest.mark.parametrize("field", ["utility", "work"])
def test_a_class_has_defaults_of_the_form_that_jobs_have(field: str) -> None:
    ours, of_class = (schema_of(kind)["spec"] for kind in (names.KIND, names.CLASS_KIND))
    assert of_class["properties"][field] == ours["properties"][field]


def test_of_several_defaults_the_strictest_counts() -> None:
    classes = Classes([utility_class("b", maximum=5), utility_class("a", maximum=7)])
    found = classes.find(None, "ns")
    assert isinstance(found, UtilityClass)
    assert found.name == "b"


def test_the_pods_of_an_isolated_job_begin_when_others_cannot_reach_them() -> None:
    made = Played(policy("fifo"))
    opened = made.opens

    def opens(pod: dict[str, Any]) -> bool:
        assert made.policies, "others reach the pod before the policy is there"
        return opened(pod)

    made.opens = opens
    isolated = made.submit(
        claiming("isolated", 20, network={"isolated": True}, resizePolicy="restart")
    )
    made.run(1)
    assert made.phase(isolated) == "Running"
    (found,) = made.policies
    mine = {"matchLabels": {names.JOB_UID: isolated}}
    assert found["spec"]["podSelector"] == mine
    assert found["spec"]["ingress"] == [{"from": [{"podSelector": mine}]}]
    assert found["metadata"]["ownerReferences"][0]["uid"] == isolated
    assert all(pod["metadata"]["labels"][names.JOB_UID] == isolated for pod in made.pods.values())
    made.opens = opened
    made.submit(claiming("open", 20, network={}))
    made.run(3)
    assert len(made.policies) == 1
    wrong = made.submit(claiming("wrong", 20, network={"isolated": "yes"}))
    made.run(1)
    said = made.said(wrong, "Valid")
    assert said is not None
    assert said[2].startswith("spec.network.isolated: expected true or false")
