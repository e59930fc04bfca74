"""The control plane that the tests of this directory share, and a clean corner of it for each.

Only ``pytest tests/kubernetes --kubernetes`` comes here (``make kubernetes-test``), in one process:
every worker of pytest-xdist would start a control plane of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.build import (
    CONTROLPLANE,
    HELM,
    JOBSET,
    KUEUE,
    GoMissingError,
    cached,
    ensure,
)
from tests.kubernetes.controlplane.owners import Kueue, start_jobset, start_kueue, start_trainer
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.processes.container import why_not
from tests.kubernetes.processes.nodes import ProcessNodes
from tests.kubernetes.tutorial.page import words_on_path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)


@pytest.fixture(scope="session")
def controlplane_binary() -> Path:
    """The built control plane; without it and without Go, there is nothing to test on."""
    try:
        return ensure(CONTROLPLANE)
    except GoMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def words(tmp_path: Path, controlplane_binary: Path) -> Path:
    """The directory of the commands that an operator types; Helm is built in the same way."""
    words_on_path(tmp_path / "bin", controlplane_binary, ensure(HELM))
    return tmp_path / "bin"


@pytest.fixture(scope="session")
def shared_plane(controlplane_binary: Path) -> Iterator[ControlPlane]:
    """The one control plane of the session. Tests take `cluster`, which they leave clean."""
    with ControlPlane(controlplane_binary) as plane:
        yield plane


@pytest.fixture(scope="session")
def jobsets(shared_plane: ControlPlane) -> None:
    start_jobset(shared_plane)


@pytest.fixture(scope="session")
def owners(shared_plane: ControlPlane, jobsets: None) -> None:
    """That of TrainJobs beside it; to build both takes ten minutes of two cores."""
    start_trainer(shared_plane)


@pytest.fixture(scope="session")
def kueue(shared_plane: ControlPlane, request: pytest.FixtureRequest) -> Kueue:
    """Kueue beside JobSets, where both are built; `kill` it, and `start` it again."""
    if cached(KUEUE) is None or cached(JOBSET) is None:
        pytest.skip("Kueue is not built: make kubernetes-kueue builds it")
    request.getfixturevalue("jobsets")
    return start_kueue(shared_plane)


@pytest.fixture
def cluster(shared_plane: ControlPlane) -> Iterator[Cluster]:
    """No nodes, and a fresh namespace; both are taken away afterwards."""
    cluster = Cluster(shared_plane, f"test-{secrets.token_hex(4)}")
    cluster.create_namespace()
    yield cluster
    cluster.clear()


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip a test if this machine cannot run pods as processes."""
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def process_nodes(namespaces: None, cluster: Cluster) -> Iterator[ProcessNodes]:
    with ProcessNodes(cluster.plane) as nodes:
        yield nodes
