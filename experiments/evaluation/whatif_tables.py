"""Texts of ``oasis whatif``: an answer in sentences, and rows for screen and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.evaluation.tables import MARK, brief, percent
from experiments.evaluation.whatif import LEFT_OUT, PERCENTILES, RECORDED, SHORTEST, SIZES
from experiments.evaluation.whatif_result import PartChange, Setting, WhatIf, changes

Columns = tuple[tuple[str, bool], ...]

BOUND = "lower bound"
AS_IT_IS = "as it is"  # the setting that was asked about
CALLED = {RECORDED: "in reality"}
TOLD = "+"  # behind the name of a policy that is told how long jobs take
MOST_OWNERS = 12  # in a table or picture
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
SPACE = "\N{NO-BREAK SPACE}"  # a time is not wrapped


def duration_text(seconds: float | None) -> str:
    """A duration in two units, such as ``2 h 5 min``.

    Examples
    --------
    >>> [duration_text(t).replace(SPACE, " ") for t in (12000.0, 59.7, 3600.0, 0.25, 0.0, 200000.0)]
    ['3 h 20 min', '1 min', '1 h', '0.25 s', '0 s', '2 d 8 h']
    """
    if seconds is None:
        return "-"
    if 0 < abs(seconds) < 9.95:
        return f"{seconds:.2g}{SPACE}s"
    sign = "-" if seconds < 0 else ""
    left = abs(seconds)
    for k, (length, unit) in enumerate(UNITS[:-1]):
        small, smaller = UNITS[k + 1]
        whole = round(left / small)  # rounded once, in the smaller unit
        if whole * small >= length:
            many, few = divmod(whole, round(length / small))
            rest = f"{SPACE}{few}{SPACE}{smaller}" if few else ""
            return f"{sign}{many}{SPACE}{unit}{rest}"
    return f"{sign}{left:.0f}{SPACE}s"


def more(seconds: float) -> str:
    """A difference with its sign; 0 if it is less than a second.

    Examples
    --------
    >>> more(90.0).replace(SPACE, " "), more(-90.0).replace(SPACE, " "), more(0.3)
    ('+1 min 30 s', '-1 min 30 s', '0')
    """
    if abs(seconds) < 1.0:
        return "0"
    return duration_text(seconds) if seconds < 0 else f"+{duration_text(seconds)}"


def called(name: str, row: Mapping[str, Any] | None = None) -> str:
    """The name in a table, marked if the policy is told how long jobs take."""
    mark = TOLD if row is not None and row["told"] else ""
    return CALLED.get(name, name) + mark


def machines_text(machines: Sequence[int]) -> str:
    """Machines in a few words.

    Examples
    --------
    >>> machines_text((8, 8, 8)), machines_text((8, 8, 4))
    ('24 GPUs (3 x 8)', '20 GPUs (2 x 8, 1 x 4)')
    """
    counts = {size: list(machines).count(size) for size in dict.fromkeys(machines)}
    parts = [f"{count} x {size}" for size, count in counts.items()]
    shown = ", ".join(parts[:4]) + (", ..." if len(parts) > 4 else "")
    return f"{sum(machines):,} GPUs ({shown})"


def jobs_text(found: WhatIf) -> str:
    """Number of jobs, and the machines in a few words."""
    jobs = found.about["jobs"]
    return f"{jobs:,} job{'' if jobs == 1 else 's'} on {machines_text(found.first.machines)}"


SERVED: Columns = (
    ("policy", False),
    ("mean", True),
    *((f"{k} %", True) for k in PERCENTILES),
    ("above bound", True),
)
WAITED: Columns = (
    ("policy", False),
    ("mean", True),
    *((f"{k} %", True) for k in PERCENTILES),
    ("slowdown", True),
)
WORKED: Columns = (
    ("policy", False),
    ("GPUs in use", True),
    ("unfinished", True),
    ("preempted", True),
    ("moved", True),
)
EARNED: Columns = (("policy", False), ("utility", True), ("of the bound", True))
MOST = "upper bound"
WAITED_AND_WORKED: Columns = (*WAITED, *WORKED[1:])


def served_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Times from submission to the end, and the bound below all policies."""
    setting = found.first
    rows = [_served(name, row, setting) for name, row in setting.policies.items()]
    if setting.bound is not None:
        rows.append((BOUND, duration_text(setting.bound), *("-" for _ in PERCENTILES), "-"))
    return rows


def waited_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Times without GPUs, and the mean slowdown."""
    return [_waited(name, row) for name, row in found.first.policies.items()]


def worked_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Use of the GPUs, and how often jobs were left, preempted and moved."""
    return [_worked(name, row) for name, row in found.first.policies.items()]


def earned_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Utilities of the jobs, and the bound above all policies; empty if they are unknown."""
    setting = found.first
    most = setting.utility_bound
    rows: list[tuple[str, ...]] = []
    for name, row in setting.policies.items():
        if "utility" in row:
            # Reality may have had more GPUs than the bound is for.
            share = most and row.get("peak", 0) <= setting.gpus
            text = percent(row["utility"] / most) if share else "-"
            rows.append((called(name, row), brief(row["utility"]), text))
    if rows and most is not None:
        rows.append((MOST, brief(most), "-"))
    return rows


SAME = 1e-3  # by which means may differ, relative, and are called the same
REACHED = 1e-6  # above the bound, relative; less is rounding


def whole_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Waiting and use side by side, for a page."""
    parts = zip(waited_rows(found), worked_rows(found), strict=True)
    return [(*one, *other[1:]) for one, other in parts]


def _times(times: Mapping[str, float | None]) -> tuple[str, ...]:
    return tuple(duration_text(times[name]) for name in ("mean", *(f"p{k}" for k in PERCENTILES)))


def _served(name: str, row: Mapping[str, Any], setting: Setting) -> tuple[str, ...]:
    mark = MARK if row["unfinished"] else ""
    mean, bound = row["completion"]["mean"], setting.bound
    above = "-"
    # Reality may have had more GPUs than the bound is for.
    if mean is not None and bound and not mark and row.get("peak", 0) <= setting.gpus:
        more = mean / bound - 1
        # The bound is rounded down, so that one who reaches it seems to be a little above.
        above = "0%" if more < REACHED else f"+{percent(more)}"
    times = (text if text == "-" else text + mark for text in _times(row["completion"]))
    return (called(name, row), *times, above)


def _waited(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    slow = row["slowdown"]["mean"]
    return (called(name, row), *_times(row["waiting"]), "-" if slow is None else f"{slow:.3g}")


def _worked(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (row["unfinished"], row["preemptions"], row["moves"])
    return (called(name, row), percent(row["gpu_utilisation"]), *(f"{n:,}" for n in counts))


def size_columns(found: WhatIf) -> Columns:
    """Headings of `size_rows`: the classes of sizes that have jobs."""
    return (("policy", False), *((SIZES[k][2], True) for k in _sizes(found)))


def _sizes(found: WhatIf) -> list[int]:
    row = next(iter(found.first.policies.values()))
    return [k for k, jobs in enumerate(row["by_size"]["jobs"]) if jobs]


def size_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Mean waiting by class of sizes: of the reference in full, of the others the difference."""
    reference = found.reference
    rows = []
    for name, row in found.first.policies.items():
        values = [row["by_size"]["mean_waiting"][k] for k in _sizes(found)]
        if name != reference and reference is not None and name != RECORDED:
            before = found.first.policies[reference]["by_size"]["mean_waiting"]
            pairs = zip(values, (before[k] for k in _sizes(found)), strict=True)
            texts = [more(now - was) for now, was in pairs]
        else:
            texts = [duration_text(value) for value in values]
        rows.append((called(name, row), *texts))
    return rows


OWNERS: Columns = (
    ("owner", False),
    ("jobs", True),
    ("GPU-hours", True),
    ("waited", True),
    ("would wait", True),
)


def owner_changes(found: WhatIf, policy: str) -> list[PartChange]:
    """Compare the waiting of each owner under `policy`; those with most GPU-hours first."""
    rows = found.first.policies
    if found.reference is None:
        return []
    return changes(rows[found.reference], rows[policy], found.owners, "by_owner")


def owner_rows(found: WhatIf, policy: str) -> tuple[list[tuple[str, ...]], int]:
    """Rows of the owners with most GPU-hours, and how many owners have none."""
    all_of_them = owner_changes(found, policy)
    rows: list[tuple[str, ...]] = [
        (
            one.name,
            f"{one.jobs:,}",
            f"{brief(one.gpu_hours)}",
            duration_text(one.before),
            duration_text(one.after),
        )
        for one in all_of_them[:MOST_OWNERS]
    ]
    return rows, len(all_of_them) - len(rows)


def other_columns(found: WhatIf) -> Columns:
    """Headings of `other_rows`: the loads, or the machines."""
    return (("policy", False), *((setting_text(found, one), True) for one in _by_load(found)))


def _by_load(found: WhatIf) -> list[Setting]:
    """All settings, by their load, and then those with fewer machines."""
    most = len(found.first.machines)
    return sorted(found.settings, key=lambda one: (most - len(one.machines), one.load))


def setting_text(found: WhatIf, setting: Setting) -> str:
    """A setting in a few words, beside the first.

    Examples
    --------
    >>> one = Setting(1.0, (8, 8), None, {})
    >>> found = WhatIf((one, Setting(1.5, (8, 8), None, {}), Setting(1.0, (8,), None, {})), (), {})
    >>> [setting_text(found, each) for each in found.settings]
    ['as it is', 'load x 1.5', '1 machine fewer']
    """
    if setting.load != 1.0:
        return f"load x {setting.load:g}"
    fewer = len(found.first.machines) - len(setting.machines)
    if not fewer:
        return AS_IT_IS
    return f"{fewer} machine{'' if fewer == 1 else 's'} fewer"


def other_rows(found: WhatIf) -> list[tuple[str, ...]]:
    """Mean time to completion in every setting, and the bound."""
    rows = []
    for name in dict.fromkeys(name for one in found.settings for name in one.policies):
        texts = []
        for setting in _by_load(found):
            row = setting.policies.get(name)
            mean = None if row is None else row["completion"]["mean"]
            mark = MARK if row is not None and row["unfinished"] and mean is not None else ""
            texts.append(duration_text(mean) + mark)
        row = found.first.policies.get(name)
        rows.append((called(name, row), *texts))
    rows.append((BOUND, *(duration_text(setting.bound) for setting in _by_load(found))))
    return rows


def answer(found: WhatIf) -> tuple[str, ...]:
    """The answer in three sentences, made from the numbers; fewer where there is none."""
    setting, reference = found.first, found.reference
    best = found.best(setting)
    if best is None or reference is None:
        return ("No policy finished every job, so none is best.",)
    rows = setting.policies
    mean, before = rows[best]["completion"]["mean"], rows[reference]["completion"]["mean"]
    jobs = found.about["jobs"]
    where = f"On {machines_text(setting.machines)}, "
    without = [*found.missing, *found.about.get("failed", ())]
    if any(AS_IT_IS in run for run in without):
        where += "of the policies that ended, "
    if all(row["waiting"]["mean"] < 1.0 for row in rows.values()):
        first = f"{where}no job waits for GPUs, whatever the policy: {_whole_mean(mean)}."
    elif best == reference or before is None or mean > before * (1 - SAME):
        first = (
            f"{where}no policy serves these {jobs:,} jobs better than {_name(found, reference)}: "
        )
        first += f"a job takes {duration_text(before)} from submission to end on average."
    else:
        first = f"{where}{best} serves these {jobs:,} jobs best{_level(setting, best, mean)}: "
        first += f"a job takes {duration_text(mean)} from submission to end on average, "
        first += f"{percent(1 - mean / before)} less than with "
        first += f"{_name(found, reference)} ({duration_text(before)})."
        first += _without_durations(found, best)
    return tuple(
        filter(None, (first, _gain(found, best, mean), _parts(found, best), _earned(found)))
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


def _whole_mean(mean: float) -> str:
    return f"a job takes {duration_text(mean)} on average, which is its duration"


def _name(found: WhatIf, name: str) -> str:
    if name != RECORDED:
        return name
    peak = found.first.policies[RECORDED]["peak"]
    more = f", on up to {peak:,} GPUs" if peak > found.first.gpus else ""
    return f"the scheduler that really ran them{more}"


def _without_durations(found: WhatIf, best: str) -> str:
    """Name the best policy that needs no durations, if the best one needs them."""
    rows = found.first.policies
    other = found.best(found.first, untold=True)
    if other is None or other == best or not rows[best]["told"]:
        return ""
    mean = duration_text(rows[other]["completion"]["mean"])
    return (
        f" It is told how long jobs take; of the policies that are not, {other} is best ({mean})."
    )


def _gain(found: WhatIf, best: str, mean: float) -> str:
    """Say how far the best policy is from the bound on every scheduler."""
    setting = found.first
    if not setting.bound:
        return ""
    left = 1 - setting.bound / mean
    least = f"No scheduler can bring the mean below {duration_text(setting.bound)} on these GPUs"
    if left < 0.001:
        return f"{least}, which {best} reaches."
    has = f"{best} has {duration_text(mean)}"
    return f"{least}; {has}, so at most {percent(left)} of it could be gained."


def _earned(found: WhatIf) -> str:
    """Name the policy that earns most, if the jobs have utilities."""
    most = found.first.utility_bound
    earned = {
        name: row["utility"]
        for name, row in found.first.policies.items()
        if name != RECORDED and "utility" in row
    }
    if not earned or not most:
        return ""
    name = max(earned, key=lambda one: earned[one])
    share = percent(earned[name] / most)
    says = f"{name} earns most"
    if earned[name] == min(earned.values()):
        says = f"{name} earns" if len(earned) == 1 else "all policies earn the same"
    return (
        f"By what jobs are worth, {says}: {brief(earned[name])}, {share} of what no scheduler can "
        f"exceed ({brief(most)})."
    )


def _parts(found: WhatIf, best: str) -> str:
    """Name the owners and sizes of jobs that wait less, and those that wait longer."""
    if best == found.reference:
        return ""
    owners = owner_changes(found, best)
    sizes = changes(
        found.first.policies[found.reference or best],
        found.first.policies[best],
        [text for _, _, text in SIZES],
        "by_size",
    )
    losing = [one for one in sizes if one.verdict > 0]
    text = ""
    if len(owners) > 1:
        less = sum(one.verdict < 0 for one in owners)
        worse = [one for one in owners if one.verdict > 0]
        text = f"under {best}, {less:,} of {len(owners):,} owners wait less"
        if worse:
            most = max(worse, key=lambda one: one.more)
            text += f" and {len(worse):,} longer, most of all {most.name} ({more(most.more)} a job)"
        text += "; "
    if losing:
        named = " and ".join(f"{one.name} ({more(one.more)})" for one in losing)
        return _capital(f"{text}jobs of {named} wait longer on average.")
    if not any(one.verdict < 0 for one in sizes):
        return text and _capital(f"{text}no size of jobs fares better or worse.")
    return _capital(f"{text}no size of jobs waits longer on average.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def notes(found: WhatIf) -> list[str]:
    """Sentences below the tables: what marks and words mean, and what is left out or assumed."""
    rows = found.first.policies
    said = [
        f"Slowdown: time to completion / duration, at least 1, mean over the jobs; durations "
        f"below {SHORTEST:g} s count as {SHORTEST:g} s."
    ]
    said.append("Times are rounded to two units; percentages are of the times before that.")
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
    return said


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


def left_out_note(policies: Sequence[str]) -> str:
    """Say which policies run only if they are named, and why."""
    names = [name for name in LEFT_OUT if name not in policies]
    reasons: dict[str, list[str]] = {}
    for name in names:
        reasons.setdefault(LEFT_OUT[name], []).append(name)
    parts = [f"{', '.join(some)} ({reason})" for reason, some in reasons.items()]
    return f"not run unless --policies names them: {'; '.join(parts)}"
