"""The single periods of a horizon with HiGHS, with HiGHS without presolve, and with CBC.

Their bounds add up to one of the instance (`offline.periods`), so that a false optimum of one
of them would be a false bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pulp
import pytest

from oasis.solvers.arrays import ArrayModel
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS, OfflineArrays
from offline.periods import PeriodModel
from tests.oracle.tiny import seeded, tiny_instance
from tests.unit.offline.test_milp_agreement import assert_solvers_agree


def periods(first_seed: int) -> Iterator[ArrayModel]:
    """Both periods of tiny instances, with cuts that random counts break, at random prices."""
    for seed in count(first_seed):
        rng = np.random.default_rng(seed)
        master = CountModel(OfflineArrays.of(tiny_instance(seeded(seed), jobs=6)))
        middle = master.arrays.horizon // 2
        if not (master.jobs and middle):
            continue
        model = PeriodModel(master, [range(middle), range(middle, master.arrays.horizon)], 0.0)
        separation = Separation(master)
        for group in GROUPS:
            most = rng.uniform(0.0, [c.parallel for c in master.jobs])
            separation.cut_off(group, model.units(group, most), (), Budget())
        model.keep_cuts(np.full(model.size, 1e9))
        prices = rng.exponential(3.0, len(model.links))
        for number, parts in enumerate(model.parts):
            if parts:
                yield model.period(number, prices)


def as_problem(model: ArrayModel) -> pulp.LpProblem:
    """The same in PuLP, for CBC."""
    assert model.maximise
    problem = pulp.LpProblem("period", pulp.LpMaximize)
    kinds = [pulp.LpInteger if is_whole else pulp.LpContinuous for is_whole in model.is_whole]
    columns = zip(model.names, model.lower.tolist(), model.upper.tolist(), kinds, strict=True)
    variables = [problem.add_variable(*column) for column in columns]
    problem.setObjective(pulp.lpDot(model.costs.tolist(), variables) + model.constant)
    rows = model.rows
    for r in range(len(rows.lower)):
        entries = slice(rows.starts[r], rows.starts[r + 1])
        here = [variables[k] for k in rows.columns[entries].tolist()]
        total = pulp.lpDot(rows.values[entries].tolist(), here)
        if np.isfinite(rows.upper[r]):
            problem.addConstraint(total <= float(rows.upper[r]))
        if np.isfinite(rows.lower[r]):
            problem.addConstraint(total >= float(rows.lower[r]))
    return problem


@pytest.mark.parametrize("seed", range(12))
def test_highs_cbc_and_highs_without_presolve_agree_on_periods(seed: int) -> None:
    for model in islice(periods(100 * seed), 2):
        assert_solvers_agree(as_problem(model), is_relaxation=True)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(20))
def test_highs_cbc_and_highs_without_presolve_agree_on_1200_periods(block: int) -> None:
    for model in islice(periods(10_000 + 1000 * block), 60):
        assert_solvers_agree(as_problem(model), is_relaxation=True)
