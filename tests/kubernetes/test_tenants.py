"""A tenant with the cluster's own role ``edit`` gains nothing by claims or forged marks.

All that is installed is there; the tenant has no other right. What the API server cannot judge,
the controller does: the last tests have both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from baselines import FIFO
from tests.kubernetes import names
from tests.kubernetes.cluster import Cluster, pod, report_rights
from tests.kubernetes.controlplane.api import MERGE, RefusedError, path_of
from tests.kubernetes.controlplane.audit import denied, granted, verbs
from tests.kubernetes.controlplane.plane import Account, ControlPlane, binding
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import (
    JOB,
    JOBSET,
    TRAINJOB,
    Scene,
    job_spec,
    make,
    marked,
    rights,
    runtime,
    scene_of,
    shared,
    status,
    template,
)
from tests.kubernetes.tutorial.page import CHART

ROWS = yaml.safe_load(Path(__file__).with_name("tenants.yaml").read_text(encoding="utf-8"))


def utility_class(name: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": names.API_VERSION, "kind": "UtilityClass"}
    return {**head, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def installed(shared_plane: ControlPlane) -> Iterator[None]:
    """Install the objects for tenants, and remove them: the other tests know no policies."""
    shared_plane.apply(shared())
    yield
    remove(shared_plane, [made for made in shared() if made["kind"] != "CustomResourceDefinition"])


def remove(plane: ControlPlane, manifests: list[dict[str, Any]]) -> None:
    plane.kubectl("delete", "-f", "-", given=yaml.safe_dump_all(manifests))


@pytest.fixture
def scene(cluster: Cluster, installed: None) -> Scene:
    kinds = {"kinds": ["constant", "sigmoid"], "default": True}
    cluster.plane.apply([utility_class("small", maximum=100, **kinds)])
    return scene_of(cluster)


def tenant(cluster: Cluster) -> Account:
    """A service account that may do in its namespace what ``edit`` allows."""
    granted = binding("a-edit", "ClusterRole", "edit", cluster.namespace, everywhere=False)
    return cluster.plane.service_account("a-edit", cluster.namespace, [granted])


def answer(account: Account, method: str, path: str, body: Any, merge: bool = True) -> str:
    kind = MERGE if merge else "application/json-patch+json"
    content = (kind,) if method == "PATCH" else ()
    try:
        account.client().ask(method, path, body, *content)
    except RefusedError as error:
        return str(error)
    return ""


def within(plane: ControlPlane, pod: str, space: str, account: Account) -> Account:
    """The account as it is known from within a pod: with the token that a kubelet puts there."""
    meta = (plane.api.get("pods", pod, space) or {})["metadata"]
    token = plane.token(account.username.rpartition(":")[2], space, meta)
    return replace(account, username=f"{account.username}:{pod}", token=token)


def check(said: str, wanted: str | None, row: Any) -> None:
    assert (wanted in said) if wanted else said == "", (row, said)


def test_what_a_tenant_may_not_write(scene: Scene, cluster: Cluster) -> None:
    mine, jobs = tenant(cluster), path_of("oasisjobs", cluster.namespace)
    honest = scene.rigid("honest", 1, 2.0)
    until(lambda: answer(mine, "POST", jobs, honest) == "", "the roles are aggregated", 30.0)
    cluster.plane.apply(utility_class(name, **spec) for name, spec in ROWS["classes"].items())

    def claiming(spec: dict[str, Any]) -> str:
        made = scene.rigid("greedy", 1, 2.0, **spec)
        return answer(mine, "POST", f"{jobs}?dryRun=All", made)

    for row in ROWS["claims"]:
        if "says" in row:  # the API server knows a resource that is new half a minute later
            until(lambda spec=row["spec"]: claiming(spec) != "", "claims are judged", 60.0)
        check(claiming(row["spec"]), row.get("says"), row)
    classes = path_of("utilityclasses")
    paths = {"job": f"{jobs}/honest", "status": f"{jobs}/honest/status"}
    for row in ROWS["patches"]:
        path = paths.get(row["of"], f"{classes}/small")
        check(answer(mine, "PATCH", path, row["body"]), row.get("says"), row)
    assert "403" in answer(mine, "POST", classes, utility_class("mine", maximum=1e30))
    assert "utility" not in (scene.statuses()["honest"] or {})
    noted = marked(scene, JOB, "other", job_spec(1), STATUS='{"arrivalSlot": 99}')
    made = f"{path_of(JOB, cluster.namespace)}?dryRun=All"
    until(lambda: answer(mine, "POST", made, noted) != "", "statuses are judged", 60.0)
    assert f"{names.STATUS}: expected to be written by" in answer(mine, "POST", made, noted)


def test_pods_are_marked_by_the_controller_and_report_by_themselves(
    scene: Scene, cluster: Cluster
) -> None:
    mine, space, admin = tenant(cluster), cluster.namespace, cluster.plane.admin
    cluster.plane.apply(report_rights(space, "a-edit"))
    gated, other = pod("one", 1, labels={names.JOB_UID: "u"}), pod("two", 1)
    gated["spec"]["schedulingGates"] = [{"name": names.GATE}]
    for each in (gated, other):
        each["spec"]["serviceAccountName"] = "a-edit"
    cluster.create(gated, other)
    one, first = path_of("pods", space, "one"), ROWS["marks"][0]
    itself, second = (within(cluster.plane, each, space, mine) for each in ("one", "two"))
    by = {"tenant": mine, "admin": admin, "itself": itself, "other": second}

    def marking(row: dict[str, Any]) -> str:
        return answer(by[row["by"]], "PATCH", one, {"metadata": row["body"]})

    until(lambda: marking(first) != "", "the policies hold", 60.0)
    for row in ROWS["marks"]:
        check(marking(row), row.get("says"), row)
    told = pod("three", 1, annotations={names.LOSS: "0"})
    check(answer(mine, "POST", path_of("pods", space), told), first["says"], told)
    opened = [{"op": "remove", "path": "/spec/schedulingGates"}]
    assert "by the controller alone" in answer(mine, "PATCH", one, opened, merge=False)
    assert answer(admin, "PATCH", one, opened, merge=False) == ""


@pytest.fixture
def labelled(installed: None, shared_plane: ControlPlane) -> Iterator[None]:
    """The policies with which a label is enough; the other tests know none."""
    made = list(yaml.safe_load_all((CHART / "labelled.yaml").read_text(encoding="utf-8")))
    shared_plane.apply(made)
    yield
    remove(shared_plane, made)


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize(
    "kind", [JOB, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in (JOBSET, TRAINJOB))]
)
def test_a_label_is_enough_under_a_class_that_says_the_rest(
    scene: Scene, kind: str, request: pytest.FixtureRequest
) -> None:
    said = {"utility": {"kind": "constant", "value": 9}, "work": {"workerSeconds": 4}}
    scene.plane.apply([utility_class("small", maximum=100, default=True, **said)])
    if kind != JOB:
        request.getfixturevalue("owners")
        scene.plane.apply([runtime(2, "3s")])
    bare = template("3s")
    del bare["spec"]["schedulingGates"]
    pods = {"parallelism": 2, "completions": 2, "template": bare}
    parts = [{"name": "w", "template": {"spec": pods}}]
    specs: dict[str, Any] = {JOB: {"parallelism": 2, "template": bare}}
    specs |= {JOBSET: {"replicatedJobs": parts}, TRAINJOB: {"runtimeRef": {"name": "for-2-nodes"}}}
    body = marked(scene, kind, "bare", specs[kind])
    del body["metadata"]["annotations"], body["spec"]["suspend"]
    dry = partial(scene.api.create, kind, body, scene.namespace, dryRun="All")
    with scene.controller(FIFO):
        # The API server follows a new policy after a moment.
        until(lambda: dry()["spec"].get("suspend"), "it is suspended", 30.0)
        make(scene, kind, body)
        until(lambda: status(scene, kind, "bare").get("utility") == 9, "it trains", 60.0)


def test_rights_in_some_namespaces_are_enough_for_them(scene: Scene, cluster: Cluster) -> None:
    """Jobs of two namespaces run, one of a third is not seen, and nothing is refused."""
    system, plane = "oasis-namespaced", cluster.plane
    others = [Cluster(plane, f"{cluster.namespace}-{k}") for k in "bc"]
    with ExitStack() as stack:
        for other in others:
            other.create_namespace()
            stack.callback(other.clear)
        spaces, last = (cluster.namespace, others[0].namespace), others[1].namespace
        scene.account = plane.service_account(names.CONTROLLER, system, ())
        plane.apply(rights(system, spaces))
        begin = plane.audit_position()
        made = scene.rigid("job", 2, 1.0)
        with scene.controller(FIFO, namespace=system, watched=None, namespaced=spaces):
            for space in (*spaces, last):
                scene.api.create("oasisjobs", {**made, "metadata": {"name": "job"}}, space)

            def phases() -> dict[str, str]:
                found = scene.api.items("oasisjobs")
                told = [(item["metadata"], item.get("status") or {}) for item in found]
                return {meta["namespace"]: status.get("phase", "") for meta, status in told}

            ended = dict.fromkeys(spaces, "Completed")
            until(lambda: phases().items() >= ended.items(), "both are done", 60.0)
            assert phases()[last] == ""
        asked = [one for one in plane.requests(scene.account, begin) if one.resource]
        assert denied(asked) == []
        assert {one.namespace for one in asked} == {"", system, *spaces}
        everywhere = {one.resource for one in asked if not one.namespace}
        known = {"nodes", "utilityclasses", "capacitywindows", "clusterqueues"}
        assert everywhere == known  # there is no window to write a condition on
        assert verbs(asked) <= granted(rights(system, spaces))
