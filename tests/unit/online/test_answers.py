"""Effects of one call on the other jobs, by kind."""

from __future__ import annotations

from oasis.model.schedule import Schedule
from oasis.online.answers import Change, Completion, Delay, Planned, change_between


def schedule(name: str, completion: int) -> Schedule:
    return Schedule(name, [[completion, 0, 1]], [])


def test_what_a_call_did_to_each_job_is_told_apart() -> None:
    before: Planned = {
        "same": (schedule("same", 1), 1.0),
        "moved": (Schedule("moved", [[0, 0, 1], [2, 0, 1]], []), 2.0),
        "delayed": (schedule("delayed", 1), 4.0),
        "displaced": (schedule("displaced", 1), 8.0),
        "waiting": (None, 0.0),
        "placed": (None, 0.0),
        "done": (schedule("done", 0), 16.0),
    }
    after: Planned = {
        "same": (schedule("same", 1), 1.0),
        "moved": (schedule("moved", 2), 2.0),
        "delayed": (schedule("delayed", 3), 3.0),
        "displaced": (None, 0.0),
        "waiting": (None, 0.0),
        "placed": (schedule("placed", 4), 32.0),
        "new": (schedule("new", 2), 64.0),
    }
    done = [Completion("done", 0, 16.0)]
    assert change_between(
        before, after, "new", completed=done, gone=["late"], broken=["delayed"]
    ) == Change(
        moved=("moved",),
        delayed=(Delay("delayed", 1, 3),),
        displaced=("displaced",),
        placed=("placed",),
        given_up=("late",),
        broken=("delayed",),
        utility=-1.0 - 8.0 + 32.0 + 64.0,
    )


def test_the_job_in_question_is_no_other_job() -> None:
    before: Planned = {"own": (schedule("own", 1), 5.0)}
    after: Planned = {"own": (schedule("own", 3), 3.0)}
    change = change_between(before, after, "own", gone=["own"])
    assert change == Change(utility=-2.0)
    assert change_between(before, after, None).delayed == (Delay("own", 1, 3),)


def test_an_earlier_completion_is_a_move() -> None:
    change = change_between({"a": (schedule("a", 3), 1.0)}, {"a": (schedule("a", 1), 1.0)}, None)
    assert change == Change(moved=("a",))
