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
from tests.unit.kubernetes.played import Played, job, policy
from tests.unit.kubernetes.test_existing_jobs import job as existing_job
from tests.unit.kubernetes.test_existing_jobs import read


def utility_class(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"maximum": 100, "default": True, **spec}}


@pytest.mark.parametrize("name", ["recourse", "oasis", "fifo", "drf"])
def test_a_claim_beyond_the_class_changes_nothing_for_the_others(name: str) -> None:
    """The property behind the classes: the others run as if the greedy one had not been there."""
    ends = []
    for greedy in (False, True):
        made, jobs = Played(policy(name)), [(f"j{k}", 20 + k, 10.0 * (k + 1)) for k in range(3)]
        made.classes, uids = [utility_class()], []
        for each, value, slots in [*jobs, ("greedy", 1e30, 40.0)][: 3 + greedy]:
            found = job(each, slots=slots)
            found["spec"]["utility"]["value"] = value
            uids.append(made.submit(found))
        made.run(15)
        ends.append([made.status(uid).get("completionSlot") for uid in uids[:3]])
    assert ends[0] == ends[1]
    assert None not in ends[0]


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


def test_a_job_has_the_class_that_it_names_or_the_strictest_default() -> None:
    made = [utility_class("a", maximum=7), utility_class("b", maximum=5)]
    classes = Classes([*made, utility_class("c", default=False)])
    for notes, name in (({"UTILITY_CLASS": "a"}, "a"), ({}, "b"), ({"UTILITY_CLASS": "c"}, "c")):
        found = classes.of(read(existing_job(**notes)))
        assert isinstance(found, UtilityClass)
        assert found.name == name
