"""The rights that are shipped are exactly those that the tests of this directory made use of.

The last test reads the audit log of the whole run; the others take the paths that no controller
takes unless something goes wrong. Their file comes last by its name.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from baselines import FIFO
from oasis.scheduling import Site
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.audit import denied, granted, verbs
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults import FirstAnswers
from tests.kubernetes.names import SYSTEM
from tests.kubernetes.scene import Scene, rights, scene_of

USING = ("test_adapter", "test_adapter_faults", "test_existing", "test_tenants")


# Groups whose controllers run in nightly tests, and those of kinds that none of them starts.
OWNERS = ("jobset.x-k8s.io", "trainer.kubeflow.org", "kueue.x-k8s.io")
UNTRIED = ("kubeflow.org", "ray.io")  # Kueue's Workloads stand for them, whatever their kind


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    return scene_of(cluster, nodes=1)


DRAW = random.Random(1)


class Remembers(FIFO):
    """Has drawn more than an object of the cluster may hold."""

    drawn = ""

    def reset(self, site: Site) -> None:
        super().reset(site)
        self.drawn = DRAW.randbytes(2_000_000).hex()


def drawn_in_two_slots(scene: Scene) -> str:
    """What the policy of a new controller has drawn, or knows from the one before."""
    made: list[Remembers] = []
    with scene.controller(lambda: made.append(Remembers()) or made[-1]) as controller:
        reconciler: Any = until(lambda: controller.reconciler, "it is at work")
        begun = reconciler.slot or 0
        until(lambda: (reconciler.slot or 0) > begun + 1, "it is written twice")
    return made[-1].drawn


def test_a_checkpoint_that_is_larger_than_an_object_is_written_in_parts(scene: Scene) -> None:
    """What was read can be replaced, and is read again."""
    assert drawn_in_two_slots(scene) == drawn_in_two_slots(scene)
    found = [item["metadata"]["name"] for item in scene.api.items("configmaps", SYSTEM)]
    assert sum(name.startswith(scene.namespace) for name in found) >= 3


def test_what_was_made_although_the_answer_was_lost_is_found_by_looking(scene: Scene) -> None:
    """Of each kind: what has the name of ours by then is taken for ours after a look at it."""
    first = FirstAnswers()
    with scene.controller(FIFO, faults=first):
        scene.submit(scene.rigid("job", 2, 1, network={"framework": "jax", "isolated": True}))
        assert scene.wait_ended() == {"job": "Completed"}
    assert first.lost >= {"pods", "events", "services", "networkpolicies"}


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
