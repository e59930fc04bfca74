"""Elastic jobs that go from form to form, against a replay of each by hand.

The replay knows one job alone and counts the share of its work that is done: no events, no books.
"""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.scheduling import Allocation, BasePolicy, Plan
from oasis.simulator import Outage, elastic_from_dict, replay
from tests.builders import elastic_file
from tests.strategies import of

GAP = 20.0  # between two changes: longer than a job saves
Held = tuple[int, int, int]  # form, machine, workers


def document(jobs, **costs):
    """Jobs on two machines of each of three kinds, which hold all of them."""
    machines = (
        {"id": kind, "count": 2, "capacity": {"gpu": 99}, "labels": {"gpu": kind}} for kind in "abc"
    )
    return elastic_file(jobs, *machines, partial_gangs=False, costs=costs)


class Scripted(BasePolicy):
    """Each job holds what its script says, from one change to the next."""

    knows_forms = True

    def __init__(self, *scripts):
        self.scripts = scripts

    def decide(self, view):
        plan, place = Plan(), round(view.now / GAP)
        for job in view.jobs():
            script = self.scripts[int(job.id)]
            held = script[min(place, len(script) - 1)]
            if held is None or place * GAP != view.now:
                wanted = Allocation() if held is None else view.allocation(job)
            else:
                form, machine, workers = held
                wanted = Allocation(((machine, workers),), (), form)
            if wanted != view.allocation(job):
                plan.changes[job.index] = wanted
        plan.wake_at = (math.floor(view.now / GAP) + 1) * GAP
        if place >= max(map(len, self.scripts)):
            plan.wake_at = None
        return plan


def by_hand(works, table, script, costs):
    """End of a job that comes at 0, and its restarts, resizes and migrations."""
    done, ready, started, counts = 0.0, 0.0, False, [0, 0, 0]
    times = [*(k * GAP for k in range(len(script))), math.inf]
    before: Held | None = None
    for (now, until), held in zip(pairwise(times), script, strict=True):
        if held is not None and held != before:
            goes_on = before is not None and before[0] == held[0]
            saved = now + (costs["save"] if before is not None and ready <= now else 0.0)
            if not started:
                ready = now + costs["start"]
            elif before is None or not goes_on:  # from what was saved
                # A set-up that is not over is not made shorter.
                least = now if before is None else ready
                ready, counts[0] = max(least, saved + costs["resume"]), counts[0] + 1
            elif before[2] != held[2]:
                ready, counts[1] = max(ready, saved + costs["resize"]), counts[1] + 1
            else:
                ready, counts[2] = max(ready, saved + costs["migrate"]), counts[2] + 1
            started = True
        if held is not None:
            begin, pace = max(now, ready), table[held[2] - 1] / works[held[0]]
            if begin < until and done + (until - begin) * pace >= 1.0 - 1e-12:
                return begin + (1.0 - done) / pace, *counts  # type: ignore[return-value]
            done += max(0.0, until - begin) * pace
        before = held
    raise AssertionError("the last of a script is for ever")


@st.composite
def scripts(draw):
    """A job of two or three forms, and what it holds from one change to the next."""
    works = draw(st.lists(of(30.0, 50.0, 75.0, 200.0), min_size=2, max_size=3))
    table = draw(of([1.0, 2.0, 3.0], [1.0, 1.7, 1.9]))
    forms = [
        {"work": work, "worker": {"gpu": draw(st.integers(1, 3))}, "requires": {"gpu": ["abc"[k]]}}
        for k, work in enumerate(works)
    ]
    job = {"arrival": 0.0, "work": 1.0, "workers": {"min": 1, "max": 3}, "worker": {"gpu": 1}}
    job |= {"speedup": table, "forms": forms, "switch": "restart"}

    def held():
        form = draw(st.integers(0, len(works) - 1))
        return form, 2 * form + draw(st.integers(0, 1)), draw(st.integers(1, 3))

    found = [held() if draw(st.integers(0, 3)) else None for _ in range(draw(st.integers(0, 8)))]
    return job, [*found, held()]


@given(drawn=st.lists(scripts(), min_size=1, max_size=3), data=st.data())
def test_each_job_ends_when_it_does_by_hand(drawn, data):
    amounts: dict[str, tuple[float, ...]]
    amounts = dict.fromkeys(("resume", "resize", "migrate"), (0.0, 7.0))
    amounts |= {"start": (0.0, 7.0, 33.0), "save": (0.0, 3.0)}
    costs = {name: data.draw(of(*each)) for name, each in amounts.items()}
    jobs = [job | {"id": str(k)} for k, (job, _) in enumerate(drawn)]
    made = elastic_from_dict(document(jobs, **costs))
    outcome = replay(made, Scripted(*(script for _, script in drawn)))
    for (job, script), found in zip(drawn, outcome.jobs, strict=True):
        works = [form["work"] for form in job["forms"]]
        end, *counts = by_hand(works, job["speedup"], script, costs)
        assert found.end == pytest.approx(end, rel=1e-9)
        assert [found.restarts, found.resizes, found.migrations] == counts
        assert found.waiting + found.running + found.overhead == pytest.approx(found.end)
        assert found.lost_work == 0.0
        assert found.work_done in [pytest.approx(work) for work in works]


def run(script, job, **more):
    costs = more.pop("costs", {})
    base = {"id": "0", "arrival": 0.0, "work": 40.0, "workers": 1, "worker": {"gpu": 1}}
    made = elastic_from_dict(document([base | job], **costs))
    (found,) = replay(made, Scripted(script), **more).jobs
    return found


SPEEDS = {"speeds": {"label": "gpu", "values": {"a": 1.0, "b": 2.0, "c": 0.5}}}
SWITCH = SPEEDS | {"switch": "restart"}


def test_half_of_the_work_is_half_of_it_in_any_form():
    """20 s on a are half of it; the rest takes 10 s on b, or 40 s on c."""
    assert run([(0, 0, 1), (1, 2, 1)], SWITCH).end == 30.0
    assert run([(0, 0, 1), (2, 4, 1)], SWITCH).end == 60.0
    paid = run([(0, 0, 1), (1, 2, 1)], SWITCH, costs={"save": 3.0, "resume": 5.0})
    assert (paid.end, paid.restarts, paid.overhead) == (38.0, 1, 8.0)


def test_what_is_lost_with_a_machine_is_counted_in_the_form_that_it_is_in_last():
    """A quarter is done at 10 s and saved, then 10 s are lost, a quarter; it goes on on b at 20."""
    script: list[Held | None] = [(0, 0, 1), (1, 2, 1)]
    lost = run(script, SWITCH, outages=[Outage(0, 19.0, 99.0)], costs={"checkpoint_interval": 10.0})
    assert lost.end == 20.0 + 15.0
    assert lost.lost_work == 9.0 / 2
    assert lost.work_done == 20.0 + 9.0 / 2


def test_who_may_not_switch_is_refused_another_form():
    with pytest.raises(oasis.PolicyError, match="form: expected 0, the form in which it began"):
        run([(0, 0, 1), (1, 2, 1)], SPEEDS)
    assert run([(0, 0, 1), (0, 1, 1)], SPEEDS).end == 40.0
