"""Recourse with a rolling horizon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.instance_file import job_from_dict, job_to_dict
from oasis.model.job import Job
from oasis.model.validation import integer, number
from oasis.online.ledger import Ledger
from oasis.online.live.core import Arrays, Core, Events, Server, completed
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR, AdmissionRule, AtPrices
from oasis.online.recourse.futures import DEFAULT_SAMPLES
from oasis.online.recourse.learned import LearnedPrices
from oasis.online.recourse.live_job import LiveJob, PromiseRecord
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.planner import Planner
from oasis.online.recourse.rules import RuleName, admission_rule, check_unused, rule_name

WAITS = "waits: there is no room for it yet"


class RecourseCore(Core):
    """Plans all live jobs again at every call that changes what there is to plan.

    Parameters
    ----------
    cluster, lookahead, patience
        As for `Core`.
    commitment, params, seed, seconds
        As for `oasis.online.recourse.Planner`.
    admission, prices, bounds, samples, min_utility_fraction
        As for `oasis.online.recourse.rules.admission_rule`: who is admitted under commitment on
        arrival.
    """

    name: ClassVar[str] = "recourse"

    def __init__(
        self,
        cluster: Cluster,
        lookahead: int,
        commitment: Commitment = "none",
        *,
        patience: int | None = None,
        params: RecourseParams | None = None,
        seed: int = 0,
        seconds: float | None = None,
        admission: RuleName | None = None,
        prices: LearnedPrices | None = None,
        bounds: PriceBounds | None = None,
        samples: int = DEFAULT_SAMPLES,
        min_utility_fraction: float = DEFAULT_FLOOR,
    ) -> None:
        super().__init__(cluster, lookahead, patience)
        if commitment != "arrival":
            check_unused(admission=admission, prices=prices, bounds=bounds)
        self._seed = integer(seed, "seed")
        self._seconds = None if seconds is None else number(seconds, "seconds")
        self._prices, self._bounds = prices, bounds
        self._samples, self._floor = samples, min_utility_fraction
        self._admission: RuleName | None = None
        self._rule: AdmissionRule | None = None
        if commitment == "arrival":
            self._admission = rule_name(admission, prices, bounds)
            self._rule = admission_rule(
                self._admission,
                prices=prices,
                bounds=bounds,
                samples=samples,
                min_utility_fraction=min_utility_fraction,
                seed=self._seed,
            )
        self.planner = Planner(
            cluster,
            self.lookahead,
            commitment=commitment,
            params=params,
            seed=self._seed,
            seconds=self._seconds,
            admission=self._rule,
            patience=self.patience,
        )
        self._next = 0

    @property
    def now(self) -> int:
        return self.planner.now

    @property
    def live(self) -> Mapping[int, LiveJob]:
        return self.planner.plan.live

    def advance(self, now: int) -> Events:
        planner, events = self.planner, Events()
        ends = {k: live.schedule.completion for k, live in self.live.items() if live.schedule}
        reach = planner.plan.ledger.end
        planner.advance(now)
        for key, live in list(self.live.items()):
            if live.remaining == 0:
                events.completed.append(completed(live, ends[key]))
                planner.finish(key)
        planner.extend(reach)
        names = self._names()
        return self._drained(events, planner.give_up(), names)

    def submit(self, job: Job) -> tuple[Decision, Events]:
        key, names = self._next, self._names()
        self._next += 1
        gone = self._replan({key: job})
        reason = gone.pop(key, None)
        events = self._drained(Events(), gone, names)
        if reason is not None:
            return Decision(job.id, False, reason=reason), events
        schedule = self.live[key].schedule
        if schedule is None:
            return Decision(job.id, True, reason=WAITS), events
        utility = self.live[key].utility_at(schedule.completion)
        completion = schedule.completion
        return Decision(job.id, True, utility, utility, 0.0, completion, schedule), events

    def cancel(self, live: LiveJob) -> Events:
        self.planner.cancel(live.key)
        return self._replanned()

    def complete(self, live: LiveJob) -> Events:
        end = self.ended_now(live)
        self.planner.finish(live.key)
        events = self._replanned()
        events.completed.append(end)
        return events

    def revise(self, remaining: Sequence[tuple[LiveJob, int]]) -> Events:
        for live, work in remaining:
            self.planner.revise(live.key, work)
        return self._replanned()

    def lose(self, server: Server) -> Events:
        self.lost.add(server)
        self.planner.set_capacity(*server, holds=False)
        return self._replanned()

    def restore(self, server: Server) -> Events:
        self.lost.remove(server)
        self.planner.set_capacity(*server, holds=True)
        return self._replanned()

    def _replanned(self) -> Events:
        names = self._names()
        return self._drained(Events(), self._replan({}), names)

    def _replan(self, arrivals: Mapping[int, Job]) -> dict[int, str]:
        self.planner.rounds_given = self.rounds_given
        gone = self.planner.replan(arrivals)
        self.rounds_done = self.planner.rounds_done
        return gone

    def _names(self) -> dict[int, str]:
        return {key: live.job.id for key, live in self.live.items()}

    def _drained(self, events: Events, gone: Iterable[int], names: Mapping[int, str]) -> Events:
        """`events` with the record of this call, which begins anew."""
        events.gone += [names[key] for key in gone]
        events.record, self.planner.record = self.planner.record, PromiseRecord()
        return events

    @property
    def shared(self) -> Iterable[object]:
        plan, rule = self.planner.plan, () if self._rule is None else self._rule.shared
        return [self.planner.params, plan.bounds, self._bounds, self._prices, *rule]

    @property
    def parameters(self) -> dict[str, Any]:
        prices, bounds = self._prices, self._bounds
        return {
            "lookahead": self.lookahead,
            "patience": self.patience,
            "commitment": self.planner.commitment,
            "params": asdict(self.planner.params),
            "seed": self._seed,
            "seconds": self._seconds,
            "prices": None if prices is None else prices.to_dict(),
            "bounds": None if bounds is None else bounds.to_dict(),
            "admission": self._admission,
            "samples": self._samples,
            "min_utility_fraction": self._floor,
        }

    @classmethod
    def made_with(cls, cluster: Cluster, parameters: Mapping[str, Any]) -> Self:
        given = dict(parameters)
        given["params"] = RecourseParams(**given["params"])
        if given["prices"] is not None:
            given["prices"] = LearnedPrices.from_dict(given["prices"])
        if given["bounds"] is not None:
            given["bounds"] = PriceBounds.from_dict(given["bounds"])
        return cls(cluster, **given)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        plan, rule = self.planner.plan, self._rule
        state = self.common_state() | {
            "next": self._next,
            "random": self.planner.rng.bit_generator.state,
            "seen": [] if rule is None else [job_to_dict(job) for job in rule.seen],
            "arrived": 0 if rule is None else rule.arrived,
            "bounds": None if plan.bounds is None else plan.bounds.to_dict(),
        }
        return state, plan.ledger.arrays()

    def restore_state(self, state: Mapping[str, Any], arrays: Arrays) -> None:
        planner, plan = self.planner, self.planner.plan
        planner.rng.bit_generator.state = state["random"]
        self._next = state["next"]
        floor = planner.params.min_utility_fraction
        if self._rule is not None:
            floor = self._rule.min_utility_fraction
            seen = [job_from_dict(entry) for entry in state["seen"]]
            self._rule.reset(self.cluster, self.lookahead, self.patience, seen, state["arrived"])
        if state["bounds"] is not None:
            given = self._rule.given if isinstance(self._rule, AtPrices) else None
            plan.bounds = given or PriceBounds.from_dict(state["bounds"])  # compared by identity
        plan.now = state["now"]
        plan.ledger = Ledger.restored(self.cluster, arrays, plan.now)
        for group, index in state["lost"]:
            self.lost.add((group, index))
            planner.set_capacity(group, index, holds=False)
        plan.live.update(self.restored_jobs(state, floor))
