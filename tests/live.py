"""Driving live schedulers: random calls from a seed, and what was executed, for the verifier."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import oasis
from oasis import (
    Cluster,
    Constant,
    Deadline,
    Instance,
    Job,
    LiveScheduler,
    PriceBounds,
    Schedule,
    Server,
    Sigmoid,
)

CLUSTER = Cluster(
    ("gpu", "cpu", "bandwidth_gbps"),
    (
        Server("w", {"gpu": 2.0, "cpu": 5.0, "bandwidth_gbps": 4.0}, 2),
        Server("x", {"gpu": 1.0, "cpu": 2.5, "bandwidth_gbps": 1.0}),
    ),
    (Server("p", {"cpu": 3.0, "bandwidth_gbps": 6.0}, 2),),
    slot_seconds=10.0,
)
SERVERS = (*CLUSTER.worker_ids, *CLUSTER.ps_ids)
CAPACITY = np.vstack([CLUSTER.worker_capacity, CLUSTER.ps_capacity])
TROUBLES = ("cancel", "finish", "revise", "revise_all", "lose", "restore")
LOOKAHEAD = 8
FEW = oasis.Recourse(rounds=2).params
Executed = dict[str, list[list[int]]]


def random_job(rng: np.random.Generator, name: str, arrival: int) -> Job:
    """A job that fits the cluster, of any urgency."""
    value = float(rng.choice([1.0, 3.7, 10.0, 40.0]))
    utility = (
        Deadline(value, float(rng.integers(0, 7))),
        Sigmoid(2 * value, float(rng.choice([0.3, 2.0])), float(rng.integers(1, 6))),
        Constant(value),
    )[int(rng.integers(3))]
    bandwidth = float(rng.choice([0.0, 0.7, 1.0]))
    return Job(
        name,
        arrival,
        epochs=int(rng.integers(1, 5)),
        chunks=int(rng.integers(1, 4)),
        minibatches=1,
        minibatch_time=float(rng.choice([0.5, 1.0, 1.3])),
        gradient_mb=0.0,
        worker={"gpu": 1.0, "cpu": float(rng.choice([0.1, 1.3])), "bandwidth_gbps": bandwidth},
        ps={"cpu": 1.1, "bandwidth_gbps": bandwidth * 2.5},
        utility=utility,
    )


def random_window(rng: np.random.Generator, now: int) -> dict[str, Any]:
    """Arguments of `reserve`: now and then one is taken back."""
    servers = rng.choice(SERVERS, int(rng.integers(0, 4)), replace=False).tolist()
    begin = now + int(rng.integers(0, 4))
    end = begin + int(rng.integers(1, 4))
    return {"name": f"w{rng.integers(4)}", "begin": begin, "end": end, "servers": servers}


def amounts(given: Mapping[str, float]) -> Any:
    """Amounts by resource, as the capacities of the servers are."""
    return np.array([given.get(name, 0.0) for name in CLUSTER.resources])


def check_windows(
    plan: Mapping[str, Schedule], jobs: Mapping[str, Job], windows: Iterable[Mapping[str, Any]]
) -> int:
    """Fail if a task of `plan` has what a window keeps; return how many servers are in use."""
    used: dict[int, Any] = {}
    for name, schedule in plan.items():
        for rows, first, demand in (
            (schedule.workers, 0, jobs[name].worker),
            (schedule.ps, len(CLUSTER.worker_ids), jobs[name].ps),
        ):
            for slot, server, count in rows.tolist():
                total = used.setdefault(slot, np.zeros_like(CAPACITY))
                total[first + server] += count * amounts(demand)
    there = {slot: total.any(axis=1) for slot, total in used.items()}
    for slot, total in used.items():
        for window in windows:
            for server in window["servers"]:
                if window["begin"] <= slot < window["end"]:
                    assert not there[slot][SERVERS.index(server)], (slot, server)
        assert (total <= CAPACITY + 1e-9)[there[slot]].all(), slot
    return int(sum(each.sum() for each in there.values()))


def past_bounds(seed: int = 99, **options: float) -> PriceBounds:
    """U and L of jobs like those of `random_job`."""
    rng = np.random.default_rng(seed)
    jobs = [random_job(rng, f"past{k}", 0) for k in range(40)]
    return PriceBounds.from_jobs(jobs, CLUSTER, LOOKAHEAD, **options)  # type: ignore[arg-type]


KINDS: dict[str, Callable[[], LiveScheduler]] = {
    "none": lambda: LiveScheduler.recourse(CLUSTER, LOOKAHEAD, params=FEW, seed=3),
    "start": lambda: LiveScheduler.recourse(CLUSTER, LOOKAHEAD, "start", params=FEW),
    "arrival": lambda: LiveScheduler.recourse(CLUSTER, LOOKAHEAD, "arrival", params=FEW),
    "oasis": lambda: LiveScheduler.oasis(CLUSTER, LOOKAHEAD, past_bounds()),
}


@dataclass
class Drill:
    """Random calls, the same for the same seed, and what was executed under them.

    Parameters
    ----------
    scheduler : LiveScheduler
        It is called; it may be exchanged for an equal one between two steps.
    seed : int
        Of the calls.
    troubles : tuple of str
        Calls beside arrivals and the passing of time that may happen; ``reserve`` makes windows.
    leaps : tuple of int
        Numbers of slots that may pass without another call.
    """

    scheduler: LiveScheduler
    seed: int
    troubles: tuple[str, ...] = TROUBLES
    rate: float = 0.8
    leaps: tuple[int, ...] = (1, 1, 1, 2, 4)
    jobs: dict[str, Job] = field(default_factory=dict)
    executed: Executed = field(default_factory=dict)
    ps: Executed = field(default_factory=dict)
    promises: dict[str, int] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    windows: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._lost: list[str] = []
        self._calls = self._endless()

    def run(self, steps: int) -> Drill:
        """Make this many steps; a step is one call."""
        for _ in range(steps):
            self.step()
        return self

    def step(self) -> None:
        """Make the next call."""
        call, arguments = next(self._calls)
        answer = getattr(self.scheduler, call)(**arguments)
        self.answers.append(answer.to_dict())
        self.broken |= set(self.scheduler.last_change.broken)
        if call == "advance":
            self.completed |= {done.job_id: done.slot for done in answer.completed}
        self._note_promises()

    def _endless(self) -> Iterator[tuple[str, dict[str, Any]]]:
        rng, now = self._rng, 0
        while True:
            for _ in range(int(rng.poisson(self.rate))):
                name = f"j{len(self.jobs)}"
                self.jobs[name] = random_job(rng, name, now)
                yield "submit", {"job": self.jobs[name]}
            if self.troubles and rng.random() < 0.5:
                trouble = self._trouble(str(rng.choice(self.troubles)))
                if trouble is not None:
                    yield trouble
            for _ in range(int(rng.choice(self.leaps))):
                self._execute(1)
                now += 1
                yield "advance", {"now": now}

    def _trouble(self, call: str) -> tuple[str, dict[str, Any]] | None:
        rng, scheduler = self._rng, self.scheduler
        if call in ("lose", "restore"):
            up = [server for server in SERVERS if server not in self._lost]
            choices = self._lost if call == "restore" else up
            if not choices:
                return None
            server = str(rng.choice(choices))
            (self._lost.append if call == "lose" else self._lost.remove)(server)
            return call, {"server": server}
        if call == "reserve":
            window = random_window(rng, scheduler.now)
            self.windows[window["name"]] = window
            return call, window
        running = [name for name in scheduler.jobs if name in self.executed]
        choices = list(scheduler.jobs) if call == "cancel" else running
        if not choices:
            return None
        if call == "revise_all":
            number = int(rng.integers(1, len(choices) + 1))
            some = rng.choice(choices, number, replace=False).tolist()
            self.touched |= set(some)
            return call, {"remaining_work": {name: int(rng.integers(1, 9)) for name in some}}
        name = str(rng.choice(choices))
        self.touched.add(name)
        more = {"remaining_work": int(rng.integers(1, 9))} if call == "revise" else {}
        return call, {"job_id": name, **more}

    def _execute(self, slots: int) -> None:
        lost = {CLUSTER.worker_ids.index(s) for s in self._lost if s in CLUSTER.worker_ids}
        plan = self.scheduler.plan(slots)
        check_windows(plan, self.jobs, self.windows.values())
        for name, schedule in plan.items():
            rows = schedule.workers.tolist()
            assert not lost & {server for _, server, _ in rows}
            self.executed.setdefault(name, []).extend(rows)
            self.ps.setdefault(name, []).extend(schedule.ps.tolist())

    def _note_promises(self) -> None:
        for name in self.scheduler.jobs:
            promise = self.scheduler.promised(name)
            if promise is not None:
                assert self.promises.setdefault(name, promise) == promise

    def verify(self, first: int = 0, end: int | None = None) -> None:
        """Let the verifier judge what was executed in slots ``first .. end - 1``."""
        until = self.scheduler.now if end is None else end
        verify_window(CLUSTER, self.jobs, (self.executed, self.ps), first, until)
        whole = [name for name in self.completed if name not in self.touched]
        is_exact = isinstance(self.scheduler.policy, (oasis.Recourse, oasis.RollingOASiS))
        for name in whole:  # no less than the job needs, and no more where it is planned
            done = sum(count for *_, count in self.executed[name])
            work = self.jobs[name].work(CLUSTER.slot_seconds)
            assert done == work if is_exact else done >= work
            assert self.completed[name] == max(slot for slot, *_ in self.executed[name])


def verify_window(
    cluster: Cluster, jobs: Mapping[str, Job], rows: tuple[Executed, Executed], first: int, end: int
) -> None:
    """Cut an instance out of what was executed in slots ``first .. end - 1`` and verify it."""
    parts, schedules = [], {}
    for name in rows[0]:
        workers, ps = (
            np.array(
                [
                    [slot - first, *rest]
                    for slot, *rest in table.get(name, [])
                    if first <= slot < end
                ],
                dtype=int,
            ).reshape(-1, 3)
            for table in rows
        )
        if len(workers):
            schedules[name] = Schedule(name, workers, ps)
            parts.append(part_of(jobs[name], schedules[name].worker_slots, first))
    oasis.verify(Instance(max(1, end - first), cluster, tuple(parts)), schedules)


def part_of(job: Job, work: int, first: int) -> Job:
    """A job of `work` worker-slots with the demands of `job`, slots counted from `first`."""
    return replace(
        job,
        arrival=max(0, job.arrival - first),
        epochs=work,
        minibatches=1,
        minibatch_time=1 / job.chunks,
        gradient_mb=0.0,
    )


def extent(thing: object) -> int:
    """Numbers, texts and array bytes that hang on an object, each counted once."""
    seen: set[int] = set()
    stack, total = [thing], 0
    while stack:
        current = stack.pop()
        if id(current) in seen or isinstance(current, type) or callable(current):
            continue
        seen.add(id(current))
        if isinstance(current, np.ndarray):
            total += current.nbytes
        elif isinstance(current, Mapping):
            total += len(current)
            stack += [*current.keys(), *current.values()]
        elif isinstance(current, (list, tuple, set, frozenset, deque)):
            total += len(current)
            stack += current
        else:
            stack += vars(current).values() if hasattr(current, "__dict__") else []
            for cls in type(current).__mro__:
                names = getattr(cls, "__slots__", ())
                stack += [getattr(current, name) for name in names if hasattr(current, name)]
            total += 1
    return total


if __name__ == "__main__":  # a service that is killed: it prints the number of each call
    journal, kind, seed, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    drill = Drill(KINDS[kind](), seed)
    drill.scheduler.open_journal(journal)
    for step in range(steps):
        drill.step()
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
        if step % 7 == 6:
            drill.scheduler.checkpoint()
