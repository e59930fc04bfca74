"""The result of ``oasis whatif``: policies on the same jobs, the recorded run, bounds, a goal."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from experiments.evaluation.limits import read_seconds
from oasis.model.document import (
    Reader,
    count,
    entry,
    list_of,
    mapping,
    object_of,
    optional,
    real,
    text,
)
from oasis.model.errors import InputError
from oasis.model.summary import Facts, Summarised

KIND = "whatif"
RECORDED = "recorded"  # what really happened, beside the policies
KEPT = (50, 90, 95, 99)  # percentiles in a result
SHORTEST = 10.0  # seconds: the slowdown of shorter jobs is that of jobs of this length
SIZES = ((1, 1, "1 GPU"), (2, 4, "2-4 GPUs"), (5, 8, "5-8 GPUs"), (9, None, "9 GPUs or more"))
SHARES = (*range(0, 100, 5), 99, 99.9, 100)  # percent of the jobs, of the distribution of waiting
PARTS = (
    *("jobs", "gpu_hours", "mean_waiting", "p95_waiting", "mean_completion", "mean_slowdown"),
    "unfinished",
)  # figures of a part of the jobs
GIVEN, DRAWN, NONE = UTILITIES = ("given", "drawn", "none")  # what jobs are worth

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One load on one set of machines (GPUs of each), and its policies' figures by their names.

    The bounds are None where they were not found in time or the utilities are unknown. The
    GPU-hours are those that jobs want, and those there are from the first submission to the last.
    """

    load: float
    machines: tuple[int, ...]
    bound: float | None
    policies: Mapping[str, Row]
    utility_bound: float | None
    wanted_gpu_hours: float
    gpu_hours: float

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return sum(self.machines)

    @property
    def offered(self) -> float | None:
        """Wanted GPU-hours by those there are; above 1, the queue grows as long as jobs come so."""
        return self.wanted_gpu_hours / self.gpu_hours if self.gpu_hours else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "machines": list(self.machines), "gpus": self.gpus}


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(Summarised):
    """Policies on the jobs of a trace; the first of the settings is the one asked about.

    `owners` are in the order of ``by_owner`` in the figures; `about` is what else the document
    says, such as the number of ``jobs``.
    """

    settings: tuple[Setting, ...]
    owners: tuple[str, ...]
    about: Mapping[str, Any]

    @property
    def first(self) -> Setting:
        """The setting that was asked about."""
        return self.settings[0]

    @property
    def reference(self) -> str | None:
        """Row that policies are compared with: the recorded run of all jobs, FIFO, or the first."""
        rows = self.first.policies
        recorded = rows.get(RECORDED)
        if recorded is not None and recorded["finished"] == self.about["jobs"]:
            return RECORDED
        simulated = [name for name in rows if name != RECORDED]
        return "fifo" if "fifo" in rows else next(iter(simulated), None)

    def best(self, *, untold: bool = False) -> str | None:
        """The policy with the least mean time to completion of those that finished every job.

        With `untold`, only policies that need not know how long jobs take.
        """
        means = {
            name: row["completion"]["mean"]
            for name, row in self.first.policies.items()
            if name != RECORDED and not row["unfinished"] and not (untold and row["told"])
        }
        return min(means, key=lambda name: means[name], default=None)

    @property
    def missing(self) -> list[str]:
        """Requested runs without a result, because of Ctrl-C or an error."""
        return list(self.about.get("missing", ()))

    def summary(self) -> tuple[str, Facts]:
        """Jobs, GPUs, policies and the best of them."""
        names = ", ".join(self.first.policies)
        facts = [("jobs", f"{self.about['jobs']}"), ("GPUs", str(self.first.gpus))]
        return "WhatIf", [*facts, ("policies", names), ("best", self.best() or "none")]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        settings = [setting.to_dict() for setting in self.settings]
        return {"kind": KIND, **self.about, "owners": list(self.owners), "settings": settings}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WhatIf:
        """Rebuild from `to_dict`; errors have the path of what is missing or wrong."""
        entry(data, "jobs", real)
        owners = entry(data, "owners", list_of(text))
        settings = entry(data, "settings", list_of(partial(_setting, owners=len(owners))))
        if not settings:
            raise InputError("settings", "expected at least one")
        fields = ("kind", "settings", "owners")
        about = {name: value for name, value in data.items() if name not in fields}
        return cls(settings, owners, about)


def _setting(data: Any, owners: int) -> Setting:
    row = ROW | {"by_size": _part(len(SIZES)), "by_owner": _part(owners)}
    shape: dict[str, Any] = {
        **{"load": real, "machines": list_of(count)},
        "policies": object_of(partial(_shaped, shape=row)),
        **dict.fromkeys(("bound", "utility_bound"), optional(real)),
        **dict.fromkeys(("wanted_gpu_hours", "gpu_hours"), real),
    }
    return Setting(**{name: entry(data, name, reader) for name, reader in shape.items()})


def _numbers(data: Any, length: int | None = None) -> list[float | None]:
    numbers = list(list_of(optional(real))(data))
    if length not in (None, len(numbers)):
        raise InputError("", f"expected {length} numbers, got {len(numbers)}")
    return numbers


def _part(parts: int) -> Reader[dict[str, Any]]:
    """Reads figures of so many parts of the jobs, and the utility where there is one."""
    numbers = partial(_numbers, length=parts)
    return lambda data: _shaped(data, dict.fromkeys((*PARTS, *mapping(data)), numbers))


ROW: dict[str, Any] = {
    **dict.fromkeys(("finished", "unfinished", "preemptions", "moves", "gpu_utilisation"), real),
    **dict.fromkeys(
        ("completion", "waiting", "slowdown"),
        dict.fromkeys(("mean", "p50", "p95", "p99"), optional(real)),
    ),
    "waiting_at": partial(_numbers, length=len(SHARES)),
    "series": {"begin": real, "end": real, "waiting": _numbers, "in_use": _numbers},
    **{"told": bool, "parameters": mapping},
}


def _shaped(data: Any, shape: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with what `shape` says of it, readers or further shapes; the rest as it is."""
    read = {
        name: entry(data, name, part if callable(part) else partial(_shaped, shape=part))
        for name, part in shape.items()
    }
    return {**mapping(data), **read}


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
    def read(cls, text: str) -> Goal:
        """Read a goal, in letters of any case."""
        words = WORDS.fullmatch(text.casefold())
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
        """The statistic of a run; None where jobs did not finish, which reaches no goal."""
        return None if row["unfinished"] else row[self.of][self.statistic]

    def reached(self, value: float | None) -> bool:
        """Whether a value is within the limit."""
        exact = value == self.limit and not self.strict
        return value is not None and (value < self.limit or exact)


def next_count(goal: Goal, least: int, most: int, tried: Mapping[int, float | None]) -> int | None:
    """The number of machines to try next, by bisection; None at the end.

    It ends with one machine fewer tried too, or with `most`, if that does not reach the goal.
    """
    if most not in tried:
        return most
    high = min((n for n, value in tried.items() if goal.reached(value)), default=most + 1)
    low = max((n for n in tried if n < high), default=least - 1)
    return (low + high) // 2 if high - low > 1 else None
