"""Chart, kustomize base and ``oasis kubernetes install``: applied, upgraded, taken away again.

One control plane for all: what is there after each uninstallation is what was there before. The
commands of the pages on Kubernetes are carried out, as they stand there, on one of their own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis import __version__
from tests.kubernetes.cluster import room
from tests.kubernetes.controlplane.api import Client
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.names import CONTROLLER, GROUP, JOB_UID, NODE_ROLE, SYSTEM
from tests.kubernetes.scene import answered
from tests.kubernetes.tutorial.page import (
    CHART,
    DEPLOY,
    File,
    Shell,
    carry_out,
    container,
    environment,
    steps,
    typed,
)
from tests.unit.kubernetes.played import merged

BEFORE = Path(__file__).with_name("before.yaml.xz")  # what an earlier version installed
# As docs/kubernetes-operate.md has it.
SHARED = "crd,clusterroles,validatingadmissionpolicies,validatingadmissionpolicybindings"

INSTALL = "oasis kubernetes install --image=oasis:1"
JOB = Path(__file__).with_name("long.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plane(controlplane_binary: Path) -> Iterator[ControlPlane]:
    with ControlPlane(controlplane_binary) as plane:
        plane.nodes.add("node-0", room(4), {NODE_ROLE: "worker"})
        plane.nodes.wait_ready("node-0")
        yield plane


@pytest.fixture
def shell(plane: ControlPlane, words: Path, tmp_path: Path) -> Shell:
    return partial(typed, environment(words, plane.admin.kubeconfig(), tmp_path))


@pytest.fixture
def nothing_is_left(plane: ControlPlane) -> Iterator[None]:
    """After the test there is what was there before, of whatever kind."""
    before = there(plane.api)
    yield
    until(lambda: there(plane.api) == before, "nothing is left", 20.0)


def there(api: Client) -> set[str]:
    """Paths of all objects, but for those that come and go by themselves."""
    ask = api.ask
    versions = ["/api/v1"]
    versions += [
        f"/apis/{v['groupVersion']}" for g in ask("GET", "/apis")["groups"] for v in g["versions"]
    ]
    found = set()
    for version in versions:
        for kind in ask("GET", version)["resources"]:
            if "list" not in kind["verbs"] or kind["kind"] == "Event":
                continue
            for item in ask("GET", f"{version}/{kind['name']}").get("items") or ():
                meta = item["metadata"]
                found.add(f"{kind['name']} {meta.get('namespace', '')}/{meta['name']}")
    return found


@pytest.mark.usefixtures("nothing_is_left")
def test_a_release_of_helm_is_upgraded_and_uninstalled(shell: Shell, tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(CHART, older)
    chart = older / "Chart.yaml"
    chart.write_text(chart.read_text().replace(f"ersion: {__version__}", "ersion: 0.0.9"))
    shell(f"helm install o {older} -n {SYSTEM} --create-namespace --wait --timeout 2m")
    image = "kubectl -n oasis-system get deployment oasis-scheduler -o jsonpath='{..image}'"
    assert shell(image) == "oasis-scheduler:0.0.9"
    shell("kubectl create -f -", given=JOB)
    shell(f"helm upgrade o {CHART} -n {SYSTEM} --set slotSeconds=300 --wait --timeout 2m")
    assert shell(image) != "oasis-scheduler:0.0.9"
    shell(f"helm uninstall o -n {SYSTEM} --wait")
    assert "long" in shell("kubectl get oasisjobs")  # jobs outlive the release
    shell(f"kubectl delete {SHARED} -l app.kubernetes.io/name=oasis-scheduler")
    shell(f"kubectl delete namespace {SYSTEM}")


@pytest.mark.usefixtures("nothing_is_left")
def test_the_kustomize_base_is_applied_and_deleted(shell: Shell) -> None:
    shell("kubectl apply -k . && kubectl -n oasis-system rollout status deployment oasis-scheduler")
    shell("kubectl delete -k .")


NOTE = f"{GROUP}/checkpoint"


def remembered(api: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checkpoint of the controller, a small one, and what is noted beside it."""
    head: Any = api.get("configmaps", CONTROLLER, SYSTEM)
    document = json.loads(zlib.decompress(base64.b64decode(head["binaryData"]["content"])))
    return document, json.loads(head["metadata"]["annotations"][NOTE])


def remember(api: Client, document: dict[str, Any], note: dict[str, Any]) -> None:
    """Write a checkpoint as another version would have."""
    content = zlib.compress(json.dumps(document).encode())
    note["digest"] = hashlib.sha256(content).hexdigest()
    meta = {"annotations": {NOTE: json.dumps(note)}}
    data = {"content": base64.b64encode(content).decode()}
    api.patch("configmaps", CONTROLLER, SYSTEM, metadata=meta, binaryData=data)


@pytest.mark.usefixtures("nothing_is_left")
def test_a_version_before_is_upgraded_and_uninstalled(
    plane: ControlPlane, shell: Shell, words: Path, tmp_path: Path
) -> None:
    """A job that ran under the former version keeps its pods, whatever the checkpoint was."""
    with lzma.open(BEFORE, "rt") as text:
        plane.apply(yaml.safe_load_all(text))
    shell("kubectl wait --for condition=established crd/oasisjobs.oasis-scheduler.io")
    shell("kubectl create -f -", given=JOB)
    shell(f"{INSTALL} --argument=--slot-seconds=2 | kubectl apply -f -")

    def pods() -> list[str]:
        """Uids of the pods of the job that are placed."""
        found = plane.api.items("pods", labelSelector=JOB_UID)
        return sorted(pod["metadata"]["uid"] for pod in found if pod["spec"].get("nodeName"))

    with container(plane, words, tmp_path / "first.log"):
        until(lambda: len(pods()) == 2, "the job runs")
    ran = pods()
    found, note = remembered(plane.api)
    remember(plane.api, found | {"format": "oasis-controller 0"}, note)
    with container(plane, words, tmp_path / "second.log"):
        until(lambda: remembered(plane.api)[0]["format"] == found["format"], "it is rewritten")
    assert pods() == ran
    # As docs/kubernetes-operate.md has it, too.
    shell(f"{INSTALL} --own | kubectl delete --ignore-not-found -f -")
    assert pods() == ran
    shell("kubectl delete oasisjobs --all --all-namespaces --cascade=foreground")
    assert pods() == []
    shell(f"{INSTALL} | kubectl delete --ignore-not-found -f -")


# -- the commands of the pages, on a control plane of their own ------------------------------------


def test_the_pages_say_what_is_true(controlplane_binary: Path, words: Path, tmp_path: Path) -> None:
    """The pods of the Deployment that it installs are only played: the container of one is run."""
    first, *rest = steps()
    with ControlPlane(controlplane_binary) as plane:
        names = [f"node-{k}" for k in range(3)]
        for name in names:
            plane.nodes.add(name, room(4))
        plane.nodes.wait_ready(*names)
        reader = environment(words, plane.admin.kubeconfig())
        assert not isinstance(first, File)
        assert first.line.startswith("oasis kubernetes install")
        assert carry_out(first, tmp_path, reader) is None
        log = tmp_path / "controller.log"
        with ExitStack() as kubelet:
            kubelet.enter_context(container(plane, words, log))
            for step in rest:
                if isinstance(step, File):
                    (tmp_path / step.name).write_text(step.text, encoding="utf-8")
                    continue
                if "--own" in step.line:
                    kubelet.close()  # as a real one does when the Deployment goes
                instead = carry_out(step, tmp_path, reader)
                assert instead is None, f"{instead}\n\nexpected:\n{step.shown}\n{log.read_text()}"
        account = plane.service_account(CONTROLLER, SYSTEM)
        assert not denied(plane.requests(account))


# -- chart and kustomize base render what ``oasis kubernetes install`` prints ----------------------


@pytest.fixture
def bare(tmp_path: Path, words: Path) -> Shell:
    """A shell with the commands, but without a cluster."""
    return partial(typed, environment(words, tmp_path / "none", tmp_path))


Keyed = dict[tuple[str, ...], dict[str, Any]]


def keyed(objects: list[dict[str, Any]]) -> Keyed:
    """By kind, name and, but for the controller's own, namespace."""
    # Without the namespace, which Helm makes itself.
    found = {}
    for body in objects:
        if body and body["kind"] != "Namespace":
            meta = body["metadata"]
            space = [] if meta.get("namespace") in (None, "ml", SYSTEM) else [meta["namespace"]]
            found[body["kind"], meta["name"], *space] = body
    return found


def printed(namespace: str, *words: str) -> list[dict[str, Any]]:
    """What `oasis kubernetes install` prints, with the image of the chart if no other is given."""
    own = (f"--image={CONTROLLER}:{__version__}", f"--system-namespace={namespace}")
    return list(yaml.safe_load_all(answered("install", *own, *words)))


def rendered(bare: Shell, *options: str) -> Keyed:
    text = bare(f"helm template x {CHART} -n ml {' '.join(options)}")
    return keyed(list(yaml.safe_load_all(text)))


ROWS = yaml.safe_load(Path(__file__).with_name("chart.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS["same as install"], ids=str)
def test_the_chart_renders_what_install_prints(bare: Shell, row: dict[str, Any]) -> None:
    wanted = keyed(printed("ml", *row["install"]))
    assert rendered(bare, *row["chart"]) == wanted


def test_a_name_may_be_that_of_the_default_namespace(bare: Shell) -> None:
    options = "-n oasis-scheduler --set name=oasis-system --set crds.enabled=false"
    found = list(yaml.safe_load_all(bare(f"helm template x {CHART} {options}")))
    words = ("--own", "--argument=--slot-seconds=60", "--controller-name=oasis-system")
    assert keyed(found) == keyed(printed("oasis-scheduler", *words))


@pytest.mark.parametrize("row", ROWS["set"], ids=str)
def test_what_else_can_be_set(bare: Shell, row: dict[str, Any]) -> None:
    found = rendered(bare, *row["chart"])
    assert not {*row.get("without", ())} & {kind for kind, *_ in found}
    for name, part in row["has"].items():
        body = found[tuple(name.split())]
        assert merged(body, part) == body
    if "limits" in row:
        pod = found["Deployment", "oasis-scheduler"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == row["limits"]


def test_lint(bare: Shell) -> None:
    assert "0 chart(s) failed" in bare(f"helm lint --strict {CHART}")


@pytest.mark.parametrize("value", ROWS["wrong values"])
def test_a_wrong_value_is_named(bare: Shell, value: str) -> None:
    said = bare(f"helm template x {CHART} --set '{value}'", code=1)
    assert ROWS["wrong values"][value] in said


def test_kustomize_renders_the_manifests_and_moves_them(bare: Shell, tmp_path: Path) -> None:
    found = keyed(list(yaml.safe_load_all(bare("kubectl kustomize ."))))
    assert found == keyed(printed(SYSTEM))
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    # kustomize takes no absolute path
    base = "/".join([".."] * (len(overlay.parts) - 1)) + str(DEPLOY)
    (overlay / "kustomization.yaml").write_text(
        f"resources: [{base}]\nnamespace: ml\nimages: [{{name: oasis-scheduler, newTag: '7'}}]\n"
    )
    moved = keyed(list(yaml.safe_load_all(bare(f"kubectl kustomize {overlay}"))))
    deployment = moved["Deployment", "oasis-scheduler"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["metadata"]["namespace"], container["image"]) == ("ml", "oasis-scheduler:7")
    assert "--system-namespace=$(POD_NAMESPACE)" in container["args"]
    binding = moved["ClusterRoleBinding", "oasis-system:oasis-scheduler"]
    assert binding["subjects"][0]["namespace"] == "ml"
