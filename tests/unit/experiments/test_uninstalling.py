"""``install`` and ``uninstall`` on an API server in memory: nothing of others is ever deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

import oasis
from experiments.cli.commands.kubernetes import installing
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import (
    CONFIG_MAPS,
    LEASES,
    OASIS_JOBS,
    PODS,
    Objects,
    ResourceKind,
    kind_of,
)
from oasis.kubernetes.objects.manifests import everything

SERVED = {
    "/api/v1": [
        ("configmaps", "ConfigMap"),
        ("serviceaccounts", "ServiceAccount"),
        ("pods", "Pod"),
    ],
    "/apis/apps/v1": [("deployments", "Deployment")],
}


class Server:
    """Objects by path; whoever owns pods takes them along."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}

    def put(self, kind: ResourceKind, body: Mapping[str, Any]) -> str:
        meta = body["metadata"]
        path = kind.path(meta.get("namespace"), meta["name"])
        self.objects[path] = {**body, "metadata": {"uid": path, **meta}}
        return path

    def request(
        self, method: str, path: str, *, body: Any = None, query: Any = None, **_: Any
    ) -> dict[str, Any]:
        if method == "PATCH":
            self.put(kind_of(body), body)
        elif method == "DELETE":
            gone = self.objects.pop(path)
            for other in list(self.objects.values()):
                if (
                    other["metadata"].get("labels", {}).get(names.JOB_UID)
                    == gone["metadata"]["uid"]
                ):
                    del self.objects[other["metadata"]["uid"]]
        elif path == "/apis":
            # A group may be listed a moment longer than it is served.
            versions = ("apps/v1", "oasis-scheduler.io/v1alpha1")
            return {"groups": [{"preferredVersion": {"groupVersion": each}} for each in versions]}
        elif path in SERVED:
            kinds = [
                {"name": n, "kind": k, "namespaced": True, "verbs": ["list"]}
                for n, k in SERVED[path]
            ]
            return {"resources": kinds}
        elif path in self.objects:
            return deepcopy(self.objects[path])
        elif (prefix := path.rpartition("/"))[2].endswith("s") and not prefix[0].endswith("s"):
            items = self._listed(path, (query or {}).get("labelSelector"))
            return {"metadata": {"resourceVersion": "1"}, "items": list(items)}
        else:
            raise ApiError(method, path, 404, "NotFound", "there is none")
        return {}

    def _listed(self, path: str, selector: str | None) -> Iterator[dict[str, Any]]:
        """Objects of one namespace, or of all."""
        wanted = [part.partition("=") for part in (selector or "").split(",") if part]
        for there, found in self.objects.items():
            place = there.rpartition("/")[0]
            labels = found["metadata"].get("labels", {})
            if path in (place, re.sub("/namespaces/[^/]+", "", place)) and all(
                key in labels and value in (labels[key], "") for key, _, value in wanted
            ):
                yield deepcopy(found)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(installing, "connect", lambda *_, **__: Objects(made))
    monkeypatch.setattr(installing, "SETTLE", 0.0)
    installing.install(apply=True)
    for name in ("oasis-scheduler", "oasis-scheduler-1-12", "oasis-scheduler-notes"):
        made.put(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "oasis-system"}})
    made.put(LEASES, {"metadata": {"name": "oasis-scheduler", "namespace": "oasis-system"}})
    return made


def job(server: Server, name: str, controller: str | None = None) -> str:
    """A job with one pod."""
    status = {"phase": "Running"} | ({} if controller is None else {"controller": controller})
    meta = {"name": name, "namespace": "team"}
    uid = server.put(OASIS_JOBS, {"metadata": meta, "status": status})
    pod = {"name": f"{name}-0", "namespace": "team", "labels": {names.JOB_UID: uid}}
    server.put(PODS, {"metadata": pod})
    return uid


def test_what_would_go_is_said_and_nothing_goes(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    job(server, "a")
    before = set(server.objects)
    installing.uninstall()
    said = capsys.readouterr()
    assert set(server.objects) == before
    assert "team/a, Running, and its 1 pods" in said.out
    assert said.err == "nothing is deleted: --apply does it\n"


def test_jobs_and_what_others_put_there_stay(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    job(server, "a")
    two = {kind_of(body).path(name=body["metadata"]["name"]) for body in everything("two")}
    kept = {path for path in server.objects if "/team/" in path or path in two}
    installing.uninstall(apply=True)
    left = set(server.objects)
    notes = "/api/v1/namespaces/oasis-system/configmaps/oasis-scheduler-notes"
    assert left == kept | {notes, "/api/v1/namespaces/oasis-system"}
    assert "left Namespace oasis-system, which holds ConfigMap oasis-scheduler-notes" in (
        capsys.readouterr().err
    )


def test_with_jobs_nothing_is_left(server: Server) -> None:
    del server.objects["/api/v1/namespaces/oasis-system/configmaps/oasis-scheduler-notes"]
    always = {"name": "kube-root-ca.crt", "namespace": "oasis-system"}
    path = server.put(CONFIG_MAPS, {"metadata": always})
    job(server, "a", "oasis-system/oasis-scheduler")
    installing.uninstall(apply=True, with_jobs=True)
    assert set(server.objects) == {path}  # which goes with its namespace
    del server.objects[path]
    with pytest.raises(oasis.InputError, match="expected the namespace of a controller"):
        installing.uninstall()


def test_rights_in_other_namespaces_go_too(server: Server) -> None:
    installing.install(apply=True, spaces="team-a,team-b")
    assert sum("/team-" in path for path in server.objects) == 4  # a Role and its binding in each
    installing.uninstall(apply=True)
    assert not [path for path in server.objects if "/team-" in path]


@pytest.mark.parametrize("what", ["job", "controller"])
def test_what_another_controller_needs_is_not_deleted(server: Server, what: str) -> None:
    if what == "job":
        job(server, "theirs", "ml/oasis-scheduler")
    else:
        deployment = everything("ml")[-1]
        server.put(kind_of(deployment), deployment)
    before = set(server.objects)
    with pytest.raises(
        oasis.InputError, match=r"--with-jobs: expected no other .*(team/theirs|ml/)"
    ):
        installing.uninstall(apply=True, with_jobs=True)
    assert set(server.objects) == before
    installing.uninstall(apply=True)  # the resource stays for it
    assert (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/oasisjobs.oasis-scheduler.io"
        in (server.objects)
    )


def test_what_cannot_be_is_refused_before_anything_is_done(server: Server) -> None:
    server.objects.clear()
    with pytest.raises(oasis.InputError, match="--service-monitor: expected a cluster that serves"):
        installing.install(apply=True, monitored=True)
    assert not server.objects
    with pytest.raises(oasis.InputError, match="--argument: expected none of"):
        installing.install(arguments=["--metrics-port=0"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--slotseconds=10", "No such option: --slotseconds; did you mean '--slot-seconds'?"),
        ("--slot-seconds=ten", "--slot-seconds: expected a number, got 'ten'"),
        ("--slot-seconds 10", "expected --name=value, got '--slot-seconds 10'"),
        ("slot-seconds=10", "Got unexpected extra argument(s) (slot-seconds=10)"),
        ("--policy=recours", "--policy: expected one of "),
        ("--set=fifo.sed=3", "--set fifo.sed: no such option; fifo has seed"),
        ("--policy=oasis", "--bounds: expected a file with U and L"),
    ],
)
def test_an_argument_that_the_controller_would_refuse_is_refused(
    argument: str, message: str
) -> None:
    with pytest.raises(oasis.InputError) as caught:
        installing.install(arguments=["--policy=fifo", argument])
    assert str(caught.value).startswith(f"--argument: {message}")


def test_arguments_of_the_pages_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--policy=oasis", "--bounds=/etc/oasis/bounds.json", "--set", "oasis.scale=2"]
    installing.install(arguments=given)  # the file is in the controller's container alone
    assert "- --bounds=/etc/oasis/bounds.json\n" in capsys.readouterr().out


@pytest.mark.parametrize("image", ["", "a b"])
def test_an_image_has_a_name_without_blanks(image: str) -> None:
    with pytest.raises(oasis.InputError, match="--image: expected a name without blanks, got "):
        installing.install(image=image)
