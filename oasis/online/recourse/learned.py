"""Prices by slot of the day, U and L, and arrivals, learned from past days."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.document import entry, list_of, text
from oasis.model.errors import InstanceError, located_at, readable
from oasis.model.file_kinds import PRICES
from oasis.model.files import json_text, write_text
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance_file import read_json
from oasis.model.job import Job
from oasis.model.records import Fixed, parse, plain
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.model.summary import Facts, Summarised, Unchanging, short
from oasis.model.validation import LARGEST_SIZE, check_keys, check_list, integer, number
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import AdmissionRule
from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan

FORMAT, VERSION = "oasis-prices", 1
_TOP = ("format", "version", "slots_per_day", "slot_seconds", "resources", "days")
_REST = (*GROUPS, "bounds", "jobs")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedPrices(Summarised, Unchanging):
    """Prices that `offline.learn_prices` found in past days, applied to later days.

    Parameters
    ----------
    resources : tuple of str
        Names of the R resource types.
    slot_seconds : float
        Length of a slot.
    days : (S,) float array
        How many of the past days had each of the S slots of a day.
    worker, ps : (S, R) float arrays
        Price of one unit of each resource for one slot, by slot of the day: the dual values of the
        configuration LP, averaged over the capacity of the group and over the past days.
    bounds : PriceBounds
        U and L of the past jobs.
    jobs : tuple of Job
        The past jobs; the arrival of each is its slot of the day.

    Raises
    ------
    InstanceError
        If sizes do not agree, or a price is negative or not finite.

    Examples
    --------
    >>> import oasis
    >>> from offline import learn_prices
    >>> past = [oasis.generate("testbed", jobs=4, seed=seed) for seed in (1, 2)]
    >>> learned = learn_prices(past)
    >>> learned.slots_per_day, learned.worker.shape, len(learned.jobs)
    (10, (10, 5), 8)
    """

    resources: tuple[str, ...]
    slot_seconds: float
    days: FloatArray
    worker: FloatArray
    ps: FloatArray
    bounds: PriceBounds
    jobs: tuple[Job, ...]

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and the jobs and the slots of a day they were learned from."""
        slots = f"{len(self.days)} of {self.slot_seconds:g} s"
        jobs = ("past jobs", str(len(self.jobs)))
        return "LearnedPrices", [
            jobs,
            ("slots of a day", slots),
            ("alpha", short(self.bounds.alpha)),
        ]

    def __post_init__(self) -> None:
        size = (len(self.days), len(self.resources))
        for name in ("days", *GROUPS):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (size if name in GROUPS else size[:1]):
                raise InstanceError(name, f"expected {size[0]} rows of {size[1]} prices")
            if not (np.isfinite(array) & (array >= 0)).all():
                raise InstanceError(name, "expected finite numbers >= 0")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for k, job in enumerate(self.jobs):
            with located_at(f"jobs[{k}]"):
                integer(job.arrival, "arrival", maximum=self.slots_per_day - 1)
                # Its rate would be a number of jobs divided by no days.
                if self.days[job.arrival] == 0:
                    raise InstanceError("arrival", "expected a slot that a past day had")

    @property
    def slots_per_day(self) -> int:
        """Slots of a day, S."""
        return len(self.days)

    def rates(self, first: int, end: int) -> FloatArray:
        """Mean number of arrivals in each of the slots ``first .. end - 1``, (end - first,).

        They are means over the past days of the same slot of the day.
        """
        counts = np.bincount([job.arrival for job in self.jobs], minlength=self.slots_per_day)
        # Days may be of unequal length: a slot is averaged over the days that had it.
        means = np.divide(counts, self.days, out=np.zeros(len(counts)), where=self.days > 0)
        rates: FloatArray = means[np.arange(first, end) % self.slots_per_day]
        return rates

    def prices(self, group: TaskGroup, slots: Any) -> FloatArray:
        """Return the prices of a group's resources in each of n slots, shape (n, R)."""
        prices: FloatArray = group.of(self)[np.asarray(slots, dtype=np.int64) % self.slots_per_day]
        return prices

    def check_resources(self, resources: tuple[str, ...], slot_seconds: float) -> None:
        """Raise `InstanceError` unless a cluster has the same resources and length of a slot."""
        if resources != self.resources:
            raise InstanceError("resources", f"expected {list(resources)}, got {self.resources}")
        if slot_seconds != self.slot_seconds:
            seconds = f"expected {slot_seconds:g}, got {self.slot_seconds:g}"
            raise InstanceError("slot_seconds", seconds)

    @property
    def digest(self) -> str:
        """SHA-256 of the prices, as hexadecimal text."""
        content = json.dumps(self.to_dict(), allow_nan=False)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    @property
    def name(self) -> str:
        """Name of these prices in results where no file is known: their digest."""
        return f"sha256:{self.digest}"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file so that `read` gives the same; it appears whole or not at all."""
        write_text(path, json_text(self.to_dict()))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> LearnedPrices:
        """Read what `write` wrote.

        Raises
        ------
        InstanceError
            If the file is no valid file of learned prices; names the file, the field and what was
            expected there.
        OSError
            If the file cannot be read.
        """
        with located_at(source=path):
            return cls.from_dict(read_json(path, (PRICES,), "a file of learned prices"))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "slots_per_day": self.slots_per_day,
            "slot_seconds": self.slot_seconds,
            "resources": list(self.resources),
            "days": self.days.tolist(),
            "worker": self.worker.tolist(),
            "ps": self.ps.tolist(),
            "bounds": self.bounds.to_dict(),
            "jobs": [plain(job) for job in self.jobs],
        }

    @classmethod
    def from_dict(cls, data: Any) -> LearnedPrices:
        """Rebuild from `to_dict`, bit for bit; everything is checked."""
        check_keys(data, (*_TOP, *_REST))
        for name, value in (("format", FORMAT), ("version", VERSION)):
            Fixed(value).check(data[name], name)
        size = integer(data["slots_per_day"], "slots_per_day", minimum=1, maximum=LARGEST_SIZE)
        resources = entry(data, "resources", list_of(text))
        tables = {group: _table(data[group], group, (size, len(resources))) for group in GROUPS}
        bounds = entry(data, "bounds", PriceBounds.from_dict)
        for group in GROUPS:
            if len(group.of(bounds).log_lower) != len(resources):
                raise InstanceError(f"bounds.{group}", f"expected {len(resources)} numbers each")
        return cls(
            resources,
            number(data["slot_seconds"], "slot_seconds", above=True),
            np.array(_row(data["days"], "days", size)),
            **tables,
            bounds=bounds,
            jobs=entry(data, "jobs", list_of(partial(parse, Job))),
        )


def learned_from(
    prices: LearnedPrices | str | os.PathLike[str] | None, option: str
) -> LearnedPrices | None:
    """Return learned prices, read from a file if `prices` is a path; errors name `option`."""
    if prices is None or isinstance(prices, LearnedPrices):
        return prices
    with readable(option), located_at(option):
        return LearnedPrices.read(prices)


def _table(value: Any, path: str, size: tuple[int, int]) -> FloatArray:
    rows = check_list(value, path)
    if len(rows) != size[0]:
        raise InstanceError(path, f"expected {size[0]} rows, one for a slot, got {len(rows)}")
    return np.array([_row(row, f"{path}[{k}]", size[1]) for k, row in enumerate(rows)])


def _row(value: Any, path: str, size: int) -> list[float]:
    numbers = check_list(value, path)
    if len(numbers) != size:
        raise InstanceError(path, f"expected {size} numbers, got {len(numbers)}")
    return [number(entry, f"{path}[{k}]") for k, entry in enumerate(numbers)]


class AtLearnedPrices(AdmissionRule):
    """A job is admitted if it is worth more than its schedule costs at learned prices.

    Jobs complete as early as there is room; prices decide on admission alone.
    """

    REMADE = ("_learned",)

    def __init__(self, learned: LearnedPrices, min_utility_fraction: float) -> None:
        super().__init__(min_utility_fraction)
        self._learned = learned

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "admission": "learned prices",
            "min_utility_fraction": self.min_utility_fraction,
            "learned": self._learned.digest,
        }

    def reset(self, cluster: Cluster, horizon: int, patience: int | None = None) -> None:
        with located_at("prices"):
            self._learned.check_resources(cluster.resources, cluster.slot_seconds)
        super().reset(cluster, horizon, patience)

    def accepts(self, live: LiveJob, plan: WorkingPlan) -> bool:
        """Return whether the planned completion is worth more than the schedule costs."""
        assert live.schedule is not None
        worth = live.utility_at(live.schedule.completion)
        return rounding.difference(worth, self.cost(live.job, live.schedule)) > 0

    def cost(self, job: Job, schedule: Schedule) -> float:
        """Return what `schedule` of `job` costs at the learned prices."""
        cost = 0.0
        for group in GROUPS:
            rows = group.placed(schedule)
            demand = as_array(group.of(job), self._cluster.resources)
            by_row = self._learned.prices(group, rows[:, SLOT]) @ demand
            cost += float(by_row @ rows[:, COUNT])
        return cost
