"""Risk-reward heuristic: admission by expected gain, then the most rewarding jobs first."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from baselines.counts import FixedCountPolicy
from baselines.fair_shares import Shares
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE, FloatArray, IntArray, difference, key
from oasis.scheduling import NOTHING, Plan, PolicyJob, Room, Site, View

SHORTEST = 1e-9  # a job that is done but for rounding still has a reward


def worth_by_slot(job: PolicyJob, horizon: float | None) -> FloatArray:
    """Utility of completing `job` in each slot, and 0 after the horizon: shape (T + 1,)."""
    if horizon is None or not job.has_utility:
        return np.ones(1)
    worth = np.zeros(int(horizon) + 1)
    first = int(job.arrival)
    # The last entry stays 0: it is what all completions after the horizon are worth.
    worth[first:-1] = job.utility(np.arange(int(horizon) - first))
    return worth


class DelayCosts:
    """What n jobs are worth at one moment, and what they lose if one delays the others."""

    def __init__(
        self,
        now: float,
        remaining: FloatArray,
        tables: Sequence[FloatArray],
        shares: Sequence[float],
        discount: float,
    ) -> None:
        self.remaining, self._shares, self._discount = remaining, shares, discount
        self._ends = now + remaining
        self._worth = np.array(tables).reshape(len(remaining), -1)
        self._rows = np.arange(len(remaining))
        # Used for every pair of jobs below, and the same for all of them.
        self._now_worth = self._at(self._ends)
        self.present = self._now_worth / (1 + discount * remaining)  # PV, if it runs now to its end

    def cost(self, k: int) -> float:
        """Return what the other jobs lose by waiting for job `k`, times its cluster share."""
        lost = self._lost(k)
        # A job does not compete with itself; of the others it holds
        # up as much as it takes of the cluster.
        return float(lost.sum() - lost[k]) * self._shares[k]

    def rewards(self, weight: float) -> list[float]:
        """Return (weight PV - (1 - weight) cost) / RPT of each of the n jobs."""
        costs = np.array([self.cost(k) for k in range(len(self.remaining))])
        gains = map(rounding.difference, weight * self.present, (1 - weight) * costs)
        return [
            key(gain / max(time, SHORTEST))
            for gain, time in zip(gains, self.remaining, strict=True)
        ]

    def candidate(self, k: int, order: Sequence[int]) -> tuple[float, float]:
        """Return discounted yield and opportunity cost of job `k` if jobs run in this `order`."""
        # The cluster is one resource of which each job takes its share, in strict order: `k` waits
        # until those before it leave room, and only those behind it wait for `k`.
        place = list(order).index(k)
        ends = self._ends + self._delay(order[: place + 1])
        value = self._at(ends)[k] / (1 + self._discount * self.remaining[k])
        lost = self._lost(k)
        return float(value), float(sum(lost[j] for j in order[place + 1 :])) * self._shares[k]

    def _delay(self, order: Sequence[int]) -> float:
        """Return when the last job of `order` starts, counted from now."""
        running: list[tuple[float, float]] = []
        now, free = 0.0, 1.0
        # The cluster as one resource: each job waits until the shares before it leave enough.
        for j in order:
            while running and self._shares[j] > free + TOLERANCE:
                now, share = heappop(running)
                free += share
            heappush(running, (now + float(self.remaining[j]), self._shares[j]))
            free -= self._shares[j]
        return now

    def _lost(self, k: int) -> FloatArray:
        """Return what each job loses if it is delayed by the remaining time of job `k`."""
        return self._now_worth - self._at(self._ends + self.remaining[k])

    def _at(self, ends: FloatArray) -> FloatArray:
        # Work that ends at time e completes in the slot ceil(e) - 1.
        # Clipped as floats: the end of an absurdly long job is beyond all integers.
        """Return what each of the n jobs is worth if it ends at these times."""
        last = self._worth.shape[1] - 1
        slots: IntArray = np.clip(rounding.ceil(ends) - 1, 0, last).astype(np.int64)
        worth: npt.NDArray[np.float64] = self._worth[self._rows, slots]
        return worth


class RRH(FixedCountPolicy):
    """Jobs are admitted if their gain outweighs the delay they cause; the best run, others pause.

    Irwin, Grit and Chase (HPDC 2004, "Balancing risk and reward in a market-based task service")
    fix: the value of a task decays linearly with its delay, down to a bound; present value
    PV = yield / (1 + discount RPT), with RPT the remaining processing time and yield what the task
    earns if it runs now to its end; opportunity cost, the sum over the competing tasks j of
    decay_j min(RPT, time until the value of j has reached its bound); reward
    (weight PV - (1 - weight) cost) / RPT, highest first, preemptive; admission by slack,
    (PV - cost) / decay against a threshold, with the yield that the task would have in the
    candidate schedule and the cost to those behind it there. Only the abstract of the paper could
    be found: it has the linear decay, the opportunity cost, the risk of an uncertain future job mix
    and admission; the formulas are recalled, not checked. The OASiS paper fixes (section V-A):
    admission if the utility minus the delay cost exceeds a threshold; the counts as for FIFO;
    decisions at arrivals and completions; placement round-robin. In the figures of that paper this
    policy earns more than the published RRH (docs/figures).

    Chosen: `discount`, `weight` and `threshold`; decay times time, which a sigmoid does not have,
    is what a job loses when it ends RPT later, which is the same for linear values; of this the
    part that is the job's dominant share of the cluster, since on many machines it holds up only so
    much; admission in units of utility, as in the OASiS paper, not in those of time; the candidate
    schedule takes the cluster for one resource that the jobs fill in order of reward; running jobs
    are replaced only where a more rewarding one needs the room; a job that can earn nothing any
    more runs last. A job without utility (plain trace) is worth 1 whenever it ends.

    Parameters
    ----------
    seed : int or None
        Seed of the random draw of each job's fixed numbers of workers and parameter servers; None:
        nothing is drawn, each job has the most workers that it can.
    threshold : float
        Least gain of an admitted job, units of utility; the gain must exceed it.
    discount : float
        Rate per slot by which what is earned later counts less.
    weight : float
        Weight of the reward against that of the risk, 0 to 1.
    placement : str or None
        Rule by which tasks are placed on machines, such as ``best-fit``; None: round-robin on
        instances, best fit elsewhere.

    Examples
    --------
    The more a job must bring, the fewer are admitted:

    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=8, seed=1)
    >>> [oasis.simulate(instance, RRH(threshold=least)).admitted for least in (0.0, 40.0)]
    [7, 3]
    """

    name = "rrh"
    needs = "what jobs are worth"
    told_remaining = True

    def __init__(
        self,
        seed: int | None = 0,
        threshold: float = 0.0,
        discount: float = 0.01,
        weight: float = 0.5,
        *,
        placement: str | None = None,
    ) -> None:
        if discount < 0 or not 0 <= weight <= 1:
            raise InputError("", "expected discount >= 0 and weight in 0..1")
        super().__init__(seed, placement=placement)
        self.threshold, self.discount, self.weight = threshold, discount, weight

    def reset(self, site: Site) -> None:
        super().reset(site)
        self._shares = Shares(site)
        self._jobs, self._needs = self._book.jobs, self._book.counts
        self._tables: dict[int, FloatArray] = {}

    def decide(self, view: View) -> Plan:
        plan = Plan()
        # Finished jobs are struck first: they compete with no newcomer any more.
        for job in view.finished:
            self._strike(job)
        for job in view.arrived:
            if self._book.enter(job, plan):
                self._admit(job, view, plan)
        # Arrivals and completions, as in the paper, and losses and returns of machines, which it
        # does not have. In between rewards change, but no job is moved.
        if view.finished or view.arrived or view.evicted or view.returned:
            self._serve(view, plan)
        return plan

    def _admit(self, job: PolicyJob, view: View, plan: Plan) -> None:
        """Admit or reject a new `job`, by its gain and the delay it causes to accepted jobs."""
        self._tables[job.index] = worth_by_slot(job, self._site.horizon)
        delays = self._delay_costs(view)
        rewards = delays.rewards(self.weight)
        newest = len(rewards) - 1
        # The candidate schedule: all accepted jobs and this one, by reward, early arrivals first.
        order = sorted(range(len(rewards)), key=lambda k: (-rewards[k], k))
        value, cost = delays.candidate(newest, order)
        # A job that earns nothing is refused at a negative threshold, too.
        if value <= 0 or difference(difference(value, cost), self.threshold) <= 0:
            self._strike(job)
            gain = f"gain {value:.6g} - {cost:.6g}"
            plan.rejected[job.index] = f"{gain}, needs more than {self.threshold:g}"

    def _strike(self, job: PolicyJob) -> None:
        """Forget a job that has ended or was rejected."""
        self._book.strike(job)
        del self._tables[job.index]

    def _serve(self, view: View, plan: Plan) -> None:
        """Place jobs in order of reward; running jobs stay unless a better one needs the room."""
        if not self._jobs:
            return
        room = Room(self._site, view.capacity(), view.down())
        worth = self._delay_costs(view).rewards(self.weight)
        rewards = dict(zip(self._jobs, worth, strict=True))
        for index in sorted(rewards, key=lambda index: (-rewards[index], index)):
            job = self._jobs[index]
            before = view.allocation(job)
            if before.workers and room.hold(job, before):
                continue  # no job before it needed its place: moving it would gain nothing
            allocation = self._placement.place(room, job, *self._needs[index]) or NOTHING
            if allocation != before:
                plan.changes[index] = allocation

    def _delay_costs(self, view: View) -> DelayCosts:
        """Compute values and delay costs of all accepted jobs now, in order of arrival."""
        return DelayCosts(
            view.now,
            np.array([view.remaining(j) / self._needs[i][0] for i, j in self._jobs.items()]),
            [self._tables[index] for index in self._jobs],
            [self._shares.dominant(j, *self._needs[i]) for i, j in self._jobs.items()],
            self.discount,
        )
