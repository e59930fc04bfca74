"""The Helm chart and the kustomize base render what ``oasis kubernetes install`` prints."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes.objects.manifests import own, shared
from tests.kubernetes.scene import SYSTEM
from tests.kubernetes.tutorial.page import (
    CHART,
    DEPLOY,
    Shell,
    environment,
    typed,
)


@pytest.fixture
def shell(tmp_path: Path, words: Path) -> Shell:
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


def rendered(shell: Shell, *options: str) -> Keyed:
    text = shell(f"helm template x {CHART} -n ml {' '.join(options)}")
    return keyed(list(yaml.safe_load_all(text)))


ROWS = yaml.safe_load(Path(__file__).with_name("chart.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS["same as install"], ids=str)
def test_the_chart_renders_what_install_prints(shell: Shell, row: dict[str, Any]) -> None:
    wanted = keyed([*shared(), *own("ml", **row["install"])])
    assert rendered(shell, *row["chart"]) == wanted


def test_a_name_may_be_that_of_the_default_namespace(shell: Shell) -> None:
    options = "-n oasis-scheduler --set name=oasis-system --set crds.enabled=false"
    found = list(yaml.safe_load_all(shell(f"helm template x {CHART} {options}")))
    wanted = own("oasis-scheduler", arguments=["--slot-seconds=60"], name="oasis-system")
    assert keyed(found) == keyed(wanted)


def test_what_controllers_share_goes_with_a_release_that_does_not_keep_it(shell: Shell) -> None:
    found = rendered(shell, "--set=crds.keep=false")
    wanted = keyed(shared())
    assert wanted.keys() <= found.keys()
    assert not any(found[key]["metadata"].get("annotations") for key in wanted)


def test_what_else_can_be_set(shell: Shell) -> None:
    options = ("--set=crds.enabled=false", "--set=podDisruptionBudget=false", "--set=replicas=3")
    options += ("--set=pod.priorityClassName=high", "--set=resources.limits.memory=2Gi")
    options += ("--set=serviceMonitor.enabled=true", "--set=serviceMonitor.labels.release=prom")
    found = rendered(shell, *options)
    assert not {"CustomResourceDefinition", "PodDisruptionBudget"} & {key[0] for key in found}
    spec = found["Deployment", "oasis-scheduler"]["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], pod["priorityClassName"]) == (3, "high")
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "2Gi"}
    assert found["ServiceMonitor", "oasis-scheduler"]["metadata"]["labels"]["release"] == "prom"


def test_lint(shell: Shell) -> None:
    assert "0 chart(s) failed" in shell(f"helm lint --strict {CHART}")


@pytest.mark.parametrize("value", ROWS["wrong values"])
def test_a_wrong_value_is_named(shell: Shell, value: str) -> None:
    said = shell(f"helm template x {CHART} --set '{value}'", code=1)
    assert ROWS["wrong values"][value] in said


def test_kustomize_renders_the_manifests_and_moves_them(shell: Shell, tmp_path: Path) -> None:
    found = keyed(list(yaml.safe_load_all(shell("kubectl kustomize ."))))
    assert found == keyed([*shared(), *own()])
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    # kustomize takes no absolute path
    base = "/".join([".."] * (len(overlay.parts) - 1)) + str(DEPLOY)
    (overlay / "kustomization.yaml").write_text(
        f"resources: [{base}]\nnamespace: ml\nimages: [{{name: oasis-scheduler, newTag: '7'}}]\n"
    )
    moved = keyed(list(yaml.safe_load_all(shell(f"kubectl kustomize {overlay}"))))
    deployment = moved["Deployment", "oasis-scheduler"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["metadata"]["namespace"], container["image"]) == ("ml", "oasis-scheduler:7")
    assert "--system-namespace=$(POD_NAMESPACE)" in container["args"]
    binding = moved["ClusterRoleBinding", "oasis-system:oasis-scheduler"]
    assert binding["subjects"][0]["namespace"] == "ml"
