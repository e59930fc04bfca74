"""Which of several equally good schedules OASiS takes is a matter of the rule, not of rounding."""

from itertools import product

import numpy as np
import pytest

import oasis
from tests.oracle.decimal_oasis import Choice, Decimal, Reference, first_split

SMALL = {"jobs": 20, "worker_servers": 4, "ps_servers": 4, "horizon": 20}
# At a floor of 0 some servers of `calibrated` differ in price by a relative 1e-20, which is a tie
# for floats and none for the reference.
SETTINGS = (
    ("testbed", {}, 0.7, (0, 1, 3, 16)),
    ("testbed", {}, 0.0, (3, 17)),
    ("testbed-observed", {}, 0.7, (0, 2, 13, 19)),
    ("testbed-observed", {}, 0.0, (0, 16)),
    ("calibrated", SMALL, 0.7, (5, 13)),
)
CASES = [
    pytest.param(
        *(preset, sizes, fraction, seed),
        id=f"{preset}-{fraction}-{seed}",
        marks=() if seed in quick else pytest.mark.nightly,
    )
    for preset, sizes, fraction, quick in SETTINGS
    for seed in range(20)
]


def taken(decision):
    """A decision in the words of the reference."""
    if decision.schedule is None:
        return Choice(Decimal(0), None)
    parts = (decision.schedule.workers, decision.schedule.ps)
    rows = [tuple((t, s, n) for t, s, n in part.tolist()) for part in parts]
    return Choice(Decimal(decision.payoff), decision.completion, *rows)


@pytest.mark.parametrize(("preset", "sizes", "fraction", "seed"), CASES)
def test_decides_as_fifty_digits_do(preset, sizes, fraction, seed):
    """Admission, completion and every count on every server in every slot, and the payoff."""
    instance = oasis.generate(preset, seed=seed, **sizes)
    scheduler = oasis.OASiS.from_instance(instance, min_utility_fraction=fraction)
    run = oasis.simulate(instance, scheduler)
    expected = Reference(instance, fraction).run()
    assert [decision.job_id for decision in run.decisions] == list(expected)
    for decision, wanted in zip(run.decisions, expected.values(), strict=True):
        found = taken(decision)
        assert found.completion == wanted.completion, decision.job_id
        assert found.counts == wanted.counts, decision.job_id
        assert found.workers == wanted.workers, decision.job_id
        assert found.ps == wanted.ps, decision.job_id
        assert float(found.payoff) == pytest.approx(float(wanted.payoff), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("work", "most", "split"), [(6, 4, [4, 2]), (10, 6, [6, 4])])
def test_of_two_idle_slots_the_first_is_filled(work, most, split):
    """Whatever a worker demands: sums of its cost must not tell equal slots apart."""
    rng = np.random.default_rng(0)
    for demand in [1.0, 1.7, *rng.uniform(0.01, 10.0, 1000).tolist()]:
        machine = {"cpu": most * demand}
        cluster = oasis.Cluster(
            ("cpu",), (oasis.Server("w", machine),), (oasis.Server("p", machine),), 1.0
        )
        job = oasis.Job("j", 0, 1, work, 1, 1.0, 0.0, {"cpu": demand}, {}, oasis.Constant(9.0))
        instance = oasis.Instance(2, cluster, (job,))
        decision = oasis.OASiS.from_instance(instance).submit(job)
        assert list(taken(decision).counts.values()) == split, demand
        if demand == 1.7:
            assert list(Reference(instance).decide("j").counts.values()) == split


def test_the_reference_takes_the_first_of_all_cheapest_splits():
    """Every split of small random tables, with many ties and uneven steps."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        steps = rng.choice(["0.1", "0.2", "0.3"], (3, int(rng.integers(1, 5))))
        tables = [[Decimal(0)] for _ in steps]
        for table, row in zip(tables, steps.tolist(), strict=True):
            for step in row:
                table.append(table[-1] + Decimal(step))
        work = int(rng.integers(1, steps.size + 1))
        splits = [
            (-sum(table[n] for table, n in zip(tables, counts, strict=True)), counts)
            for counts in product(*(range(len(table)) for table in tables))
            if sum(counts) == work
        ]
        assert tuple(first_split(tables, work)) == max(splits)[1]
