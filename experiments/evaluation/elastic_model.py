"""Elastic jobs as OASiS and recourse see them: in slots, as jobs of the paper's model.

What is lost on the way is the model's, and is said at each step; docs: controllers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.utility import Utility
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.model_job import policy_job
from oasis.scheduling.site import Machine, Site
from oasis.simulator.elastic import ElasticWorkload
from offline.elastic_bound import best_rates

NO_SERVERS = "no-parameter-servers"  # the model needs a machine for them; ours go beside workers


@dataclass(frozen=True, slots=True)
class BySlots:
    """A utility by the delay in seconds, as one by the delay in slots.

    A job that ends in slot d after that of its arrival is counted at the end of that slot.

    Parameters
    ----------
    seconds : Utility
        By seconds.
    length : float
        Of a slot, seconds.
    first : float
        Seconds from the true arrival to the end of the slot in which the job arrives.

    Examples
    --------
    >>> from oasis.model.utility import Deadline
    >>> BySlots(Deadline(5.0, 1000.0), 600.0, 300.0)([0, 1, 2]).tolist()
    [5.0, 5.0, 0.0]
    """

    seconds: Utility
    length: float
    first: float

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return self.seconds(self._delays(delay))

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        """Natural logarithm of the utility, -inf where it is 0."""
        return self.seconds.log_value(self._delays(delay))

    def _delays(self, delay: npt.ArrayLike) -> FloatArray:
        found: FloatArray = np.asarray(delay, dtype=float) * self.length + self.first
        return found


@dataclass(frozen=True, slots=True)
class Translated:
    """A job in the model's terms.

    Parameters
    ----------
    job : PolicyJob
        On the site of the model, times in slots; its `source` is the model's job.
    speed : float
        Worker-seconds of the elastic job that count as one worker-slot of the model's.
    """

    job: PolicyJob
    speed: float


class ElasticModel:
    """The translation of one elastic workload.

    Machines: all of them host workers, none parameter servers. A worker reserves its own demand and
    as much of the parameter servers' as falls to each worker where that is most, so that whatever
    the model plans, they find room beside the workers.

    Jobs: a slot of one worker is one worker-slot, whatever the other workers are, so that speed is
    linear in them. It is counted as what one of the workers that the job asks for does (of the most
    where it asks for none), at the best speed: fewer do more, more do less than the model thinks.
    The fewest workers, locality and the costs of changes are unknown to the model.

    Utility: by the delay to the end of the slot of completion.

    Parameters
    ----------
    made : ElasticWorkload
        The machines and the jobs' speeds.
    slot_seconds : float
        Length of a slot.

    Raises
    ------
    InstanceError
        If a job has no utility.

    Examples
    --------
    >>> from oasis.simulator import elastic_from_dict, generate_elastic
    >>> data = dict(generate_elastic(jobs=1, seed=1).document)
    >>> worth = {"kind": "deadline", "value": 3.0, "deadline": 4000.0}
    >>> data["jobs"] = [data["jobs"][0] | {"utility": worth}]
    >>> made = elastic_from_dict(data)
    >>> model = ElasticModel(made, 600.0)
    >>> seen = model.translate(made.workload.jobs[0], slot=1)
    >>> round(made.workload.jobs[0].work), round(seen.speed, 1), seen.job.source.work(600.0)
    (474, 600.0, 1)
    """

    def __init__(self, made: ElasticWorkload, slot_seconds: float) -> None:
        if not slot_seconds > 0:
            raise ValueError(f"slot_seconds: expected a time > 0, got {slot_seconds}")
        for k, job in enumerate(made.workload.jobs):
            if not job.has_utility:
                expected = (
                    "expected a utility: oasis and recourse weigh jobs by what they are worth"
                )
                raise InstanceError(f"jobs[{k}].utility", expected)
        self.made, self.length = made, float(slot_seconds)
        real = made.workload.site
        machines = [
            Machine(machine.id, machine.amounts, frozenset({"worker"}), machine.grid)
            for machine in real.machines
        ]
        nothing = (0.0,) * len(real.resources)
        machines.append(Machine(NO_SERVERS, nothing, frozenset({"ps"}), real.grid))
        self.site = Site(real.resources, tuple(machines), self.length, slotted=True)

    def cluster(self) -> Cluster:
        """The machines as the cluster of an instance."""
        *workers, servers = (
            Server(machine.id, dict(zip(self.site.resources, machine.amounts, strict=True)))
            for machine in self.site.machines
        )
        return Cluster(self.site.resources, tuple(workers), (servers,), self.length)

    def jobs(self) -> list[Job]:
        """The model's jobs, each arriving in the first slot that begins after it came."""
        found = []
        for job in self.made.workload.jobs:
            source = self.translate(job, math.ceil(job.arrival / self.length)).job.source
            assert source is not None
            found.append(source)
        return found

    def translate(self, job: PolicyJob, slot: int) -> Translated:
        """`job` as it arrives in `slot`."""
        asked = job.max_workers if job.initial_workers is None else job.initial_workers
        speed = best_rates(self.made, job)[asked] / asked * self.length
        source = Job(
            id=job.id,
            arrival=slot,
            epochs=1,
            chunks=job.max_workers,
            minibatches=1,
            minibatch_time=job.work / speed / job.max_workers,
            gradient_mb=0.0,
            worker=self._demand(job),
            ps={},
            utility=BySlots(job.utility, self.length, (slot + 1) * self.length - job.arrival),
        )
        seen = replace(policy_job(source, self.site), index=job.index)
        return Translated(seen, speed)

    def _demand(self, job: PolicyJob) -> Mapping[str, float]:
        counts = range(job.min_workers, job.max_workers + 1)
        servers = max(job.ps_needed(workers) / workers for workers in counts)
        amounts = dict.fromkeys(self.site.resources, 0.0)
        for demand, each in ((job.worker, 1.0), (job.ps, servers)):
            for resource, amount in demand:
                amounts[self.site.resources[resource]] += each * amount / self.site.grid
        return {name: amount for name, amount in amounts.items() if amount}
