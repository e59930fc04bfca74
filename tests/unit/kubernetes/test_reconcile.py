"""Actions that make the pods those of the plan."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.acting import Delete, Steps, Target, reconcile
from oasis.kubernetes.cluster.gangs import wanted_of
from oasis.kubernetes.cluster.nodes import Place
from oasis.kubernetes.cluster.pods import plan_hash, pod_object
from oasis.kubernetes.objects.oasis_job import JobSpec, parse_job
from oasis.scheduling.job import Allocation
from tests.unit.kubernetes.test_objects import CLOCK, DEFAULT_RESOURCES, plain

PLACES = tuple(
    Place(n, n, n, frozenset({group}), Fraction(1))
    for n, group in (("n0", "worker"), ("n1", "worker"), ("p0", "ps"))
)
BOTH = Allocation(((0, 2), (1, 1)), ((2, 1),))


def spec(**more: Any) -> JobSpec:
    made = plain()
    made["spec"] |= more
    return parse_job(made, CLOCK, DEFAULT_RESOURCES)


def room(amount: int = 10**12) -> dict[str, dict[str, Fraction]]:
    kinds = (*(resource for _, resource, _ in DEFAULT_RESOURCES.entries), "pods")
    return {place.node: dict.fromkeys(kinds, Fraction(amount)) for place in PLACES}


def born(job: JobSpec, held: Allocation, phase: str = "gated") -> dict[str, Any]:
    """The pods of an allocation: gated, sent to their node, or Running there."""
    found = {}
    for wanted in wanted_of(job, held, PLACES, {}):
        pod = pod_object(job, wanted, "plan", 0)
        pod["metadata"]["uid"] = f"uid-{wanted.name}"
        if phase != "gated":
            del pod["spec"]["schedulingGates"]
        if phase == "Running":
            pod["spec"]["nodeName"] = wanted.node
            pod["status"] = {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        found[wanted.name] = pod
    return found


def target(job: JobSpec, held: Allocation, pods: dict[str, Any], **more: Any) -> Target:
    return Target(job, wanted_of(job, held, PLACES, {}), plan_hash(held, PLACES), pods, 0, **more)


def kinds(steps: Steps) -> list[str]:
    return [type(action).__name__ for action in steps.actions]


def test_no_gate_opens_unless_all_of_the_gang_fits() -> None:
    job, free = spec(), room()
    free["n1"]["cpu"] = Fraction(0)
    steps = reconcile([target(job, BOTH, born(job, BOTH))], [], free)
    assert kinds(steps) == []
    assert steps.short == {"u": "n1"}
    assert free["n0"] == room()["n0"], "what the gang would have taken is given back"


def test_the_first_gang_gets_the_room() -> None:
    one, other = spec(), spec()
    held = Allocation(((0, 1),), ((2, 1),))
    free = room()
    free["n0"]["pods"] = Fraction(1)
    jobs = [target(job, held, born(job, held)) for job in (one, other)]
    assert kinds(reconcile(jobs, [], free)) == ["Open"] * 2


def test_shrinking_deletes_workers_first_and_keeps_the_others() -> None:
    job = spec()
    less = Allocation(((0, 1),), ())
    steps = reconcile([target(job, less, born(job, BOTH, "Running"))], [], room())
    tasks = [
        a.pod["metadata"]["labels"][names.TASK] for a in steps.actions if isinstance(a, Delete)
    ]
    assert tasks == ["worker", "worker", "ps"]


def test_growing_waits_until_a_pod_of_the_same_name_is_gone() -> None:
    job = spec()
    pods = born(job, BOTH, "Running")
    next(iter(pods.values()))["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert kinds(reconcile([target(job, BOTH, pods)], [], room())) == []


def test_jobs_of_restarts_share_no_pod_and_wait_for_the_last_one() -> None:
    job = spec(resizePolicy="restart")
    more = Allocation(((0, 2), (1, 2)), ((2, 1),))
    old = born(job, BOTH, "Running")
    assert kinds(reconcile([target(job, more, old)], [], room())) == ["Delete"] * 4
    for pod in old.values():
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert kinds(reconcile([target(job, more, old)], [], room())) == []
    assert kinds(reconcile([target(job, more, {})], [], room())) == ["Create"] * 5


def test_a_gang_that_found_no_room_is_withdrawn_whole() -> None:
    job = spec()
    pods = born(job, BOTH, "open")
    stuck = frozenset({next(iter(pods.values()))["metadata"]["uid"]})
    steps = reconcile([target(job, BOTH, pods)], [], room(), stuck)
    assert kinds(steps) == ["Delete"] * 4
    assert steps.withdrawn == {"u"}
    assert kinds(reconcile([target(job, BOTH, {}, withdrawn=True)], [], room())) == []
