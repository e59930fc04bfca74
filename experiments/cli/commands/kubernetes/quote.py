"""``oasis kubernetes quote``: what would happen to one more job."""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.kubernetes.cluster import (
    GPU,
    NAME,
    STORAGE,
    SYSTEM,
    BandwidthResource,
    Context,
    Gpu,
    Kubeconfig,
    Name,
    Storage,
    System,
    clock_of,
    connect,
    memory_of,
    resource_map,
)
from experiments.cli.options import AsJson
from oasis.kubernetes.names import API_VERSION, BANDWIDTH, KIND
from oasis.kubernetes.objects.conditions import decision_message, reason_word, time_text
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job
from oasis.model.errors import located_at
from oasis.model.file_kinds import kind_of, read_content, refuse_other
from oasis.model.rest import later


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.yaml", help="An OasisJob.", show_default=False)
    ],
    *,
    gpu: Gpu = GPU,
    bandwidth: BandwidthResource = BANDWIDTH,
    storage: Storage = STORAGE,
    namespace: System = SYSTEM,
    name: Name = NAME,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    as_json: AsJson = False,
) -> None:
    """Say what would happen to a job, and to the others, if it were submitted now.

    Nothing is changed: the question is put to a copy of what the controller remembers. Policies
    that plan ahead answer, OASiS and recourse; the others only know the present.

    Example: oasis kubernetes quote job.yaml
    """
    found = read_object(file)
    objects = connect(kubeconfig, context)
    memory = memory_of(objects, namespace, name)
    clock = clock_of(memory)
    with located_at(source=file):
        spec = parse_job(found, clock, resource_map(gpu, bandwidth, storage))
    scheduler = scheduler_of(memory)
    now = max(clock.slot(time.time()) + 1, scheduler.now)
    scheduler.advance(now)
    with located_at(source=file):
        quote = scheduler.quote(_arriving(spec.job, now, memory["parameters"]))
    if as_json:
        console.print_json(quote.to_dict())
        return
    _show(spec.id, quote, clock)


def _arriving(job: oasis.Job, now: int, parameters: Mapping[str, Any]) -> oasis.Job:
    """`job` as it arrives in slot `now`; what completes beyond the horizon is worth nothing."""
    utility, horizon = job.utility, parameters["horizon"]
    if horizon is not None:
        utility = later(utility, 0, parameters["reach"], max(0, horizon - now))
    return replace(job, arrival=now, utility=utility)


def read_object(file: Path) -> dict[str, Any]:
    """The OasisJob of a YAML or JSON file.

    Raises
    ------
    OasisError
        If it holds none; the message names the file.
    """
    import yaml  # noqa: PLC0415 (needs an extra)

    with located_at(source=file):
        content = read_content(file)
        text = content.decode("utf-8", errors="replace")
        refuse_other(kind_of(text), ("kubernetes", "csv"), f"an {KIND}", str(file))
        try:
            found = yaml.safe_load(content.decode("utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise oasis.InputError("", f"expected YAML: {error}") from None
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise oasis.InputError("kind", f"expected {KIND} of {API_VERSION}")
        meta = found.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            raise oasis.InputError("metadata.name", "expected a name")
    found["metadata"] = {"namespace": "default", "uid": "quoted", "generation": 1, **meta}
    return found


def scheduler_of(memory: dict[str, Any]) -> oasis.LiveScheduler:
    """The scheduler that the controller remembers.

    Raises
    ------
    OasisError
        If its policy is none that plans ahead.
    """
    state = memory["state"]
    if "scheduler" not in state:
        raise oasis.InputError(
            f"policy {memory['policy']} gives no quotes",
            "it does not plan ahead, as oasis and recourse without --horizon do",
        )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "scheduler")
        path.write_bytes(base64.b64decode(state["scheduler"]))
        return oasis.LiveScheduler.load(path)


def _show(job_id: str, quote: Any, clock: SlotClock) -> None:
    decision, change = quote.decision, quote.change
    verdict = "would be admitted" if decision.admitted else "would be rejected"
    facts = []
    completes = None
    if decision.completion is not None:
        completes = time_text(clock.begin(decision.completion + 1))
        facts.append(("completes", f"by {completes}, in slot {decision.completion}"))
    word = "because" if decision.admitted else reason_word(decision.reason or "")
    facts.append((word, decision_message(decision, decision.reason or "", completes)))
    for what in ("moved", "displaced", "given_up", "broken"):
        names = getattr(change, what)
        if names:
            facts.append((f"{what.replace('_', ' ')}", ", ".join(names)))
    for delay in change.delayed:
        facts.append(("delayed", f"{delay.job_id}, from slot {delay.before} to {delay.after}"))
    facts.append(("all jobs together", f"{console.number(change.utility)} more utility"))
    console.print_facts(f"{job_id} {verdict}", facts)
