"""Whatever happens, a job with a minimum of workers has none in a slot, or so many or more."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import make_policy
from tests.builders import policies
from tests.live import CLUSTER, KINDS, Drill, verify_window
from tests.strategies import fewer, of

seeds = st.integers(0, 2**32 - 1)


def with_minimum(job, seed):
    """`job` with a minimum of workers that it can have."""
    rng = np.random.default_rng((seed, sum(job.id.encode())))
    return replace(job, min_workers=int(rng.integers(1, job.chunks + 1)))


def check_counts(jobs, rows):
    """The counts of what was executed, counted here and nowhere else."""
    for name, table in rows.items():
        in_slot: dict[int, int] = {}
        for slot, _, count in table:
            in_slot[slot] = in_slot.get(slot, 0) + count
        assert all(jobs[name].min_workers <= n <= jobs[name].chunks for n in in_slot.values())


class GangDrill(Drill):
    """Random calls on jobs with a minimum of workers."""

    def _endless(self):
        for call, arguments in super()._endless():
            if call == "submit":
                name = arguments["job"].id
                arguments["job"] = self.jobs[name] = with_minimum(arguments["job"], self.seed)
            yield call, arguments

    def verify(self, first=0, end=None):
        until = self.scheduler.now if end is None else end
        verify_window(CLUSTER, self.jobs, (self.executed, self.ps), first, until)
        check_counts(self.jobs, self.executed)
        for name in [name for name in self.completed if name not in self.touched]:
            rows, work = self.executed[name], self.jobs[name].work(CLUSTER.slot_seconds)
            last = max(slot for slot, *_ in rows)
            assert self.completed[name] == last
            assert sum(n for *_, n in rows) >= work  # and not a slot earlier
            assert sum(n for slot, _, n in rows if slot < last) < work


@fewer(5)
@given(of(*KINDS), seeds, st.integers(1, 60))
def test_live_schedulers_keep_every_minimum_whatever_happens(kind, seed, steps):
    GangDrill(KINDS[kind](), seed).run(steps).verify()


def test_the_drill_has_minimums_that_matter():
    drill = GangDrill(KINDS["none"](), 5).run(200)
    drill.verify()
    work = {name: drill.jobs[name].work(CLUSTER.slot_seconds) for name in drill.completed}
    wide = [name for name in drill.completed if drill.jobs[name].min_workers > 1]
    assert len(wide) > 5
    # The minimum did more than was left.
    assert any(sum(n for *_, n in drill.executed[name]) > work[name] for name in wide)


@pytest.mark.parametrize("name", policies())
def test_every_policy_heeds_the_minimum_of_an_instance(name):
    instance = oasis.generate("testbed", jobs=8, seed=2)
    jobs = tuple(replace(job, min_workers=min(3, job.chunks)) for job in instance.jobs)
    instance = replace(instance, jobs=jobs)
    run = oasis.simulate(instance, make_policy(name, instance))
    oasis.verify(instance, run)
    for schedule in run.schedules.values():
        counts = np.bincount(*schedule.workers[:, ::2].T)  # by slot
        assert set(counts[counts > 0].tolist()).isdisjoint({1.0, 2.0})
