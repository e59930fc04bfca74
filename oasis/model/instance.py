"""The problem (1)-(13): jobs on a cluster over a horizon, frozen and validated on construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oasis.model.cluster import Cluster, Server, expect_cluster
from oasis.model.errors import InstanceError, describe_or_read, located_at
from oasis.model.job import Job
from oasis.model.records import Kind, ListOf, RecordOf, Whole, check, entry
from oasis.model.resources import BANDWIDTH
from oasis.model.summary import Facts, Summarised
from oasis.model.validation import LARGEST_SIZE, check_unique

__all__ = ["Cluster", "Instance", "Job", "Server", "expect_instance"]


@dataclass(frozen=True, slots=True, repr=False)
class Instance(Summarised):
    """A scheduling problem (1)-(13).

    Parameters
    ----------
    horizon : int
        Number of slots T; slots are counted from 0.
    cluster : Cluster
        Servers and the length of a slot.
    jobs : tuple of Job
        In any order; those of one slot arrive in the order given.
    metadata : mapping
        Where the instance came from: preset, seed, trace and its assumptions. Not compared.

    Raises
    ------
    InstanceError
        With the path of the offending field.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> instance.horizon, instance.slot_seconds
    (10, 1200.0)
    >>> [(job.id, job.arrival) for job in instance.jobs_by_arrival()]
    [('j0', 4), ('j1', 6), ('j2', 6)]
    """

    horizon: int = entry(Whole(1, LARGEST_SIZE), "Number of slots T; slots are 0 to T - 1.")
    cluster: Cluster = entry(Kind())
    jobs: tuple[Job, ...] = entry(
        ListOf(RecordOf(Job, named="job")), "Those of one slot arrive in this order."
    )
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check(self)
        expect_cluster(self.cluster)
        for k, job in enumerate(self.jobs):
            with located_at(f"jobs[{k}]"):
                self.cluster.check(job)
                for at, form in job.located_forms():
                    if form.needs_ps and not self.cluster.ps_ids:
                        expected = "expected 0, as there is no server in ps_servers"
                        path = f"worker.{BANDWIDTH}"
                        raise InstanceError(path, expected, form.bandwidth).within(at)
                if job.arrival >= self.horizon:
                    last = self.horizon - 1
                    raise InstanceError("arrival", f"expected 0..{last}", job.arrival)
        check_unique([job.id for job in self.jobs], "jobs", "job id", ".id")

    @property
    def slot_seconds(self) -> float:
        """Length of one slot in seconds."""
        return self.cluster.slot_seconds

    def summary(self) -> tuple[str, Facts]:
        """Jobs, horizon and servers."""
        servers, *_ = self.cluster.summary()[1]
        horizon = f"{self.horizon} slots of {self.slot_seconds:g} s"
        return "Instance", [("jobs", f"{len(self.jobs)}"), ("horizon", horizon), servers]

    def jobs_by_arrival(self) -> list[Job]:
        """Jobs in order of arrival; jobs of one slot in the order of the file."""
        return sorted(self.jobs, key=lambda job: job.arrival)


def expect_instance(value: object, name: str = "instance") -> None:
    """Raise `TypeError` unless `value` is an instance, saying how to get one from it."""
    if isinstance(value, Instance):
        return
    got = describe_or_read(value, "read")
    if isinstance(value, type):
        got = f"the class {value.__name__}"
    elif hasattr(value, "decide") or hasattr(value, "submit"):
        got += ", a policy; the instance comes first"
    elif isinstance(value, Mapping):
        got += "; oasis.model.instance_file.instance_from_dict makes one of plain data"
    raise TypeError(f"{name}: expected an oasis.Instance, got {got}")
