"""Texts of ``oasis whatif``: an answer in sentences, and tables for screen and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.machines import machines_text
from experiments.evaluation.tables import MARK, brief, duration_text, number, percent
from experiments.evaluation.whatif_result import (
    RECORDED,
    SHORTEST,
    SIZES,
    Goal,
    Row,
    Setting,
    WhatIf,
)

BOUND, MOST = "lower bound", "upper bound"
AS_IT_IS = "as it is"  # the setting that was asked about
CALLED = {RECORDED: "in reality"}
TOLD = "+"  # behind the name of a policy that is told how long jobs take
MOST_OWNERS = 12  # in a table or picture
BETTER = 0.005  # a mean that differs by less than this share is taken to be the same
SAME = 1e-3  # by which means may differ, relative, and are called the same
REACHED = 1e-6  # above the bound, relative; less is rounding
SHOWN = ("mean", "p50", "p95", "p99")
HEADINGS = ("mean", "50 %", "95 %", "99 %")
GROWS = "the queue grows for ever"

Cells = tuple[str, ...]


Table = tuple[str, tuple[tuple[str, bool], ...], list[Cells]]  # title, columns, rows


def _table(title: str, headings: Cells, rows: list[Cells]) -> Table:
    """Rows under headings, of which the first is that of names; the others are of numbers."""
    return title, tuple((heading, k > 0) for k, heading in enumerate(headings)), rows


def more(seconds: float) -> str:
    """A difference with its sign; 0 if it is less than a second."""
    if abs(seconds) < 1.0:
        return "0"
    return duration_text(seconds) if seconds < 0 else f"+{duration_text(seconds)}"


def called(name: str, row: Row | None = None) -> str:
    """The name in a table, marked if the policy is told how long jobs take."""
    return CALLED.get(name, name) + (TOLD if row is not None and row["told"] else "")


def jobs_text(found: WhatIf) -> str:
    """Number of jobs, and the machines in a few words."""
    jobs = found.about["jobs"]
    return f"{jobs:,} job{'' if jobs == 1 else 's'} on {machines_text(found.first.machines)}"


def setting_text(found: WhatIf, setting: Setting) -> str:
    """A setting in a few words, beside the first."""
    if setting.load != 1.0:
        return f"load x {setting.load:g}"
    count = len(setting.machines) - len(found.first.machines)
    if not count:
        return AS_IT_IS
    many = f"{abs(count)} machine{'' if abs(count) == 1 else 's'}"
    return f"{many} {'more' if count > 0 else 'fewer'}"


def by_load(found: WhatIf) -> list[Setting]:
    """All settings: by their load, then those with fewer machines, then those with more."""
    most = len(found.first.machines)

    def order(one: Setting) -> tuple[bool, int, float]:
        away = len(one.machines) - most
        return away > 0, abs(away), one.load

    return sorted(found.settings, key=order)


def tables(found: WhatIf) -> list[Table]:
    """All tables, in their order."""
    rows, best, reference = found.first.policies, found.best(), found.reference
    made = [
        _table(
            f"{jobs_text(found)}: submission to end",
            ("policy", *HEADINGS, "above bound"),
            _served(found.first),
        ),
        _table(
            "Waiting for GPUs",
            ("policy", *HEADINGS, "slowdown"),
            [
                (called(name, row), *_times(row["waiting"]), _short(row["slowdown"]["mean"]))
                for name, row in rows.items()
            ],
        ),
        _table(
            "GPUs and jobs",
            ("policy", "GPUs in use", "unfinished", "preempted", "moved"),
            [
                (
                    called(name, row),
                    percent(row["gpu_utilisation"]),
                    *(f"{row[what]:,}" for what in ("unfinished", "preemptions", "moves")),
                )
                for name, row in rows.items()
            ],
        ),
    ]
    if earned := _earned_rows(found.first):
        made.append(
            _table("What the jobs are worth", ("policy", "utility", "of the bound"), earned)
        )
    if reference is not None:
        than = f"beside {called(reference)}"
        headings = ("policy", *(SIZES[k][2] for k in _sizes(found)))
        made.append(_table(f"Mean waiting by size, {than}", headings, _size_rows(found, reference)))
        if best is not None and best != reference and len(found.owners) > 1:
            title = f"Mean waiting by owner under {best}, {than}"
            headings = ("owner", "jobs", "GPU-hours", "waited", "would wait")
            made.append(_table(title, headings, _owner_rows(found, best)))
    settings = by_load(found)
    texts = tuple(setting_text(found, one) for one in settings)
    if len(settings) > 1:
        title = "Mean from submission to end at other loads and machines"
        made.append(_table(title, ("policy", *texts), _other_rows(found, settings)))
    if all(one.gpu_hours is not None for one in settings):
        headings = ("", "wanted", "there are", "offered load", "queue")
        hours = [_hours(text, one) for text, one in zip(texts, settings, strict=True)]
        made.append(_table("GPU-hours, from the first to the last submission", headings, hours))
    if "goal" in found.about:
        title = f"Fewest machines for {found.about['goal']['text']}"
        headings = ("policy", "machines", "value", "with one fewer")
        made.append(_table(title, headings, _goal_rows(found.about["goal"])))
    return made


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _times(times: Mapping[str, float | None]) -> Cells:
    return tuple(duration_text(times[name]) for name in SHOWN)


def _served(setting: Setting) -> list[Cells]:
    """Times from submission to the end, and the bound below all policies."""
    rows = []
    for name, row in setting.policies.items():
        mark = MARK if row["unfinished"] else ""
        mean, bound = row["completion"]["mean"], setting.bound
        above = "-"
        # Reality may have had more GPUs than the bound is for.
        if mean is not None and bound and not mark and row.get("peak", 0) <= setting.gpus:
            left = mean / bound - 1
            # The bound is rounded down, so that one who reaches it seems to be a little above.
            above = "0%" if left < REACHED else f"+{percent(left)}"
        times = (text if text == "-" else text + mark for text in _times(row["completion"]))
        rows.append((called(name, row), *times, above))
    if setting.bound is not None:
        rows.append((BOUND, duration_text(setting.bound), "-", "-", "-", "-"))
    return rows


def _earned_rows(setting: Setting) -> list[Cells]:
    """Utilities of the jobs, and the bound above all policies; empty if they are unknown."""
    most = setting.utility_bound
    rows: list[Cells] = []
    for name, row in setting.policies.items():
        if "utility" in row:
            share = most and row.get("peak", 0) <= setting.gpus
            text = percent(row["utility"] / most) if share else "-"
            rows.append((called(name, row), brief(row["utility"]), text))
    if rows and most is not None:
        rows.append((MOST, brief(most), "-"))
    return rows


def _sizes(found: WhatIf) -> list[int]:
    row = next(iter(found.first.policies.values()))
    return [k for k, jobs in enumerate(row["by_size"]["jobs"]) if jobs]


def _size_rows(found: WhatIf, reference: str) -> list[Cells]:
    """Mean waiting by class of sizes: of the reference in full, of the others the difference."""
    before = found.first.policies[reference]["by_size"]["mean_waiting"]
    rows = []
    for name, row in found.first.policies.items():
        values = row["by_size"]["mean_waiting"]
        plain = name in (reference, RECORDED)
        texts = (
            duration_text(values[k]) if plain else more(values[k] - before[k])
            for k in _sizes(found)
        )
        rows.append((called(name, row), *texts))
    return rows


@dataclass(frozen=True, slots=True)
class PartChange:
    """Mean waiting of some jobs, an owner's or a size, under the reference and under a policy."""

    name: str
    jobs: int
    gpu_hours: float
    before: float
    after: float

    @property
    def more(self) -> float:
        """Seconds; below 0 they wait less."""
        return self.after - self.before

    @property
    def verdict(self) -> int:
        """-1: they wait less; 1: longer; 0: the same, up to a second or half a percent."""
        if abs(self.more) <= max(1.0, BETTER * self.before):
            return 0
        return 1 if self.more > 0 else -1


def changes(found: WhatIf, policy: str, by: str) -> list[PartChange]:
    """Parts of the jobs (``by_size`` or ``by_owner``) against the reference.

    Owners with most GPU-hours come first.
    """
    if found.reference is None:
        return []
    one, other = (found.first.policies[name][by] for name in (found.reference, policy))
    names = found.owners if by == "by_owner" else [text for _, _, text in SIZES]
    columns = (one["jobs"], one["gpu_hours"], one["mean_waiting"], other["mean_waiting"])
    made = [
        PartChange(name, int(jobs), hours, was, now)
        for name, jobs, hours, was, now in zip(names, *columns, strict=True)
        if jobs and was is not None and now is not None
    ]
    return made if by == "by_size" else sorted(made, key=lambda one: -one.gpu_hours)


def _owner_rows(found: WhatIf, policy: str) -> list[Cells]:
    return [
        (
            one.name,
            f"{one.jobs:,}",
            brief(one.gpu_hours),
            duration_text(one.before),
            duration_text(one.after),
        )
        for one in changes(found, policy, "by_owner")[:MOST_OWNERS]
    ]


def _other_rows(found: WhatIf, settings: Sequence[Setting]) -> list[Cells]:
    """Mean time to completion in every setting, and the bound."""
    rows = []
    for name in dict.fromkeys(name for one in found.settings for name in one.policies):
        texts = []
        for setting in settings:
            row = setting.policies.get(name)
            mean = None if row is None else row["completion"]["mean"]
            mark = MARK if row is not None and row["unfinished"] and mean is not None else ""
            texts.append(duration_text(mean) + mark)
        rows.append((called(name, found.first.policies.get(name)), *texts))
    rows.append((BOUND, *(duration_text(setting.bound) for setting in settings)))
    return rows


def _hours(text: str, one: Setting) -> Cells:
    share = one.offered
    grows = "" if share is None else "grows for ever" if share > 1 else "does not grow"
    hours = (brief(hours or 0.0) for hours in (one.wanted_gpu_hours, one.gpu_hours))
    return (text, *hours, percent(share), grows or "-")


def _goal_rows(goal: Mapping[str, Any]) -> list[Cells]:
    show = number if Goal.read(goal["text"]).of == "slowdown" else duration_text
    rows: list[Cells] = []
    for name, found in goal["policies"].items():
        tried, fewest = dict(found["tried"]), found["machines"]
        if fewest is None:
            rows.append((name, f"not with {goal['most']}", show(tried[goal["most"]]), "-"))
        else:
            fewer = tried.get(fewest - 1)
            text = show(fewer) if fewest - 1 in tried else "the jobs do not fit"
            rows.append((name, f"{fewest:,}", show(tried[fewest]), text))
    return rows


def answer(found: WhatIf) -> Cells:
    """The answer in sentences, made from the numbers; fewer where there is none."""
    setting, reference, best = found.first, found.reference, found.best()
    if best is None or reference is None:
        return ("No policy finished every job, so none is best.",)
    mean = setting.policies[best]["completion"]["mean"]
    said = (
        _best(found, best, reference),
        _gain(setting, best, mean),
        _parts(found, best),
        _earned(setting),
        _grows(found),
    )
    return tuple(filter(None, said))


def _best(found: WhatIf, best: str, reference: str) -> str:
    setting, rows, jobs = found.first, found.first.policies, found.about["jobs"]
    mean, before = rows[best]["completion"]["mean"], rows[reference]["completion"]["mean"]
    where = f"On {machines_text(setting.machines)}, "
    without = [*found.missing, *found.about.get("failed", ())]
    if any(AS_IT_IS in run for run in without):
        where += "of the policies that ended, "
    if all(row["waiting"]["mean"] < 1.0 for row in rows.values()):
        which = f"a job takes {duration_text(mean)} on average, which is its duration."
        return f"{where}no job waits for GPUs, whatever the policy: {which}"
    if best == reference or before is None or mean > before * (1 - SAME):
        says = f"{where}no policy serves these {jobs:,} jobs better than {_name(found, reference)}:"
        return f"{says} a job takes {duration_text(before)} from submission to end on average."
    return (
        f"{where}{best} serves these {jobs:,} jobs best{_level(setting, best, mean)}: "
        f"a job takes {duration_text(mean)} from submission to end on average, "
        f"{percent(1 - mean / before)} less than with "
        f"{_name(found, reference)} ({duration_text(before)}).{_without_durations(found, best)}"
    )


def _level(setting: Setting, best: str, mean: float) -> str:
    """Which policies are as good as the best, up to a thousandth of its mean."""
    others = [
        name
        for name, row in setting.policies.items()
        if name not in (best, RECORDED)
        and not row["unfinished"]
        and row["completion"]["mean"] <= mean * (1 + SAME)
    ]
    if not others:
        return ""
    many = f"{len(others)} other policies" if len(others) > 2 else " and ".join(others)
    return f" ({many} as well, within {percent(SAME)})"


def _name(found: WhatIf, name: str) -> str:
    if name != RECORDED:
        return name
    peak = found.first.policies[RECORDED]["peak"]
    beyond = f", on up to {peak:,} GPUs" if peak > found.first.gpus else ""
    return f"the scheduler that really ran them{beyond}"


def _without_durations(found: WhatIf, best: str) -> str:
    """Name the best policy that needs no durations, if the best one needs them."""
    rows, other = found.first.policies, found.best(untold=True)
    if other is None or other == best or not rows[best]["told"]:
        return ""
    mean = duration_text(rows[other]["completion"]["mean"])
    return (
        f" It is told how long jobs take; of the policies that are not, {other} is best ({mean})."
    )


def _gain(setting: Setting, best: str, mean: float) -> str:
    """Say how far the best policy is from the bound on every scheduler."""
    if not setting.bound:
        return ""
    left = 1 - setting.bound / mean
    least = f"No scheduler can bring the mean below {duration_text(setting.bound)} on these GPUs"
    if left < 0.001:
        return f"{least}, which {best} reaches."
    has = f"{best} has {duration_text(mean)}"
    return f"{least}; {has}, so at most {percent(left)} of it could be gained."


def _earned(setting: Setting) -> str:
    """Name the policy that earns most, if the jobs have utilities."""
    most = setting.utility_bound
    earned = {
        name: row["utility"]
        for name, row in setting.policies.items()
        if name != RECORDED and "utility" in row
    }
    if not earned or not most:
        return ""
    name = max(earned, key=lambda one: earned[one])
    says = f"{name} earns most"
    if earned[name] == min(earned.values()):
        says = f"{name} earns" if len(earned) == 1 else "all policies earn the same"
    return (
        f"By what jobs are worth, {says}: {brief(earned[name])}, {percent(earned[name] / most)} of "
        f"what no scheduler can exceed ({brief(most)})."
    )


def _parts(found: WhatIf, best: str) -> str:
    """Name the owners and sizes of jobs that wait less, and those that wait longer."""
    if best == found.reference:
        return ""
    owners, sizes = (changes(found, best, by) for by in ("by_owner", "by_size"))
    said = []
    if len(owners) > 1:
        less = sum(one.verdict < 0 for one in owners)
        worse = [one for one in owners if one.verdict > 0]
        text = f"under {best}, {less:,} of {len(owners):,} owners wait less"
        if worse:
            most = max(worse, key=lambda one: one.more)
            text += f" and {len(worse):,} longer, most of all {most.name} ({more(most.more)} a job)"
        said.append(text)
    longer, less_long = (_named(sizes, verdict) for verdict in (1, -1))
    if longer:
        said.append(f"jobs of {longer} wait longer on average")
    elif less_long:
        said.append(f"no size of jobs waits longer on average; jobs of {less_long} wait less")
    elif said:
        said.append("no size of jobs fares better or worse")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _named(sizes: Sequence[PartChange], verdict: int) -> str:
    return " and ".join(f"{one.name} ({more(one.more)})" for one in sizes if one.verdict == verdict)


def _grows(found: WhatIf) -> str:
    """Say at which load or machines more is wanted than there is."""
    beyond = [one for one in by_load(found) if (one.offered or 0.0) > 1.0]
    if not beyond:
        return ""
    where = ", ".join(setting_text(found, one) for one in beyond)
    return (
        f"If jobs go on coming like this, {GROWS} under every scheduler ({where}): they want more "
        "GPU-hours than there are."
    )


def notes(found: WhatIf) -> list[str]:
    """Sentences below the tables: what marks and words mean, and what is left out or assumed."""
    rows = found.first.policies
    said = [
        f"Slowdown: time to completion / duration, at least 1, mean over the jobs; durations "
        f"below {SHORTEST:g} s count as {SHORTEST:g} s.",
        "Times are rounded to two units; percentages are of the times before that.",
    ]
    if any(row["told"] for row in rows.values()):
        said.append(f"{TOLD}: is told how long each job will take, which real schedulers are not.")
    if any(row["preemptions"] for name, row in rows.items() if name != RECORDED):
        said.append("Preempting a job and moving it costs no time here.")
    left = {name: row["unfinished"] for name, row in rows.items() if row["unfinished"]}
    if left:
        named = ", ".join(f"{called(name)} {count:,}" for name, count in left.items())
        said.append(f"{MARK}: of the finished jobs only. Not finished: {named}.")
    said += _recorded_notes(found)
    if found.about.get("utilities"):
        said.append(f"Utility: {found.about['utilities']}.")
        said.append(
            f"{MOST.capitalize()}: no schedule of these jobs on so many GPUs earns more in all."
        )
    if any(one.load != 1.0 for one in found.settings):
        said.append("Load x 1.5: the same jobs, with the times between submissions divided by 1.5.")
    said.append(
        f"{BOUND.capitalize()}: no schedule of these jobs on so many GPUs, however clairvoyant and "
        "with free preemption, has a smaller mean."
    )
    beyond = len(changes(found, found.best() or RECORDED, "by_owner")) - MOST_OWNERS
    if found.best() and beyond > 0:
        said.append(f"{beyond:,} more owners: --csv or --json has them.")
    return said + _goal_notes(found.about.get("goal"))


def _goal_notes(goal: Mapping[str, Any] | None) -> list[str]:
    """Say which numbers of machines were tried: that the others behave alike is not known."""
    if goal is None:
        return []
    said = [
        f"{name} {', '.join(str(n) for n, _ in found['tried'])}"
        for name, found in goal["policies"].items()
    ]
    return [
        f"Fewest machines: by bisection from {goal['least']:,} to {goal['most']:,}; further ones "
        "are like the last. A policy may do worse with more machines, so that only what was tried "
        f"is known: {'; '.join(said)}."
    ]


def _recorded_notes(found: WhatIf) -> list[str]:
    row = found.first.policies.get(RECORDED)
    if row is None:
        return []
    said = []
    if row["finished"] < found.about["jobs"]:
        count = f"{row['finished']:,} of {found.about['jobs']:,} jobs"
        said.append(
            f"What really happened is known of {count}, whose figures its row has; policies are "
            f"therefore compared with {found.reference}."
        )
    if row["peak"] > found.first.gpus:
        said.append(
            f"In reality up to {row['peak']:,} GPUs were in use at once, more than there are here."
        )
    return said
