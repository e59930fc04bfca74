"""Live schedulers from the options of the registry, and quotes from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oasis
from experiments.evaluation.live import planning_policy, quote_recourse

INSTANCE = oasis.generate("testbed", jobs=6, seed=23)
LATE = replace(INSTANCE.jobs[0], id="late", arrival=4)


def live(options: dict[str, object]) -> oasis.LiveScheduler:
    policy = planning_policy("recourse", options, INSTANCE.horizon, keep_admitted=False)
    return oasis.LiveScheduler(policy, INSTANCE.cluster)


def test_options_reach_the_scheduler() -> None:
    scheduler = live({"commitment": "arrival", "rounds": 3})
    scheduler.advance(4)
    decision = scheduler.submit(LATE)
    assert decision.admitted
    assert decision.completion is not None
    promised = scheduler.promised("late")
    assert promised is not None
    assert promised >= decision.completion


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(oasis.InputError, match=r"^recourse.colour: no such option"):
        live({"colour": "red"})


def test_a_quote_is_what_would_happen() -> None:
    quote = quote_recourse(INSTANCE, LATE, {})
    scheduler = live({})
    for job in INSTANCE.jobs_by_arrival():
        if job.arrival <= LATE.arrival:
            scheduler.advance(job.arrival)
            scheduler.submit(job)
    scheduler.advance(LATE.arrival)
    decision = scheduler.submit(LATE)
    assert (quote.decision, quote.change) == (decision, scheduler.last_change)


def test_a_job_of_the_instance_cannot_be_quoted_again() -> None:
    with pytest.raises(oasis.OasisError):
        quote_recourse(INSTANCE, INSTANCE.jobs_by_arrival()[0], {})
