"""Jobs whose pods other controllers make: what they say, whose pods are whose, what is done."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.cluster.pods import claimed
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.job_reader import JobReader
from oasis.kubernetes.control.quota import Quota
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    JOBSET_NAME,
    TRAINJOB,
    WORKLOAD,
    ExistingKind,
    job_items,
    parse,
    version_of,
)
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.workload import switching
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.kueue import Queued, cluster_queue, theirs
from tests.unit.kubernetes.played import CLOCK, GPU, MANAGED, Played, foreign

ROWS = yaml.safe_load(Path(__file__).with_name("objects.yaml").read_text(encoding="utf-8"))
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
    meta["labels"] = {names.SCHEDULED: "true"}
    return {"metadata": meta, "spec": {"suspend": True, **spec}}


def batch_job(workers: int = 2, **more: Any) -> dict[str, Any]:
    return made({"parallelism": workers, "template": template()}, **more)


def jobset(**notes: str) -> dict[str, Any]:
    parts = [
        {"name": name, "replicas": replicas, "template": {"spec": {**each, "template": template()}}}
        for name, replicas, each in (("w", 2, {"parallelism": 2}), ("s", 1, {}))
    ]
    return made({"replicatedJobs": parts}, **notes)


def read(found: dict[str, Any], kind: ExistingKind = JOB) -> JobSpec:
    return parse(found, kind, CLOCK, DEFAULT_RESOURCES)


def read_jobs(reader: JobReader, found: dict[str, Any]) -> dict[str, JobSpec]:
    reader.read_jobs(Seen(found).jobs, FIFO(), (), 0.0)
    return reader.unfinished


def made_by_trainer(owner: dict[str, Any], nodes: int) -> dict[str, Any]:
    """The JobSet that the Trainer makes of a TrainJob, without our label."""
    entry = {"name": "node", "template": {"spec": batch_job(nodes)["spec"]}}
    spec = {"suspend": owner["spec"]["suspend"], "replicatedJobs": [entry]}
    reference = {"kind": "TrainJob", "controller": True, "uid": owner["metadata"]["uid"]}
    meta = {"name": owner["metadata"]["name"], "namespace": "ns", "uid": "made"}
    return {"metadata": {**meta, "ownerReferences": [reference]}, "spec": spec}


def test_a_trainjob_has_the_pods_of_its_runtime_and_waits_until_the_trainer_has_said_which() -> (
    None
):
    train = made({"runtimeRef": {"name": "torch"}})
    reader = Played(FIFO).reconciler.reader
    seen: dict[str, Any] = {"trainjobs": [train], "jobsets": []}
    assert not read_jobs(reader, seen)
    said = {each["type"]: each["reason"] for each in reader.statuses["u"].status["conditions"]}
    assert (said, reader.statuses["u"].phase) == ({"Placed": "NoJobSet"}, "Pending")
    seen["jobsets"] = [made_by_trainer(train, 5)]
    assert reader.has_new(Seen(seen).jobs)
    read_jobs(reader, seen)
    spec = reader.specs["u"]
    assert (spec.min_workers, spec.job.chunks, spec.ps_count) == (5, 5, 0)
    assert spec.worker_requests["nvidia.com/gpu"] == 1
    seen["jobsets"] = []
    assert read_jobs(reader, seen) == {"u": spec}, "the Trainer makes it again"


def test_a_template_that_is_without_our_gate_is_named_where_it_stands() -> None:
    train = made({})
    below = made_by_trainer(train, 1)
    del below["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "schedulingGates"
    ]
    reader = Played(FIFO).reconciler.reader
    assert not read_jobs(reader, {"trainjobs": [train], "jobsets": [below]})
    (said,) = reader.statuses["u"].status["conditions"]
    place = "its JobSet, spec.replicatedJobs[0].template.spec.template.spec.schedulingGates"
    assert said["message"].startswith(f"{place}: expected the gate")


def test_what_we_write_changes_no_version_and_what_the_owner_edits_does() -> None:
    found = batch_job(MINIMUM="1", MAXIMUM="4")
    version = version_of(found, JOB)
    found["spec"] |= {"suspend": False, "parallelism": 3}
    found["metadata"]["annotations"][names.STATUS] = "{}"
    assert version_of(found, JOB) == version
    found["metadata"]["annotations"][names.MAXIMUM] = "5"
    assert version_of(found, JOB) != version


def pod(name: str, node: str | None = None, phase: str = "Pending", **meta: Any) -> dict[str, Any]:
    found, notes = foreign(name, node), {} if node is None else {names.NODE: node}
    # our manager is that of whoever opens the gate
    own = {"annotations": notes, "managedFields": MANAGED if node else []}
    found["metadata"] |= own | meta
    found["spec"]["schedulingGates"] = [] if node else [{"name": names.GATE}]
    return found | {"status": {"phase": phase}}


def test_pods_belong_to_the_job_that_owns_them_or_to_the_jobset_that_they_name() -> None:
    seen = {"jobs": [batch_job(uid="j")], "jobsets": [jobset()], "trainjobs": []}
    with_ours = job_items({**seen, names.PLURAL: [batch_job(uid="o")]})
    assert [kind for kind, _ in with_ours].count(None) == 1
    assert Seen(seen).existing.keys() == {"j", "u"}
    claims = Seen(seen).claims
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
    child = batch_job(uid="child")
    child["metadata"]["ownerReferences"] = [reference]
    seen: dict[str, Any] = {owner.where.plural: [whole], "jobs": [child]}
    if owner is TRAINJOB:
        below = jobset()
        below["metadata"] |= {"uid": "below", "ownerReferences": [reference]}
        seen["jobsets"] = [below]
    assert [item["metadata"]["uid"] for _, item in job_items(seen)] == ["u"]
    assert Seen(seen).existing.keys() == {"u"}
    of_child = {"kind": "Job", "controller": True, "uid": "child"}
    found = pod("a", ownerReferences=[of_child], labels={JOBSET_NAME: "job-u"})
    assert claimed(found, Seen(seen).claims) == "u"


def test_a_jobset_keeps_its_pods_when_a_trainjob_of_its_name_comes() -> None:
    running, late = jobset(), made({"runtimeRef": {"name": "torch"}})
    late["metadata"] |= {"name": running["metadata"]["name"], "uid": "late"}
    claims = Seen({"jobsets": [running], "trainjobs": [late]}).claims
    mark = JOBSET.name, running["metadata"]["namespace"], running["metadata"]["name"]
    assert claims[mark] == running["metadata"]["uid"]


def test_the_order_of_jobs_is_that_of_their_creation_whatever_is_written_on_them() -> None:
    reader = Played(FIFO).reconciler.reader
    one, other = batch_job(uid="one"), batch_job(uid="other")
    for version, found in enumerate((one, other)):
        found["metadata"] |= {"creationTimestamp": "now", "resourceVersion": str(version)}
    assert list(read_jobs(reader, {"jobs": [one, other]})) == ["one", "other"]
    one["metadata"]["resourceVersion"] = "7"  # its status was written
    assert list(read_jobs(reader, {"jobs": [other, one]})) == ["one", "other"]


# -- Workloads of Kueue, beside the scenarios of kueue.yaml ---------------------------------------


def test_which_workloads_are_ours() -> None:
    played = Queued(FIFO)
    for name in ("gated", "plain", "replaced", "orphan"):
        played.queue_job(name, 1, 1)
    played.batch["plain"]["spec"]["template"]["spec"]["schedulingGates"] = []
    played.change_work("replaced", {"conditions": [("Finished", True, "OutOfSync")]})
    seen = played.found()
    del seen["workloads"][3]["metadata"]["ownerReferences"]
    ((kind, item),) = job_items({**seen, "jobs": []})
    assert (kind, item["metadata"]["uid"]) == (WORKLOAD, "gated")
    ray = seen["workloads"][0]
    ray["metadata"]["ownerReferences"] = [{"kind": "RayJob", "uid": "r"}]
    ray["metadata"]["annotations"] |= {names.MINIMUM: "1", names.MAXIMUM: "2"}
    ((_, item),) = job_items({**seen, "jobs": [], "workloads": [ray]})
    with pytest.raises(InstanceError, match="expected none: a RayJob cannot be resized"):
        parse(item, WORKLOAD, CLOCK, DEFAULT_RESOURCES)
    alone = {"metadata": {"namespace": "ns"}, "spec": {"active": True, "target": None, "gates": []}}
    alone["spec"]["owner"] = {"apiVersion": "a/v1", "kind": "Ray", "name": "r", "uid": "u"}
    where, _ = switching(alone, suspend=False)
    assert where.path("ns", "r") == "/apis/a/v1/namespaces/ns/rays/r"


@pytest.mark.parametrize("row", ROWS["cluster queues"], ids=str)
def test_what_a_cluster_queue_has_and_can_borrow(row: dict[str, Any]) -> None:
    played = Queued(FIFO)
    played.queue_job("one", 1, 1)
    queues, work = [], [theirs(name, used) for name, _, _, used, _ in row["queues"]]
    for name, cohort, most, _, more in row["queues"]:
        queues.append(cluster_queue(name, cohort, nominalQuota=str(most), **more))
    quota, seen = Quota(DEFAULT_RESOURCES), played.found()
    work = seen["workloads"][:1] + work
    quota.read_queues(Seen({**seen, "clusterqueues": queues, "workloads": work}))
    assert quota._free == {"team": {GPU: Fraction(row["free"])}}
    assert quota._total == {GPU: Fraction(row["free"])}


def test_queues_of_ours_in_one_cohort_share_what_the_cohort_has():
    """Each may borrow from the other, but the quota counts once."""
    played = Queued(FIFO)
    for name in ("one", "two"):
        played.queue_job(name, 1, 1, queue=name)
    quotas = [("one", {}), ("two", {"lendingLimit": "16"})]
    queues = [cluster_queue(name, "all", nominalQuota="32", **more) for name, more in quotas]
    local = [
        {"metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterQueue": name}}
        for name, _ in quotas
    ]
    quota = Quota(DEFAULT_RESOURCES)
    found = {**played.found(), "clusterqueues": queues, "localqueues": local}
    quota.read_queues(Seen(found | {"workloads": [*found["workloads"][:2], theirs("two", 4)]}))
    assert quota._free == {"one": {GPU: Fraction(48)}, "two": {GPU: Fraction(60)}}
    assert quota._total == {GPU: Fraction(60)}
