"""The controller itself: ``install`` prints what it needs on a cluster, ``run`` is it."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import oasis
from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.commands.kubernetes import cluster
from experiments.evaluation.live import cluster_policy, read_bounds
from experiments.evaluation.policies import OASIS, POLICIES, RECOURSE
from oasis.kubernetes.control.settings import ControllerSettings, handler
from oasis.kubernetes.objects import manifests
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.model.errors import located_at
from oasis.simulator import Policy

if TYPE_CHECKING:
    from oasis.kubernetes.control.controller import Controller
    from oasis.kubernetes.control.reconciler import Reconciler

# What a Deployment says itself, because its probes and its rights stand on it.
TAKEN = ("--system-namespace", "--controller-name", "--metrics-port", "--namespaced")


def install(
    *,
    of: cluster.ControllerOptions,
    image: Annotated[
        str | None, "Container image of the controller, as `make image` pushes it."
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--argument",
            help="For `oasis kubernetes run`, such as --policy=fifo; repeatable.",
        ),
    ] = None,
    spaces: cluster.Namespaced = None,
    monitored: Annotated[
        bool,
        typer.Option(
            "--service-monitor", help="With a ServiceMonitor, which the Prometheus operator reads."
        ),
    ] = False,
    own: Annotated[
        bool, "Without what all controllers of a cluster share, such as the kinds."
    ] = False,
) -> None:
    """Print the kinds, the rights and the Deployment of a controller, as YAML for kubectl.

    The controller gets exactly these rights: it sees nodes, pods and jobs, makes, opens and
    deletes pods, makes Services, suspends and resumes Jobs, JobSets and TrainJobs, and
    writes the status of OasisJobs and CapacityWindows, events, its lease and its checkpoint.

    With --namespaced it has them in these namespaces alone, which must exist, and sees nodes,
    utility classes and capacity windows of the cluster.

    Example: oasis kubernetes install --image=oasis:1 | kubectl apply -f -
    """
    import yaml  # noqa: PLC0415 (needs an extra)

    if image is None:
        expected = "expected the controller's image, which `make image` builds: none is published"
        raise oasis.InputError("--image", expected)
    if not re.fullmatch(r"\S+", image):
        raise oasis.InputError("--image", "expected a name without blanks", image)
    for argument in arguments or ():
        if re.match(r"--\S+\s", argument):
            raise oasis.InputError("--argument", "expected --name=value", argument)
        if argument.partition("=")[0] in TAKEN:
            raise oasis.InputError("--argument", f"expected none of {', '.join(TAKEN)}", argument)
    within = cluster.namespaces_of(spaces)
    objects = [] if own else manifests.shared()
    objects += manifests.own(of.namespace, image, arguments or (), of.one, within, monitored)
    console.print_text(yaml.safe_dump_all(objects, sort_keys=False, width=100).rstrip("\n"))


def run(
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            autocompletion=flags.A_POLICY,
            help=f"One of {', '.join(POLICIES)}. [default: {RECOURSE}; with --bounds {OASIS}]",
        ),
    ] = None,
    assignments: flags.Set = None,
    bounds: Annotated[
        Path | None, "U and L of OASiS: bounds as JSON, or an instance file with past jobs."
    ] = None,
    slot_seconds: Annotated[float, "Length of a slot."] = 60.0,
    startup_seconds: cluster.StartupSeconds = 0.0,
    lookahead: Annotated[
        int, typer.Option(metavar="N", help="Slots that OASiS and recourse plan ahead.", min=1)
    ] = 500,
    horizon: Annotated[
        int | None,
        typer.Option(
            help="Number of slots; a completion after them is worth nothing, as in an instance.",
            metavar="N",
            min=1,
        ),
    ] = None,
    pods_ready_timeout: Annotated[
        float, "Seconds after which pods that are not ready give their capacity to other jobs."
    ] = 300.0,
    minimum_run_time: Annotated[
        float,
        "Seconds, rounded up to slots, for which a job is left as it is after it was "
        "started or changed.",
    ] = 0.0,
    machines: cluster.NodeOptions,
    gpu: cluster.Gpu = cluster.GPU,
    jobs: cluster.JobNamespace = None,
    spaces: cluster.Namespaced = None,
    of: cluster.ControllerOptions,
    lease_seconds: Annotated[
        float, "Another controller takes over after this time without a sign of life."
    ] = 15.0,
    metrics_port: Annotated[
        int,
        "Answer /metrics for Prometheus and the probes /healthz and /readyz at this port; "
        "0: do not.",
    ] = 0,
    log_format: Annotated[
        Literal["text", "json"], "Of the log: text, or json, an object a line."
    ] = "text",
    stop_after: Annotated[
        int | None, "End when this slot begins; slots begin once there are nodes."
    ] = None,
    place: cluster.ClusterOptions,
    dry_run: Annotated[bool, "Print what would be done now, and end."] = False,
    as_json: flags.AsJson = False,
) -> None:
    """Schedule the OasisJobs of a cluster, slot by slot, until interrupted.

    Several may run: one acts, the others wait for its lease. A restart goes on from the checkpoint.
    OASiS needs U and L of its prices: --bounds takes them from a file, or from past jobs (oasis
    kubernetes import). Recourse, the default, needs none.

    Example: oasis kubernetes run --slot-seconds 300 --startup-seconds 20
    """
    make = policy_maker(policy, assignments, bounds, lookahead, horizon)
    with flags.naming_flags(
        tuple(ControllerSettings.__dataclass_fields__),
        watched="--namespace",
        node_selector="--nodes",
    ):
        settings = ControllerSettings(
            namespace=of.namespace,
            name=of.one,
            slot_seconds=slot_seconds,
            startup_seconds=startup_seconds,
            resources=cluster.resources_of(gpu),
            ps_share=machines.share,
            horizon=horizon,
            watched=jobs,
            namespaced=cluster.namespaces_of(spaces),
            node_selector=machines.nodes,
            lease_seconds=lease_seconds,
            pods_ready_timeout=pods_ready_timeout,
            minimum_run_time=minimum_run_time,
        )
        SlotClock(slot_seconds, startup_seconds)  # which has rules for the two together
    log_as(log_format)
    # All options are read before anything is asked of the cluster: a wrong one costs no request.
    objects = place.connect(dry_run=dry_run)
    from oasis.kubernetes.control.controller import Controller  # noqa: PLC0415 (an extra)
    from oasis.kubernetes.control.metrics import Metrics  # noqa: PLC0415 (needs an extra)

    metrics = Metrics()
    objects.connection.on_attempt = metrics.attempt
    # With the process id: two controllers of one name would both hold the lease.
    who = os.environ.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"
    controller = Controller(objects, make, settings, who, metrics)
    if dry_run:
        _show(controller, as_json)
        return
    if metrics_port:
        try:
            metrics.serve(
                metrics_port, {"/healthz": controller.stuck, "/readyz": controller.unready}
            )
        except (OSError, OverflowError) as error:
            raise oasis.InputError("--metrics-port", f"expected a free port: {error}") from None
    _run(controller, stop_after)


def policy_maker(
    policy: str | None,
    assignments: list[str] | None,
    bounds: Path | None,
    lookahead: int,
    horizon: int | None,
) -> Callable[[], Policy]:
    """Return a function that builds the policy; the default is OASiS if `bounds` are given."""
    default = RECOURSE if bounds is None else OASIS
    policy = flags.known_policy(default if policy is None else policy, "--policy")
    (options,) = flags.choose_options([policy], assignments).values()
    if bounds is not None and policy != OASIS:
        expected = f"expected none with policy {policy}: only {OASIS} has prices"
        raise oasis.InputError("--bounds", expected)
    with located_at(source=bounds or ""):
        of = None if bounds is None else read_bounds(bounds, horizon or lookahead)
    with flags.naming_flags(("lookahead", "horizon")):
        return cluster_policy(policy, options, lookahead=lookahead, horizon=horizon, bounds=of)


def log_as(log_format: str) -> None:
    """Log on standard error in one of the formats, under ``--verbose`` too."""
    logging.basicConfig(level=logging.INFO, handlers=[handler(log_format)])
    logging.getLogger("oasis").handlers.clear()  # of --verbose: each line would come twice


def _run(controller: Controller, stop_after: int | None) -> None:
    """Run until slot `stop_after`, SIGTERM, SIGINT or a permanent error."""
    signals: list[int] = []  # a handler may run in the middle of anything: it only notes the signal
    former = {
        number: signal.signal(number, lambda signum, _: signals.append(signum))
        for number in (signal.SIGTERM, signal.SIGINT)
    }

    def over(reconciler: Reconciler | None) -> bool:
        slot = None if reconciler is None else reconciler.slot
        return bool(signals) or (stop_after is not None and slot is not None and slot >= stop_after)

    try:
        controller.run(over)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _show(controller: Controller, as_json: bool) -> None:
    """Print what the controller would do first, without doing it."""
    plan = controller.rehearse()
    if as_json:
        console.print_json(plan)
        return
    words = ("action", "job", "pod", "node")
    rows = [[action[word] or "-" for word in words] for action in plan["actions"]]
    title = f"slot {plan['slot']}: {len(rows)} writes"
    console.print_rows(console.headings(*words), rows, title)
    for job, message in plan["jobs"].items():
        console.print_text(f"{job}: {message}")
