"""Known windows hold, and a minimum run time does, whatever policy plans around them."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import oasis
from baselines.registry import ALL
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts, Submission
from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.schedule import SERVER, SLOT
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.policy import Planner, Policy, wants
from oasis.scheduling.site import site_of
from tests.unit.kubernetes.fakes import cluster_with, site_for, specs_of
from tests.unit.online.test_recourse_stays import cluster_of_equals

SLOTS = 30
PLANNERS = {
    "none": lambda i: oasis.Recourse.rolling(12, "none", rounds=2, keep_admitted=True),
    "start": lambda i: oasis.Recourse.rolling(12, "start", rounds=2, keep_admitted=True),
    "arrival": lambda i: oasis.Recourse.rolling(12, "arrival", rounds=2, keep_admitted=True),
    "prices": lambda i: oasis.Recourse.rolling(
        12, "arrival", rounds=2, bounds=oasis.PriceBounds.from_instance(i), keep_admitted=True
    ),
    "oasis": lambda i: oasis.OASiS.rolling(
        12, oasis.PriceBounds.from_instance(i), keep_admitted=True
    ),
}
Make = Callable[[oasis.Instance], Policy]


def calendar_of(seed, site):
    """Random windows, each with the slot in which it is declared: some late, some in time."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(int(rng.integers(1, 5))):
        begin = int(rng.integers(0, SLOTS - 6))
        end = begin + int(rng.integers(1, 7))
        chosen = rng.choice(len(site.machines), int(rng.integers(1, 3)), replace=False).tolist()
        declared = 0 if rng.random() < 0.6 else int(rng.integers(0, begin + 1))
        found.append((declared, CalendarEntry(f"w{k}", begin, end, frozenset(chosen))))
    return found


@dataclass
class World:
    """A cluster on which everything that is planned is done; it looks at all that is held."""

    instance: oasis.Instance
    make: Make
    windows: list[tuple[int, CalendarEntry]]
    restarts_at: int | None = None
    told: bool = True
    is_clear: bool = False
    done: dict[str, float] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    history: list[Any] = field(default_factory=list)
    promised: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self):
        self.site = site_of(self.instance.cluster)
        self.driver: Driver[Any] = Driver(self.make(self.instance), self.site)
        self.specs = {
            job.id: Submission(job.id, replace(job, arrival=0))
            for job in self.instance.jobs_by_arrival()
        }
        self.arrivals = {job.id: job.arrival for job in self.instance.jobs}

    def run(self):
        for slot in range(SLOTS):
            if slot == self.restarts_at:
                self.restart()
            known = {
                uid: spec
                for uid, spec in self.specs.items()
                if self.arrivals[uid] <= slot and uid not in self.ends and uid not in self.gone
            }
            windows = tuple(w for declared, w in self.windows if declared <= slot < w.end)
            given = {"calendar": Calendar(windows)} if self.told else {}
            outcome = self.driver.boundary(slot, Facts(known, dict(self.done), **given))
            assert outcome.error is None, outcome.error
            assert not outcome.failed, outcome.failed
            self.ends |= dict.fromkeys(outcome.completed, slot - 1)
            self.gone |= outcome.rejected.keys() | outcome.given_up.keys()
            self.note(slot, outcome.admitted)
            for uid, entry in self.driver.by_uid.items():
                self.done[uid] = self.done.get(uid, 0.0) + entry.allocation.worker_count
                self.history.append((slot, uid, entry.allocation))
            self.check(slot)
            assert not self.is_clear or not planned_on_closed(self)
        return self

    def note(self, slot, admitted):
        policy = self.driver.policy
        if isinstance(policy, Planner):
            for uid in admitted:
                promise = policy.promised(self.driver.by_uid[uid].job)
                if promise is not None:
                    self.promised[uid] = slot, promise

    def restart(self):
        state, policy = json.loads(json.dumps([self.driver.state(), self.driver.kept_policy]))
        self.driver = Driver(self.make(self.instance), self.site)
        self.driver.restore(state, self.specs, lambda _, spec: spec)
        self.driver.bring_policy(policy)

    def check(self, slot):
        """The oracle: from the windows as they were declared, and what each job holds."""
        for declared, window in self.windows:
            if declared <= slot and window.holds(slot):
                for uid, entry in self.driver.by_uid.items():
                    on = entry.allocation.machines & window.machines
                    assert not on, f"{uid} on closed {on} in {slot}"


def instance_of(seed):
    return oasis.generate("testbed", jobs=10, seed=seed, horizon=SLOTS)


def planned_on_closed(world):
    """Places of the plan where a window that is declared closes the machine."""
    first_ps = len(world.instance.cluster.worker_ids)
    windows = Calendar(tuple(window for _, window in world.windows))
    return [
        (name, row[SLOT], row[SERVER] + offset)
        for name, (schedule, _) in world.driver.policy.planned().items()
        if schedule is not None
        for rows, offset in ((schedule.workers, 0), (schedule.ps, first_ps))
        for row in rows.tolist()
        if row[SERVER] + offset in windows.closed(row[SLOT])
    ]


@pytest.mark.parametrize("name", PLANNERS)
def test_plans_keep_to_windows_and_promises(name):
    """Windows that are known from the beginning and such that come late; promises made since."""
    completed = 0
    for seed in (0, 1, 2, 3):
        instance = instance_of(seed)
        windows = calendar_of(seed, site_of(instance.cluster))
        if (
            seed % 2
        ):  # in time: no job is ever planned, at its admission or later, where it has to go
            windows = [(0, window) for _, window in windows]
        world = World(instance, PLANNERS[name], windows, is_clear=bool(seed % 2)).run()
        completed += len(world.ends)
        last = max(declared for declared, _ in windows)
        for uid, (made, promise) in world.promised.items():
            if made >= last and promise < SLOTS - 1:
                assert world.ends.get(uid, SLOTS) <= promise, f"{uid} was promised {promise}"
    assert completed > 10


@pytest.mark.parametrize("name", sorted(ALL))
def test_policies_of_the_present_slot_keep_to_windows(name):
    make = cluster_policy(name, {}, lookahead=SLOTS, bounds=None)
    for seed in (1, 4):
        instance = instance_of(seed)
        World(instance, lambda _: make(), calendar_of(seed, site_of(instance.cluster))).run()


@pytest.mark.parametrize("name", ["arrival", "oasis", "fifo", "srtf"])
def test_an_empty_calendar_changes_nothing_and_a_restart_neither(name):
    make: Make = PLANNERS.get(name) or (lambda _: ALL[name]())
    instance = instance_of(3)
    plain = World(instance, make, [], told=False).run()
    assert plain.history == World(instance, make, []).run().history
    windows = calendar_of(2, site_of(instance.cluster))
    world = World(instance, make, windows).run()
    assert world.history != plain.history
    assert World(instance, make, windows, restarts_at=9).run().history == world.history


# -- run times -------------------------------------------------------------------------------------

KEEPING = [
    name
    for name in sorted(POLICIES)
    if name != "oasis" and wants(cluster_policy(name, {}, lookahead=40)(), "keeps_run_times")
]


class Steady:
    """Runs a driver that keeps a job as it is for `minimum` slots."""

    def __init__(self, instance, policy, minimum):
        self.jobs, self.minimum = specs_of(instance), minimum
        self.driver: Driver[Any] = Driver(policy, site_for(instance, None), minimum)
        self.done: dict[str, float] = {}
        self.over: dict[str, int] = {}
        self.held: dict[str, Allocation] = {}
        self.since: dict[str, int] = {}
        self.down: frozenset[int] = frozenset()

    def step(self, slot):
        there = {u: s for u, (s, at) in self.jobs.items() if at <= slot and u not in self.over}
        outcome = self.driver.boundary(slot, Facts(there, dict(self.done), down=self.down))
        assert outcome.error is None, outcome.error
        assert not outcome.failed
        live = self.driver.by_uid
        for uid in (*outcome.completed, *outcome.rejected, *outcome.given_up):
            self.over[uid] = slot
        for uid, entry in live.items():
            before, after = self.held.get(uid, NOTHING), entry.allocation
            if after != before:
                if before.workers and not before.machines & self.down:
                    assert slot >= self.since[uid] + self.minimum, (uid, slot)
                self.since[uid] = slot
            self.held[uid] = after
            self.done[uid] = self.done.get(uid, 0.0) + after.worker_count


def policy_for(name):
    return cluster_policy(name, {}, lookahead=40)()


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("seed", range(6))
def test_no_job_is_changed_before_its_time(name, seed):
    instance = cluster_of_equals(seed)
    world = Steady(instance, policy_for(name), 1 + seed)
    rng = random.Random(seed)
    for slot in range(40):
        world.down = frozenset({0}) if rng.random() < 0.1 else frozenset()
        world.step(slot)
        if len(world.over) == len(world.jobs):
            break
    assert world.over, "jobs end"


def on_a_cluster(instance, name):
    """What a policy decides on a cluster in memory, one machine of which is down for a while."""
    cluster = cluster_with(name, instance, more=1)
    cluster.down = {slot: {0} for slot in range(1, 3)}
    cluster.run(3 * instance.horizon)
    return cluster.completed, cluster.rejected, cluster.history


@pytest.mark.parametrize("name", POLICIES)
def test_a_cluster_needs_no_node_for_parameter_servers(name):
    sizes = {"jobs": 5, "worker_servers": 3, "horizon": 8}
    instance = oasis.generate("testbed", **sizes, ps_servers=0, seed=2)
    found = on_a_cluster(instance, name)
    assert found[0]
    machine = oasis.Server("unused", instance.cluster.worker_servers[0].capacity, count=2)
    other = replace(instance, cluster=replace(instance.cluster, ps_servers=(machine,)))
    assert found == on_a_cluster(other, name)
