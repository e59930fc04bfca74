"""Properties of live schedulers under any calls."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis import LiveScheduler
from tests.live import (
    KINDS,
    LOOKAHEAD,
    TROUBLES,
    Drill,
    extent,
    random_job,
)
from tests.strategies import fewer, of
from tests.unit.states import frozen

seeds = st.integers(0, 2**32 - 1)
kinds = of(*KINDS)


@fewer(10)
@given(kinds, seeds, st.integers(1, 60))
def test_what_was_executed_in_any_window_is_feasible(kind, seed, steps):
    drill = Drill(KINDS[kind](), seed, (*TROUBLES, "reserve")).run(steps)
    drill.verify()
    now = drill.scheduler.now
    for first in range(0, now, 5):
        drill.verify(first, min(first + 5, now))


@fewer(10)
@given(seeds, st.integers(1, 50))
def test_without_commitment_the_value_of_the_plan_never_falls_at_an_arrival(seed, steps):
    scheduler = KINDS["none"]()
    submit = scheduler.submit

    def watched(job):
        plan = scheduler.policy.planner.plan  # type: ignore[attr-defined]
        before = plan.value
        decision = submit(job)
        assert plan.value >= before * (1 - 1e-12)
        return decision

    scheduler.submit = watched  # type: ignore[method-assign]
    Drill(scheduler, seed).run(steps)


@fewer(10)
@given(of("start", "arrival", "oasis"), seeds)
def test_every_promise_is_kept_or_reported(kind, seed):
    calm = Drill(KINDS[kind](), seed, troubles=("cancel", "finish", "restore")).run(50)
    assert not calm.broken
    rough = Drill(KINDS[kind](), seed).run(50)
    for drill in (calm, rough):
        ended = set(drill.promises) - set(drill.scheduler.jobs) - drill.touched
        for name in ended - drill.broken:
            assert drill.completed[name] <= drill.promises[name]
        if kind == "arrival":
            waiting = set(drill.scheduler.jobs) - set(drill.promises)
            assert not waiting
    assert rough.scheduler.totals.broken_promises == len(rough.broken)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, stops=st.sets(st.integers(0, 40)))
def test_a_scheduler_that_was_saved_and_loaded_goes_on_bit_for_bit(kind, seed, stops):
    whole, stopped = (Drill(KINDS[kind](), seed) for _ in range(2))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for step in range(40):
            if step in stops:
                stopped.scheduler.save(directory / "saved")
                stopped.scheduler = LiveScheduler.load(directory / "saved")
            whole.step()
            stopped.step()
        assert json.dumps(whole.answers) == json.dumps(stopped.answers)
        assert frozen(whole.scheduler, directory) == frozen(stopped.scheduler, directory)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, steps=st.integers(0, 30))
def test_a_quote_is_what_submit_then_answers_and_changes_nothing(kind, seed, steps):
    scheduler = Drill(KINDS[kind](), seed).run(steps).scheduler
    job = random_job(np.random.default_rng(seed), "new", scheduler.now)
    with tempfile.TemporaryDirectory() as name:
        before = frozen(scheduler, Path(name))
        quote = scheduler.quote(job)
        assert frozen(scheduler, Path(name)) == before
    planned = {job_id: s.completion for job_id, s in scheduler.plan().items()}
    decision = scheduler.submit(job)
    assert quote.decision.to_dict() == decision.to_dict()
    assert quote.change == scheduler.last_change
    after = {job_id: s.completion for job_id, s in scheduler.plan().items()}
    for delay in quote.change.delayed:
        assert (planned[delay.job_id], after[delay.job_id]) == (delay.before, delay.after)
        assert delay.after > delay.before
    lost = {job_id for job_id in planned if job_id not in after}
    assert lost <= set(quote.change.displaced) | set(quote.change.given_up)


@pytest.mark.parametrize("kind", KINDS)
@fewer(25)
@given(seed=seeds, later=of(1, 1000))
def test_what_is_decided_does_not_depend_on_how_long_it_has_run(kind, seed, later):
    """The same arrivals some slots later get the same answers some slots later."""
    found = []
    for begin in (0, later):
        scheduler, rng = KINDS[kind](), np.random.default_rng(seed)
        answers = []
        for slot in range(10):
            scheduler.advance(begin + slot)
            for _ in range(int(rng.integers(0, 3))):
                job = random_job(rng, f"j{scheduler.calls}", begin + slot)
                decision = scheduler.submit(job)
                end = decision.completion
                answers.append((decision.admitted, None if end is None else end - begin))
        found.append((answers, scheduler.totals))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_bounded(kind):
    """After so long that every server has its column, only the live jobs differ."""
    drill = Drill(KINDS[kind](), 5, rate=1.5)
    early = late = 0
    for step in range(300):
        drill.step()
        drill.answers.clear()
        size = extent(drill.scheduler)
        if 100 <= step < 200:
            early = max(early, size)
        late = max(late, size) if step >= 250 else 0
        most = 2 * LOOKAHEAD + 1  # slots that a job may stay
        recent = [j for j in drill.jobs.values() if j.arrival > drill.scheduler.now - most]
        assert len(drill.scheduler.jobs) <= len(recent)
    assert drill.scheduler.now > 10 * LOOKAHEAD
    assert late <= 1.5 * early
