"""``oasis kubernetes quote``: what would happen to one more job."""

from __future__ import annotations

import time
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
from experiments.cli.results import errors_name
from oasis.driver.live import KNOWN
from oasis.kubernetes.names import API_VERSION, BANDWIDTH, KIND
from oasis.kubernetes.objects.conditions import decision_message, reason_word, time_text
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job
from oasis.model.file_kinds import kind_of, read_content, refuse_other


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
    with errors_name(file):
        spec = parse_job(found, clock, resource_map(gpu, bandwidth, storage))
    policy = remembered(memory)
    now = max(clock.slot(time.time()) + 1, memory["driver"]["slot"])
    with errors_name(file):
        quote = policy.foresee(replace(spec.job, arrival=now), now)
    if as_json:
        console.print_json(quote.to_dict())
        return
    _show(spec.id, quote, clock)


def read_object(file: Path) -> dict[str, Any]:
    """The OasisJob of a YAML or JSON file.

    Raises
    ------
    OasisError
        If it holds none; the message names the file.
    """
    import yaml  # noqa: PLC0415 (needs an extra)

    with errors_name(file):
        content = read_content(file)
        text = content.decode("utf-8", errors="replace")
        refuse_other(kind_of(text), ("kubernetes", "csv"), f"an {KIND}", str(file))
    try:
        found = yaml.safe_load(content.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise oasis.OasisError(f"{file}: expected YAML: {error}") from None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise oasis.OasisError(f"{file}: kind: expected {KIND} of {API_VERSION}")
    meta = found.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise oasis.OasisError(f"{file}: metadata.name: expected a name")
    found["metadata"] = {"namespace": "default", "uid": "quoted", "generation": 1, **meta}
    return found


def remembered(memory: dict[str, Any]) -> oasis.OASiS | oasis.Recourse:
    """The policy that the controller remembers, to be asked.

    Raises
    ------
    OasisError
        If it is none that plans ahead.
    """
    making = memory["making"]
    if making is None or making["lookahead"] is None:
        raise oasis.OasisError(
            f"policy {memory['policy']} gives no quotes: it does not plan ahead, as oasis and "
            "recourse without --horizon do"
        )
    return KNOWN[memory["policy"]].remembered(making, memory["state"])


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
