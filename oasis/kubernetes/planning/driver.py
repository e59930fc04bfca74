"""Drives a policy slot by slot with what was seen on the cluster, as the simulator does on events.

No input or output here: facts go in at each boundary between slots, decisions come out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oasis.kubernetes.cluster.nodes import cluster_of
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.planning.entry import Entry, Facts, Outcome
from oasis.kubernetes.planning.rest import rest_of
from oasis.kubernetes.planning.view import ClusterView
from oasis.model.errors import PolicyError
from oasis.model.job import Job
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.model_job import policy_job
from oasis.scheduling.parameter_servers import FixedPs
from oasis.scheduling.policy import Plan, Policy
from oasis.scheduling.room import Room
from oasis.scheduling.site import Site

REACH = 1000  # delays, in slots, that the utility of a job that is planned anew is known for
LONGEST_WAIT = 64  # slots between two attempts of a rejected job


class Driver:
    """Asks a policy at each boundary and keeps what it answered.

    Parameters
    ----------
    policy : Policy
        What decides.
    site : Site
        The machines.

    Attributes
    ----------
    entries : dict of int to Entry
        Live jobs by index, in order of arrival.
    slot : int or None
        The slot of the last boundary.
    """

    def __init__(self, policy: Policy, site: Site) -> None:
        self.policy = policy
        self.slot: int | None = None
        self.entries: dict[int, Entry] = {}
        self.retries: dict[str, tuple[int, int, int]] = {}  # uid: arrived, due, attempts
        self.settled: set[str] = (
            set()
        )  # uids of jobs that ended, as long as their objects are there
        self.down: set[int] = set()
        self._arrive_again: list[Entry] = []
        self._next = 0
        self._begin(site)

    def _begin(self, site: Site) -> None:
        if plans_ahead(self.policy):
            cluster_of(site)  # refuses machines that the two groups of the model share
        self.policy.reset(site)
        self.site = site
        self.down.clear()
        self._wake_at: float | None = None

    @property
    def by_uid(self) -> dict[str, Entry]:
        """Live jobs by the uid of their object."""
        return {entry.spec.uid: entry for entry in self.entries.values()}

    def boundary(self, slot: int, facts: Facts) -> Outcome:
        """Begin `slot`: take in what happened, and ask the policy.

        Raises
        ------
        PolicyError
            If the policy asks for what cannot run; everything then stays as it was.
        """
        outcome = Outcome()
        passed = 0 if self.slot is None else slot - self.slot
        self.slot = slot
        for entry in self.entries.values():
            entry.held += passed if entry.allocation.workers else 0
            entry.done = max(entry.done, facts.done.get(entry.spec.uid, 0.0))
            loss = facts.losses.get(entry.spec.uid)
            if loss is not None and entry.allocation.workers:
                entry.observe(slot, loss)
        view = ClusterView(self.site, slot, self.entries, self.down, self._told, self.policy.name)
        anew = self._leave(facts, view, outcome)
        self._machines(facts, view)
        self._arrive(facts, slot, view, anew)
        if self._is_due(slot, view):
            self._ask(view, outcome)
        for entry in self.entries.values():
            entry.settle()
        return outcome

    def rebuild(self, site: Site) -> None:
        """Begin anew on other machines: at the next boundary all live jobs arrive once more."""
        self._begin(site)
        self._arrive_again = list(self.entries.values())
        self.entries.clear()

    # -- what happened -----------------------------------------------------------------------------

    def _leave(self, facts: Facts, view: ClusterView, outcome: Outcome) -> list[Entry]:
        """Take out what completed, was deleted or was edited; edited jobs come back as new ones."""
        anew, self._arrive_again = self._arrive_again, []
        anew = [entry for entry in anew if entry.spec.uid in facts.specs]
        withdraw = getattr(self.policy, "withdraw", None)
        for index, entry in list(self.entries.items()):
            uid = entry.spec.uid
            spec = facts.specs.get(uid)
            is_done = entry.remaining <= TOLERANCE * max(1.0, entry.work) or uid in facts.ended
            if is_done:
                outcome.completed.append(uid)
                outcome.entries[uid] = entry
                self.settled.add(uid)
                view.finished.append(entry.job)
            elif spec is None or _differs(spec, entry.spec):
                if withdraw is not None:
                    withdraw(entry.job)
                else:
                    view.finished.append(entry.job)
                if spec is not None:
                    entry.spec = spec
                    anew.append(entry)
            else:
                entry.spec = spec
                continue
            del self.entries[index]
        self.settled &= facts.specs.keys()
        for uid in self.retries.keys() - facts.specs.keys():
            del self.retries[uid]
        return sorted(anew, key=lambda entry: entry.arrived)

    def _machines(self, facts: Facts, view: ClusterView) -> None:
        view.lost += sorted(facts.down - self.down)
        view.returned += sorted(self.down - facts.down)
        self.down.clear()
        self.down.update(facts.down)
        for entry in self.entries.values():
            if entry.allocation.machines & set(view.lost):
                entry.allocation = NOTHING
                entry.waiting_since = int(view.now)
                view.evicted.append(entry.job)

    def _arrive(self, facts: Facts, slot: int, view: ClusterView, anew: list[Entry]) -> None:
        for entry in anew:
            self._enter(entry, slot, view)
        known = {entry.spec.uid for entry in self.entries.values()} | self.settled
        for uid, spec in facts.specs.items():
            arrived, due, _ = self.retries.get(uid, (slot, slot, 0))
            if uid not in known and due <= slot:
                done = facts.done.get(uid, 0.0)
                self._enter(Entry(spec, _NO_JOB, arrived, 0.0, done), slot, view)

    def _enter(self, entry: Entry, slot: int, view: ClusterView) -> None:
        """Let a job arrive in `slot`, be it for the first time or with what is left of it."""
        spec = entry.spec
        entry.work = policy_job(spec.job, self.site).work
        source = replace(spec.job, arrival=entry.arrived)
        if entry.arrived < slot or entry.done:
            left = max(1, math.ceil(entry.remaining - TOLERANCE * max(1.0, entry.work)))
            source = rest_of(source, left, slot, REACH)
        fixed = spec.initial_workers
        if entry.given is not None:  # whoever draws counts would draw another
            fixed = min(max(entry.given, spec.min_workers), source.chunks)
        self._show(entry, self.as_seen(spec, source, self._next, fixed))
        entry.allocation = NOTHING
        entry.waiting_since = slot
        self._next += 1
        self.entries[entry.job.index] = entry
        view.arrived.append(entry.job)

    def as_seen(self, spec: JobSpec, source: Job, index: int, fixed: int | None) -> PolicyJob:
        """The job as a policy sees it that is told its work."""
        job = policy_job(source, self.site)
        if spec.fixed_ps is not None:
            job = replace(job, ps_per_worker=0.0, ps_rule=FixedPs(spec.fixed_ps))
        return replace(job, index=index, initial_workers=fixed)

    def _show(self, entry: Entry, job: PolicyJob) -> None:
        """Note `job` as the policy sees it: without its work, unless it is told that."""
        entry.left = job.work
        entry.job = job if self._told else job.untold(self.policy.name)

    @property
    def _told(self) -> bool:
        return bool(getattr(self.policy, "told_remaining", False))

    def _is_due(self, slot: int, view: ClusterView) -> bool:
        happened = view.arrived or view.finished or view.evicted or view.lost or view.returned
        woken = self._wake_at is not None and slot >= self._wake_at
        return bool(happened or woken or self.policy.slotted or self._withdrawn())

    def _withdrawn(self) -> bool:
        return bool(getattr(self.policy, "withdrawn", ()))

    # -- what is decided ---------------------------------------------------------------------------

    def _ask(self, view: ClusterView, outcome: Outcome) -> None:
        plan = self.policy.decide(view)
        self._check(plan, view)
        self._wake_at = plan.wake_at
        for index, reason in plan.rejected.items():
            self._reject(self.entries.pop(index), str(reason), outcome)
        for index, allocation in plan.changes.items():
            self._hold(self.entries[index], allocation, int(view.now), outcome)
        for job in view.arrived:
            entry = self.entries.get(job.index)
            if entry is not None and not entry.admitted:
                entry.admitted = True
                self.retries.pop(entry.spec.uid, None)
                outcome.admitted.append(entry.spec.uid)
        late: set[int] = getattr(self.policy, "late", set())
        outcome.late += [e.spec.uid for e in self.entries.values() if e.job.index in late]

    def _hold(self, entry: Entry, allocation: Allocation, slot: int, outcome: Outcome) -> None:
        if allocation == entry.allocation:
            return
        entry.allocation = allocation
        if allocation.workers:
            entry.waiting_since, entry.given = None, allocation.worker_count
        elif entry.waiting_since is None:
            entry.waiting_since = slot
        outcome.changed.append(entry.spec.uid)

    def _reject(self, entry: Entry, reason: str, outcome: Outcome) -> None:
        uid = entry.spec.uid
        if entry.admitted:
            outcome.given_up[uid] = reason
            self.settled.add(uid)
            return
        outcome.rejected[uid] = reason
        if entry.spec.on_rejection == "fail":
            self.settled.add(uid)
        if entry.spec.on_rejection == "retry":
            _, _, attempts = self.retries.get(uid, (0, 0, 0))
            assert self.slot is not None
            due = self.slot + min(LONGEST_WAIT, 2**attempts)
            self.retries[uid] = (entry.arrived, due, attempts + 1)
            outcome.retried[uid] = due

    def _check(self, plan: Plan, view: ClusterView) -> None:
        """Raise `PolicyError` unless `plan` can be carried out as it is."""
        for index in (*plan.changes, *plan.rejected):
            if index not in self.entries:
                raise PolicyError(self.policy.name, "expected an unfinished job", job=str(index))
        room = Room(self.site, view.free(), view.down())
        for index in (*plan.changes, *plan.rejected):
            room.release(self.entries[index].job, self.entries[index].allocation)
        for index, allocation in plan.changes.items():
            job = self.entries[index].job
            if allocation != NOTHING and not job.works_with(allocation):
                detail = f"an incomplete gang of {allocation.worker_count} workers"
                raise PolicyError(self.policy.name, detail, job=job.id)
            if not room.hold(job, allocation):
                raise PolicyError(self.policy.name, "more than is free", job=job.id)

    # -- what lasts --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data from which `restore` goes on; the policy's own state is not part of it."""
        return {
            "slot": self.slot,
            "next": self._next,
            "wake_at": self._wake_at,
            "down": sorted(self.down),
            "settled": sorted(self.settled),
            "retries": {uid: list(entry) for uid, entry in self.retries.items()},
            "entries": [entry.state() for entry in self.entries.values()],
        }

    def remember(self, spec: JobSpec, arrived: int, done: float, given: int | None = None) -> None:
        """Let a job that was accepted before arrive once more at the next boundary."""
        entry = Entry(spec, _NO_JOB, arrived, 0.0, done, admitted=True, given=given)
        self._arrive_again.append(entry)

    def restore(
        self, state: Mapping[str, Any], specs: Mapping[str, JobSpec], *, remake: bool = False
    ) -> None:
        """Go on from `state`.

        Parameters
        ----------
        state : mapping
            From `state`.
        specs : mapping of str to JobSpec
            The jobs that are there, by uid.
        remake : bool
            Whether the policy does not know these jobs: they arrive once more.
        """
        self.slot, self._next = state["slot"], state["next"]
        self._wake_at = state["wake_at"]
        self.settled.update(state["settled"])
        self.retries = {uid: (a, b, c) for uid, (a, b, c) in state["retries"].items()}
        if remake:
            for found in state["entries"]:
                spec = specs.get(found["uid"])
                if spec is not None:
                    self.remember(spec, found["arrived"], found["done"], found["given"])
                    again = self._arrive_again[-1]
                    again.begun = found["given"] is not None
                    for name in ("admitted", "resizes", "restarts"):
                        setattr(again, name, found[name])
            return
        self.down.update(state["down"])
        for found in state["entries"]:
            spec = specs[found["uid"]]
            entry = Entry(spec, _NO_JOB, found["arrived"], policy_job(spec.job, self.site).work)
            source = replace(spec.job, arrival=entry.arrived)
            if found["since"] != entry.arrived or found["left"] != entry.work:
                source = rest_of(source, math.ceil(found["left"]), found["since"], REACH)
            self._show(entry, self.as_seen(spec, source, found["index"], found["fixed"]))
            workers, ps = (
                tuple((machine, count) for machine, count in tasks) for tasks in found["allocation"]
            )
            entry.allocation = Allocation(workers, ps)
            for name in STATE:
                setattr(entry, name, found[name])
            entry.settled, entry.begun = entry.allocation, entry.given is not None
            entry.observed = [(slot, loss) for slot, loss in found["observed"]]
            self.entries[entry.job.index] = entry


def _differs(one: JobSpec, other: JobSpec) -> bool:
    """Whether an edit changes what a policy plans with."""
    if one.generation == other.generation:
        return False
    return (one.job, one.initial_workers) != (other.job, other.initial_workers)


_NO_JOB: Any = None
STATE = ("done", "held", "waiting_since", "admitted", "given", "resizes", "restarts")


def plans_ahead(policy: Policy) -> bool:
    """Whether a policy plans in OASiS's model, whose two groups of machines are disjoint.

    OASiS and recourse have a scheduler of their own here; recourse of the simulator, which is taken
    where there is a horizon, has a planner.
    """
    return hasattr(policy, "scheduler") or hasattr(policy, "planner")
