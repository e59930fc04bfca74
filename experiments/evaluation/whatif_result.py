"""The result of ``oasis whatif``: every policy on the same jobs, the recorded run, the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.whatif import PERCENTILES, RECORDED, SHARES, SIZES
from oasis.model.document import Reader, entry, list_of, mapping, object_of, optional, real, text
from oasis.model.errors import InputError
from oasis.model.summary import Facts, Summarised

KIND = "whatif"
BETTER = 0.005  # a mean that differs by less than this share is taken to be the same

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One load on one set of machines.

    Parameters
    ----------
    load : float
        How many times as fast the jobs were submitted.
    machines : tuple of int
        GPUs of each machine.
    bound : float or None
        What the mean time to completion cannot be below; None if that was not found in time.
    policies : mapping of str to mapping
        The figures of each policy that is done, as `experiments.evaluation.whatif.figures` has
        them, and under ``recorded`` what really happened, where that is known and the load is 1.
    utility_bound : float or None
        Upper bound on the total utility; None if the utilities are unknown.
    """

    load: float
    machines: tuple[int, ...]
    bound: float | None
    policies: Mapping[str, Row]
    utility_bound: float | None = None

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return sum(self.machines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "load": self.load,
            "machines": list(self.machines),
            "gpus": self.gpus,
            "bound": self.bound,
            "utility_bound": self.utility_bound,
            "policies": {name: dict(row) for name, row in self.policies.items()},
        }


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(Summarised):
    """Policies on the jobs of a trace.

    Parameters
    ----------
    settings : tuple of Setting
        The first is the one asked about: the jobs as they were submitted, on all machines. The
        others are other loads, or fewer machines.
    owners : tuple of str
        Who submitted the jobs, in the order of ``by_owner`` in the figures.
    about : mapping
        What was run: the number of ``jobs``, the trace, the ``placement``, the ``version`` and
        what else the document says.

    Examples
    --------
    >>> from experiments.evaluation.whatif import JobColumns, policy_figures
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 8, "ann")])
    >>> row, _ = policy_figures(jobs, (8,), "pooled", FIFO())
    >>> found = WhatIf((Setting(1.0, (8,), 60.0, {"fifo": row}),), jobs.owners, {"jobs": 1})
    >>> found
    <WhatIf: jobs 1, GPUs 8, policies fifo, best fifo>
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

    def best(self, setting: Setting, *, untold: bool = False) -> str | None:
        """The policy with the least mean time to completion of those that finished every job.

        With `untold`, only policies that need not know how long jobs take.
        """
        means = {
            name: row["completion"]["mean"]
            for name, row in setting.policies.items()
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
        return "WhatIf", [*facts, ("policies", names), ("best", self.best(self.first) or "none")]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        settings = [setting.to_dict() for setting in self.settings]
        return {"kind": KIND, **self.about, "owners": list(self.owners), "settings": settings}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WhatIf:
        """Rebuild from `to_dict`, also after a trip through JSON.

        Raises
        ------
        InstanceError, InputError
            With the path of what is missing or wrong.
        """
        settings = entry(data, "settings", list_of(_setting))
        if not settings:
            raise InputError("settings", "expected at least one")
        entry(data, "jobs", real)
        owners = entry(data, "owners", list_of(text))
        _check_lengths(settings, len(owners))
        known = ("kind", "settings", "owners")
        about = {name: value for name, value in data.items() if name not in known}
        return cls(tuple(settings), tuple(owners), about)


def _check_lengths(settings: Sequence[Setting], owners: int) -> None:
    wanted = {"by_owner": owners, "by_size": len(SIZES)}
    for k, setting in enumerate(settings):
        for policy, row in setting.policies.items():
            lengths = {
                f"{by}.{name}": (len(row[by][name]), n)
                for by, n in wanted.items()
                for name in (*PARTS, *({"utility"} & set(row[by])))
            }
            lengths["waiting_at"] = (len(row["waiting_at"]), len(SHARES))
            for name, (got, expected) in lengths.items():
                if got != expected:
                    where = f"settings[{k}].policies.{policy}.{name}"
                    raise InputError(where, f"expected {expected} numbers, got {got}")


def _setting(data: Any) -> Setting:
    return Setting(
        entry(data, "load", real),
        tuple(int(size) for size in entry(data, "machines", list_of(real))),
        entry(data, "bound", optional(real)),
        entry(data, "policies", object_of(_row)),
        entry(data, "utility_bound", optional(real)) if "utility_bound" in data else None,
    )


PARTS = (
    *("jobs", "gpu_hours", "mean_waiting", "p95_waiting", "mean_completion", "mean_slowdown"),
    "unfinished",
)  # figures of a part of the jobs
SUMMARY = ("mean", *(f"p{k}" for k in PERCENTILES))


def _numbers(data: Any) -> list[Any]:
    return list(list_of(optional(real))(data))


def _times(data: Any) -> dict[str, Any]:
    return {name: entry(data, name, optional(real)) for name in SUMMARY}


def _parts(data: Any) -> dict[str, Any]:
    return {name: entry(data, name, _numbers) for name in PARTS}


def _series(data: Any) -> dict[str, Any]:
    ends = {name: entry(data, name, real) for name in ("begin", "end")}
    return ends | {name: entry(data, name, _numbers) for name in ("waiting", "in_use")}


_READERS: Mapping[str, Reader[Any]] = {
    **dict.fromkeys(("finished", "unfinished", "preemptions", "moves", "gpu_utilisation"), real),
    **dict.fromkeys(("completion", "waiting", "slowdown"), _times),
    **dict.fromkeys(("by_size", "by_owner"), _parts),
    "waiting_at": _numbers,
    "series": _series,
    "told": bool,
    "parameters": mapping,
}


def _row(data: Any) -> dict[str, Any]:
    read = {name: entry(data, name, reader) for name, reader in _READERS.items()}
    if "utility" in data:
        read["utility"] = entry(data, "utility", real)
        read["by_owner"]["utility"] = entry(data["by_owner"], "utility", _numbers)
    return {**mapping(data), **read}


@dataclass(frozen=True, slots=True)
class PartChange:
    """Change of the mean waiting time of some jobs against the reference.

    Parameters
    ----------
    name : str
        The part: an owner, or a class of sizes.
    jobs : int
        Its jobs.
    gpu_hours : float
        GPU-hours of these jobs.
    before, after : float
        Mean waiting under the reference and under the policy, seconds.
    """

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


def changes(before: Row, after: Row, names: Sequence[str], by: str) -> list[PartChange]:
    """Compare the waiting of each part of the jobs that has any, most GPU-hours first.

    Parameters
    ----------
    before, after : mapping
        Figures of the reference and of the policy.
    names : sequence of str
        Names of the parts, in their order.
    by : {"by_owner", "by_size"}
        Kind of the parts.
    """
    one, other = before[by], after[by]
    columns = (one["jobs"], one["gpu_hours"], one["mean_waiting"], other["mean_waiting"])
    found = [
        PartChange(name, int(jobs), hours, was, now)
        for name, jobs, hours, was, now in zip(names, *columns, strict=True)
        if jobs and was is not None and now is not None
    ]
    return found if by == "by_size" else sorted(found, key=lambda one: -one.gpu_hours)
