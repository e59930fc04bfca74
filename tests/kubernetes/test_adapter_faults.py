"""Faults between the adapter and its cluster: in the end the same jobs are in the same phases.

How many faults: ``OASIS_FAULTS`` (200, nightly 1,000), from the seed ``OASIS_FAULT_SEED``.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from baselines import FIFO
from tests.kubernetes.cluster import Cluster, room
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults import FaultPlan
from tests.kubernetes.names import NODE_ROLE, SYSTEM
from tests.kubernetes.scene import CLOCK, EXAMPLE, Scene, scene_of


def nodes_of(scene: Scene) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in scene.running()}


def counted(scene: Scene) -> float:
    progress: dict[str, Any] = scene.statuses()["job"]["progress"]
    return float(progress["workerSeconds"])


def test_a_machine_that_is_lost_for_good_takes_no_job_along(cluster: Cluster) -> None:
    scene, nodes = Scene(cluster.plane, cluster.namespace, CLOCK), cluster.plane.nodes
    names = ["a-lost", "n0", "n1", "n2"]
    for name in names:  # where most nodes are lost, the control plane evicts nothing
        nodes.add(name, room(2), {NODE_ROLE: "both"}, losable=name == "a-lost")
    nodes.wait_ready(*names)
    with scene.controller(FIFO):
        scene.submit(scene.rigid("job", workers=3, slots=1000, gracePeriodSeconds=1))
        begin = time.time()
        until(lambda: scene.workers() == {"job": 3}, "it runs", 60.0)
        assert "a-lost" in nodes_of(scene)
        nodes.lose_machines()
        nodes.wait_lost("a-lost")
        elsewhere = {"n0", "n1", "n2"}
        until(lambda: nodes_of(scene) <= elsewhere and len(scene.running()) == 3, "moved")
        before = counted(scene)
        until(lambda: counted(scene) > before, "it goes on with what it had", 60.0)
        there = scene.our_pods().values()
        ghosts = [pod for pod in there if pod["spec"].get("nodeName") == "a-lost"]
        assert ghosts, "its pod is still called Running: nobody is there to end it"
        assert all("deletionTimestamp" in pod["metadata"] for pod in ghosts)
        assert counted(scene) <= 3 * (time.time() - begin), "never more than what ran"
        nodes.declare_dead("a-lost")
        until(lambda: nodes_of(scene) <= elsewhere, "it stays elsewhere")
        scene.delete("job")
        until(lambda: not scene.our_pods(), "nothing is left, of the lost machine neither", 120.0)
    nodes.find_machines()
    nodes.declare_dead("a-lost", is_dead=False)
    nodes.wait_ready("a-lost")


KILLS = int(os.environ.get("OASIS_KILLS", "20"))
SEED = int(os.environ.get("OASIS_FAULT_SEED", "1"))
QUICK = {"attempts": 4, "timeout": 3.0, "longest_wait": 1.0}
JOBS = {"a": (2, 2), "b": (4, 1), "c": (1, 3), "d": (9, 1), "e": (3, 2), "f": (2, 1)}
PHASES = {name: "Rejected" if name == "d" else "Completed" for name in JOBS}  # d fits nowhere


def submit_all(scene: Scene, again: str = "") -> None:
    for name, (workers, slots) in JOBS.items():
        scene.submit(scene.rigid(name + again, workers, slots))


def check_end(scene: Scene, rounds: Sequence[str] = ("",)) -> None:
    assert scene.phases() == {k + again: phase for k, phase in PHASES.items() for again in rounds}
    until(lambda: not scene.our_pods(), "all our pods are gone", 30.0)
    assert [pod["metadata"]["name"] for pod in scene.pods()] == ["bystander"]


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    """Two nodes, and a pod of somebody else."""
    container = {"name": "c", "image": "c"}
    cluster.create({"metadata": {"name": "bystander"}, "spec": {"containers": [container]}})
    return scene_of(cluster)


def test_faults_change_nothing_in_the_end(scene: Scene, request: pytest.FixtureRequest) -> None:
    nightly = request.config.getoption("--nightly")
    faults = int(os.environ.get("OASIS_FAULTS", "1000" if nightly else "200"))
    print(f"OASIS_FAULTS={faults} OASIS_FAULT_SEED={SEED}")  # noqa: T201
    # a watch that passes is open for minutes: where all faults are to strike, none passes
    plan = FaultPlan(SEED, faults, watch_pause=0.0 if nightly else 1.0)
    most, rounds = 0, list[str]()
    with scene.controller(FIFO, faults=plan, params=QUICK) as controller:
        while not rounds or (nightly and plan.left):
            rounds.append(f"-{len(rounds)}" if rounds else "")  # again, until all have struck
            submit_all(scene, rounds[-1])
            deadline = time.monotonic() + 240.0
            while not scene.all_ended():
                counts = scene.workers()
                most = max([most, *(n - JOBS[name[0]][0] for name, n in counts.items())])
                assert time.monotonic() < deadline, scene.phases()
                time.sleep(0.2)
        struck = plan.struck
        check_end(scene, rounds)
    assert most <= 0, "no pod twice"
    if nightly:  # a watch may still wait for the events after which it is cut
        assert faults - struck <= len(controller.watchers)
    else:
        assert struck > min(50, faults // 4)


def command(scene: Scene, policy: str = "fifo", *more: str) -> list[str]:
    run = scene.command("--policy", policy, *more, "--lease-seconds", "2")
    return ["env", "POD_NAME=the-one", *run]


def lease_of(scene: Scene) -> str | None:
    found = scene.api.get("leases", scene.namespace, SYSTEM)
    return None if found is None else found["metadata"]["resourceVersion"]


def killed_again_and_again(
    scene: Scene,
    log: Path,
    words: list[str],
    goes_on: Callable[[int], bool],
    within: tuple[float, float],
    *,
    from_lease: bool,
    outage: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Start the controller and kill it, after a random time, as long as `goes_on` after so many."""
    # The time is drawn from `within`, and counted from the lease on or from the start.
    print(f"OASIS_FAULT_SEED={SEED}")  # noqa: T201
    draw, kills = random.Random(SEED), 0
    deadline = time.monotonic() + 900.0
    with log.open("w") as lines:
        while goes_on(kills):
            assert time.monotonic() < deadline, scene.phases()
            before = lease_of(scene)
            process = subprocess.Popen(words, stdout=lines, stderr=lines)
            if from_lease:
                until(lambda before=before: lease_of(scene) != before, "it has the lease", 60.0)
            time.sleep(draw.uniform(*within))
            assert process.poll() is None, log.read_text()
            with outage():
                process.kill()
                process.wait()
            kills += 1


RECOURSE = ("recourse", "--ps-share", "0.2")
OASIS = ("oasis", "--ps-share", "0.2", "--bounds", str(EXAMPLE))  # which may reject some


@pytest.mark.parametrize(
    "policy", [("fifo",), *(pytest.param(p, marks=pytest.mark.nightly) for p in (RECOURSE, OASIS))]
)
def test_a_controller_that_is_killed_again_and_again_brings_all_jobs_to_their_end(
    scene: Scene, tmp_path: Path, policy: tuple[str, ...]
) -> None:
    waiting, is_fifo = list(JOBS.items()), policy == ("fifo",)
    least = KILLS if is_fifo else len(JOBS)

    def goes_on(kills: int) -> bool:
        if waiting and kills >= (len(JOBS) - len(waiting)) * least // len(JOBS):
            name, (workers, slots) = waiting.pop(0)
            seconds = workers * slots * scene.clock.work_seconds
            scene.submit(scene.elastic(name, workers if is_fifo else 1, workers, seconds))
        return kills < least or not scene.all_ended()

    pause = (0.0, scene.clock.slot_seconds) if is_fifo else (4.0, 12.0)
    log = tmp_path / "log"
    killed_again_and_again(scene, log, command(scene, *policy), goes_on, pause, from_lease=is_fifo)
    if is_fifo:
        with scene.controller(FIFO, identity="the-one"):
            check_end(scene)
        return
    phases = scene.phases()
    assert phases.keys() == JOBS.keys(), "it forgets none"
    done = set(phases.values())
    assert done == {"Completed"} if policy is RECOURSE else "Completed" in done


def test_of_two_controllers_one_acts_and_the_other_takes_over(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    with scene.controller(FIFO, identity="first") as first:
        until(lambda: first.reconciler is not None, "the first acts", 20.0)
        with scene.controller(FIFO, identity="second") as second:
            scene.submit(scene.rigid("job", workers=2, slots=6))
            scene.wait({"job": "Running"})
            assert second.reconciler is None
            first.stop()
            until(lambda: second.reconciler is not None, "the second acts", 20.0)
            assert scene.wait_ended() == {"job": "Completed"}


def test_the_api_server_is_killed_and_comes_back(cluster: Cluster, scene: Scene) -> None:
    with scene.controller(FIFO, params=QUICK, lease_seconds=6.0):
        submit_all(scene)
        scene.wait({"a": "Running"})
        cluster.plane.kill("kube-apiserver")
        time.sleep(2.0)
        cluster.plane.restart_api_server()
        scene.wait_ended(within=180.0)
        check_end(scene)


@pytest.mark.parametrize("how", ["cordoned", "broken", "deleted"])
def test_a_node_that_goes_away_sends_its_jobs_elsewhere(cluster: Cluster, how: str) -> None:
    scene = scene_of(cluster)
    nodes = cluster.plane.nodes
    with scene.controller(FIFO):
        scene.submit(scene.rigid("job", workers=3, slots=4))
        until(lambda: scene.workers() == {"job": 3}, "it runs", 40.0)
        node = next(iter(scene.our_pods().values()))["spec"]["nodeName"]
        before = scene.statuses()["job"]["progress"]["workerSeconds"]
        {"cordoned": nodes.cordon, "broken": nodes.break_down, "deleted": nodes.delete}[how](node)
        assert scene.wait_ended(within=150.0) == {"job": "Completed"}
        done = scene.statuses()["job"]["progress"]
    assert done["workerSeconds"] >= before


def utilities(scene: Scene) -> dict[str, float]:
    return {
        name: status["utility"] for name, status in scene.statuses().items() if "utility" in status
    }


@pytest.mark.nightly  # two minutes: after each kill the scheduler binds nothing for a while
def test_controller_and_api_server_are_killed_together(
    cluster: Cluster, scene: Scene, tmp_path: Path
) -> None:
    submit_all(scene)

    @contextmanager
    def outage() -> Iterator[None]:
        cluster.plane.kill("kube-apiserver")
        yield
        time.sleep(1.0)
        cluster.plane.restart_api_server()

    log, pause = tmp_path / "log", (0.0, scene.clock.slot_seconds)
    given = {"from_lease": True, "outage": outage}
    killed_again_and_again(scene, log, command(scene), lambda kills: kills < 4, pause, **given)
    with scene.controller(FIFO, params=QUICK, identity="the-one"):
        scene.wait_ended(within=240.0)
        check_end(scene)
    assert utilities(scene) == {name: 10.0 for name in JOBS if PHASES[name] == "Completed"}


@pytest.mark.nightly  # a minute until the cluster notices
def test_machines_that_fall_silent_and_come_back_change_nothing_in_the_end(
    cluster: Cluster, scene: Scene
) -> None:
    """Their pods run on while nobody hears of them, and are ended when they are back."""
    nodes = cluster.plane.nodes
    nodes.add("n2", room(4), {NODE_ROLE: "both"})
    nodes.add("a-silent", room(4), {NODE_ROLE: "both"}, losable=True)
    nodes.wait_ready("n2", "a-silent")
    with scene.controller(FIFO, pods_ready_timeout=60.0):
        submit_all(scene)
        scene.submit(scene.rigid("g", workers=12, slots=12))  # on all the machines that are left
        until(lambda: "a-silent" in nodes_of(scene), "something runs there", 60.0)
        nodes.lose_machines()
        nodes.wait_lost("a-silent")
        scene.wait_ended(within=180.0)
        nodes.find_machines()
        nodes.wait_ready("a-silent")
        until(lambda: not scene.our_pods(), "all our pods are gone", 60.0)
        scene.submit(scene.rigid("h", workers=16, slots=2))  # it needs the silent machine
        scene.wait_ended(within=60.0)
    ended = dict.fromkeys((*JOBS, "g", "h"), "Completed")  # here d fits, too
    assert scene.phases() == ended
    assert utilities(scene) == dict.fromkeys(ended, 10.0)
