"""A minimum run time, and what changes of running jobs took, in the controller."""

from __future__ import annotations

import json
from typing import Any

import pytest

import oasis
from oasis.kubernetes.control.changes import Changes
from oasis.kubernetes.objects.conditions import time_text
from tests.unit.kubernetes.played import SLOT, Played, job, job_of
from tests.unit.kubernetes.test_jobs_of_any_shape import policy


def urgent(name: str) -> dict[str, object]:
    """A job that is worth much more than the others, if it completes soon."""
    made = job(name, slots=8.0, minimum=8)
    made["spec"]["utility"] = {"kind": "deadline", "value": 1000, "deadlineSeconds": 20 * SLOT}
    return made


@pytest.mark.parametrize("name", ["recourse", "srtf"])
def test_a_job_that_has_just_begun_is_left_alone_for_its_minimum_run_time(name: str) -> None:
    for minimum, left in ((0.0, 0), (3.5 * SLOT, 8)):
        played = Played(policy(name), minimum_run_time=minimum)
        first = played.submit(job("first", slots=200.0, minimum=8))
        played.step()
        assert played.workers(first) == 8
        second = played.submit(urgent("second"))
        held = []
        for _ in range(5):
            played.step()
            held.append((played.workers(first), played.workers(second)))
        assert held[0][0] == left
        if minimum:  # 4 slots from the first one on
            assert held[:4] == [(8, 0), (8, 0), (8, 0), (0, 8)], held


def test_a_takeover_keeps_the_minimum_run_time() -> None:
    played = Played(policy("recourse"), minimum_run_time=4 * SLOT)
    first = played.submit(job("first", slots=200.0, minimum=8))
    played.step()
    played.submit(urgent("second"))
    played.restart()
    played.run(3)
    assert played.workers(first) == 8
    played.step()
    assert played.workers(first) == 0


def test_no_job_begins_early_where_it_might_have_to_leave() -> None:
    played = Played(policy("recourse"), minimum_run_time=SLOT)
    played.step()
    played.submit(job("late"))
    seen, told = played.seen(), []
    played.reconciler.start_between(played.now() + 1.0, lambda: seen, 5.0, lambda: told.append(1))
    assert not told


def test_a_policy_that_does_not_keep_it_is_refused() -> None:
    with pytest.raises(oasis.InputError, match="minimum_run_time: expected none with policy drf"):
        Played(policy("drf"), minimum_run_time=SLOT)


def test_what_changes_took_is_measured_told_and_known_to_the_policy() -> None:
    """A job is paused three times; it works again 24 s after each boundary, or 0.4 slots."""
    played = Played(policy("srtf"))
    made = job("first", slots=400.0)
    made["spec"]["resizePolicy"] = "restart"
    first = played.submit(made)

    def of_first() -> dict[str, Any]:
        return {name: pod for name, pod in played.pods.items() if job_of(pod) == first}

    played.step()
    for k in range(3):
        played.submit(job(f"short{k}", slots=8.0, minimum=8))
        played.opens = lambda pod: job_of(pod) != first  # its pods come up slowly
        played.run(2)
        assert of_first()
        assert played.workers(first) == 0
        played.opens = lambda pod: True
        for pod in of_first().values():
            ready = [
                {"type": "Ready", "status": "True", "lastTransitionTime": time_text(played.now())}
            ]
            pod["status"] = {"phase": "Running", "conditions": ready}
        played.reconciler.note(first, of_first(), played.now() + 24.0)
    changes = played.reconciler.meter.changes
    assert changes.cost(first, "restart") == 24.0
    assert changes.cost("unknown", "restart") == 24.0
    assert changes.cost("unknown", "elastic") is None
    assert played.measured("oasis_change_seconds_count", kind="restart") == 3
    played.step()
    live = played.reconciler.driver.by_uid
    assert live[first].change_cost == pytest.approx(0.4)
    assert played.status(first)["resizes"]["costSeconds"] == 24.0
    played.restart()
    assert played.reconciler.meter.changes.cost(first, "restart") == 24.0


def test_one_slow_change_does_not_stand_for_all() -> None:
    seen: list[tuple[str, float]] = []
    changes = Changes(lambda kind, seconds: seen.append((kind, seconds)))
    for at, seconds in ((0.0, 10.0), (1000.0, 20.0), (2000.0, 500.0)):
        changes.begin("j", "elastic", 4, at)
        changes.note("j", 0, at)
        changes.note("j", 2, at + seconds / 2)
        changes.note("j", 4, at + seconds)
    assert [seconds for _, seconds in seen] == [7.5, 15.0, 375.0]
    assert changes.cost("j", "elastic") == 15.0
    kept = Changes(print)
    kept.restore(json.loads(json.dumps(changes.state())))
    assert kept.cost("j", "elastic") == 15.0


def test_a_change_within_a_change_is_one() -> None:
    changes = Changes(lambda *_: None)
    changes.begin("j", "elastic", 2, 0.0)
    changes.note("j", 1, 10.0)
    changes.begin("j", "elastic", 4, 20.0)
    changes.note("j", 1, 20.0)
    changes.note("j", 4, 40.0)
    assert changes.cost("j", "elastic") == 10.0 + 5.0 + 15.0
