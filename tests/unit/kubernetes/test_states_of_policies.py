"""A policy's own word for the state of a job is a condition of the object as long as it lasts."""

from __future__ import annotations

import pytest

from baselines import FIFO
from experiments.cli.commands.kubernetes.reading import _status_row, explained, summary
from oasis.kubernetes.objects.conditions import IN_STATE
from oasis.scheduling.job import PolicyJob
from tests.unit.kubernetes.fake_api import status_writer
from tests.unit.kubernetes.played import Played, policy, rigid


class Moody(FIFO):
    """A policy with other words than KOD2's."""

    word: str | None = "scaled in"

    def state_of(self, job: PolicyJob) -> str | None:
        return self.word


def test_who_starves_by_kod2_says_so_until_it_runs() -> None:
    played = Played(policy("kod2", starve_limit=90.0))
    first, second = (played.submit(rigid(name, 6, 40)) for name in ("a", "b"))
    told = []
    for _ in range(4):
        played.step()
        told.append((played.said(second, IN_STATE) or ("", "", ""))[:2])
        assert played.said(first, IN_STATE) is None, "it runs, which the phase says"
    assert told == [("", ""), ("", ""), ("True", "Starving"), ("True", "Starving")]
    item = None, played.jobs[second]
    assert summary(item)["reasons"][IN_STATE] == "Starving"
    assert _status_row(summary(item))[-1] == "Waiting Starving"
    (said,) = (entry for entry in explained(item) if entry["type"] == IN_STATE)
    assert said["message"] == "the policy says that it is starving"
    assert "goes before all others" in said["advice"]
    played.delete(first)
    played.step()
    assert (played.workers(second), played.said(second, IN_STATE)) == (6, None)


def test_any_policy_may_have_words_of_its_own() -> None:
    made = Moody()
    played = Played(lambda: made)
    uid = played.submit(rigid("a", 2, 40))
    told = []
    for made.word in ("scaled in", "running", None):  # a phase, and no word at all
        played.step()
        told.append((played.said(uid, IN_STATE) or ("", "", ""))[1])
    assert told == ["ScaledIn", "", ""]


@pytest.mark.parametrize(
    ("end", "given"), [("given_up", ["why"]), ("ended", []), ("invalid", ["why"])]
)
def test_it_goes_when_the_job_ends(end: str, given: list[str]) -> None:
    made = status_writer("j")
    made.in_state("starving", 0.0)
    assert [reason for _, reason, _, _ in made.news] == ["Starving"]
    getattr(made, end)(*given, 1.0)
    assert IN_STATE not in {entry["type"] for entry in made.status.get("conditions") or ()}
