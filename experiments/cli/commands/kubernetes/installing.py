"""The controller on a cluster and away from it again: ``install`` and ``uninstall``."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    DRY,
    NAME,
    SYSTEM,
    Context,
    Kubeconfig,
    Name,
    Namespaced,
    System,
    connect,
    jobs_of,
    namespaces_of,
    of_controller,
)
from experiments.cli.commands.kubernetes.running import chosen_policy, policy_maker, run
from experiments.cli.options import AsJson
from experiments.cli.usage import usage_error
from oasis.kubernetes import names
from oasis.kubernetes.objects.manifests import IMAGE, LABELS, MONITORING, everything
from oasis.kubernetes.objects.namespaced import namespaced
from oasis.model.errors import located_at

if TYPE_CHECKING:
    from oasis.kubernetes.api.resources import Objects

Object = dict[str, Any]
Apply = Annotated[
    bool, typer.Option("--apply", help="Do it on the cluster, instead of printing it.")
]
# What a Deployment says itself, because its probes and its rights stand on it.
TAKEN = ("--system-namespace", "--controller-name", "--metrics-port", "--namespaced")
# In every namespace, so that one with nothing else is empty.
ALWAYS = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
PATIENCE = 300.0  # seconds for pods to end, which may save a checkpoint first
SETTLE = 5.0  # seconds in which the cluster itself tidies up behind what was deleted
SHOWN = 10  # jobs that are named one by one


def install(
    *,
    apply: Apply = False,
    namespace: System = SYSTEM,
    name: Name = NAME,
    image: Annotated[str, typer.Option(help="Container image of the controller.")] = IMAGE,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--argument",
            help="For `oasis kubernetes run`, such as --policy=fifo; repeatable.",
        ),
    ] = None,
    spaces: Namespaced = None,
    monitored: Annotated[
        bool,
        typer.Option(
            "--service-monitor", help="With a ServiceMonitor, which the Prometheus operator reads."
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY)] = False,
    as_json: AsJson = False,
) -> None:
    """Print the OasisJob resource, the rights and the Deployment, as YAML.

    The controller gets exactly these rights: it sees nodes, pods and jobs, makes, opens and
    deletes pods, makes Services, suspends and resumes Jobs, JobSets, TrainJobs and TFJobs, and
    writes the status of OasisJobs and CapacityWindows, events, its lease and its checkpoint.

    With --namespaced it has them in these namespaces alone, which must exist, and sees nodes,
    utility classes and capacity windows of the cluster.

    Example: oasis kubernetes install --argument=--slot-seconds=300 | kubectl apply -f -
    """
    if not re.fullmatch(r"\S+", image):
        raise oasis.InputError("--image", "expected a name without blanks", image)
    _check_arguments(arguments or [])
    within = namespaces_of(spaces)
    arguments = [*(arguments or ()), *([f"--namespaced={','.join(within)}"] if within else ())]
    made = everything(namespace, image, arguments, name, monitored)
    if within:
        made = namespaced(made, within)
    if not (apply or dry_run):
        if as_json:
            console.print_json(made)
        else:
            console.print_text(yaml_text(made).rstrip("\n"))
        return
    from oasis.kubernetes.api.resources import apply_object  # noqa: PLC0415 (needs an extra)

    objects = connect(kubeconfig, context, dry_run=dry_run)
    if monitored and _kinds_of(objects, f"/apis/{MONITORING}") is None:
        raise oasis.InputError("--service-monitor", f"expected a cluster that serves {MONITORING}")
    done = []
    for body in made:
        apply_object(objects, body)
        done.append(f"{body['kind']} {body['metadata']['name']}")
        console.note(f"{'would apply' if dry_run else 'applied'} {done[-1]}")
    if as_json:
        console.print_json({"applied": [] if dry_run else done, "dry_run": dry_run})


def _check_arguments(arguments: list[str]) -> None:
    """Refuse what `oasis kubernetes run` would refuse, except files, which its container has."""
    for argument in arguments:
        name = argument.partition("=")[0]
        if re.search(r"^--.*\s", name):
            raise oasis.InputError("--argument", "expected --name=value", argument)
        if name in TAKEN:
            raise oasis.InputError("--argument", f"expected none of {', '.join(TAKEN)}", argument)
    app = typer.Typer(add_completion=False)
    app.command()(run)
    with located_at(source="--argument"):
        try:
            given = get_command(app).make_context("oasis kubernetes run", list(arguments)).params
        except TyperException as error:
            raise usage_error(error, arguments) from None
        policy, options = given["policy"], given["assignments"]
        if given["bounds"] is None:
            policy_maker(policy, options, None, given["lookahead"], given["horizon"])
        else:
            chosen_policy(policy, options, has_bounds=True)


def _kinds_of(objects: Objects, prefix: str) -> list[Object] | None:
    """The kinds that the API server serves below a path; None if it serves none there."""
    from oasis.kubernetes.api.connection import ApiError  # noqa: PLC0415 (needs an extra)

    try:
        kinds: list[Object] = objects.connection.request("GET", prefix)["resources"]
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    return kinds


def yaml_text(objects: list[Object]) -> str:
    """Objects as one YAML stream."""
    import yaml  # noqa: PLC0415 (needs an extra)

    text: str = yaml.safe_dump_all(objects, sort_keys=False, width=100)
    return text


def uninstall(
    *,
    apply: Apply = False,
    with_jobs: Annotated[
        bool,
        typer.Option(
            "--with-jobs",
            help="Delete the OasisJobs too, with their pods, and what all controllers share.",
        ),
    ] = False,
    namespace: System = SYSTEM,
    name: Name = NAME,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: AsJson = False,
) -> None:
    """Show what an uninstall of the controller would delete, and what it would keep.

    Jobs stay, and their pods go on running, unless --with-jobs is given. The namespace goes if
    nothing else is in it.

    Example: oasis kubernetes uninstall --apply
    """
    objects = connect(kubeconfig, context)
    found = _Installed(objects, namespace, name, with_jobs)
    goes, stays = list(found.goes()), list(found.stays())
    if not as_json:
        facts = [*(("goes", text) for text in goes), *(("stays", text) for text in stays)]
        console.print_facts(f"{namespace}/{name}", facts)
    if apply:
        stays += found.remove()
    elif not as_json:
        console.note("nothing is deleted: --apply does it")
    if as_json:
        console.print_json({"goes": goes, "stays": stays, "applied": apply})


_SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())


class _Installed:
    """A controller and its jobs as they are on the cluster now."""

    def __init__(self, objects: Objects, namespace: str, name: str, with_jobs: bool) -> None:
        self._objects, self._namespace, self._name = objects, namespace, name
        self._with_jobs = with_jobs
        made = everything(namespace, name=name, monitored=True)
        own = [body for body in made if _is_own(body, namespace)]
        self._own = [each for body in reversed(own) if (each := self._there(body))]
        self._own += self._elsewhere(f"{namespace}:{name}")
        self._place = self._there(next(body for body in made if body["kind"] == "Namespace"))
        if not self._own and self._place is None:
            expected = "expected the namespace of a controller; there is none of that name"
            raise oasis.InputError("--system-namespace", expected, namespace)
        shared = [body for body in made if body not in own and body["kind"] != "Namespace"]
        self._shared = [each for body in reversed(shared) if (each := self._there(body))]
        served = any(body["kind"] == "CustomResourceDefinition" for body in self._shared)
        everyones = jobs_of(objects, None) if served else []
        self._jobs, _ = of_controller(everyones, namespace, name)
        self._pods = Counter(self._uids_of_pods())
        if with_jobs:
            self._check_alone(everyones)

    def _elsewhere(self, name: str) -> list[Object]:
        """Rights in the namespaces of --namespaced."""
        from oasis.kubernetes.api.resources import kind_of  # noqa: PLC0415 (needs an extra)

        found = []
        for kind in ("RoleBinding", "Role"):
            head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}
            listed, _ = self._objects.list_all(kind_of(head), selector=_SELECTOR)
            found += [head | body for body in listed if body["metadata"]["name"] == name]
        return found

    def _check_alone(self, everyones: list[Object]) -> None:
        """Refuse to delete what another controller needs."""
        from oasis.kubernetes.api.resources import kind_of  # noqa: PLC0415 (needs an extra)

        mine = {job["metadata"]["uid"] for job in self._jobs}
        others = [job for job in everyones if job["metadata"]["uid"] not in mine]
        deployments = kind_of({"apiVersion": "apps/v1", "kind": "Deployment"})
        others += self._objects.list_all(deployments, selector=_SELECTOR)[0]
        left = {_job_name(each) for each in others} - {f"{self._namespace}/{self._name}"}
        if left:
            expected = "expected no other controller, and no job of another one"
            raise oasis.InputError("--with-jobs", expected, ", ".join(sorted(left)[:SHOWN]))

    def _uids_of_pods(self) -> list[str]:
        """The uid of its OasisJob, for each pod that has one."""
        from oasis.kubernetes.api.resources import PODS  # noqa: PLC0415 (needs an extra)

        pods, _ = self._objects.list_all(PODS, selector=names.JOB_UID)
        return [pod["metadata"]["labels"][names.JOB_UID] for pod in pods]

    def _there(self, body: Object) -> Object | None:
        """The object of that name on the cluster, with its kind, which an answer may leave out."""
        from oasis.kubernetes.api.resources import kind_of  # noqa: PLC0415 (needs an extra)

        meta = body["metadata"]
        found = self._objects.get(kind_of(body), meta["name"], meta.get("namespace"))
        return found and {"apiVersion": body["apiVersion"], "kind": body["kind"], **found}

    def goes(self) -> Iterator[str]:
        """Objects that are deleted."""
        yield from _by_kind([*self._own, *(self._shared if self._with_jobs else ())])
        yield "its lease and its checkpoint"
        if self._with_jobs:
            yield from self._told([job for job in self._jobs if _is_ours(job)])

    def stays(self) -> Iterator[str]:
        """Objects that are kept."""
        if not self._with_jobs:
            yield from _by_kind(self._shared)
            yield from self._told([job for job in self._jobs if _is_ours(job)])
        yield from self._told([job for job in self._jobs if not _is_ours(job)])
        yield f"labels of nodes: kubectl label nodes --all {names.NODE_ROLE}-"

    def _told(self, jobs: list[Object]) -> Iterator[str]:
        for job in jobs[:SHOWN]:
            pods = self._pods[job["metadata"]["uid"]]
            phase = (job.get("status") or {}).get("phase", "Pending")
            yield f"{_job_name(job)}, {phase}" + (f", and its {pods} pods" if pods else "")
        if len(jobs) > SHOWN:
            yield f"{len(jobs) - SHOWN} more jobs, which `oasis kubernetes status` lists"

    def remove(self) -> list[str]:
        """Delete what goes; tell what had to stay after all."""
        from oasis.kubernetes.api.resources import (  # noqa: PLC0415 (needs an extra)
            CONFIG_MAPS,
            LEASES,
            OASIS_JOBS,
        )

        for body in self._own:  # the Deployment first: nothing is written behind our back
            self._delete(body)
        part = re.compile(rf"{re.escape(self._name)}(-[01]-\d+)?")
        for kind in (LEASES, CONFIG_MAPS):
            for found in self._objects.list_all(kind, self._namespace)[0]:
                if part.fullmatch(found["metadata"]["name"]):
                    self._objects.delete(kind, found)
        console.note("deleted its lease and its checkpoint")
        if self._with_jobs:
            ours = [job for job in self._jobs if _is_ours(job)]
            for job in ours:
                self._objects.delete(OASIS_JOBS, job)
            uids = {job["metadata"]["uid"] for job in ours}

            # Before the resource: pods whose owner's kind is unknown are not collected.
            _wait(lambda: uids.isdisjoint(self._uids_of_pods()), "the pods of the jobs to end")
            console.note(f"deleted {len(ours)} jobs")
            for body in self._shared:
                self._delete(body)
        return self._remove_namespace()

    def _delete(self, body: Object) -> None:
        from oasis.kubernetes.api.resources import kind_of  # noqa: PLC0415 (needs an extra)

        what = f"{body['kind']} {body['metadata']['name']}"
        self._objects.delete(kind_of(body), body, dependents_first=True)
        _wait(lambda: self._there(body) is None, f"{what} to go")
        console.note(f"deleted {what}")

    def _remove_namespace(self) -> list[str]:
        """Delete the namespace, unless it holds what is not ours; tell what that is."""
        what = f"Namespace {self._namespace}"
        if self._place is None:
            return []
        deadline = time.monotonic() + SETTLE
        while left := _contents(self._objects, self._namespace):
            if time.monotonic() > deadline:
                stays = f"{what}, which holds {', '.join(left[:SHOWN])}"
                console.note(f"left {stays}")
                return [stays]
            time.sleep(1.0)
        self._delete(self._place)
        return []


def _is_own(body: Object, namespace: str) -> bool:
    """Return whether an object belongs to one controller only."""
    meta = body["metadata"]
    within: str | None = meta.get("namespace")
    return within == namespace or str(meta["name"]).startswith(f"{namespace}:")


def _by_kind(bodies: list[Object]) -> Iterator[str]:
    """Kinds with the names of their objects."""
    found: dict[str, list[str]] = {}
    for body in bodies:
        found.setdefault(body["kind"], []).append(body["metadata"]["name"])
    for kind, named in found.items():
        yield f"{kind} {', '.join(named)}"


def _is_ours(job: Object) -> bool:
    """Return whether a job, as `jobs_of` returns it, is an OasisJob."""
    return "/" not in job["metadata"]["name"]


def _job_name(job: Object) -> str:
    return f"{job['metadata']['namespace']}/{job['metadata']['name']}"


def _contents(objects: Objects, namespace: str) -> list[str]:
    """Objects in a namespace, of all kinds of the API server except events."""
    from oasis.kubernetes.api.resources import ResourceKind  # noqa: PLC0415 (needs an extra)

    groups = objects.connection.request("GET", "/apis")["groups"]
    prefixes = ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)]
    found = []
    for prefix in prefixes:
        # A group whose CustomResourceDefinition was just deleted is listed a moment longer.
        for kind in _kinds_of(objects, prefix) or ():
            if not kind["namespaced"] or "list" not in kind["verbs"] or kind["kind"] == "Event":
                continue
            for item in objects.list_if_served(ResourceKind(prefix, kind["name"]), namespace):
                if (kind["kind"], item["metadata"]["name"]) not in ALWAYS:
                    found.append(f"{kind['kind']} {item['metadata']['name']}")
    return found


def _wait(over: Callable[[], bool], what: str) -> None:
    """Wait until something is over."""
    deadline = time.monotonic() + PATIENCE
    while not over():
        if time.monotonic() > deadline:
            raise oasis.OasisError(f"waited {PATIENCE:g} s for {what}; try again later")
        time.sleep(0.5)
