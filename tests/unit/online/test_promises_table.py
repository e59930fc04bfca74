"""The table of promises: each column is the mean of its instances."""

from __future__ import annotations

import pytest

import oasis
from oasis.online.recourse import SampledFutures
from tests.benchmarks import promises

TINY = {
    "few": [oasis.generate("testbed", jobs=2, seed=seed) for seed in (1, 2)],
    "one": [oasis.generate("testbed", jobs=3, seed=3)],
}


def test_a_row_is_the_mean_share_over_each_family_and_over_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promises, "SHARES", (0.8, None))
    rows = promises.rows(TINY)
    assert [row[-1] for row in rows] == ["3"] * len(promises.SHARES)
    for share, row in zip(promises.SHARES, rows, strict=True):
        found = {}
        for family, instances in TINY.items():
            found[family] = []
            for instance in instances:
                rule = SampledFutures(promise_share=share)
                promised = oasis.simulate(instance, oasis.Recourse("arrival", admission=rule))
                free = oasis.simulate(instance, oasis.Recourse("none"))
                found[family].append(promised.total_utility / free.total_utility)
        few, one = found.values()
        means = (sum(few) / 2, one[0], (sum(few) + one[0]) / 3)
        assert [float(cell) for cell in row[1:4]] == pytest.approx(means, abs=0.0005 + 1e-12)


def test_the_instances_are_those_that_the_share_was_chosen_on() -> None:
    made = promises.families()
    assert list(made) == list(promises.COLUMNS[1:3])
    assert [len(instances) for instances in made.values()] == [24, 10]
    seeds = [[one.metadata["seed"] for one in instances] for instances in made.values()]
    assert seeds == [list(range(100, 124)), list(range(101, 111))]
