"""Several rows of one job: runs that were preempted, requeued or lost, joined or apart."""

from __future__ import annotations

import numpy as np

from oasis.traces.table import EARLIER_RUN, NEVER_RAN, NOT_ENDED, Frame, Rows, pd

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
    worked = runs.assign(line=runs.index, work=runs["gpus"] * runs["duration"])
    worked["ended"] = worked["ended"].fillna(np.inf)  # unknown: so is that of its group
    groups = worked.groupby(by, sort=False, dropna=False)
    whole = groups.agg(
        {"line": "min", "submitted": "min", "state": "last", "has_ended": "all", "is_share": "any"}
        | {"ended": "max", "gpus": gpus, "work": "sum"}
    )
    found = groups.head(1).set_index(by, drop=False).assign(**whole)
    found["ended"] = found["ended"].replace(np.inf, np.nan)
    widths = groups["gpus"].agg(["min", "max"])
    alike = (widths["min"] == widths["max"]) & (widths["max"] == whole["gpus"])
    total = groups["duration"].agg("sum" if gpus == "max" else "max")
    by_work = whole["work"] / whole["gpus"].where(whole["gpus"] > 0)
    found["duration"] = total.where(alike | by_work.isna(), by_work)
    return found.set_index("line").drop(columns=["work"])


def jobs_of_runs(runs: Frame, rule: str, rows: Rows, late: str) -> Frame:
    """The jobs of these runs in the order of the file; `rows` are told of the others.

    The runs of one `key` are of one job and stand one below the other. The rule makes one job with
    the work of all its runs and its first submission (joined); the last run alone; or each run a
    job named ``7``, ``7#2``. `late` is the fault of one that started before it was submitted.
    """
    group = runs.groupby("key", sort=False)
    last = ~runs.duplicated("key", keep="last")
    ended = group["has_ended"].transform("last").astype(bool)
    several = runs[runs.duplicated("key", keep=False) & (ended | (rule == "each"))]
    mixed = several[several["duration"] > 0].groupby("key")["gpus"].nunique() > 1
    if len(several):
        what = f"{several['key'].nunique()} in {len(several)} rows; {READ_AS[rule]}"
        rows.notes.append(f"jobs with several runs: {what} (--runs {rule})")
    if rule == "last":
        runs = runs[last]
    elif rule == "joined":
        if mixed.any():
            told = f"jobs whose runs had different numbers of GPUs: {mixed.sum()}, {WIDTHS}"
            rows.notes.append(told)
        # A job that goes on has no known work: its earlier runs are left out with the last one. So
        # is an earlier one whose end was never recorded, of a lost node.
        lost = np.where(ended, ~runs["has_ended"], ~last).astype(bool)
        rows.count(runs.index[lost], EARLIER_RUN)
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
    for kind in (NOT_ENDED, NEVER_RAN, late):
        rows.count(runs.index[fault == kind], kind)
    return runs[fault == ""].sort_index(kind="stable")
