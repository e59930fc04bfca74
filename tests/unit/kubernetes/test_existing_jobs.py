"""Jobs whose pods other controllers make: what they say, whose pods are whose, what is done."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from baselines import FIFO
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.kubernetes import names
from oasis.kubernetes.acting import (
    Open,
    Steps,
    Switch,
    Target,
    action_word,
    described,
    has_pods_but_no_plan,
    reconcile,
    steps_of_existing,
)
from oasis.kubernetes.cluster.nodes import Place
from oasis.kubernetes.cluster.pods import (
    WantedPod,
    claimed,
    claims_of,
    matched,
    on_node,
    plan_hash,
    sending_patch,
)
from oasis.kubernetes.control.job_reader import JobReader, check_plannable
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    JOBSET_NAME,
    REPLICATED_JOB,
    TRAINJOB,
    ExistingKind,
    content_version,
    existing_objects,
    job_items,
    parse_existing,
)
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.site import FINE, Machine, Site
from tests.unit.kubernetes.test_objects import CLOCK, DEFAULT_RESOURCES

PLACES = tuple(Place(n, n, n, frozenset({"worker", "ps"}), Fraction(1)) for n in ("n0", "n1", "n2"))
CONTAINER = {"resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}


def template() -> dict[str, Any]:
    return {"spec": {"schedulingGates": [{"name": names.GATE}], "containers": [CONTAINER]}}


def made(spec: dict[str, Any], uid: str = "u", **notes: str) -> dict[str, Any]:
    said = {
        names.UTILITY: '{"kind": "constant", "value": 3}',
        names.WORK: '{"workerSeconds": 60}',
        **{getattr(names, key): value for key, value in notes.items()},
    }
    meta = {"name": f"job-{uid}", "namespace": "ns", "uid": uid, "annotations": said}
    return {"metadata": meta, "spec": {"suspend": True, **spec}}


def job(workers: int = 2, **more: Any) -> dict[str, Any]:
    return made({"parallelism": workers, "template": template()}, **more)


def jobset(**notes: str) -> dict[str, Any]:
    parts = [
        {"name": name, "replicas": replicas, "template": {"spec": {**each, "template": template()}}}
        for name, replicas, each in (("w", 2, {"parallelism": 2}), ("s", 1, {}))
    ]
    return made({"replicatedJobs": parts}, **notes)


def read(found: dict[str, Any], kind: ExistingKind = JOB) -> JobSpec:
    return parse_existing(found, kind, CLOCK, DEFAULT_RESOURCES)


def test_a_job_is_a_gang_of_as_many_pods_as_it_says() -> None:
    spec = read(job(3))
    assert (spec.min_workers, spec.job.chunks, spec.kind) == (3, 3, "Job")
    assert spec.id == spec.job.id == "ns/job/job-u"
    assert spec.is_existing
    assert spec.worker_requests["nvidia.com/gpu"] == 1
    assert spec.job.utility(5) == 3


def test_a_jobset_may_have_parameter_servers_and_a_trainjob_has_nodes() -> None:
    spec = read(jobset(SERVERS="s"), JOBSET)
    assert (spec.job.chunks, spec.fixed_ps, spec.ps is not None) == (4, 1, True)
    trainer = {"numNodes": 5, "resourcesPerNode": CONTAINER["resources"]}
    spec = read(made({"trainer": trainer}), TRAINJOB)
    assert (spec.min_workers, spec.fixed_ps) == (5, None)
    assert spec.worker_requests["nvidia.com/gpu"] == 1


def test_a_job_with_both_bounds_may_be_resized() -> None:
    spec = read(job(MINIMUM="1", MAXIMUM="6"))
    assert (spec.min_workers, spec.job.chunks) == (1, 6)


@pytest.mark.parametrize(
    ("found", "kind", "message"),
    [
        (job(WORK="[1"), JOB, f"metadata.annotations.{names.WORK}: expected JSON, got"),
        (job(UTILITY='{"kind": "no"}'), JOB, f"{names.UTILITY}.kind: expected one of"),
        (job(0), JOB, "spec.template: expected at least one pod, got 0"),
        (job(MINIMUM="1"), JOB, "expected both of"),
        (job(MINIMUM="3", MAXIMUM="2"), JOB, "expected at most 2, the maximum, got 3"),
        (job(MINIMUM="x", MAXIMUM="2"), JOB, f"{names.MINIMUM}: expected"),
        (jobset(), JOBSET, "expected one replicated job of workers beside it, got 2"),
        (jobset(SERVERS="t"), JOBSET, r"expected a replicated job of the object \(w, s\)"),
        (jobset(SERVERS="s", MAXIMUM="4"), JOBSET, "a JobSet cannot be resized"),
        (job(ON_REJECTION="wait"), JOB, f"{names.ON_REJECTION}: expected one of fail, retry"),
    ],
)
def test_what_makes_no_sense_names_its_field(
    found: dict[str, Any], kind: ExistingKind, message: str
) -> None:
    with pytest.raises(InstanceError, match=message):
        read(found, kind)


def test_without_annotations_or_gate_a_job_is_refused() -> None:
    found = job()
    del found["metadata"]["annotations"][names.WORK]
    with pytest.raises(
        InstanceError, match="expected JSON, or a UtilityClass that says it; found nothing"
    ):
        read(found)
    found = job()
    found["spec"]["template"]["spec"]["schedulingGates"] = []
    with pytest.raises(InstanceError, match=r"expected the gate oasis-scheduler\.io/placement"):
        read(found)


def test_what_we_write_changes_no_version_and_what_the_owner_edits_does() -> None:
    found = job(MINIMUM="1", MAXIMUM="4")
    version = content_version(found, JOB)
    found["spec"] |= {"suspend": False, "parallelism": 3}
    found["metadata"]["annotations"][names.STATUS] = "{}"
    assert content_version(found, JOB) == version
    found["metadata"]["annotations"][names.MAXIMUM] = "5"
    assert content_version(found, JOB) != version


# -- pods ----------------------------------------------------------------------------------------


def pod(name: str, node: str | None = None, phase: str = "Pending", **meta: Any) -> dict[str, Any]:
    gates = [{"name": names.GATE}] if node is None else []
    notes = {} if node is None else {names.NODE: node}
    return {
        "metadata": {
            **{"name": name, "namespace": "ns", "uid": name, "annotations": notes},
            # our manager is that of whoever opens the gate
            "managedFields": [{"manager": names.FIELD_MANAGER}] if node else [],
            **meta,
        },
        "spec": {"schedulingGates": gates, **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }


def test_pods_belong_to_the_job_that_owns_them_or_to_the_jobset_that_they_name() -> None:
    seen = {"jobs": [job(uid="j")], "jobsets": [jobset()], "trainjobs": []}
    assert [kind for kind, _ in job_items({**seen, names.PLURAL: [job(uid="o")]})].count(None) == 1
    assert existing_objects(seen).keys() == {"j", "u"}
    claims = claims_of(seen)
    owner = {"kind": "Job", "controller": True, "uid": "j"}
    assert claimed(pod("a", ownerReferences=[owner]), claims) == "j"
    other = {**owner, "uid": "x"}
    labels = {JOBSET_NAME: "job-u"}
    assert claimed(pod("b", ownerReferences=[other], labels=labels), claims) == "u"
    assert claimed(pod("c", ownerReferences=[other]), claims) is None
    foreign = pod("d", ownerReferences=[owner])
    foreign["spec"]["schedulingGates"] = [{"name": "theirs"}]
    assert claimed(foreign, claims) is None, "it never had our gate"
    foreign["metadata"]["annotations"] = {names.NODE: "n0"}
    assert claimed(foreign, claims) is None, "and whoever wrote the annotation was not us"
    elsewhere = pod("e", "n0", namespace="other", ownerReferences=[owner])
    assert claimed(elsewhere, claims) is None


@pytest.mark.parametrize("owner", [JOBSET, TRAINJOB])
def test_what_a_jobset_or_trainjob_makes_is_part_of_it_whatever_its_labels(
    owner: ExistingKind,
) -> None:
    whole = jobset(SERVERS="s") if owner is JOBSET else made({"trainer": {"numNodes": 2}})
    reference = {"kind": owner.name, "controller": True, "uid": "u", "name": "job-u"}
    child = job(uid="child")
    child["metadata"]["ownerReferences"] = [reference]
    seen: dict[str, Any] = {owner.where.plural: [whole], "jobs": [child]}
    if owner is TRAINJOB:
        below = jobset()
        below["metadata"] |= {"uid": "below", "ownerReferences": [reference]}
        seen["jobsets"] = [below]
    assert [item["metadata"]["uid"] for _, item in job_items(seen)] == ["u"]
    assert existing_objects(seen).keys() == {"u"}
    of_child = {"kind": "Job", "controller": True, "uid": "child"}
    found = pod("a", ownerReferences=[of_child], labels={JOBSET_NAME: "job-u"})
    assert claimed(found, claims_of(seen)) == "u"


def test_what_was_sent_stays_and_gated_pods_take_what_is_left() -> None:
    pods = {p["metadata"]["name"]: p for p in (pod("a", "n1"), pod("b"), pod("c"))}
    wanted = matched(read(job(3)), job(3), Allocation(((0, 1), (1, 2))), PLACES, pods)
    assert {(w.name, w.node) for w in wanted} == {("a", "n1"), ("b", "n0"), ("c", "n1")}
    wanted = matched(read(job(3)), job(3), Allocation(((0, 3),)), PLACES, pods)
    assert {w.name for w in wanted} == {"b", "c", "?worker-2"}


def test_what_has_succeeded_is_not_waited_for() -> None:
    pods = {p["metadata"]["name"]: p for p in (pod("a", "n0", "Succeeded"), pod("b", "n0"))}
    wanted = matched(read(job(2)), job(2), Allocation(((0, 2),)), PLACES, pods)
    assert [w.name for w in wanted] == ["b"]


def test_tasks_of_a_jobset_are_told_apart_by_their_replicated_job() -> None:
    pods = {
        name: pod(name, labels={REPLICATED_JOB: part})
        for name, part in (("x0", "w"), ("x1", "s"), ("x2", "w"))
    }
    both = Allocation(((0, 2),), ((1, 1),))
    found = jobset(SERVERS="s")
    wanted = matched(read(found, JOBSET), found, both, PLACES, pods)
    assert [(w.name, w.task, w.node) for w in wanted] == [
        ("x0", "worker", "n0"),
        ("x2", "worker", "n0"),
        ("x1", "ps", "n1"),
    ]


def test_the_patch_opens_the_gate_and_leaves_other_marks_alone() -> None:
    sent = sending_patch(
        pod("a", labels={"mine": "1"}),
        WantedPod("a", "worker", "n1", "host"),
        read(job()),
        "p",
        7,
        {},
    )
    assert sent[0]["op"] == "test"
    added = {op["path"]: op["value"] for op in sent if op["op"] == "add"}
    assert added["/spec/nodeSelector"] == {names.HOSTNAME: "host"}
    assert added["/spec/affinity"] == on_node(None, "n1")
    assert added["/metadata/labels/oasis-scheduler.io~1job-uid"] == "u"
    assert added["/metadata/annotations/oasis-scheduler.io~1slot"] == "7"
    bare = pod("a")
    del bare["metadata"]["annotations"]
    sent = sending_patch(bare, WantedPod("a", "worker", "n1", "h"), read(job()), "p", 7, {})
    assert {op["path"] for op in sent} >= {"/metadata/labels", "/metadata/annotations"}


# -- steps ---------------------------------------------------------------------------------------


def target(
    found: dict[str, Any], held: Allocation, pods: dict[str, Any], **more: Any
) -> tuple[Target, dict[str, Any]]:
    wanted = matched(read(found), found, held, PLACES, pods)
    plan = plan_hash(held, PLACES)
    return (
        Target(
            read(found),
            wanted,
            plan,
            pods,
            0,
            found=found,
            workers=held.worker_count,
            **more,
        ),
        found,
    )


def steps(*args: Any, stuck: frozenset[str] = frozenset(), **more: Any) -> tuple[list[str], Steps]:
    made_steps = Steps()
    one, found = target(*args, **more)
    gated = steps_of_existing(one, found, stuck, made_steps)
    names_ = [action_word(action) for action in made_steps.actions]
    return names_ + [pod.name for pod in gated], made_steps


TWO = Allocation(((0, 1), (1, 1)))


def test_a_suspended_job_is_resumed_when_its_last_pod_is_gone() -> None:
    assert steps(job(), TWO, {})[0] == ["resume"]
    old = pod("old", "n0", deletionTimestamp="2026-01-01T00:00:00Z")
    assert steps(job(), TWO, {"old": old})[0] == []
    assert steps(job(), TWO, {}, withdrawn=True)[0] == []
    found = job(MINIMUM="1", MAXIMUM="4")
    (action,) = steps(found, TWO, {})[1].actions
    assert isinstance(action, Switch)
    assert action.workers == 2
    assert described(action)["job"] == "ns/job/job-u"


def test_gates_open_when_all_pods_are_there() -> None:
    found = job()
    found["spec"]["suspend"] = False
    assert steps(found, TWO, {"a": pod("a")})[0] == []
    both = {"a": pod("a"), "b": pod("b")}
    assert steps(found, TWO, both)[0] == ["a", "b"]
    free = {
        place.node: {"cpu": Fraction(9), "nvidia.com/gpu": Fraction(9), "pods": Fraction(9)}
        for place in PLACES
    }
    one, _ = target(found, TWO, both)
    actions = reconcile([one], [], free).actions
    assert [type(action) for action in actions] == [Open, Open]


def test_a_gang_that_the_plan_has_elsewhere_is_suspended() -> None:
    found = job()
    found["spec"]["suspend"] = False
    running = {"a": pod("a", "n0"), "b": pod("b", "n2")}
    assert steps(found, TWO, running)[0] == ["suspend"]
    assert steps(found, NOTHING, running)[0] == ["suspend"]
    assert steps(found, TWO, {"a": pod("a", "n0"), "b": pod("b", "n1")})[0] == []
    names_, made_steps = steps(found, TWO, {"a": pod("a", "n0")}, stuck=frozenset("a"))
    assert names_ == ["suspend"]
    assert made_steps.withdrawn == {"u"}
    assert isinstance(made_steps.actions[0], Switch)
    assert has_pods_but_no_plan(found, running)
    assert not has_pods_but_no_plan(job(), running)
    waiting = {"a": pod("a")}
    assert not has_pods_but_no_plan(found, waiting), "they are placed once they are planned"
    assert has_pods_but_no_plan(found, waiting, is_over=True)


# -- from the objects to the policy ---------------------------------------------------------------


def driver() -> Driver:
    machines = tuple(
        Machine(place.id, (8.0, 8.0, 64.0, 64.0, 64.0), place.hosts, FINE) for place in PLACES
    )
    return Driver(FIFO(), Site(DEFAULT_RESOURCES.names, machines, 60.0, True))


def test_a_job_is_complete_when_its_controller_says_so_and_not_before() -> None:
    reader, drives, found = JobReader(CLOCK, DEFAULT_RESOURCES), driver(), job()
    seen = {"jobs": [found]}
    specs = reader.read(seen, drives, 0.0)
    drives.boundary(0, Facts(specs))
    assert drives.boundary(1, Facts(specs, {"u": 1e6})).completed == []
    found["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    specs = reader.read(seen, drives, 0.0)
    assert reader.complete == {"u"}
    outcome = drives.boundary(2, Facts(specs, ended=frozenset(reader.complete)))
    assert outcome.completed == ["u"]
    late = JobReader(CLOCK, DEFAULT_RESOURCES)
    assert late.read(seen, driver(), 0.0) == {}, "what was complete before is none of ours"


def test_what_failed_leaves_and_what_is_edited_is_read_again() -> None:
    reader, drives, found = JobReader(CLOCK, DEFAULT_RESOURCES), driver(), job()
    seen = {"jobs": [found]}
    drives.boundary(0, Facts(reader.read(seen, drives, 0.0)))
    found["metadata"]["annotations"][names.WORK] = "no"
    assert reader.read(seen, drives, 0.0) == {}
    assert reader.statuses["u"].phase == "Invalid"
    found["metadata"]["annotations"][names.WORK] = '{"workerSeconds": 60}'
    assert reader.read(seen, drives, 0.0).keys() == {"u"}
    found["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "Why"}]}
    assert reader.read(seen, drives, 0.0) == {}
    said = reader.statuses["u"].said("Complete")
    assert (reader.statuses["u"].phase, said["reason"]) == ("Failed", "JobFailed")
    assert said["message"] == "its Job failed: Why"
    found["metadata"]["annotations"][names.WORK] = '{"workerSeconds": 61}'
    assert reader.read(seen, drives, 0.0) == {}, "an edit brings no Job back that failed"
    assert reader.statuses["u"].phase == "Failed"
    again = JobReader(CLOCK, DEFAULT_RESOURCES)
    again.recall({"u": {"phase": "Waiting"}}, seen)
    assert again.statuses["u"].phase == "Waiting"


def test_what_was_read_of_a_job_is_forgotten_with_it() -> None:
    reader, drives = JobReader(CLOCK, DEFAULT_RESOURCES), driver()
    reader.read({"jobs": [job(), job(uid="other")]}, drives, 0.0)
    assert reader.specs.keys() == {"u", "other"}
    reader.read({"jobs": [job(uid="other")]}, drives, 0.0)
    assert reader.specs.keys() == reader.statuses.keys() == {"other"}


def test_policies_that_plan_ahead_take_gangs_and_refuse_fixed_parameter_servers() -> None:
    class Planner:
        name, plans_in_model = "planner", True

    assert read(job()).job.min_workers == 2
    served = read(jobset(SERVERS="s"), JOBSET)
    for policy in (Planner(), Recourse()):  # the other one is what `--horizon` takes
        check_plannable(read(job()), policy)  # type: ignore[arg-type]
        with pytest.raises(InstanceError, match="plans them by bandwidth, got 1") as refused:
            check_plannable(served, policy)  # type: ignore[arg-type]
        assert str(refused.value).startswith(f"metadata.annotations.{names.SERVERS}: expected none")
    check_plannable(served, FIFO())


def test_what_cannot_be_planned_of_a_job_is_told_on_the_object() -> None:
    """And the other jobs are served: one that cannot be planned stops nobody."""
    served, gang = jobset(SERVERS="s"), job()
    served["metadata"] |= {"generation": 1, "resourceVersion": "3"}
    gang["metadata"] |= {"uid": "v", "generation": 1, "resourceVersion": "4"}
    reader, drives = JobReader(CLOCK, DEFAULT_RESOURCES), driver()
    drives.policy = Recourse()
    assert reader.read({"jobsets": [served], "jobs": [gang]}, drives, 0.0).keys() == {"v"}
    status = reader.statuses["u"]
    assert status.phase == "Invalid"
    (said,) = status.status["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("Valid", "False", "Invalid")
    assert said["message"].startswith(f"metadata.annotations.{names.SERVERS}: expected none")


def test_the_status_of_another_kind_is_an_annotation() -> None:
    reader, drives = JobReader(CLOCK, DEFAULT_RESOURCES, controller="a/b"), driver()
    reader.read({"jobs": [job()]}, drives, 0.0)
    status = reader.statuses["u"]
    status.status["phase"] = "Running"
    body = status.body()
    assert body["metadata"]["uid"] == "u"
    told = json.loads(body["metadata"]["annotations"][names.STATUS])
    assert told == {"phase": "Running", "controller": "a/b"}


def test_the_order_of_jobs_is_that_of_their_creation_whatever_is_written_on_them() -> None:
    reader, drives = JobReader(CLOCK, DEFAULT_RESOURCES), driver()
    one, other = job(uid="one"), job(uid="other")
    for version, found in enumerate((one, other)):
        found["metadata"] |= {"creationTimestamp": "now", "resourceVersion": str(version)}
    assert list(reader.read({"jobs": [one, other]}, drives, 0.0)) == ["one", "other"]
    one["metadata"]["resourceVersion"] = "7"  # its status was written
    assert list(reader.read({"jobs": [other, one]}, drives, 0.0)) == ["one", "other"]


def test_its_template_says_which_nodes_its_pods_may_go_to() -> None:
    found = job(2)
    found["spec"]["template"]["spec"] |= {"nodeSelector": {"gpu": "h100"}}
    rules = read(found).rules
    assert list(rules) == ["worker"]
    other = {"metadata": {"name": "n", "labels": {"gpu": "t4"}}, "spec": {}}
    assert rules[TaskGroup.WORKER].refusal(other) == "label gpu is not h100"
    found["spec"]["template"]["spec"] |= {"tolerations": [{"operator": "Exists", "key": 3}]}
    with pytest.raises(InstanceError, match=r"spec\.template\.spec\.tolerations\[0\]\.key"):
        read(found)
