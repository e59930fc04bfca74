"""Strategies of Hypothesis for what schedulers get: small, and nasty on purpose.

Amounts come from short lists rather than from all floats, so that what breaks schedulers happens
all the time: ties, demands and capacities of zero, servers filled to the last unit, quotients
that are whole numbers but for the last bit, b = B, jobs without parameter servers, sigmoids that
underflow, jobs that cannot finish or do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oasis.model.cluster import Cluster, Server
from oasis.model.forms import Form, Requirement, Speeds
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.scheduling.job import PolicyJob
from oasis.simulator import (
    ChangeCosts,
    Machine,
    Observation,
    Outage,
    Site,
    TrainingCurve,
    TrainingSpeed,
    Workload,
)

BANDWIDTH = "bandwidth_gbps"
RESOURCES = ("gpu", "cpu", BANDWIDTH)
VALUES = (1.0, 3.7, 10.0, 100.0)


def of(*options: Any) -> st.SearchStrategy[Any]:
    """One of `options`; Hypothesis shrinks towards the first."""
    return st.sampled_from(options)


# -- utilities -------------------------------------------------------------------------------------


def sigmoids(values: tuple[float, ...] = VALUES) -> st.SearchStrategy[Sigmoid]:
    """From insensitive to so critical that every late completion underflows (decay 800)."""
    decays = (0.0, 0.01, 0.5, 4.0, 6.0, 800.0)
    return st.builds(Sigmoid, of(*values), of(*decays), of(0.0, 1.0, 2.5, 15.0))


def constants(values: tuple[float, ...] = VALUES) -> st.SearchStrategy[Constant]:
    """Utilities that any completion earns."""
    return st.builds(Constant, of(*values))


def deadlines(values: tuple[float, ...] = VALUES) -> st.SearchStrategy[Deadline]:
    """Utilities that end after a few slots, some of them at once."""
    return st.builds(Deadline, of(*values), of(0.0, 1.0, 1.5, 3.0))


@st.composite
def piecewise(draw: st.DrawFn, values: tuple[float, ...] = VALUES) -> Piecewise:
    """Utilities of up to three points, some of them flat or down to 0."""
    count = draw(st.integers(1, 3))
    steps = draw(st.lists(of(0.5, 1.0, 2.0), min_size=count, max_size=count))
    shares = draw(st.lists(of(1.0, 0.6, 0.01, 0.0), min_size=count, max_size=count))
    heights = draw(of(*values)) * np.cumprod(shares)
    delays = np.cumsum(steps) - steps[0]
    return Piecewise(tuple(delays.tolist()), tuple(heights.tolist()))


def utilities(values: tuple[float, ...] = VALUES) -> st.SearchStrategy[Utility]:
    """Every kind of utility with its largest value among `values`."""
    kinds = (constants, sigmoids, deadlines, piecewise)
    return st.one_of(*(kind(values) for kind in kinds))


# -- jobs, clusters, instances ---------------------------------------------------------------------


def horizons(most: int) -> st.SearchStrategy[int]:
    """1 to `most` slots, longer ones more often."""
    return of(*sorted([*range(1, most + 1), *range(1 + most // 2, most + 1), most, most]))


@st.composite
def jobs(
    draw: st.DrawFn,
    horizon: int,
    name: str = "j",
    *,
    most_work: int = 12,
    utility: st.SearchStrategy[Utility] | None = None,
) -> Job:
    """A job of at most about `most_work` worker-slots, if a slot lasts at least a second."""
    chunks = draw(st.integers(1, min(3, most_work)))
    epochs, minibatches = draw(of((1, 1), (2, 1), (1, 2)))
    bandwidth = draw(of(0.0, 0.1, 1.0, 1.3))
    gradient = draw(of(0.0, 1.0, 10.0)) if bandwidth else 0.0
    times = (1.0, 0.1, 0.1, 1 / 3, 0.5, 1.5)
    tau = draw(of(*((*times, 0.0) if gradient else times)))
    transfer = 2 * gradient * 8e-3 / bandwidth if bandwidth else 0.0
    while epochs * chunks * minibatches * (tau + transfer) > most_work and chunks > 1:
        chunks -= 1
    while epochs * chunks * minibatches * (tau + transfer) > most_work and tau > 0.1:
        tau /= 2
    worker = {
        "gpu": draw(of(0.0, 0.5, 1.0)),
        "cpu": draw(of(1.0, 0.0, 0.1, 1.3)),
        BANDWIDTH: bandwidth,
    }
    spare = draw(of(0.0, 1.0)) if bandwidth == 0 else 0.0
    ps = {
        "gpu": draw(of(0.0, 0.0, 0.0, 1.0)),
        "cpu": draw(of(1.0, 0.0, 0.1, 1.1)),
        BANDWIDTH: spare + bandwidth * draw(of(1.0, 1.5, 3.0, 1 / 0.3)),
    }
    return Job(
        id=name,
        arrival=draw(of(0, *range(horizon))),
        epochs=epochs,
        chunks=chunks,
        minibatches=minibatches,
        minibatch_time=tau,
        gradient_mb=gradient,
        worker={key: value for key, value in worker.items() if value or draw(st.booleans())},
        ps=ps,
        utility=draw(utilities() if utility is None else utility),
    )


@st.composite
def servers(draw: st.DrawFn, prefix: str, most: int = 2) -> tuple[Server, ...]:
    """One to `most` machines, some of them identical, some without a resource."""
    machines: list[Server] = []
    while sum(server.count for server in machines) < most and (not machines or draw(st.booleans())):
        roomy = draw(st.booleans())
        capacity = {
            "gpu": draw(of(2.0, 3.0) if roomy else of(1.0, 2.0, 0.0)),
            "cpu": draw(of(4.0, 5.0) if roomy else of(1.0, 2.5, 0.3, 0.0)),
            BANDWIDTH: draw(of(5.0, 6.5) if roomy else of(1.0, 2.1, 0.0)),
        }
        left = most - sum(server.count for server in machines)
        count = draw(st.integers(1, left))
        machines.append(Server(f"{prefix}{len(machines)}", capacity, count))
    return tuple(machines)


def clusters(most: int = 2) -> st.SearchStrategy[Cluster]:
    """Clusters of 1 to `most` worker servers and as many for parameter servers.

    A slot lasts 1 or 20 seconds.
    """
    return st.builds(
        Cluster,
        st.just(RESOURCES),
        servers("w", most),
        servers("p", most),
        of(1.0, 20.0),
    )


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    most_jobs: int = 4,
    most_slots: int = 5,
    most_work: int = 12,
    cluster: st.SearchStrategy[Cluster] | None = None,
    utility: st.SearchStrategy[Utility] | None = None,
) -> Instance:
    """A few jobs of every kind on a few servers of every kind; many cannot run at all.

    Parameters
    ----------
    most_jobs, most_slots : int
        The largest number of jobs, and of slots.
    most_work : int
        About the most work of a job, in worker-slots.
    cluster, utility : SearchStrategy, optional
        Where clusters and utilities come from. Default: `clusters` and `utilities`.

    Examples
    --------
    >>> import oasis
    >>> from hypothesis import given, settings
    >>> from oasis.testing import instances
    >>> @settings(deadline=None)
    ... @given(instances(most_jobs=2, most_slots=2))
    ... def test_fifo_keeps_to_the_model(instance):
    ...     oasis.verify(instance, oasis.simulate(instance, oasis.FIFO()))
    >>> test_fifo_keeps_to_the_model()
    """
    horizon = draw(horizons(most_slots))
    made = draw(clusters() if cluster is None else cluster)
    count = draw(st.integers(1, most_jobs))
    drawn = [
        draw(jobs(horizon, f"j{i}", most_work=most_work, utility=utility)) for i in range(count)
    ]
    return Instance(horizon, made, tuple(drawn))


@st.composite
def rivals(draw: st.DrawFn, horizon: int, name: str) -> Job:
    """A short job that fits an empty server many times over and is worth anything."""
    bandwidth = draw(of(0.0, 1.0))
    values = (1.0, 3.7, 10.0, 100.0, 10000.0)
    patient = st.builds(Sigmoid, of(*values), of(0.01, 0.5, 4.0), of(1.0, 15.0))
    return Job(
        id=name,
        arrival=draw(of(0, 0, *range(horizon))),
        epochs=1,
        chunks=draw(st.integers(1, 3)),
        minibatches=1,
        minibatch_time=draw(of(1.0, 0.5, 1 / 3)),
        gradient_mb=0.0,
        worker={"gpu": draw(of(0.0, 0.5, 1.0)), "cpu": draw(of(1.0, 0.7)), BANDWIDTH: bandwidth},
        ps={"cpu": draw(of(1.0, 0.5)), BANDWIDTH: bandwidth * draw(of(1.0, 3.0))},
        utility=draw(st.one_of(constants(values), patient, utilities(values))),
    )


@st.composite
def crowded_instances(
    draw: st.DrawFn, most_jobs: int = 6, most_slots: int = 3, most_servers: int = 2
) -> Instance:
    """More rivals than fit a few small servers of each group: prices decide."""
    horizon = draw(horizons(most_slots))
    groups = []
    for prefix in "wp":
        capacity = {"gpu": 3.0, "cpu": draw(of(3.0, 2.0, 5.0)), BANDWIDTH: draw(of(3.0, 6.0))}
        groups.append((Server(f"{prefix}0", capacity, draw(of(1, *range(1, most_servers + 1)))),))
    cluster = Cluster(RESOURCES, groups[0], groups[1], 1.0)
    count = draw(st.integers(min(3, most_jobs), most_jobs))
    drawn = [draw(rivals(horizon, f"j{i}")) for i in range(count)]
    return Instance(horizon, cluster, tuple(drawn))


def small_instances() -> st.SearchStrategy[Instance]:
    """Small enough for the brute force over all jobs."""
    return st.one_of(
        instances(most_jobs=3, most_slots=3, most_work=3),
        crowded_instances(most_jobs=5, most_slots=3),
        crowded_instances(most_jobs=5, most_slots=3),
    )


# -- machines of several kinds, jobs in several forms ----------------------------------------------

LABELS: tuple[dict[str, str], ...] = (
    {"gpu": "a"},
    {"gpu": "a"},
    {"gpu": "b"},
    {"gpu": "b", "zone": "z"},
    {},
)
EITHER = {"gpu": ["a", "b"]}
ELSEWHERE = ({"gpu": ["a"]}, {"gpu": ["b"]}, {"zone": ["z"]}, {"gpu": ["c"]})
REQUIRES: tuple[dict[str, list[str]], ...] = ({}, {}, EITHER, EITHER, *ELSEWHERE)


@st.composite
def forms(draw: st.DrawFn, job: Job) -> Job:
    """The given `job` with requirements and, mostly, in several forms.

    Some of them no machine admits; labels are those of `instances_of_kinds`.
    """
    required = {"requires": draw(of({}, EITHER)), "ps_requires": draw(of({}, {}, {"gpu": ["a"]}))}
    kind = draw(of("forms", "forms", "speeds", "one"))
    if kind == "one":
        return replace(job, **required | {"requires": draw(of(*REQUIRES))})
    if kind == "speeds":
        values = {value: draw(of(1.0, 2.0, 0.5)) for value in "ab"}
        return replace(job, speeds=Speeds("gpu", values), ps_requires=required["ps_requires"])
    made = []
    for _ in range(draw(st.integers(1, 3))):
        chunks = draw(of(None, 1, 2, 3))
        gpus = draw(of(None, 0.5, 1.0, 2.0))
        made.append(
            Form(
                worker=None if gpus is None else {**job.worker, "gpu": gpus},
                chunks=chunks,
                minibatch_time=draw(of(None, None, 0.5, 1.0)),
                min_workers=None if chunks is None else draw(st.integers(1, chunks)),
                requires=draw(of(None, *REQUIRES)),
                ps_requires=draw(of(None, None, {"gpu": ["a", "b"]})),
            )
        )
    return replace(job, forms=tuple(made), **required)


@st.composite
def instances_of_kinds(
    draw: st.DrawFn, given: st.SearchStrategy[Instance] | None = None
) -> Instance:
    """An instance, its machines with labels, its jobs with requirements and in several forms."""
    made = draw(small_instances() if given is None else given)
    worker, ps = (
        tuple(replace(server, labels=draw(of(*LABELS))) for server in group.servers(made.cluster))
        for group in GROUPS
    )
    cluster = replace(made.cluster, worker_servers=worker, ps_servers=ps)
    return replace(made, cluster=cluster, jobs=tuple(draw(forms(job)) for job in made.jobs))


@st.composite
def of_kinds(draw: st.DrawFn, work: Workload) -> Workload:
    """A workload of any policy, its machines with labels, some of its jobs in several forms."""
    site = replace(
        work.site,
        machines=tuple(
            replace(machine, labels=draw(of(*LABELS))) for machine in work.site.machines
        ),
    )
    made = []
    for job in work.jobs:
        ways = []
        for _ in range(draw(of(1, 1, 2, 3))):
            demands: dict[str, Any] = {
                group.value: site.limited(
                    getattr(job, group.value), group, Requirement(draw(of(*REQUIRES)))
                )
                for group in GROUPS
            }
            ways.append(replace(job, work=job.work * draw(of(1.0, 2.0)), **demands))
        if ways[1:]:
            ways[0] = replace(ways[0], forms=tuple(ways), may_switch=draw(st.booleans()))
        made.append(ways[0])
    return Workload.of(site, made)


def with_work(job: PolicyJob, change: Callable[[float], float], **changes: Any) -> PolicyJob:
    """The job with other work, in each of its forms."""
    ways = tuple(replace(form, work=change(form.work), **changes) for form in job.forms)
    return replace(job, work=change(job.work), forms=ways, **changes)


# -- workloads of any policy -----------------------------------------------------------------------

TIMES = st.integers(0, 12).map(float)
CURVE = TrainingCurve(((0.0, 1.0), (0.3, 0.2), (1.0, 0.0)))
COSTS = (None, ChangeCosts(1.0, 0.5, 0.25, 2.0), ChangeCosts(save=0.5, checkpoint_interval=1.0))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A few elastic jobs with parameter servers on a few machines, of one kind or of two.

    Time is continuous or in slots, and gangs may be incomplete.
    """
    slotted = draw(st.booleans())
    hosts = [frozenset(kinds) for kinds in (("worker", "ps"), ("worker",), ("ps",))]
    machines = [Machine("m0", (4.0, 4.0), hosts[0], cpu_cores=4.0, link_gbps=1.0)]
    for k in range(draw(st.integers(0, 2))):
        amounts = (float(draw(st.integers(0, 4))), float(draw(st.integers(1, 4))))
        machines.append(Machine(f"m{k + 1}", amounts, draw(of(*hosts)), cpu_cores=2.0))
    site = Site(
        ("gpu", "cpu"),
        tuple(machines),
        1.0,
        slotted,
        20.0 if slotted else None,
        partial_gangs=not slotted and draw(st.booleans()),
    )
    count = draw(st.integers(1, 6))
    made = Workload.of(site, [draw(_elastic_job(f"j{k}")) for k in range(count)])
    return draw(of_kinds(made)) if draw(st.booleans()) else made


@st.composite
def _elastic_job(draw: st.DrawFn, name: str) -> PolicyJob:
    least = draw(st.integers(1, 2))
    most = least + draw(st.integers(0, 3))
    fixed = draw(st.booleans())
    return PolicyJob(
        name,
        draw(TIMES),
        draw(of(0.5, 1.0, 2.7, 8.0)),
        # one that reserves nothing fits wherever a machine is there, and on no lost one
        draw(of(((0, 1), (1, 1)), ((0, 1),), ())),
        draw(of(((1, 1),), ())),
        least,
        most,
        0.0 if fixed else draw(of(0.0, 0.3, 1.0)),
        initial_workers=draw(of(None, least, most)),
        fixed_ps=draw(st.integers(0, 2)) if fixed else None,
        worker_cpu=draw(of(0.0, 1.5)),
        gradient_mb=draw(of(0.0, 50.0)),
        step_time=1.0,
        curve=CURVE,
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Workload, dict[str, Any]]:
    """A workload, and arguments of `oasis.replay` for what surrounds it.

    These are ``speed``, ``costs``, ``outages`` and ``observation``; all machines come back.
    """
    work = draw(workloads())
    outages = []
    for machine in range(len(work.site.machines)):
        if draw(st.booleans()):
            begin = draw(TIMES)
            outages.append(Outage(machine, begin, begin + 1.0 + draw(st.integers(0, 4))))
    options = {
        "speed": draw(of(None, TrainingSpeed())),
        "costs": draw(of(*COSTS)),
        "outages": outages,
        "observation": draw(of(None, Observation(1.0, 0.1, 3))),
    }
    return work, options
