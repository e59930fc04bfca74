"""OASiS with a rolling horizon: a schedule, once fixed, changes only if it cannot be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.model.schedule import SERVER
from oasis.online.completions import completions
from oasis.online.ledger import Ledger
from oasis.online.live.core import Arrays, Core, Events, Server, completed
from oasis.online.oasis import decide
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob, on_grid
from oasis.online.search import Rest, Search


class OasisCore(Core):
    """Algorithm 1 over the next `lookahead` slots.

    An admitted job keeps its schedule and is promised its completion. If a server of its schedule
    is lost or its work turns out to be another, Algorithm 2 places the rest of the work at the
    prices of the moment; a job for which nothing pays then is given up. Demands are rounded to
    multiples of a small power of two, so that a cancelled job leaves no trace in the ledger.

    Parameters
    ----------
    cluster, lookahead, patience
        As for `Core`.
    bounds : PriceBounds
        U and L, such as those of past jobs (`PriceBounds.from_jobs` with the horizon `lookahead`).
    """

    name: ClassVar[str] = "oasis"

    def __init__(
        self,
        cluster: Cluster,
        lookahead: int,
        bounds: PriceBounds,
        *,
        patience: int | None = None,
    ) -> None:
        super().__init__(cluster, lookahead, patience)
        if bounds.worker.log_lower.shape != (len(cluster.resources),):
            raise ValueError(f"bounds: expected one for each of {', '.join(cluster.resources)}")
        self.bounds = bounds
        self.ledger = Ledger.idle(cluster, self.lookahead, bounds)
        self._live: dict[int, LiveJob] = {}
        self._next = 0

    @property
    def now(self) -> int:
        return self.ledger.origin

    @property
    def live(self) -> Mapping[int, LiveJob]:
        return self._live

    def advance(self, now: int) -> Events:
        events = Events()
        for live in list(self._live.values()):
            assert live.schedule is not None
            end = live.schedule.completion
            live.run_until(now)
            if live.remaining == 0:
                events.completed.append(completed(live, end))
                self._leave(live, events, is_complete=True)
        self.ledger.roll(now, self.bounds)
        return events

    def submit(self, job: Job) -> tuple[Decision, Events]:
        key, floor = self._next, self.bounds.min_utility_fraction
        self._next += 1
        seconds = self.cluster.slot_seconds
        ends = completions(job, self.ledger.end, seconds, floor)
        rest = Rest(self.now, job.work(seconds), ends)
        decision = decide(Search(on_grid(job, self.grid), self.ledger, rest=rest))
        if decision.schedule is not None:
            end = job.arrival + self.patience
            live = LiveJob.of(key, job, self.cluster, end, self.grid, floor)
            live.schedule, live.promise = decision.schedule, decision.completion
            self._live[key] = live
            self.ledger.commit(live.job, decision.schedule, self.bounds)
        return decision, Events()

    def cancel(self, live: LiveJob) -> Events:
        self._release(live)
        del self._live[live.key]
        events = Events()
        events.record.done += live.done
        return events

    def complete(self, live: LiveJob) -> Events:
        events = Events(completed=[self.ended_now(live)])
        self._release(live)
        self._leave(live, events, is_complete=True)
        return events

    def revise(self, remaining: Sequence[tuple[LiveJob, int]]) -> Events:
        events = Events()
        for live, work in remaining:
            self._release(live)
            live.remaining = work
            self._place_again(live, events)
        return events

    def lose(self, server: Server) -> Events:
        group, index = server
        hit = [live for live in self._live.values() if _uses(live, group, index)]
        for live in hit:
            self._release(live)
        self.lost.add(server)
        getattr(self.ledger, group).lose(index)
        events = Events()
        for live in hit:
            self._place_again(live, events)
        return events

    def restore(self, server: Server) -> Events:
        group, index = server
        self.lost.remove(server)
        capacity = getattr(self.cluster, f"{group}_capacity")[index]
        getattr(self.ledger, group).set_capacity(index, capacity, getattr(self.bounds, group))
        return Events()

    def _release(self, live: LiveJob) -> None:
        assert live.schedule is not None
        self.ledger.release(live.job, live.schedule, self.bounds)
        live.schedule = None

    def _place_again(self, live: LiveJob, events: Events) -> None:
        """Place the rest of a job by Algorithm 2; if nothing pays, it is given up."""
        until = min(live.last, self.ledger.end - 1)
        if live.earliest(self.now) <= until:
            search = Search(live.job, self.ledger, rest=live.rest(self.now, until))
            split = search.best()
            if split is not None:
                live.schedule = search.schedule(split)
                self.ledger.commit(live.job, live.schedule, self.bounds)
        completion = live.schedule.completion if live.schedule is not None else None
        if live.promise is not None and (completion is None or completion > live.promise):
            events.record.broken.append(live.job.id)
            live.promise = None
        if completion is None:
            events.gone.append(live.job.id)
            self._leave(live, events, is_complete=False)

    def _leave(self, live: LiveJob, events: Events, is_complete: bool) -> None:
        del self._live[live.key]
        events.record.leave(live, is_complete)

    @property
    def shared(self) -> Iterable[object]:
        return [self.bounds]

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "lookahead": self.lookahead,
            "patience": self.patience,
            "bounds": self.bounds.to_dict(),
        }

    @classmethod
    def made_with(cls, cluster: Cluster, parameters: Mapping[str, Any]) -> Self:
        return cls(cluster, **{**parameters, "bounds": PriceBounds.from_dict(parameters["bounds"])})

    def state(self) -> tuple[dict[str, Any], Arrays]:
        return self.common_state() | {"next": self._next}, self.ledger.arrays()

    def restore_state(self, state: Mapping[str, Any], arrays: Arrays) -> None:
        self._next = state["next"]
        self.ledger = Ledger.restored(self.cluster, arrays, state["now"])
        for group, index in state["lost"]:
            self.lost.add((group, index))
            getattr(self.ledger, group).lose(index)
        self._live = self.restored_jobs(state, self.bounds.min_utility_fraction)


def _uses(live: LiveJob, group: str, server: int) -> bool:
    assert live.schedule is not None
    rows = live.schedule.workers if group == "worker" else live.schedule.ps
    return bool((rows[:, SERVER] == server).any())
