"""The result of ``oasis whatif``, and its texts: an answer in sentences, tables, notes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from experiments.evaluation.tables import EASY_PLACES, MARK, brief, duration_text, number, percent
from experiments.machines import machines_text
from experiments.options import read_seconds
from oasis.model.document import count, entry, list_of, mapping, object_of, optional, real, text
from oasis.model.errors import InputError, located_at
from oasis.model.summary import how_many

KIND = "whatif"
RECORDED = "recorded"  # what really happened, beside the policies
KEPT = (50, 90, 95, 99)  # percentiles in a result
SHORTEST = 10.0  # seconds: the slowdown of shorter jobs is that of jobs of this length
SIZES = ((1, 1, "1 GPU"), (2, 4, "2-4 GPUs"), (5, 8, "5-8 GPUs"), (9, None, "9 GPUs or more"))
SHARES = (*range(0, 100, 5), 99, 99.9, 100)  # percent of the jobs, of the distribution of waiting
COUNTED = ("jobs", "gpu_hours", "unfinished")
MEANS = ("mean_waiting", "p95_waiting", "mean_completion", "mean_slowdown")
PARTS = (*COUNTED[:2], *MEANS, COUNTED[2])  # figures of a part of the jobs
GIVEN, DRAWN, NONE = UTILITIES = ("given", "drawn", "none")  # what jobs are worth

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One load on one set of machines (GPUs of each), with the figures of each policy by name."""

    load: float
    machines: tuple[int, ...]
    bound: float | None  # None where it was not found in time
    policies: Mapping[str, Row]
    utility_bound: float | None  # likewise, or where utilities are unknown
    wanted_gpu_hours: float
    gpu_hours: float  # that there are, from the first submission to the last

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return sum(self.machines)

    @property
    def offered(self) -> float | None:
        """Wanted over available GPU-hours, None if none exist; above 1 the queue keeps growing."""
        return self.wanted_gpu_hours / self.gpu_hours if self.gpu_hours else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "machines": list(self.machines), "gpus": self.gpus}


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Figures of policies on a trace's jobs; `settings[0]` is as requested, others vary it."""

    settings: tuple[Setting, ...]
    owners: tuple[str, ...]  # in the order of ``by_owner`` in the figures
    about: Mapping[str, Any]  # what else the document says, such as the number of ``jobs``

    @property
    def first(self) -> Setting:
        """The setting with the load and machines as requested."""
        return self.settings[0]

    @property
    def reference(self) -> str | None:
        """Row to compare with: the recorded run if complete, else FIFO, or the first policy."""
        rows = self.first.policies
        recorded = rows.get(RECORDED)
        if recorded is not None and recorded["finished"] == self.about["jobs"]:
            return RECORDED
        return next((name for name in ("fifo", *rows) if name in rows.keys() - {RECORDED}), None)

    def best(self, *, untold: bool = False) -> str | None:
        """Name of the policy of least mean completion time; None unless all jobs finished in one.

        `untold` leaves out policies that are told how long jobs take.
        """
        rows = self.first.policies
        done = (name for name, row in rows.items() if name != RECORDED and not row["unfinished"])
        known = (name for name in done if not (untold and rows[name]["told"]))
        return min(known, key=lambda name: rows[name]["completion"]["mean"], default=None)

    @property
    def missing(self) -> list[str]:
        """Requested runs without a result, because of Ctrl-C or an error."""
        return list(self.about.get("missing", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, which `from_dict` reads."""
        settings = [setting.to_dict() for setting in self.settings]
        return {"kind": KIND, **self.about, "owners": list(self.owners), "settings": settings}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WhatIf:
        """Make a result from the data of `to_dict`; errors have the path of what is wrong."""
        entry(data, "jobs", real)
        owners = entry(data, "owners", list_of(text))
        settings = entry(data, "settings", list_of(partial(_setting, owners=len(owners))))
        if not settings:
            raise InputError("settings", "expected at least one")
        if not settings[0].policies:  # Ctrl-C may have come before the others
            raise InputError("settings[0].policies", "expected at least one")
        _checked(data, {name: reader for name, reader in ABOUT.items() if name in data})
        fields = ("kind", "settings", "owners")
        about = {name: value for name, value in data.items() if name not in fields}
        return cls(settings, owners, about)


def _setting(data: Any, owners: int) -> Setting:
    """Read a setting from its document; `owners` is the number of owners."""
    sizes, own = (partial(_part, parts=parts) for parts in (len(SIZES), owners))
    row = partial(_row, shape=ROW | {"by_size": sizes, "by_owner": own})
    shape: dict[str, Any] = {
        **dict.fromkeys(("load", "wanted_gpu_hours", "gpu_hours"), real),
        **dict.fromkeys(("bound", "utility_bound"), optional(real)),
        "machines": list_of(count),
        "policies": object_of(row),
    }
    setting = Setting(**{name: entry(data, name, reader) for name, reader in shape.items()})
    with located_at(f"policies.{RECORDED}"):
        entry(setting.policies.get(RECORDED, {"peak": 0}), "peak", real)
    return setting


def _checked(data: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    """Check entries of `data` by the (nested) readers in `shape`; return all its entries."""
    for name, part in shape.items():
        entry(data, name, part if callable(part) else partial(_checked, shape=part))
    return dict(mapping(data))


def _row(data: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    """Check the figures of a policy; means may be None only if no job finished."""
    row = _checked(data, shape)
    return _checked(row, {n: dict.fromkeys(row[n], real) for n in TIMES if row["finished"]})


def _numbers(data: Any, length: int) -> None:
    if len(list_of(optional(real))(data)) != length:
        raise InputError("", f"expected {length} numbers, got {len(data)}")


def _part(data: Any, parts: int) -> None:
    """Check figures of `parts` groups of jobs, such as their sizes."""
    _checked(data, dict.fromkeys((*PARTS, *mapping(data)), partial(_numbers, length=parts)))
    for name in (*COUNTED, *MEANS):
        for k, value in enumerate(data[name]):
            is_known = name in COUNTED or data["jobs"][k] > data["unfinished"][k]
            if value is None and is_known:
                raise InputError(f"{name}[{k}]", "expected a number, as jobs finished")


TIMES = ("completion", "waiting", "slowdown")
ROW: dict[str, Any] = {
    **dict.fromkeys(("finished", "unfinished", "preemptions", "moves"), real),
    **dict.fromkeys(TIMES, dict.fromkeys(("mean", "p50", "p95", "p99"), optional(real))),
    "gpu_utilisation": optional(real),
    "waiting_at": partial(_numbers, length=len(SHARES)),
    "series": dict.fromkeys(("begin", "end"), real)
    | dict.fromkeys(("waiting", "in_use"), list_of(real)),
    **{"told": bool, "parameters": mapping},
}


def _goal(data: Any) -> None:
    """Check the goal of a document, and the numbers of machines that were tried for each policy."""
    search = {"machines": optional(count), "tried": list_of(partial(_numbers, length=2))}
    policies = object_of(partial(_checked, shape=search))
    _checked(data, {"text": Goal.read, "least": count, "most": count, "policies": policies})
    for name, one in data["policies"].items():
        found = data["most"] if one["machines"] is None else one["machines"]
        if found not in dict(one["tried"]):
            raise InputError(f"policies.{name}.tried", f"expected a value with {found} machines")


# What the document may say of the run as a whole.
ABOUT: dict[str, Any] = {
    **dict.fromkeys(("notes", "missing", "failed"), list_of(text)),
    **{"trace": optional(mapping), "goal": _goal},
}
OF = {
    **dict.fromkeys(("wait", "waiting"), "waiting"),
    **dict.fromkeys(("turnaround", "completion"), "completion"),
    "slowdown": "slowdown",
}
STATISTICS = ("mean", *(f"p{k}" for k in KEPT))
WORDS = re.compile(r"\s*(\w+)\s+(\w+)\s*(<=?)\s*(.+)")
GOAL = f"expected {'|'.join(STATISTICS)} {'|'.join(OF)} < LIMIT, such as 'p95 wait < 10 min'"


@dataclass(frozen=True, slots=True)
class Goal:
    """A statistic of the jobs, and what it must not exceed: seconds, or a slowdown."""

    text: str
    statistic: str
    of: str
    limit: float
    strict: bool = True

    @classmethod
    def read(cls, text: Any) -> Goal:
        """Read a goal such as ``p95 wait < 10 min``, in letters of any case."""
        words = WORDS.fullmatch(text.casefold()) if isinstance(text, str) else None
        if words is None or words[1] not in STATISTICS or words[2] not in OF:
            raise InputError("", GOAL, text)
        of = OF[words[2]]
        limit = read_seconds(words[4], "a limit", is_time=of != "slowdown")
        goal = cls(text.strip(), words[1], of, limit, words[3] == "<")
        least = 1.0 if of == "slowdown" else 0.0
        if not goal.reached(least) or limit == math.inf:
            why = f"no {words[2]} is below {least:g}"
            raise InputError("", f"expected a finite limit that can be met: {why}", text)
        return goal

    def value(self, row: Mapping[str, Any]) -> float | None:
        """The statistic of a run; None if jobs did not finish, which never reaches a goal."""
        return None if row["unfinished"] else row[self.of][self.statistic]

    def reached(self, value: float | None) -> bool:
        """Whether a value of the statistic is within the limit; False for None."""
        exact = value == self.limit and not self.strict
        return value is not None and (value < self.limit or exact)


def next_count(goal: Goal, least: int, most: int, tried: Mapping[int, float | None]) -> int | None:
    """Number of machines to try next, by bisection; None once the least is found."""
    if most not in tried:
        return most
    high = min((n for n, value in tried.items() if goal.reached(value)), default=most + 1)
    low = max((n for n in tried if n < high), default=least - 1)
    return (low + high) // 2 if high - low > 1 else None


BOUND, MOST = "lower bound", "upper bound"
AS_IT_IS = "as it is"  # the setting that was asked about
TOLD = "+"  # behind the name of a policy that is told how long jobs take
MOST_OWNERS = 12  # in a table
BETTER = 0.005  # a mean that differs by less than this share is taken to be the same
SAME = 1e-3  # by which means may differ, relative, and are called the same
REACHED = 1e-6  # above the bound, relative; less is rounding
SHOWN = ("mean", "p50", "p95", "p99")
HEADINGS = ("mean", "50 %", "95 %", "99 %")
GROWS = "the queue grows for ever"
# Beyond these a mistake in the units is likelier than such a cluster.
LEAST_USE, MOST_SLOWDOWN = 0.001, 500.0

Cells = tuple[str, ...]
Table = tuple[str, tuple[tuple[str, bool], ...], list[Cells]]  # title, columns, rows


def _table(title: str, headings: Cells, rows: Iterable[Cells]) -> Table:
    """Make a table; the first column has names, all others numbers."""
    return title, tuple((heading, k > 0) for k, heading in enumerate(headings)), list(rows)


def more(seconds: float) -> str:
    """Text of a difference in seconds with its sign; ``0`` if it is less than a second."""
    if abs(seconds) < 1.0:
        return "0"
    return duration_text(seconds) if seconds < 0 else f"+{duration_text(seconds)}"


def called(name: str, row: Row | None = None) -> str:
    """Text for a policy or the recorded run; a mark is added if the policy knows durations."""
    mark = TOLD if row is not None and row["told"] else ""
    return ("in reality" if name == RECORDED else name) + mark


def jobs_text(result: WhatIf) -> str:
    """Text of the number of jobs and of the requested machines."""
    jobs = result.about["jobs"]
    return f"{jobs:,} job{'' if jobs == 1 else 's'} on {machines_text(result.first.machines)}"


def setting_text(first: Setting, setting: Setting) -> str:
    """Describe a setting in a few words, by its load or its difference from `first`."""
    if setting.load != 1.0:
        return f"load x {setting.load:g}"
    count = len(setting.machines) - len(first.machines)
    if not count:
        return AS_IT_IS
    return f"{how_many(abs(count), 'machine')} {'more' if count > 0 else 'fewer'}"


def by_load(result: WhatIf) -> list[Setting]:
    """Sort all settings: full machines by load, then fewer machines, then more."""
    most = len(result.first.machines)
    return sorted(
        result.settings,
        key=lambda one: (len(one.machines) > most, abs(len(one.machines) - most), one.load),
    )


def tables(result: WhatIf) -> list[Table]:
    """Build all tables of the result, in the order in which they are printed."""
    first, reference, most = result.first, result.reference, result.first.utility_bound

    def by_policy(title: str, headings: Cells, cells: Callable[[str, Row], Cells]) -> Table:
        rows = [(called(name, row), *cells(name, row)) for name, row in first.policies.items()]
        return _table(title, ("policy", *headings), rows)

    def waits(_: str, row: Row) -> Cells:
        slow = row["slowdown"]["mean"]
        times = (duration_text(row["waiting"][name]) for name in SHOWN)
        return (*times, "-" if slow is None else f"{slow:.3g}")

    def sizes(name: str, _: Row) -> Cells:
        parts = changes(result, name, "by_size")
        if name in (reference, RECORDED):
            return tuple(duration_text(part.after) for part in parts)
        return tuple(more(part.more) for part in parts)

    served = by_policy(
        f"{jobs_text(result)}: submission to end",
        (*HEADINGS, "above bound"),
        lambda _, row: (*(_ends(row, name) for name in SHOWN), _above_bound(row, first)),
    )
    if first.bound is not None:
        served[2].append((BOUND, duration_text(first.bound), "-", "-", "-", "-"))
    shown = [
        served,
        by_policy("Waiting for GPUs", (*HEADINGS, "slowdown"), waits),
        by_policy(
            "GPUs and jobs",
            ("GPUs in use", "unfinished", "preempted", "moved"),
            lambda _, row: (
                percent(row["gpu_utilisation"]),
                *(f"{row[figure]:,}" for figure in ("unfinished", "preemptions", "moves")),
            ),
        ),
    ]
    if any("utility" in row for row in first.policies.values()):
        earned = by_policy(
            "What the jobs are worth",
            ("utility", "of the bound"),
            lambda _, row: (
                brief(row["utility"]),
                percent(None if not most or _is_beyond(row, first) else row["utility"] / most),
            ),
        )
        if most is not None:
            earned[2].append((MOST, brief(most), "-"))
        shown.append(earned)
    if reference is not None:
        headings = tuple(part.name for part in changes(result, reference, "by_size"))
        title = f"Mean waiting by size, beside {called(reference)}"
        shown.append(by_policy(title, headings, sizes))
    return [*shown, *_owner_table(result), *_setting_tables(result), *_goal_table(result)]


def _ends(row: Row, name: str) -> str:
    """Text of a statistic of the time to completion, marked if not all jobs finished."""
    seconds = row["completion"][name]
    return duration_text(seconds) + (MARK if row["unfinished"] and seconds is not None else "")


def _is_beyond(row: Row, setting: Setting) -> bool:
    """Whether the recorded run used more GPUs than the setting has, so no bound holds for it."""
    return bool(row.get("peak", 0) > setting.gpus)


def _above_bound(row: Row, setting: Setting) -> str:
    """Text of how far the mean is above the bound; a dash if they cannot be compared."""
    mean, bound = row["completion"]["mean"], setting.bound
    if mean is None or not bound or row["unfinished"] or _is_beyond(row, setting):
        return "-"
    excess = mean / bound - 1
    # The bound is rounded down, so that one who reaches it seems to be a little above.
    return "0%" if excess < REACHED else f"+{percent(excess)}"


class PartChange(NamedTuple):
    """Mean waiting of an owner's jobs or jobs of a size, under the reference and a policy."""

    name: str
    jobs: int
    gpu_hours: float
    before: float | None  # None where no job of the group finished, or none is recorded
    after: float | None

    @property
    def more(self) -> float:
        """Seconds by which the group waits longer than under the reference; below 0, less."""
        return 0.0 if self.after is None or self.before is None else self.after - self.before

    @property
    def verdict(self) -> int:
        """-1 if the group waits less, 1 if longer, 0 if equal up to a second or half a percent."""
        least = max(1.0, BETTER * (self.before or 0.0))
        return 0 if abs(self.more) <= least else 1 if self.more > 0 else -1


def changes(result: WhatIf, policy: str, by: str) -> list[PartChange]:
    """Changes of waiting against the reference, by size or (most GPU-hours first) by owner."""
    if result.reference is None:
        return []
    one, other = (result.first.policies[name][by] for name in (result.reference, policy))
    names = result.owners if by == "by_owner" else [text for _, _, text in SIZES]
    columns = (one["jobs"], one["gpu_hours"], one["mean_waiting"], other["mean_waiting"])
    parts = [PartChange(*row) for row in zip(names, *columns, strict=True) if row[1]]
    return parts if by == "by_size" else sorted(parts, key=lambda part: -part.gpu_hours)


def _owner_table(result: WhatIf) -> list[Table]:
    """A list of one table, owners' waiting under the best policy; empty if it is the reference."""
    best, reference = result.best(), result.reference
    if reference is None or best in (None, reference) or len(result.owners) < 2:
        return []
    rows = (
        (one.name, f"{one.jobs:,}", brief(one.gpu_hours), *map(duration_text, one[3:]))
        for one in changes(result, str(best), "by_owner")[:MOST_OWNERS]
    )
    title = f"Mean waiting by owner under {best}, beside {called(reference)}"
    return [_table(title, ("owner", "jobs", "GPU-hours", "waited", "would wait"), rows)]


def _setting_tables(result: WhatIf) -> list[Table]:
    """A table of means if there are several settings, and a table of their GPU-hours."""
    settings = by_load(result)
    shown: list[Table] = []
    rows: list[Cells] = []
    texts = tuple(setting_text(result.first, one) for one in settings)
    if len(settings) > 1:
        for name in dict.fromkeys(name for one in result.settings for name in one.policies):
            each = [one.policies.get(name) for one in settings]
            means = ("-" if row is None else _ends(row, "mean") for row in each)
            rows.append((called(name, result.first.policies.get(name)), *means))
        rows.append((BOUND, *(duration_text(one.bound) for one in settings)))
        title = "Mean from submission to end at other loads and machines"
        shown.append(_table(title, ("policy", *texts), rows))
    grows = {True: "grows for ever", False: "does not grow"}
    rows = [
        (
            text,
            brief(one.wanted_gpu_hours),
            brief(one.gpu_hours),
            percent(one.offered),
            "-" if one.offered is None else grows[one.offered > 1],
        )
        for text, one in zip(texts, settings, strict=True)
    ]
    headings = ("", "wanted", "there are", "offered load", "queue")
    shown.append(_table("GPU-hours, from the first to the last submission", headings, rows))
    return shown


def _goal_table(result: WhatIf) -> list[Table]:
    goal = result.about.get("goal")
    if goal is None:
        return []
    show = number if Goal.read(goal["text"]).of == "slowdown" else duration_text
    rows: list[Cells] = []
    for name, one in goal["policies"].items():
        tried, fewest = dict(one["tried"]), one["machines"]
        cells = (f"not with {goal['most']}", show(tried.get(goal["most"])), "-")
        if fewest is not None:
            fewer = show(tried[fewest - 1]) if fewest - 1 in tried else "the jobs do not fit"
            cells = (f"{fewest:,}", show(tried[fewest]), fewer)
        rows.append((name, *cells))
    headings = ("policy", "machines", "value", "with one fewer")
    return [_table(f"Fewest machines for {goal['text']}", headings, rows)]


def answer(result: WhatIf) -> Cells:
    """Sentences that answer which policy is best and by how much; empty ones are left out."""
    setting, reference, best = result.first, result.reference, result.best()
    if best is None or reference is None:
        return ("No policy finished every job, so none is best.",)
    sentences = [_absurd(setting), _best(result, best, reference)]
    if setting.bound:
        mean = setting.policies[best]["completion"]["mean"]
        gain, least = 1 - setting.bound / mean, duration_text(setting.bound)
        has = (
            f"; {best} has {duration_text(mean)}, so at most {percent(gain)} of it could be gained."
        )
        reaches = f", which {best} reaches." if gain < 0.001 else has
        says = f"No scheduler can bring the mean below {least} on these GPUs"
        sentences.append(says + reaches)
    sentences += [_parts(result, best), _earned(setting)]
    beyond = [one for one in by_load(result) if (one.offered or 0.0) > 1.0]
    if beyond:
        where = ", ".join(setting_text(result.first, one) for one in beyond)
        says = f"If jobs go on coming like this, {GROWS} under every scheduler ({where})"
        sentences.append(f"{says}: they want more GPU-hours than there are.")
    return tuple(filter(None, sentences))


def _absurd(setting: Setting) -> str:
    """A warning if use or slowdown is so extreme that the units may be wrong; else empty."""
    most = max(row["gpu_utilisation"] or 0.0 for row in setting.policies.values())
    slow = {name: row["slowdown"]["mean"] or 0.0 for name, row in setting.policies.items()}
    # One bad policy may well let short jobs wait for long; all of them hardly.
    slowest = max(slow.pop(RECORDED, 0.0), min(slow.values(), default=0.0))
    symptom = f"at most {percent(most)} of the GPUs are in use" if most < LEAST_USE else ""
    if slowest > MOST_SLOWDOWN:
        symptom = f"jobs take {slowest:,.0f} times their duration on average"
    check = "check the unit of durations (--duration-unit), --machines and the GPUs of jobs"
    return f"Warning: {symptom}, which is unlikely; {check}." if symptom else ""


def _best(result: WhatIf, best: str, reference: str) -> str:
    """A sentence on the best policy, against the reference and policies not told durations."""
    setting, rows, jobs = result.first, result.first.policies, result.about["jobs"]
    mean, before = (rows[name]["completion"]["mean"] for name in (best, reference))
    where = f"On {machines_text(setting.machines)}, "
    without = [*result.missing, *result.about.get("failed", ())]
    if any(AS_IT_IS in run for run in without):
        where += "of the policies that ended, "
    than = reference
    if reference == RECORDED:
        than, peak = "the scheduler that really ran them", rows[RECORDED]["peak"]
        than += f", on up to {peak:,} GPUs" if peak > setting.gpus else ""
    if all(row["waiting"]["mean"] < 1.0 for row in rows.values()):
        which = f"a job takes {duration_text(mean)} on average, which is its duration."
        return f"{where}no job waits for GPUs, whatever the policy: {which}"
    if best == reference or before is None or mean > before * (1 - SAME):
        says = f"{where}no policy serves these {jobs:,} jobs better than {than}:"
        return f"{says} a job takes {duration_text(before)} from submission to end on average."
    others = {name: row for name, row in rows.items() if name not in (best, RECORDED)}
    done = (name for name, row in others.items() if not row["unfinished"])
    level = [name for name in done if rows[name]["completion"]["mean"] <= mean * (1 + SAME)]
    many = f"{len(level)} other policies" if len(level) > 2 else " and ".join(level)
    as_well = f" ({many} as well, within {percent(SAME)})" if level else ""
    sentence = (
        f"{where}{best} serves these {jobs:,} jobs best{as_well}: "
        f"a job takes {duration_text(mean)} from submission to end on average, "
        f"{percent(1 - mean / before)} less than with {than} ({duration_text(before)})."
    )
    other = result.best(untold=True)
    if other is None or not rows[best]["told"]:
        return sentence
    mean = rows[other]["completion"]["mean"]
    return (
        f"{sentence} It is told how long jobs take; of the policies that are not, {other} is best "
        f"({duration_text(mean)})."
    )


def _earned(setting: Setting) -> str:
    """A sentence on which policy earns most and how much; empty if no utilities are known."""
    most = setting.utility_bound
    rows = {name: row for name, row in setting.policies.items() if name != RECORDED}
    earned = {name: row["utility"] for name, row in rows.items() if "utility" in row}
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


def _parts(result: WhatIf, best: str) -> str:
    """A sentence on which owners and sizes of jobs wait less or longer; empty if there is none."""
    if best == result.reference:
        return ""
    owners, sizes = (changes(result, best, by) for by in ("by_owner", "by_size"))
    longer, less_long = (
        " and ".join(f"{one.name} ({more(one.more)})" for one in sizes if one.verdict == verdict)
        for verdict in (1, -1)
    )
    clauses = []
    if len(owners) > 1:
        less = sum(one.verdict < 0 for one in owners)
        worse = [one for one in owners if one.verdict > 0]
        clauses.append(f"under {best}, {less:,} of {len(owners):,} owners wait less")
        if worse:
            most = max(worse, key=lambda one: one.more)
            most_of_all = f"most of all {most.name} ({more(most.more)} a job)"
            clauses[0] += f" and {len(worse):,} longer, {most_of_all}"
    if longer:
        clauses.append(f"jobs of {longer} wait longer on average")
    elif less_long:
        clauses.append(f"no size of jobs waits longer on average; jobs of {less_long} wait less")
    elif clauses:
        clauses.append("no size of jobs fares better or worse")
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def notes(result: WhatIf) -> list[str]:
    """Sentences below the tables that explain marks, words, assumptions and what is left out."""
    rows, about, best = result.first.policies, result.about, result.best()
    simulated = [row for name, row in rows.items() if name != RECORDED]
    real = rows.get(RECORDED, {"finished": about["jobs"], "peak": 0})
    unfinished = {name: row["unfinished"] for name, row in rows.items() if row["unfinished"]}
    counts = ", ".join(f"{called(name)} {count:,}" for name, count in unfinished.items())
    beyond = 0 if best is None else len(changes(result, best, "by_owner")) - MOST_OWNERS
    least = f"{SHORTEST:g} s"
    sentences = {
        "Slowdown: time to completion / duration, at least 1, mean over the jobs; durations "
        f"below {least} count as {least}.": True,
        "Times are rounded to two units; percentages are of the times before that.": True,
        f"{TOLD}: is told how long each job will take, which real schedulers are not.": any(
            row["told"] for row in simulated
        ),
        "Preempting a job and moving it costs no time here.": any(
            row["preemptions"] for row in simulated
        ),
        EASY_PLACES: "easy" in rows and about.get("placement") == "pooled",
        f"{MARK}: of the finished jobs only. Not finished: {counts}.": counts,
        "In reality, a job waits from its submission on, or from when it could run where the table "
        "says that (Eligible); without that column, holds and dependencies count as waiting.": (
            RECORDED in rows
        ),
        f"What really happened is known of {real['finished']:,} of {about['jobs']:,} jobs, whose "
        f"figures its row has; policies are therefore compared with {result.reference}.": (
            real["finished"] < about["jobs"]
        ),
        f"In reality up to {real['peak']:,} GPUs were in use at once, more than there are here.": (
            real["peak"] > result.first.gpus
        ),
        f"Utility: {about.get('utilities')}.": about.get("utilities"),
        f"{MOST.capitalize()}: no schedule of these jobs on so many GPUs earns more in all.": (
            about.get("utilities")
        ),
        "Load x 1.5: the same jobs, with the times between submissions divided by 1.5.": any(
            one.load != 1.0 for one in result.settings
        ),
        f"{BOUND.capitalize()}: no schedule of these jobs on so many GPUs, however clairvoyant and "
        "with free preemption, has a smaller mean.": True,
        f"{beyond:,} more owners: --csv or --json has them.": beyond > 0,
    }
    if "goal" in about:
        goal = about["goal"]
        tried = {name: [n for n, _ in one["tried"]] for name, one in goal["policies"].items()}
        each = "; ".join(f"{name} {', '.join(map(str, some))}" for name, some in tried.items())
        sentences[
            f"Fewest machines: by bisection from {goal['least']:,} to {goal['most']:,}; further "
            "ones are like the last. A policy may do worse with more machines, so that only what "
            f"was tried is known: {each}."
        ] = True
    return [text for text, holds in sentences.items() if holds]
