"""A controller takes over whatever the policy is and whatever went wrong: no job is lost."""

from __future__ import annotations

from typing import Any

from baselines import FIFO
from oasis.scheduling import Plan, Site, View
from tests.unit.kubernetes.played import Played, job, node

DOWN = {"is": False}


class Streaming(FIFO):
    """It holds what cannot be written down."""

    name = "streaming"

    def reset(self, site: Site) -> None:
        super().reset(site)
        self.stream = iter(range(10**9))

    def decide(self, view: View) -> Plan:
        next(self.stream)
        return super().decide(view)


class Fragile(FIFO):
    """It fails as long as it is told to."""

    def decide(self, view: View) -> Plan:
        if DOWN["is"]:
            raise RuntimeError("out of order")
        return super().decide(view)


def entry_of(played: Played, uid: str) -> Any:
    return played.reconciler.driver.by_uid[uid]


def test_a_policy_that_cannot_be_written_down_runs_on_a_cluster() -> None:
    played = Played(Streaming)
    uid = played.submit(job("a", slots=80.0))
    played.run(3)
    assert played.workers(uid) > 0
    before = entry_of(played, uid)
    played.restart()
    assert not played.reconciler.driver.entries  # all live jobs arrive once more
    played.step()
    after = entry_of(played, uid)
    assert (after.arrived, after.admitted) == (before.arrived, True)
    assert after.done >= before.done > 0
    assert played.workers(uid) > 0
    played.run(20)
    assert played.phase(uid) == "Completed"


def test_a_takeover_while_a_policy_fails_on_new_machines_loses_no_job() -> None:
    """Its live jobs are about to arrive once more; the checkpoint has them nevertheless."""
    DOWN["is"] = False
    played = Played(Fragile)
    uid = played.submit(job("a", slots=80.0))
    played.run(3)
    arrived = entry_of(played, uid).arrived
    DOWN["is"] = True
    played.nodes.append(node("n2", "worker", 4))
    played.step()
    assert not played.reconciler.driver.entries
    played.restart()
    DOWN["is"] = False
    played.run(2)
    found = entry_of(played, uid)
    assert (found.arrived, found.admitted) == (arrived, True)
    assert found.done > 0
    played.run(25)
    assert played.phase(uid) == "Completed"
