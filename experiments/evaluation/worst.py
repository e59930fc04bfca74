"""The worst case of a policy, found by search: the instance on which its ratio is largest.

A local search changes one property of one job at a time, and starts again where nothing gets worse.
The first starts are constructions that hurt schedulers: two jobs of which the first takes the room
of a better one, and a chain of jobs that are each in the way of the next (docs/errata,
docs/commitment). Each optimum on the way is proven.

References
----------
P. Namyar, B. Arzani, R. Beckett and others, Finding adversarial inputs for heuristics using
multi-level optimization, NSDI 2024, ask the same of other heuristics, by MILPs. Here the search is
plain hill climbing with restarts, so that it takes any policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from experiments.evaluation.competitive_ratio import CompetitiveRatio, competitive_ratio
from oasis.certify.verify import verify
from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InputError, located_at
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.summary import Facts, Summarised, short
from oasis.model.utility import Constant, Deadline, Piecewise, Utility
from oasis.model.validation import integer, number
from oasis.simulator import Policy, simulate
from oasis.solvers import Status
from offline.solve import solve

LEVELS = 12  # steps between the smallest value and the largest, each by the same factor
LATE = (1.0, 0.5, 0.0)  # shares of its value that a job can keep after its due slot
PATIENCE = 25  # trials per job without a worse instance, before the search starts elsewhere
MOST_CHANGES = 3  # properties that one trial changes, at most
EVALUATIONS = 1000


@dataclass(frozen=True, slots=True)
class Space:
    """The instances among which `worst_case` looks: sizes, and the ranges of a job's properties.

    All servers are alike, and jobs have no parameter servers. A job arrives in any slot. It has at
    most `workers` workers of 1 to `gpus` GPUs each, takes 1 to `work` worker-slots, and is worth an
    amount within `values` until some slot, and all, half or none of it afterwards.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    servers : int
        Number of servers.
    slots : int
        The horizon T.
    gpus : int
        GPUs of each server.
    workers : int
        Most workers that a job can have in a slot.
    work : int
        Most work of a job, in worker-slots.
    values : (float, float)
        The smallest and the largest value of a job, both above 0.

    Raises
    ------
    InputError
        By the name of the parameter.

    Examples
    --------
    >>> from oasis import Space
    >>> Space(jobs=2, slots=1, work=1, values=(1, 7)).jobs
    2
    """

    jobs: int = 4
    servers: int = 1
    slots: int = 4
    gpus: int = 4
    workers: int = 4
    work: int = 8
    values: tuple[float, float] = (1.0, 100.0)

    def __post_init__(self) -> None:
        for name in ("jobs", "servers", "slots", "gpus", "workers", "work"):
            integer(getattr(self, name), name, minimum=1, maximum=1_000_000)
        with located_at("values"):
            if len(self.values) != 2:
                raise InputError("", "expected a smallest and a largest value", self.values)
            low, high = (number(value, "", above=True) for value in self.values)
            if low > high:
                raise InputError("", "expected the smallest value first", self.values)

    def instance(self, genes: Genes) -> Instance:
        """Build the instance whose jobs have the properties `genes`."""
        servers = tuple(Server(f"s{k}", {"gpu": self.gpus}) for k in range(self.servers))
        cluster = Cluster(("gpu",), servers, (Server("none", {}),), slot_seconds=3600.0)
        jobs = tuple(self._job(f"j{k}", gene) for k, gene in enumerate(genes))
        return Instance(self.slots, cluster, jobs)

    def _job(self, name: str, gene: Gene) -> Job:
        low, high = self.values
        value = float(f"{low * (high / low) ** (gene.level / LEVELS):.6g}")
        due, late = float(gene.due), gene.late
        utility: Utility = Piecewise((due, due + 1.0), (value, late * value))
        if late in (0.0, 1.0):
            utility = Constant(value) if late else Deadline(value, due)
        return Job(
            id=name,
            arrival=gene.arrival,
            epochs=1,
            chunks=gene.workers,
            minibatches=1,
            minibatch_time=gene.work / gene.workers,
            gradient_mb=0.0,
            worker={"gpu": gene.gpus},
            ps={},
            utility=utility,
        )

    def changed(self, genes: Genes, rng: Random) -> Genes:
        """Return `genes` with a few properties of jobs drawn anew, or with jobs swapped."""
        jobs = list(genes)
        for _ in range(rng.randint(1, MOST_CHANGES)):
            k = rng.randrange(len(jobs))
            if len(jobs) > 1 and rng.random() < 0.1:
                other = rng.randrange(len(jobs))
                jobs[k], jobs[other] = jobs[other], jobs[k]
                continue
            name = rng.choice(Gene._fields)
            jobs[k] = jobs[k]._replace(**{name: getattr(self.random(rng), name)})
        return tuple(jobs)

    def random(self, rng: Random) -> Gene:
        """Draw all properties of a job."""
        return Gene(
            arrival=rng.randrange(self.slots),
            workers=rng.randint(1, self.workers),
            work=rng.randint(1, self.work),
            gpus=rng.randint(1, self.gpus),
            level=rng.randint(0, LEVELS),
            due=rng.randint(0, self.slots - 1),
            late=rng.choice(LATE),
        )

    def constructions(self) -> Iterator[Genes]:
        """Yield instances of `jobs` jobs that are constructed to make policies earn little."""
        full = Gene(0, 1, 1, self.gpus, 0, 0, 1.0)
        most = min(self.workers, self.work)
        half = self.gpus * self.servers // (2 * most) + 1  # GPUs a worker: two jobs do not fit
        wide = full._replace(workers=most, work=most, gpus=min(half, self.gpus))
        # The first takes the room of one that is worth as many times more as the values allow.
        for one in (full, wide):
            better = one._replace(level=LEVELS)
            yield (one, *[better] * (self.jobs - 1))
        # A chain: each begins in the last slot of the one before and is worth more, and late it is
        # worth nothing. A policy that changes its mind each time ends none but the last.
        slots, last = min(2, self.work, self.slots), max(0, self.slots - 1)
        links = [min(k, last) for k in range(self.jobs)]
        yield tuple(
            full._replace(arrival=k, work=slots, level=min(1 + n, LEVELS), due=slots - 1, late=0.0)
            for n, k in enumerate(links)
        )


class Gene(NamedTuple):
    """Properties of one job of a searched instance."""

    arrival: int
    workers: int
    work: int
    gpus: int
    level: int
    due: int  # slots after its arrival until which it is worth its whole value
    late: float  # share of that afterwards


Genes = tuple[Gene, ...]


@dataclass(frozen=True, slots=True, repr=False)
class WorstCase(Summarised):
    """The worst instance that a search found, with the proof of its ratio.

    Parameters
    ----------
    instance : Instance
        The instance.
    result : CompetitiveRatio
        The policy's run on it, the proven optimum, and what theory guarantees.
    evaluations : int
        Instances on which the policy ran.
    starts : int
        Starts of the local search.
    is_complete : bool
        Whether all evaluations were done; False if the time limit or Ctrl-C came first.

    Examples
    --------
    >>> import oasis
    >>> from oasis import Space, worst_case
    >>> space = Space(jobs=2, slots=1, gpus=1, workers=1, work=1, values=(1, 7))
    >>> found = worst_case(oasis.OASiS.from_instance, space, evaluations=30)
    >>> found.ratio, found.result.proven
    (7.0, True)
    """

    instance: Instance
    result: CompetitiveRatio
    evaluations: int
    starts: int
    is_complete: bool = True

    @property
    def ratio(self) -> float:
        """OPT / P; inf if the policy earned nothing."""
        return self.result.lower if self.result.lower is not None else math.inf

    def summary(self) -> tuple[str, Facts]:
        """Return a title and facts: the ratio, its two utilities, and the size of the search."""
        is_finite = self.ratio < math.inf
        return "WorstCase", [
            ("ratio", short(self.ratio) if is_finite else "unbounded: it earned nothing"),
            (self.result.run.policy, short(self.result.online_utility)),
            ("optimum", short(self.result.offline_objective)),
            ("instances tried", str(self.evaluations)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the result of the ratio, and how it was found."""
        search = {"evaluations": self.evaluations, "starts": self.starts}
        return self.result.to_dict() | {"search": search | {"is_complete": self.is_complete}}


def worst_case(
    make: Callable[[Instance], Policy],
    space: Space | None = None,
    *,
    evaluations: int = EVALUATIONS,
    time_limit: float | None = None,
    seed: int = 0,
    on_progress: Callable[[int, float], None] | None = None,
) -> WorstCase:
    """Search for the instance on which a policy's competitive ratio is largest.

    The ratio is proven, but another instance may be worse: a local search finds none that is
    certainly the worst. The same arguments give the same instance, unless `time_limit` cuts the
    search.

    Parameters
    ----------
    make : callable
        Makes a fresh policy for an instance, such as ``oasis.OASiS.from_instance`` or
        ``lambda instance: FIFO()``.
    space : Space, optional
        Where to look. Default: four jobs on one server of four GPUs, over four slots.
    evaluations : int
        Instances to try.
    time_limit : float, optional
        Seconds after which no further instance is begun. The one under way is solved first.
    seed : int
        Of the search.
    on_progress : callable, optional
        Called after each instance with their number and the largest ratio so far.

    Raises
    ------
    InputError
        For an argument that is not allowed, by its name.
    PolicyError
        If the policy fails on an instance.

    Examples
    --------
    >>> from oasis import FIFO, Space, worst_case
    >>> space = Space(jobs=2, slots=2, gpus=1, workers=1, work=2)
    >>> worst_case(lambda instance: FIFO(), space, evaluations=40).ratio > 1
    True
    """
    space = Space() if space is None else space
    integer(evaluations, "evaluations", minimum=1)
    if time_limit is not None:
        number(time_limit, "time_limit", above=True)
    end = math.inf if time_limit is None else monotonic() + time_limit
    search = _Climb(make, space, Random(integer(seed, "seed")), evaluations, end, on_progress)
    is_complete = search.run()
    instance = space.instance(search.worst)
    result = competitive_ratio(instance, make(instance), time_limit=None)
    if not result.proven:  # Ctrl-C came in this last step: there is nothing proven to show
        raise KeyboardInterrupt
    return WorstCase(instance, result, len(search.tried), search.starts, is_complete)


@dataclass
class _Climb:
    """Hill climbing on the ratio; equally bad neighbours are accepted, so plateaus are crossed."""

    make: Callable[[Instance], Policy]
    space: Space
    rng: Random
    most: int  # evaluations
    end: float
    on_progress: Callable[[int, float], None] | None
    tried: dict[Genes, float] = field(default_factory=dict)
    starts: int = 0
    repeats: int = 0
    worst: Genes = ()
    largest: float = -1.0  # ratio, that of `worst`

    def run(self) -> bool:
        """Search; return whether the search is complete, rather than ended by time or Ctrl-C."""
        try:
            # All of them first: the worst is the most promising start.
            cases = sorted(self.space.constructions(), key=self._ratio, reverse=True)
            while not self._is_over():
                self.starts += 1
                drawn = (self.space.random(self.rng) for _ in range(self.space.jobs))
                self._climb(cases.pop(0) if cases else tuple(drawn))
        except KeyboardInterrupt:
            if not self.tried:
                raise
            return False
        return self._is_done()

    def _is_done(self) -> bool:
        # Where chance brings hardly anything new, the space is small.
        is_exhausted = self.repeats >= 10 * self.most
        return len(self.tried) >= self.most or is_exhausted or self.largest == math.inf

    def _is_over(self) -> bool:
        return self._is_done() or monotonic() >= self.end

    def _climb(self, genes: Genes) -> None:
        value, idle = self._ratio(genes), 0
        while idle < PATIENCE * len(genes) and not self._is_over():
            trial = self.space.changed(genes, self.rng)
            ratio = self._ratio(trial)
            idle = 0 if ratio > value else idle + 1
            if ratio >= value:
                genes, value = trial, ratio

    def _ratio(self, genes: Genes) -> float:
        """Ratio of optimum to utility on the instance of `genes`; 0 if no job can earn anything."""
        if genes in self.tried:
            self.repeats += 1
            return self.tried[genes]
        instance = self.space.instance(genes)
        run = simulate(instance, self.make(instance))
        earned = verify(instance, run)
        solved = solve(instance, time_limit=None)
        if solved.status is Status.INTERRUPTED:  # Ctrl-C ends a solve with an interval
            raise KeyboardInterrupt
        optimum = solved.objective
        ratio = optimum / earned if earned > 0 else math.inf if optimum > 0 else 0.0
        self.tried[genes] = ratio
        if ratio > self.largest:
            self.worst, self.largest = genes, ratio
        if self.on_progress is not None:
            self.on_progress(len(self.tried), self.largest)
        return ratio
