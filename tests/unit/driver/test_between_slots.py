"""Starts between boundaries: nothing changes but that jobs complete sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from baselines import FIFO, SRTF
from oasis.driver.between import EarlyStarts
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.driver.service import Submission
from oasis.model.instance import Instance
from oasis.scheduling.policy import Policy
from oasis.scheduling.site import site_of

SLOTS = 40  # of each stream; some jobs are never done


@dataclass
class World:
    """Gangs that work at once and without a break, jobs that come in the middle of slots."""

    make: Callable[[], Policy]
    instance: Instance
    arrivals: list[float]
    is_early: bool
    ends_itself: bool = False
    done: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    history: list[Any] = field(default_factory=list)
    started_early: int = 0
    told_at: int = SLOTS  # the first boundary that tells the policy of an early end

    def __post_init__(self) -> None:
        site = site_of(self.instance.cluster)
        self.driver: Driver[Any] = Driver(self.make(), site)
        self.early = EarlyStarts(self.driver)
        self.specs = {
            job.id: replace(
                Submission(job.id, replace(job, arrival=0)), ends_itself=self.ends_itself
            )
            for job in self.instance.jobs
        }
        self.gone: set[str] = set()

    def known(self, at: float) -> dict[str, Any]:
        """Jobs that have come, are not complete and were not turned away."""
        return {
            job.id: self.specs[job.id]
            for job, arrival in zip(self.instance.jobs, self.arrivals, strict=True)
            if arrival <= at and job.id not in self.ends and job.id not in self.gone
        }

    def run(self) -> World:
        for slot in range(SLOTS):
            self.boundary(slot)
            times = sorted(a for a in set(self.arrivals) if slot < a < slot + 1)
            for begin, end in zip([float(slot), *times], [*times, slot + 1.0], strict=True):
                if begin > slot and self.is_early:
                    self.look(begin)
                self.work(begin, end)
            if not self.driver.entries and slot > max(self.arrivals):
                break
        return self

    def boundary(self, slot: int) -> None:
        # What is complete is told once: then the world has it no longer.
        known = self.known(slot)
        known |= {uid: self.specs[uid] for uid in self.ends if uid in self.early.live}
        forms = self.early.begin()
        facts: Facts[Any] = Facts(known, dict(self.done), ended=self.ended(), forms=forms)
        outcome = self.driver.boundary(slot, facts)
        assert not outcome.error, outcome.error
        held = {e.spec.uid: (e.allocation, round(e.done, 6)) for e in self.driver.entries.values()}
        self.history.append((slot, sorted(outcome.rejected), sorted(outcome.given_up), held))
        gone = outcome.rejected.keys() | outcome.given_up.keys()
        self.gone |= gone - self.ends.keys()
        if any(entry.early for entry in outcome.entries.values()):
            self.told_at = min(self.told_at, slot)
        assert not self.ends.keys() & self.driver.by_uid.keys(), "whatever ended was told"

    def ended(self) -> frozenset[str]:
        """Jobs that say themselves that they are complete."""
        return frozenset(self.ends) if self.ends_itself else frozenset()

    def look(self, at: float) -> None:
        new = {uid: s for uid, s in self.known(at).items() if uid not in self.driver.by_uid}
        over = self.ends.keys() & self.early.held.keys()
        self.early.end(over)
        new |= {uid: self.specs[uid] for uid in over}
        rehearsal = self.early.rehearsal(new, self.ended())
        assert rehearsal is not None
        before = set(self.early.held)
        self.early.take(rehearsal())
        self.started_early += len(self.early.held.keys() - before)

    def work(self, begin: float, end: float) -> None:
        for uid, entry in self.early.live.items() if self.is_early else self.driver.by_uid.items():
            workers = entry.allocation.worker_count
            if not workers or uid in self.ends:
                continue
            done, work = self.done.get(uid, 0.0), entry.work
            if self.ends_itself:
                work = 1.1 * work0(self, uid)
            self.done[uid] = done + workers * (end - begin)
            if self.done[uid] >= work - 1e-9:
                self.ends[uid] = begin + (work - done) / workers
                self.done[uid] = work


def work0(world: World, uid: str) -> float:
    job = world.specs[uid].job
    return float(job.work(world.instance.cluster.slot_seconds))


POLICIES: dict[str, Callable[[Instance], Policy]] = {
    "recourse": lambda _: oasis.Recourse.rolling(15, rounds=1),
    "promises": lambda _: oasis.Recourse.rolling(15, "arrival", rounds=1, samples=1),
    "oasis": lambda found: oasis.OASiS.rolling(15, oasis.PriceBounds.from_instance(found)),
    "fifo": lambda _: FIFO(3),
    "srtf": lambda _: SRTF(3),
}


def stream(seed: int) -> tuple[Instance, list[float]]:
    """A random cluster, and jobs that come at any time of the first slots."""
    rng = np.random.default_rng(seed)
    jobs, servers = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    sizes = {"worker_servers": servers, "ps_servers": servers, "horizon": 20}
    found = oasis.generate("calibrated", jobs=jobs, seed=seed, **sizes)
    times = sorted((rng.random(jobs) * rng.choice([2.0, 6.0])).tolist())
    return replace(found, jobs=tuple(replace(job, arrival=0) for job in found.jobs)), times


@pytest.mark.parametrize("name", POLICIES)
def test_until_an_early_end_is_told_nothing_is_decided_otherwise(name: str) -> None:
    started = sooner = 0
    for seed in range(40):
        instance, times = stream(seed)
        make = partial(POLICIES[name], instance)
        ends_itself = seed % 4 == 3
        without = World(make, instance, times, False, ends_itself).run()
        early = World(make, instance, times, True, ends_itself).run()
        started += early.started_early
        for uid, end in without.ends.items():
            assert end > early.told_at or early.ends[uid] <= end + 1e-9, (seed, uid)
            sooner += early.ends.get(uid, end) < end - 1e-9
        both = min(len(without.history), early.told_at)
        assert early.history[:both] == without.history[:both], seed
    assert started > 1
    assert sooner > 0
