"""Policies on a cluster: live schedulers from the options of the registry, and what they earned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.comparison import Comparison
from experiments.evaluation.policies import (
    OASIS,
    POLICIES,
    RECOURSE,
    SEED,
    entry_of,
    recourse_of,
)
from experiments.evaluation.tables import number
from oasis.model.errors import InputError
from oasis.model.instance_file import instance_from_dict, read_json
from oasis.online.answers import Quote
from oasis.online.prices import PriceBounds
from oasis.online.recourse.learned import LearnedPrices
from oasis.online.rolling_oasis import RollingOASiS
from oasis.scheduling.policy import Policy

Bounds = Callable[[oasis.Cluster], PriceBounds]


def planning_policy(
    name: str,
    options: Mapping[str, Any],
    lookahead: int,
    *,
    bounds: PriceBounds | Bounds | None = None,
    end: int | None = None,
    keep_admitted: bool = True,
) -> RollingOASiS | oasis.Recourse:
    """Make OASiS (needs `bounds`) or recourse with a rolling horizon of `lookahead` slots."""
    if name == OASIS:
        if bounds is None:
            raise InputError("bounds", "expected U and L of OASiS, got None")
        scale = float(options.get("scale", 1.0))
        scaled: Any = (
            bounds.scaled(scale)
            if isinstance(bounds, PriceBounds)
            else lambda cluster: bounds(cluster).scaled(scale)
        )
        return oasis.OASiS.rolling(lookahead, scaled, keep_admitted=keep_admitted, end=end)
    make = partial(oasis.Recourse.rolling, lookahead, keep_admitted=keep_admitted)
    return recourse_of(make=make, **POLICIES[RECOURSE].resolve(options))


def quote_recourse(instance: oasis.Instance, job: oasis.Job, options: Mapping[str, Any]) -> Quote:
    """Quote `job` by recourse, after all jobs of `instance` that arrive no later than it."""
    # As in a service: the plan reaches as far ahead as the instance has slots, which have no end.
    policy = planning_policy(RECOURSE, options, instance.horizon, keep_admitted=False)
    scheduler = oasis.LiveScheduler(policy, instance.cluster)
    for earlier in instance.jobs_by_arrival():
        # Jobs of one slot arrive in the order of the file, and this job comes after all of them.
        if earlier.arrival <= job.arrival:
            scheduler.advance(earlier.arrival)
            scheduler.submit(earlier)
    scheduler.advance(job.arrival)
    return scheduler.quote(job)


def cluster_policy(
    name: str,
    options: Mapping[str, Any],
    *,
    lookahead: int,
    horizon: int | None = None,
    bounds: Bounds | None = None,
) -> Callable[[], Policy]:
    """Return a function that makes the policy; with `horizon` it decides as in a simulation."""
    # With a horizon it decides as in a simulation of an instance, draws of counts included. Without
    # one, draws need a seed in `options`: else a job without initial workers gets its maximum.
    if name == OASIS:
        if bounds is None:
            expected = "expected a file with U and L, or with past jobs"
            raise InputError("--bounds", f"{expected}: a cluster has no instance to take them from")
        for fixed in sorted(set(options) - {"scale"}):
            raise InputError(f"--set oasis.{fixed}", "is part of the bounds on a cluster")
        reach = horizon or lookahead
        return lambda: planning_policy(OASIS, options, reach, bounds=bounds, end=horizon)
    if name == RECOURSE and horizon is None:
        planning_policy(name, options, lookahead)  # refuses bad options now, not later
        return lambda: planning_policy(name, options, lookahead)
    entry = entry_of(name)
    if horizon is None and SEED in entry.options:
        options = {SEED: None, **options}
    return lambda: entry.make(None, options)


def read_bounds(path: Path, lookahead: int) -> Bounds:
    """Read U and L from output of `oasis learn`, bounds in JSON, or an instance of past jobs."""
    document = read_json(path)
    if isinstance(document, Mapping) and document.get("format") == "oasis-prices":
        learned = LearnedPrices.read(path).bounds
        return lambda _: learned
    if isinstance(document, Mapping) and {"worker", "ps", "normalize"} <= document.keys():
        bounds = PriceBounds.from_dict(document)
        return lambda _: bounds
    past = instance_from_dict(document)

    def of(cluster: oasis.Cluster) -> PriceBounds:
        # The past jobs count their times in the slots of their own instance.
        scaled = replace(cluster, slot_seconds=past.slot_seconds)
        return PriceBounds.from_jobs(past.jobs, scaled, lookahead)

    return of


ACTUAL = "this cluster"  # the row of a comparison that says what really happened
LIVE = ("Pending", "Waiting", "Starting", "Running")
COUNTED = ("jobs", "completed", "live", "rejected", "lost")
NAMESPACES = (
    ("namespace", False),
    *((name, True) for name in (*COUNTED, "utility", "promises kept")),
)


def by_namespace(summaries: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Count jobs by phase and by promise, and add up their utilities, for each namespace."""
    totals: dict[str, dict[str, Any]] = {}
    for job in summaries:
        nothing = dict.fromkeys((*COUNTED, "utility", "kept", "broken", "open"), 0)
        row = totals.setdefault(str(job["job"]).partition("/")[0], nothing)
        phase = job["phase"]
        row["jobs"] += 1
        kind = {"Completed": "completed", "Rejected": "rejected"}.get(phase)
        row[kind or ("live" if phase in LIVE else "lost")] += 1
        row["utility"] += job["utility"] or 0.0
        if job["promised"] is not None:
            is_broken = job["late"] or phase not in ("Completed", *LIVE)
            row["broken" if is_broken else "kept" if phase == "Completed" else "open"] += 1
    return dict(sorted(totals.items()))


def namespace_rows(totals: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows of the table of namespaces as text, with a row of sums if there are several."""
    rows = dict(totals)
    if len(totals) > 1:
        names = next(iter(totals.values()))
        rows["all"] = {name: sum(row[name] for row in totals.values()) for name in names}
    table = []
    for name, row in rows.items():
        ended, counts = row["kept"] + row["broken"], (str(row[part]) for part in COUNTED)
        promises = f"{row['kept']} of {ended}" if ended else "-"
        table.append((name, *counts, number(row["utility"]), promises))
    return table


def actual_figures(
    jobs: Sequence[Mapping[str, Any]], arrivals: Mapping[str, int]
) -> dict[str, Any]:
    """Figures of a cluster's real run as a policy's row has them; None for what is unknown."""
    done = [job for job in jobs if job["phase"] == "Completed"]
    rejected = sum(job["phase"] == "Rejected" for job in jobs)
    times = sorted(job["completion_slot"] + 1 - arrivals[job["job"]] for job in done)
    last = None if not times else float(times[max(0, math.ceil(0.95 * len(times)) - 1)])
    return {
        "total_utility": math.fsum(job["utility"] or 0.0 for job in done),
        "admitted": len(jobs) - rejected,
        "rejected": rejected,
        "finished": len(done),
        "unfinished": len(jobs) - len(done),
        "mean_completion": math.fsum(times) / len(times) if times else None,
        "p95_completion": last,
        "wasted_share": None,
        "utilisation": {},
        "parameters": {},
        "report": {},
    }


def with_actual(comparison: Comparison, figures: Mapping[str, Any]) -> Comparison:
    """Return the comparison with `figures` of the real run as its first row."""
    return replace(comparison, policies={ACTUAL: dict(figures), **comparison.policies})
