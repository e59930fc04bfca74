"""Several rows of one job: runs that were preempted, requeued or lost, joined or apart."""

from __future__ import annotations

import numpy as np

from oasis.traces.table import EARLIER_RUN, NEVER_RAN, NOT_ENDED, Faults, Frame, pd

WIDTHS = "read with the most of them, for as long as their work needs"
READ_AS = {
    "joined": "one job each, with the work of all its runs",
    "last": "the last run of each is read",
    "each": "each run is read as a job of its own",
}


def combined(runs: Frame, by: list[str], gpus: str) -> Frame:
    """One run for each group of `runs`, with their work, from the first to the last.

    Its GPUs are the sum or the maximum, by `gpus`. Where none of them is alone in its group and all
    have equally many, or none, durations are added: a detour by GPU-seconds would round.
    """
    worked = runs.assign(
        line=runs.index, work=runs["gpus"] * runs["duration"], is_known=runs["ended"].notna()
    )
    groups = worked.groupby(by, sort=False, dropna=False)
    found = groups.head(1).set_index(by, drop=False)
    several = groups.agg(
        **{"line": ("line", "min"), "submitted": ("submitted", "min"), "state": ("state", "last")},
        **{"has_ended": ("has_ended", "all"), "is_share": ("is_share", "any")},
        **{"ended": ("ended", "max"), "gpus": ("gpus", gpus), "total": ("duration", "sum")},
        **{"work": ("work", "sum"), "least": ("gpus", "min"), "most": ("gpus", "max")},
        **{"is_known": ("is_known", "all"), "longest": ("duration", "max")},
    )
    for name in ("line", "submitted", "state", "has_ended", "is_share", "gpus"):
        found[name] = several[name]
    found["ended"] = several["ended"].where(several["is_known"])
    alike = (several["least"] == several["most"]) & (several["gpus"] == several["most"])
    total = several["total"] if gpus == "max" else several["longest"]
    by_work = several["work"] / several["gpus"].where(several["gpus"] > 0)
    found["duration"] = total.where(alike | by_work.isna(), by_work)
    return found.set_index("line").drop(columns=["work", "is_known"])


def jobs_of_runs(runs: Frame, rule: str, faults: Faults, late: str) -> tuple[Frame, list[str]]:
    """The jobs of these runs in the order of the file, and notes on joined runs.

    The runs of one `key` are of one job and stand one below the other. The rule makes one job with
    the work of all its runs and its first submission (joined); the last run alone; or each run a
    job named ``7``, ``7#2``. `late` is the fault of one that started before it was submitted.
    """
    group = runs.groupby("key", sort=False)
    last = ~runs.duplicated("key", keep="last")
    ended = group["has_ended"].transform("last") if len(runs) else last
    size = group["key"].transform("size") if len(runs) else last
    several = runs[(size > 1) & (ended | (rule == "each"))]
    mixed = several[several["duration"] > 0].groupby("key")["gpus"].nunique() > 1
    if rule == "last":
        runs = runs[last]
    elif rule == "joined":
        # A job that goes on has no known work: its earlier runs are left out with the last one. So
        # is an earlier one whose end was never recorded, of a lost node.
        lost = np.where(ended, ~runs["has_ended"], ~last).astype(bool)
        for line in runs.index[lost]:
            faults.add(EARLIER_RUN, line)
        runs = runs[~lost]
        is_one = ~runs["key"].duplicated(keep=False)
        if not is_one.all():
            runs = pd.concat([runs[is_one], combined(runs[~is_one], ["key"], "max")])
    count = runs.groupby("id").cumcount() + 1
    runs = runs.assign(id=runs["id"].where(count == 1, runs["id"] + "#" + count.astype(str)))
    fault = np.select(
        [~runs["has_ended"], runs["duration"] == 0, runs["started"] < runs["submitted"]],
        [NOT_ENDED, NEVER_RAN, late],
        default="",
    )
    for line, kind in zip(runs.index[fault != ""], fault[fault != ""], strict=True):
        faults.add(str(kind), line)
    jobs = runs[fault == ""].sort_index(kind="stable").drop(columns=["key", "has_ended"])
    notes = []
    if len(several):
        what = f"{several['key'].nunique()} in {len(several)} rows; {READ_AS[rule]}"
        notes.append(f"jobs with several runs: {what} (--runs {rule})")
    if rule == "joined" and mixed.any():
        count_mixed = int(mixed.sum())
        notes.append(f"jobs whose runs had different numbers of GPUs: {count_mixed}, {WIDTHS}")
    return jobs, notes
