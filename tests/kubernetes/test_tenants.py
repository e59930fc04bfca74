"""A tenant with the cluster's own role ``edit`` gains nothing by claims or forged marks.

All that is installed is there; the tenant has no other right. What the API server cannot judge,
the controller does: the last tests have both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError, Connection
from oasis.kubernetes.api.resources import (
    CLASSES,
    OASIS_JOBS,
    PODS,
    Objects,
)
from oasis.kubernetes.names import FIELD_MANAGER
from oasis.kubernetes.objects.existing import JOB, JOBSET, TRAINJOB, ExistingKind
from oasis.kubernetes.objects.manifests import shared
from tests.kubernetes.adapter import rigid, scene_of
from tests.kubernetes.cluster import Cluster, pod, report_rights
from tests.kubernetes.controlplane.access import Account, apply, binding
from tests.kubernetes.controlplane.audit import denied, granted, verbs
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import (
    job_spec,
    make,
    marked,
    runtime,
    status,
    template,
)
from tests.kubernetes.scene import Scene, rights
from tests.kubernetes.tutorial.page import CHART

MERGE = "application/merge-patch+json"


def utility_class(name: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}
    return {**head, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def installed(shared_plane: ControlPlane) -> Iterator[Objects]:
    """Install the objects for tenants, and remove them: the other tests know no policies."""
    apply(shared_plane.client, shared())
    admin = Objects(Connection.open(str(shared_plane.admin.kubeconfig())))
    yield admin
    remove(shared_plane, [made for made in shared() if made["kind"] != "CustomResourceDefinition"])


def remove(plane: ControlPlane, manifests: list[dict[str, Any]]) -> None:
    for body in manifests:
        kind = plane.client.resources.get(api_version=body["apiVersion"], kind=body["kind"])
        kind.delete(name=body["metadata"]["name"])


@pytest.fixture
def scene(cluster: Cluster, installed: Objects) -> Iterator[Scene]:
    found = scene_of(cluster)
    installed.apply(
        CLASSES, utility_class("small", maximum=100, kinds=["constant", "sigmoid"], default=True)
    )
    yield found
    for item in installed.list_all(CLASSES)[0]:
        installed.delete(CLASSES, item)


def tenant(cluster: Cluster, role: str = "edit") -> Account:
    """A service account that may do in its namespace what ``edit`` allows."""
    granted = binding(f"a-{role}", "ClusterRole", role, cluster.namespace, everywhere=False)
    return cluster.plane.service_account(f"a-{role}", cluster.namespace, [granted])


def connection(account: Account) -> Connection:
    return Connection.open(str(account.kubeconfig()))


def answer(account: Account, method: str, path: str, body: Any, merge: bool = True) -> str:
    """Answer of the API server: empty if it accepts the request."""
    kind = MERGE if merge else "application/json-patch+json"
    content = {"content_type": kind} if method == "PATCH" else {}
    try:
        connection(account).request(method, path, body=body, **content)
    except ApiError as error:
        return f"{error.status} {error.message}"
    return ""


def within(pod: dict[str, Any], account: Account, admin: Objects) -> Account:
    """The account as it is known from within a pod: with the token that a kubelet puts there."""
    meta = pod["metadata"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    name = account.username.rpartition(":")[2]
    found = admin.connection.request(
        "POST",
        f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{name}/token",
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "boundObjectRef": bound},
        },
    )
    username = f"{account.username}:{meta['name']}"
    return replace(account, username=username, token=found["status"]["token"])


def test_what_a_tenant_may_not_write(scene: Scene, cluster: Cluster, installed: Objects) -> None:
    """Each line is a way to cheat, and who refuses it."""
    mine, space = tenant(cluster), cluster.namespace
    jobs, honest = OASIS_JOBS.path(space), rigid(scene, "honest", 1, 2.0)
    until(lambda: answer(mine, "POST", jobs, honest) == "", "the roles are aggregated", 30.0)

    def claiming(**utility: Any) -> str:
        made = rigid(scene, "greedy", 1, 2.0, utility=utility)
        return answer(mine, "POST", f"{jobs}?dryRun=All", made)

    # the API server knows a resource that is new half a minute later
    until(lambda: claiming(kind="constant", value=1e30) != "", "claims are judged", 60.0)
    said = claiming(kind="constant", value=1e30)
    assert said.startswith("403")
    assert "claims 1e+30, and UtilityClass small allows at most 100" in said
    assert "allows at most 100" in claiming(
        kind="sigmoid", priority=101, decayPerSecond=1, targetSeconds=1
    )
    assert "expected one of constant, sigmoid" in claiming(
        kind="deadline", value=1, deadlineSeconds=5
    )
    assert claiming(kind="constant", value=100) == ""
    installed.apply(CLASSES, utility_class("curves", maximum=5, kinds=["piecewise"]))
    installed.apply(CLASSES, utility_class("theirs", maximum=1e30, namespaces=["another"]))
    curve = {"kind": "piecewise", "delaysSeconds": [0, 60], "values": [6, 1]}

    def named(name: str, utility: dict[str, Any]) -> str:
        made = rigid(scene, "named", 1, 2.0, utility=utility, utilityClassName=name)
        return answer(mine, "POST", f"{jobs}?dryRun=All", made)

    until(lambda: named("curves", curve) != "", "the other classes are known", 60.0)
    assert "claims 6, and UtilityClass curves allows at most 5" in named("curves", curve)
    assert named("curves", {**curve, "values": [5, 1]}) == ""
    theirs = named("theirs", {"kind": "constant", "value": 1})
    assert f"UtilityClass theirs is not for namespace {space}" in theirs
    raised = {"spec": {"utility": {"value": 1e30}}}
    assert "allows at most 100" in answer(mine, "PATCH", f"{jobs}/honest", raised)
    assert answer(mine, "PATCH", f"{jobs}/honest", {"metadata": {"labels": {"a": "b"}}}) == ""
    # nobody lifts their own limit, nor says themselves what became of their job
    classes = CLASSES.path()
    assert "403" in answer(mine, "PATCH", f"{classes}/small", {"spec": {"maximum": 1e30}})
    assert "403" in answer(mine, "POST", classes, utility_class("mine", maximum=1e30))
    forged = {"status": {"phase": "Completed", "utility": 1e30, "arrivalSlot": 99}}
    assert "403" in answer(mine, "PATCH", f"{jobs}/honest/status", forged)
    assert answer(mine, "PATCH", f"{jobs}/honest", forged) == ""  # the API server leaves it out
    assert "utility" not in (scene.statuses()["honest"] or {})
    noted = marked(scene, JOB, "other", job_spec(1), STATUS='{"arrivalSlot": 99}')
    made = f"{JOB.where.path(space)}?dryRun=All"
    until(lambda: answer(mine, "POST", made, noted) != "", "statuses are judged", 60.0)
    assert f"{names.STATUS}: expected to be written by" in answer(mine, "POST", made, noted)


def test_pods_are_marked_by_the_controller_and_report_by_themselves(
    scene: Scene, cluster: Cluster, installed: Objects
) -> None:
    mine, space = tenant(cluster), cluster.namespace
    apply(cluster.plane.client, report_rights(space, "a-edit"))
    gated = pod("one", 1, labels={names.JOB_UID: "u"})
    gated["spec"] |= {"serviceAccountName": "a-edit", "schedulingGates": [{"name": names.GATE}]}
    other = pod("two", 1)
    other["spec"]["serviceAccountName"] = "a-edit"
    cluster.create(gated, other)
    one = PODS.path(space, "one")
    report = {"metadata": {"annotations": {names.PROGRESS: "1e9"}}}
    own = "expected to be written from within the pod"
    until(lambda: answer(mine, "PATCH", one, report) != "", "the policies hold", 60.0)
    assert own in answer(mine, "PATCH", one, report)
    assert own in answer(cluster.plane.admin, "PATCH", one, report)
    there = {name: installed.get(PODS, name, space) or {} for name in ("one", "two")}
    first, second = (within(there[name], mine, installed) for name in ("one", "two"))
    assert own in answer(second, "PATCH", one, report)
    assert answer(first, "PATCH", one, report) == ""
    assert own in answer(
        second, "PATCH", one, {"metadata": {"annotations": {names.PROGRESS: None}}}
    )
    told = pod("three", 1, annotations={names.LOSS: "0"})
    assert own in answer(mine, "POST", PODS.path(space), told)
    marks = "expected to be changed by the controller alone"
    for change in (
        {"labels": {names.JOB_UID: "v"}},
        {"labels": {names.JOB_UID: None}},
        {"annotations": {names.NODE: "n0"}},
    ):
        assert marks in answer(mine, "PATCH", one, {"metadata": change})
    opened = [{"op": "remove", "path": "/spec/schedulingGates"}]
    assert marks in answer(mine, "PATCH", one, opened, merge=False)
    assert answer(mine, "PATCH", one, {"metadata": {"labels": {"mine": "1"}}}) == ""
    assert answer(cluster.plane.admin, "PATCH", one, opened, merge=False) == ""


@pytest.fixture
def labelled(installed: Objects, shared_plane: ControlPlane) -> Iterator[None]:
    """The policies with which a label is enough; the other tests know none."""
    made = list(yaml.safe_load_all((CHART / "labelled.yaml").read_text(encoding="utf-8")))
    apply(shared_plane.client, made)
    yield
    remove(shared_plane, made)


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize(
    "kind", [JOB, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in (JOBSET, TRAINJOB))]
)
def test_a_label_is_enough_under_a_class_that_says_the_rest(
    scene: Scene, installed: Objects, kind: ExistingKind, request: pytest.FixtureRequest
) -> None:
    said = {"utility": {"kind": "constant", "value": 9}, "work": {"workerSeconds": 4}}
    installed.apply(CLASSES, utility_class("small", maximum=100, default=True, **said))
    if kind is not JOB:
        request.getfixturevalue("owners")
        apply(scene.plane.client, [runtime(2, "3s")])
    bare = template("3s")
    del bare["spec"]["schedulingGates"]
    pods = {"parallelism": 2, "completions": 2, "template": bare}
    parts = [{"name": "w", "template": {"spec": pods}}]
    specs: dict[ExistingKind, Any] = {JOB: {"parallelism": 2, "template": bare}}
    specs |= {JOBSET: {"replicatedJobs": parts}, TRAINJOB: {"runtimeRef": {"name": "for-2-nodes"}}}
    body = marked(scene, kind, "bare", specs[kind])
    del body["metadata"]["annotations"], body["spec"]["suspend"]
    ask = partial(installed.connection.request, "POST", kind.where.path(scene.namespace), body=body)
    with scene.controller(FIFO):
        # The API server follows a new policy after a moment.
        until(lambda: ask(query={"dryRun": "All"})["spec"].get("suspend"), "it is suspended", 30.0)
        make(scene, kind, body)
        until(lambda: status(scene, kind, "bare").get("utility") == 9, "it trains", 60.0)


def test_rights_in_some_namespaces_are_enough_for_them(
    scene: Scene, cluster: Cluster, installed: Objects
) -> None:
    """Jobs of two namespaces run, one of a third is not seen, and nothing is refused."""
    system, plane = "oasis-namespaced", cluster.plane
    others = [Cluster(plane, f"{cluster.namespace}-{k}") for k in "bc"]
    try:
        for other in others:
            other.create_namespace()
        spaces = (cluster.namespace, others[0].namespace)
        account = plane.service_account(FIELD_MANAGER, system, ())
        apply(plane.client, rights(system, spaces))
        begin = plane.audit_position()
        scene.account = account
        made = rigid(scene, "job", 2, 1.0)
        with scene.controller(FIFO, namespace=system, watched=None, namespaced=spaces):
            for space in (cluster.namespace, *(other.namespace for other in others)):
                meta = {**made["metadata"], "namespace": space}
                path = OASIS_JOBS.path(space)
                installed.connection.request("POST", path, body={**made, "metadata": meta})

            def phases() -> dict[str, str]:
                found = installed.list_all(OASIS_JOBS)[0]
                return {
                    item["metadata"]["namespace"]: (item.get("status") or {}).get("phase", "")
                    for item in found
                }

            ended = dict.fromkeys(spaces, "Completed")
            until(lambda: phases().items() >= ended.items(), "both are done", 60.0)
            assert phases()[others[1].namespace] == ""
        asked = [one for one in plane.requests(account, begin) if one.resource]
        assert denied(asked) == []
        assert {one.namespace for one in asked} == {"", system, *spaces}
        everywhere = {one.resource for one in asked if not one.namespace}
        known = {"nodes", "utilityclasses", "capacitywindows", "clusterqueues"}
        assert everywhere == known  # there is no window to write a condition on
        assert verbs(asked) <= granted(rights(system, spaces))
    finally:
        for other in others:
            other.clear()
