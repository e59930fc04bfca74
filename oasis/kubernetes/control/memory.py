"""State of the controller: written at every boundary, read at every takeover."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oasis.driver.policy_state import site_text
from oasis.kubernetes.api.resources import OASIS_JOBS, Objects
from oasis.kubernetes.cluster.pods import seconds_of
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.control.meter import JUMP
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.reconciler import FORMAT, Reconciler
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.objects.conditions import said
from oasis.kubernetes.objects.oasis_job import SlotClock, as_it_was
from oasis.scheduling.policy import Policy

log = logging.getLogger("oasis.kubernetes")


def restore_controller(
    objects: Objects,
    make: Callable[[], Policy],
    settings: ControllerSettings,
    metrics: Metrics,
    seen: Seen,
    now: Callable[[], float] = time.time,
) -> Reconciler:
    """Return the reconciler as of the checkpoint, or without one as the objects say."""
    # `make` makes a policy that was never used; `seen` has the objects by kind. The slots go on
    # where they were counted. What the policy knew is taken over if policy and machines are those
    # of the checkpoint; otherwise all live jobs arrive once more, with the work that is left of
    # them; so they do if the policy's state cannot be written down. A job that was deleted or
    # edited meanwhile leaves or changes at the next boundary, as if the controller had been there.
    checkpoint = Checkpoint(objects, settings.namespace, settings.name)
    saved = checkpoint.read() or {}

    def fresh(epoch: float) -> Reconciler:
        clock = SlotClock(settings.slot_seconds, settings.startup_seconds, epoch)
        reconciler = Reconciler(make(), settings, clock, checkpoint, metrics, seen, now)
        # What jobs have held is not forgotten, whatever else of the checkpoint is of no use.
        reconciler.tenants.restore(saved.get("tenants", {}))
        return reconciler

    # Work is counted in worker-slots, which mean nothing in slots of another length.
    if saved.get("format") == FORMAT and saved["slot_seconds"] == settings.slot_seconds:
        reconciler = fresh(saved["epoch"])
        try:
            _restore(reconciler, saved, seen, now())
        except Exception:
            metrics.failures.inc()
            # A damaged checkpoint must not keep the controller
            # from acting: the objects say enough to begin.
            log.exception("the checkpoint cannot be gone on from: live jobs arrive once more")
        else:
            return reconciler
    reconciler = fresh(_epoch(seen, settings, now()))
    reconciler.read_jobs(seen, now())
    for uid, spec in reconciler.admissible(seen, now()).items():
        with reconciler.handling(uid, "reading", now()):
            if not reconciler.statuses[uid].is_kept_out:  # they come back when they may
                reconciler.remember(uid, spec)
    return reconciler


def _restore(reconciler: Reconciler, saved: Mapping[str, Any], seen: Seen, now: float) -> None:
    """Bring a controller that has just been made into the state of a checkpoint."""
    # Unwritten statuses come first: the reader would
    # begin with what the objects say, which is older.
    reconciler.reader.recall(saved["unwritten"], seen.jobs)
    reconciler.read_jobs(seen, now, {e["uid"] for e in saved["driver"]["entries"]})
    specs = reconciler.admissible(seen, now)
    reconciler.done.update(saved["done"])
    reconciler.metered.update(saved["metered"])
    reconciler.patience.restore(saved["patience"])
    reconciler.admission.verdicts.restore(saved["verdicts"])
    driver = reconciler.driver
    reasons = _differences(saved, reconciler)
    driver.restore(saved["driver"], specs, as_it_was, remake=bool(reasons))
    reconciler.adopt_plan()
    # The clock of this machine is behind that of the last controller, or was set back: the
    # slots go on where they were, for nothing is planned for one that was.
    clock = reconciler.clock
    if driver.slot is not None and (behind := clock.begin(driver.slot) - now) > 0:
        clock.epoch -= behind
        if behind >= JUMP:
            log.warning("the clock is %.0f s behind the checkpoint: slots go on from it", behind)
    if not reasons:
        driver.bring_policy(saved["state"])
        site = reconciler.quota.shrunk(reconciler.machines.site, driver.jobs.values())
        if site != driver.site:
            driver.resize(site)
        driver.planned_with = [amounts for _, amounts, _ in saved["site"]]
        _resume_metering(reconciler, seen, now)
    else:
        log.warning("the checkpoint %s: all live jobs arrive once more", " and ".join(reasons))


def _differences(saved: Mapping[str, Any], reconciler: Reconciler) -> list[str]:
    """Return why the policy's state in a checkpoint does not fit; empty if it does."""
    policy, reasons = reconciler.driver.policy, []
    now, before = json.loads(json.dumps(policy.parameters)), saved["parameters"]
    if saved["policy"] != policy.name:
        reasons.append(f"is of policy {saved['policy']}")
    elif now != before:
        names = [name for name in sorted({*now, *before}) if now.get(name) != before.get(name)]
        values = (f"{name} {before.get(name)}, not {now.get(name)}" for name in names)
        reasons.append(f"was made with other options ({'; '.join(values)})")
    # It is indexed by machine and resource.
    if _without_amounts(saved["site"]) != _without_amounts(site_text(reconciler.machines.site)):
        reasons.append("is of other machines")
    if saved["state"] is None:
        reasons.append("has no state of the policy")  # not serialisable, or it knew nothing yet
    return reasons


def _without_amounts(site: Iterable[Sequence[Any]]) -> list[tuple[Any, Any]]:
    return [(name, hosts) for name, _, hosts in site]


def _epoch(seen: Seen, settings: ControllerSettings, now: float) -> float:
    """Return when slot 0 begins without a checkpoint, so that the slots in statuses are past."""
    # Only the statuses of OasisJobs count, because only controllers may write them. The others keep
    # theirs in an annotation, and an edit of one must not move the slots of the whole cluster.
    if settings.first_slot_at is not None:
        return settings.first_slot_at
    slots = [0]
    for item in seen.of(OASIS_JOBS):
        status = item.get("status") or {}
        slots += [status[k] + 1 for k in ("arrivalSlot", "completionSlot") if k in status]
    return now - max(slots) * settings.slot_seconds


def _resume_metering(reconciler: Reconciler, seen: Seen, now: float) -> None:
    """Count work done without a controller, from the times at which pods became Ready."""
    # They say it in whole seconds, so a second is taken off.
    slot = reconciler.driver.slot
    if slot is None:
        return
    begin = reconciler.clock.begin(slot)
    for uid, pods in seen.pods.items():
        ready = (said(pod, "Ready") for pod in pods.values())
        times = [each["lastTransitionTime"] for each in ready if each.get("status") == "True"]
        since = max((begin, *(seconds_of(time) + 1.0 for time in times)))
        reconciler.note(uid, seen, min(now, since))
