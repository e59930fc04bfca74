"""The rights that are shipped are exactly those that the tests of this directory made use of.

The last test reads the audit log of the whole run; the others take the paths that no controller
takes unless something goes wrong. Their file comes last by its name.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from oasis.kubernetes.api.connection import ApiError, Connection
from oasis.kubernetes.api.resources import (
    CONFIG_MAPS,
    EVENTS,
    NETWORK_POLICIES,
    PODS,
    SERVICES,
    Objects,
)
from oasis.kubernetes.control.checkpoint import PART, Checkpoint
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.audit import denied, granted, verbs
from tests.kubernetes.scene import SYSTEM, Scene, rights, scene_of

USING = ("test_adapter", "test_adapter_faults", "test_existing", "test_tenants")


# Groups whose controllers run in nightly tests, and those of kinds that none of them starts.
OWNERS = ("jobset.x-k8s.io", "trainer.kubeflow.org", "kueue.x-k8s.io")
UNTRIED = ("kubeflow.org", "ray.io")  # Kueue's Workloads stand for them, whatever their kind


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    return scene_of(cluster, nodes=1)


@pytest.fixture
def objects(scene: Scene) -> Objects:
    """What the controller's account may do."""
    return Objects(Connection.open(str(scene.account.kubeconfig())))


def test_a_checkpoint_that_is_larger_than_an_object_is_written_in_parts(
    scene: Scene, objects: Objects
) -> None:
    draw = random.Random(1)
    document = {"state": draw.randbytes(PART).hex() + draw.randbytes(PART).hex()}
    kept = Checkpoint(objects, SYSTEM, scene.namespace)
    kept.write(document)
    assert kept.size > 2**20
    for _ in range(2):  # what is read can be replaced, and is read again
        again = Checkpoint(objects, SYSTEM, scene.namespace)
        assert again.read() == document
        document["state"] += "more"
        again.write(document)
    found = [item["metadata"]["name"] for item in scene.admin.list_all(CONFIG_MAPS, SYSTEM)[0]]
    assert sum(name.startswith(scene.namespace) for name in found) >= 3


def test_what_has_the_name_of_another_is_told_apart_by_looking(
    scene: Scene, objects: Objects
) -> None:
    meta, about = {"name": "one", "namespace": scene.namespace}, {"namespace": scene.namespace}
    pod: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "c"}]}}
    for kind, body in (
        (PODS, pod),
        (EVENTS, {"involvedObject": about, "reportingComponent": "oasis"}),
        (SERVICES, {"spec": {"clusterIP": "None"}}),
        (NETWORK_POLICIES, {"spec": {"podSelector": {}}}),
    ):
        first, again = (objects.create(kind, {"metadata": meta, **body}) for _ in range(2))
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    with pytest.raises(ApiError, match="409"):
        objects.create(PODS, {**pod, "metadata": {**meta, "ownerReferences": [owner]}})


def test_the_verbs_of_the_whole_run_are_exactly_the_shipped_ones(
    scene: Scene, request: pytest.FixtureRequest
) -> None:
    ran = {Path(item.path).stem for item in request.session.items}
    if not ran.issuperset(USING):
        pytest.skip(f"only a run of all tests uses all rights: {', '.join(USING)}")
    asked = scene.plane.requests(scene.account)
    assert verbs(asked) - granted(rights()) == set()
    left_out = UNTRIED if request.config.getoption("--nightly") else UNTRIED + OWNERS
    unused = {right for right in granted(rights()) - verbs(asked) if right[0] not in left_out}
    assert unused == set()
    # an API server that has just been started refuses everybody until it knows the roles
    assert {(r.group, r.resource, r.verb) for r in denied(asked)} <= granted(rights())
