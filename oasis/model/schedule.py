"""The sparse schedule of one job: tasks by slot and server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.model import document
from oasis.model.errors import InputError, InstanceError, located_at
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.summary import Facts, Summarised, Unchanging
from oasis.model.validation import check_unique, integer

SLOT, SERVER, COUNT = 0, 1, 2  # columns of the rows of a schedule


def placements(rows: npt.ArrayLike) -> IntArray:
    """Return rows (slot, server, count), sorted, as a read-only int array of shape (P, 3)."""
    expected = "expected rows of integers (slot, server, count)"
    try:
        array = np.asarray(rows).reshape(-1, 3)
        table = array.astype(np.int64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError("", expected, rows) from None
    if table is not array and not (table == array).all():
        raise InputError("", expected, rows)
    # Sorted by slot, then server: equal schedules are
    # equal arrays, and a slot is found by bisection.
    table = table[np.lexsort((table[:, SERVER], table[:, SLOT]))]
    table.flags.writeable = False
    return table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule(Summarised, Unchanging):
    """Workers and parameter servers of one job, slot by slot and server by server.

    Parameters
    ----------
    job_id : str
        The job that this schedule runs.
    workers : (P, 3) int array
        Rows (slot t, index h of the worker server, count y_ih(t) > 0).
    ps : (Q, 3) int array
        Rows (slot t, index k of the parameter-server host, count z_ik(t) > 0).
    form : int
        Index of the form of the job that runs, in `Job.in_forms`; 0 for a job of one form.

    Examples
    --------
    >>> import oasis
    >>> schedule = oasis.Schedule("j0", workers=[[0, 2, 3], [1, 2, 1]], ps=[[0, 0, 1], [1, 0, 1]])
    >>> schedule.start, schedule.completion, schedule.worker_slots
    (0, 1, 4)
    """

    job_id: str
    workers: IntArray
    ps: IntArray
    form: int = 0

    def __post_init__(self) -> None:
        with located_at("workers"):
            object.__setattr__(self, "workers", placements(self.workers))
        with located_at("ps"):
            object.__setattr__(self, "ps", placements(self.ps))
        object.__setattr__(self, "form", integer(self.form, "form"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return (
            self.job_id == other.job_id
            and self.form == other.form
            and np.array_equal(self.workers, other.workers)
            and np.array_equal(self.ps, other.ps)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def completion(self) -> int:
        """The last slot with a worker, t_i with a hat in the paper (8)."""
        return int(self.workers[:, SLOT].max())

    @property
    def start(self) -> int:
        """The first slot with a worker."""
        return int(self.workers[:, SLOT].min())

    @property
    def worker_slots(self) -> int:
        """Worker-slots in all slots together, the left-hand side of (2)."""
        return int(self.workers[:, COUNT].sum())

    def summary(self) -> tuple[str, Facts]:
        """Its job, the slots from the first to the last with a worker, and how many run there."""
        if not len(self.workers):
            return "Schedule", [("job", self.job_id), ("without", "workers")]
        slots = f"{self.start} to {self.completion}"
        counts = [("worker-slots", self.worker_slots), ("PS-slots", int(self.ps[:, COUNT].sum()))]
        facts = [(name, str(count)) for name, count in counts]
        form = [("form", str(self.form))] if self.form else []
        return "Schedule", [("job", self.job_id), ("slots", slots), *facts, *form]

    def since(self, slot: int) -> Schedule | None:
        """Return the part of the schedule from `slot` on; None if nothing runs from there on."""
        workers = self.workers[np.searchsorted(self.workers[:, SLOT], slot) :]
        if not len(workers):
            return None
        if len(workers) == len(self.workers):
            return self
        ps = self.ps[np.searchsorted(self.ps[:, SLOT], slot) :]
        return Schedule(self.job_id, workers, ps, self.form)

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data for JSON, the inverse of `from_dict`."""
        return {
            "job_id": self.job_id,
            "workers": self.workers.tolist(),
            "ps": self.ps.tolist(),
            **({"form": self.form} if self.form else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schedule:
        """Rebuild a schedule from `to_dict`; `InstanceError` with the path of what is wrong."""
        form = {"form": document.count} if "form" in document.mapping(data) else {}
        return document.record(cls, job_id=document.text, workers=_rows, ps=_rows, **form)(data)


def schedules_by_job(value: Any) -> dict[str, Schedule]:
    """Read the list ``schedules`` of a document: schedules by job id."""
    schedules = document.list_of(Schedule.from_dict)(value)
    check_unique([schedule.job_id for schedule in schedules], "", "job id", ".job_id")
    return {schedule.job_id: schedule for schedule in schedules}


def _rows(value: Any) -> IntArray:
    """Read rows (slot, server, count) of a JSON document."""
    rows = document.list_of(document.list_of(document.count))(value)
    for k, row in enumerate(rows):
        with located_at(f"[{k}]"):
            if len(row) != 3:
                raise InstanceError("", "expected slot, server and count", list(row))
    return placements(rows)


def committed(
    instance: Instance, schedules: Mapping[str, Schedule]
) -> tuple[FloatArray, FloatArray]:
    """Return the resources that schedules use, shapes (T, H, R) and (T, K, R)."""
    cluster, horizon = instance.cluster, instance.horizon
    worker, ps = (np.zeros((horizon, *group.capacity(cluster).shape)) for group in GROUPS)
    for job in instance.jobs:
        schedule = schedules.get(job.id)
        if schedule is not None:
            with located_at(f"job {job.id}"):
                integer(schedule.form, "form", maximum=len(job.in_forms) - 1)
                form = job.in_form(schedule.form)
                for group, used in zip(GROUPS, (worker, ps), strict=True):
                    rows, places = group.placed(schedule), group.placed(schedule)[:, :COUNT]
                    outside = ((places < 0) | (places >= used.shape[:COUNT])).any(axis=1)
                    for slot, server, _ in rows[outside][:1].tolist():
                        at = f"slot {slot}, server {server}"
                        raise InputError(str(group), f"{at} outside the instance")
                    amounts = rows[:, COUNT, None] * as_array(group.of(form), cluster.resources)
                    # `add.at`: a server may stand in several rows of a slot.
                    np.add.at(used, (rows[:, SLOT], rows[:, SERVER]), amounts)
    return worker, ps
