"""Properties of every rule of admission under commitment on arrival, on every instance."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Constant, Instance, LearnedPrices, LiveScheduler, PriceBounds, Recourse
from oasis.online.recourse import (
    AdmissionRule,
    AtLearnedPrices,
    AtPrices,
    Replanner,
    SampledFutures,
)
from tests.strategies import all_instances, crowded_instances, fewer, of
from tests.unit.online.test_recourse_contract import contents, replayed


def past_of(instance: Instance) -> LearnedPrices:
    """Two past days with the jobs of `instance`, as if OASiS's first prices were learned."""
    bounds = PriceBounds.from_instance(instance, min_utility_fraction=0.5)
    size = (instance.horizon, 1)
    jobs = tuple(replace(job, id=f"past-{job.id}") for job in instance.jobs)
    return LearnedPrices(
        instance.cluster.resources,
        instance.slot_seconds,
        np.full(instance.horizon, 2.0),
        np.tile(bounds.worker.lower, size),
        np.tile(bounds.ps.lower, size),
        bounds,
        jobs,
    )


RULES: dict[str, Callable[[LearnedPrices], AdmissionRule]] = {
    "futures so far": lambda _: SampledFutures(samples=3),
    "futures of past days": lambda past: SampledFutures(past, samples=3),
    "learned prices": lambda past: AtLearnedPrices(past, 0.6),
    "prices": lambda _: AtPrices(),
}


@pytest.mark.parametrize("rule", RULES)
@fewer(25)
@given(instance=st.one_of(all_instances(), crowded_instances()))
def test_every_promise_is_kept_and_what_was_executed_is_feasible(
    rule: str, instance: Instance
) -> None:
    past = past_of(instance)
    planner = Replanner(
        instance.cluster, instance.horizon, commitment="arrival", admission=RULES[rule](past)
    )
    promises = replayed(instance, planner)
    assert planner.record.broken == []
    run = oasis.simulate(instance, Recourse("arrival", admission=RULES[rule](past)))
    oasis.verify(instance, run)
    completed = {decision.job_id: decision.completion for decision in run.decisions}
    assert run.report["broken_promises"] == []
    assert {name for name, slot in completed.items() if slot is not None} == set(promises)


@pytest.mark.parametrize("rule", RULES)
@fewer(25)
@given(instance=all_instances(), data=st.data())
def test_jobs_to_come_change_nothing_before_they_come(
    rule: str, instance: Instance, data: st.DataObject
) -> None:
    """Non-anticipation: futures are sampled from the past, whatever the future will be."""
    jobs, past = instance.jobs_by_arrival(), past_of(instance)
    cut = data.draw(st.integers(1, len(jobs)))
    others = [replace(job, utility=Constant(1e6)) for job in jobs[cut:]]

    def decisions(future: list[oasis.Job]) -> list[tuple[str, int | None]]:
        known = Instance(instance.horizon, instance.cluster, (*jobs[:cut], *future))
        run = oasis.simulate(known, Recourse("arrival", admission=RULES[rule](past)))
        found = {one.job_id: one.completion for one in run.decisions}
        return [(job.id, found[job.id] is not None) for job in jobs[:cut]]

    early = [job for job in jobs[:cut] if not jobs[cut:] or job.arrival < jobs[cut].arrival]
    answers = [decisions(future)[: len(early)] for future in (jobs[cut:], [], others)]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("rule", RULES)
@fewer(25)
@given(instance=crowded_instances())
def test_the_same_input_gives_the_same_bytes(rule: str, instance: Instance) -> None:
    past, found = past_of(instance), []
    for _ in range(2):
        policy = Recourse("arrival", seed=5, admission=RULES[rule](past))
        result = oasis.simulate(instance, policy).to_dict()
        del result["decision_seconds"]
        found.append(json.dumps(result, sort_keys=True))
    assert found[0] == found[1]


@fewer(25)
@given(crowded_instances(), of("futures so far", "futures of past days"))
def test_weighing_futures_leaves_no_trace_in_the_plan(instance: Instance, rule: str) -> None:
    planner = Replanner(
        instance.cluster,
        instance.horizon,
        commitment="arrival",
        admission=RULES[rule](past_of(instance)),
    )
    admission = planner.admission
    assert admission is not None
    accepts = admission.accepts

    def watched(live: object, plan: object) -> bool:
        before = contents(planner.plan.ledger)
        schedules = {key: job.schedule for key, job in planner.plan.live.items()}
        answer = accepts(live, plan)  # type: ignore[arg-type]
        assert contents(planner.plan.ledger) == before
        assert {key: job.schedule for key, job in planner.plan.live.items()} == schedules
        return answer

    admission.accepts = watched  # type: ignore[method-assign]
    replayed(instance, planner)


@fewer(25)
@given(crowded_instances())
def test_what_costs_more_at_learned_prices_than_it_is_worth_is_refused(instance: Instance) -> None:
    """Oracle: with prices beyond every utility nobody is admitted; with none everybody who fits."""
    past = past_of(instance)
    dear = replace(past, worker=past.worker * 0 + 1e12, ps=past.ps * 0 + 1e12)
    run = oasis.simulate(instance, Recourse("arrival", prices=dear, admission="learned"))
    demanding = {job.id for job in instance.jobs if any(job.worker.values())}
    assert not demanding & set(run.schedules)


def test_a_live_scheduler_with_learned_prices_goes_on_after_a_restart(tmp_path: object) -> None:
    instance = oasis.generate("testbed", jobs=4, seed=4)
    past = past_of(oasis.generate("testbed", jobs=4, seed=5))
    path = f"{tmp_path}/saved"
    for admission in ("futures", "learned", "oasis"):
        whole, stopped = (
            LiveScheduler.recourse(
                instance.cluster, 10, "arrival", prices=past, admission=admission
            )
            for _ in range(2)
        )
        for job in instance.jobs_by_arrival():
            stopped.save(path)
            stopped = LiveScheduler.load(path)
            answers = []
            for scheduler in (whole, stopped):
                scheduler.advance(job.arrival)
                quote = scheduler.quote(job)
                answers.append(scheduler.submit(job).to_dict())
                assert quote.decision.to_dict() == answers[-1]
            assert answers[0] == answers[1]
