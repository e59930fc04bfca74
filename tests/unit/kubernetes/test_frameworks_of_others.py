"""Pods that other controllers make: what they are told of each other, and TFJobs."""

from __future__ import annotations

from typing import Any

import pytest

from oasis.kubernetes.acting import Open, Switch, Target, has_pods_but_no_plan, reconcile
from oasis.kubernetes.cluster.gangs import annotations_of, network_objects
from oasis.kubernetes.cluster.pods import WantedPod, claimed, claims_of, matched
from oasis.kubernetes.control.job_reader import check_plannable
from oasis.kubernetes.control.writer import _switch_patch
from oasis.kubernetes.objects.existing import (
    COMPLETION_INDEX,
    JOB,
    JOB_INDEX,
    JOBSET,
    REPLICA_TYPE,
    REPLICATED_JOB,
    TFJOB,
    existing_objects,
    is_suspended,
)
from oasis.kubernetes.objects.network import PodNetwork
from oasis.model.errors import InstanceError
from oasis.model.groups import TaskGroup
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.job import Allocation
from tests.unit.kubernetes.test_existing_jobs import (
    PLACES,
    job,
    jobset,
    pod,
    read,
    tfjob,
)
from tests.unit.kubernetes.test_indices import RESOURCES


def indexed(workers: int = 2, subdomain: str | None = "train", **notes: str) -> dict[str, Any]:
    """An Indexed Job whose pods have names."""
    found = job(workers, **notes)
    found["spec"] |= {"completionMode": "Indexed", "completions": workers}
    if subdomain is not None:
        found["spec"]["template"]["spec"]["subdomain"] = subdomain
    return found


def named(name: str, index: int, *, of: int = 0, part: str = "", **more: Any) -> dict[str, Any]:
    """A gated pod as the controller of Indexed Jobs makes it."""
    labels = {COMPLETION_INDEX: str(index)}
    if part:
        labels |= {REPLICATED_JOB: part, JOB_INDEX: str(of)}
    found = pod(name, labels=labels, **more)
    found["spec"] |= {"hostname": name.rpartition("-")[0], "subdomain": "train"}
    return found


def env_of(told: dict[str, str], name: str) -> str:
    return told[f"env.oasis-scheduler.io/{name}"]


def test_the_pods_of_an_indexed_job_are_told_by_their_indices() -> None:
    spec = read(indexed(3, FRAMEWORK="jax", PORT="1234"))
    assert (spec.network, spec.resize) == (PodNetwork("jax", 1234), "restart")
    assert not network_objects(spec, (), ()), "that is for its owner to make"
    pods = {f"job-{k}-x": named(f"job-{k}-x", k) for k in (2, 0, 1)}
    wanted = [WantedPod(name, TaskGroup.WORKER, "n0", "n0") for name in pods]
    told = {pod.name: annotations_of(spec, wanted, pods)(pod) for pod in wanted}
    assert env_of(told["job-1-x"], "JAX_PROCESS_ID") == "1"
    assert env_of(told["job-1-x"], "JAX_NUM_PROCESSES") == "3"
    assert env_of(told["job-1-x"], "JAX_COORDINATOR_ADDRESS") == "job-0.train:1234"
    assert env_of(told["job-2-x"], "OASIS_HOSTS") == "job-0.train,job-1.train,job-2.train"


def test_a_pod_that_is_made_again_has_the_index_of_the_one_that_failed() -> None:
    spec = read(indexed(3, FRAMEWORK="torch"))
    pods = {
        "job-0-x": named("job-0-x", 0, node="n0", phase="Succeeded"),
        "job-1-x": named("job-1-x", 1, node="n0", phase="Failed"),
        "job-2-x": named("job-2-x", 2, node="n0", phase="Running"),
        "job-1-y": named("job-1-y", 1),
    }
    wanted = [WantedPod(name, TaskGroup.WORKER, "n0", "n0") for name in ("job-2-x", "job-1-y")]
    told = annotations_of(spec, wanted, pods)(wanted[1])
    assert (env_of(told, "RANK"), env_of(told, "WORLD_SIZE")) == ("1", "3")


def test_the_pods_of_a_jobset_are_numbered_over_its_jobs() -> None:
    spec = read(jobset(SERVERS="s", FRAMEWORK="tensorflow"), JOBSET)
    pods = {
        f"set-w-{of}-{k}-x": named(f"set-w-{of}-{k}-x", k, of=of, part="w")
        for of in (0, 1)
        for k in (0, 1)
    }
    pods["set-s-0-0-x"] = named("set-s-0-0-x", 0, part="s")
    wanted = matched(spec, jobset(SERVERS="s"), Allocation(((0, 4),), ((1, 1),)), PLACES, pods)
    told = annotations_of(spec, wanted, pods)
    by_name = {pod.name: told(pod) for pod in wanted}
    assert env_of(by_name["set-w-1-0-x"], "OASIS_INDEX") == "2"
    assert env_of(by_name["set-s-0-0-x"], "OASIS_PS_HOSTS") == "set-s-0-0.train"
    assert '"type": "worker", "index": 2' in env_of(by_name["set-w-1-1-x"], "TF_CONFIG")


def test_what_is_told_is_written_when_the_gate_opens() -> None:
    found = indexed(2, FRAMEWORK="torch")
    found["spec"]["suspend"] = False
    spec = read(found)
    pods = {f"job-{k}-x": named(f"job-{k}-x", k) for k in (0, 1)}
    held = Allocation(((0, 1), (1, 1)), ())
    wanted = matched(spec, found, held, PLACES, pods)
    room = {place.node: dict.fromkeys(RESOURCES, 10**12) for place in PLACES}
    target = Target(spec, wanted, "plan", pods, 3, found=found, workers=2)
    steps = reconcile([target], [], room)
    ranks = []
    for action in steps.actions:
        assert isinstance(action, Open)
        added = {op["path"]: op["value"] for op in action.patch if op["op"] == "add"}
        ranks.append(added["/metadata/annotations/env.oasis-scheduler.io~1RANK"])
    assert ranks == ["0", "1"]
    silent = {name: {**each, "spec": pod(name)["spec"]} for name, each in pods.items()}
    target = Target(spec, wanted, "plan", silent, 3, found=found, workers=2)
    failed = reconcile([target], [], room).failed
    assert "expected pods with hostname and subdomain, which job-0-x lacks" in str(failed["u"])


def test_an_indexed_job_is_resized_in_both_its_numbers() -> None:
    found = indexed(2, MINIMUM="1", MAXIMUM="4")
    assert (read(found).min_workers, read(found).job.chunks) == (1, 4)
    resumed = _switch_patch(Switch("u", found, JOB, suspend=False, workers=3))
    assert resumed["spec"] == {"suspend": False, "parallelism": 3, "completions": 3}
    plain = _switch_patch(Switch("u", job(), JOB, suspend=False, workers=3))
    assert plain["spec"] == {"suspend": False, "parallelism": 3}


# -- TFJobs ----------------------------------------------------------------------------------------


def replica(task: str, index: int, **more: Any) -> dict[str, Any]:
    owner = {"kind": "TFJob", "controller": True, "uid": "u"}
    labels = {REPLICA_TYPE: task, "training.kubeflow.org/replica-index": str(index)}
    return pod(f"job-u-{task}-{index}", ownerReferences=[owner], labels=labels, **more)


def test_a_tfjob_has_its_workers_and_its_parameter_servers() -> None:
    spec = read(tfjob(3, 2), TFJOB)
    assert (spec.min_workers, spec.job.chunks, spec.fixed_ps) == (3, 3, 2)
    assert (spec.id, spec.part_names, spec.network) == ("ns/tfjob/job-u", ("worker", "ps"), None)
    alone = read(tfjob(ps=None), TFJOB)
    assert (alone.fixed_ps, alone.part_names) == (None, ("worker", None))


def test_the_pods_of_a_tfjob_are_its_own_and_go_where_they_are_planned() -> None:
    found = tfjob(2, 1)
    seen = {"tfjobs": [found]}
    assert existing_objects(seen).keys() == {"u"}
    claims = claims_of(seen)
    pods = {each["metadata"]["name"]: each for each in (replica("worker", 0), replica("worker", 1))}
    pods |= {"job-u-ps-0": replica("ps", 0)}
    assert {claimed(each, claims) for each in pods.values()} == {"u"}
    other = pod("x", ownerReferences=[{"kind": "TFJob", "controller": True, "uid": "v"}])
    assert claimed(other, claims) is None
    held = Allocation(((0, 2),), ((1, 1),))
    wanted = matched(read(found, TFJOB), found, held, PLACES, pods)
    assert [(each.name, each.node) for each in wanted] == [
        ("job-u-worker-0", "n0"),
        ("job-u-worker-1", "n0"),
        ("job-u-ps-0", "n1"),
    ]


def test_a_tfjob_is_suspended_in_its_run_policy() -> None:
    found = tfjob()
    assert is_suspended(found)
    resumed = _switch_patch(Switch("u", found, TFJOB, suspend=False))
    assert resumed["spec"] == {"runPolicy": {"suspend": False}}
    found["spec"]["runPolicy"]["suspend"] = False
    assert not is_suspended(found)
    assert has_pods_but_no_plan(found, {"a": replica("worker", 0, node="n0", phase="Running")})
    del found["spec"]["runPolicy"]
    assert not is_suspended(found)


def test_a_policy_that_plans_parameter_servers_itself_names_those_of_the_tfjob() -> None:
    with pytest.raises(InstanceError, match=r"spec\.tfReplicaSpecs\.PS: expected none: policy"):
        check_plannable(read(tfjob(), TFJOB), Recourse())
    check_plannable(read(tfjob(ps=None), TFJOB), Recourse())
