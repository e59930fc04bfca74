"""The decomposition's masters with HiGHS, with HiGHS without presolve, and with CBC.

`offline.benders.master` with the cuts of its relaxation and with counts that are forbidden, at
every level of whole numbers: "auto" proves nearly everything by these models.

HiGHS 1.15.1 without presolve rule 12 alone proves false optima here, of one in some 550 masters
with forbidden counts. All that were found are right without rule 13 (bit 13 = 8192), and so are
those of the compact model in test_milp_agreement.py.

Masters of fifty jobs are a matter of their own: with the tolerance of the compact model, 1e-9,
about one solve in six of them proves a false optimum, depending on HiGHS's seed. They are solved
with a tolerance of 1e-6, and a nightly search compares their optima over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice, product

import numpy as np
import pulp
import pytest

from oasis.solvers import Status, highs
from oasis.solvers.budget import Budget
from offline.benders.decomposition import LEVELS
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS, OfflineArrays
from tests.benchmarks.streams import calibrated
from tests.linear import as_pulp
from tests.oracle.tiny import seeded, tiny_instance
from tests.unit.offline.test_benders import misfits, with_cuts
from tests.unit.offline.test_milp_agreement import assert_solvers_agree

ROUNDS = 3  # of cuts, by few classes of servers and by single ones


def masters(first_seed: int) -> Iterator[CountModel]:
    """Masters of tiny instances with something to cut off or to forbid; the others say little."""
    for seed in count(first_seed):
        model = CountModel(OfflineArrays.of(tiny_instance(seeded(seed), jobs=6)))
        if model.jobs and with_cuts(model, ROUNDS) + forbidden(model):
            yield model


def forbidden(model: CountModel) -> int:
    """Forbid, where there are any, some counts that do not fit; the number of slots."""
    number = 0
    for group, slot in product(GROUPS, range(model.arrays.horizon)):
        for counts in misfits(model, group, slot)[:1]:
            model.forbid(group, np.array(counts), [slot])
            number += 1
    return number


def assert_solvers_agree_at_every_level(model: CountModel) -> None:
    for _, workers, ps in LEVELS:
        model.require(workers, ps)
        assert_solvers_agree(as_pulp(model.read()), is_relaxation=True)


@pytest.mark.parametrize("seed", range(12))
def test_highs_cbc_and_highs_without_presolve_agree_on_masters(seed: int) -> None:
    assert_solvers_agree_at_every_level(next(masters(100 * seed)))


# -- false optima, with all that is not needed for them left out -------------------------------


class Model:
    """A model in few words."""

    def __init__(self, whole: dict[str, int], fractions: dict[str, int]) -> None:
        self.problem = pulp.LpProblem("false_optimum", pulp.LpMaximize)
        self._variables = {
            name: self.problem.add_variable(name, 0, most, kind)
            for kind, upper in ((pulp.LpInteger, whole), (pulp.LpContinuous, fractions))
            for name, most in sorted(upper.items())
        }

    def maximise(self, **worth: float) -> None:
        self.problem.setObjective(self._sum(worth))

    def at_least(self, limit: float, **terms: float) -> None:
        self.problem.addConstraint(self._sum(terms) >= limit)

    def at_most(self, limit: float, **terms: float) -> None:
        self.problem.addConstraint(self._sum(terms) <= limit)

    def _sum(self, terms: dict[str, float]) -> pulp.LpAffineExpression:
        return pulp.lpSum(factor * self._variables[name] for name, factor in terms.items())


def a_worker_less_of_one_of_two() -> tuple[pulp.LpProblem, float]:
    """Counts in fractions, of which (2, 2) is forbidden; (1, 2) is enough for both jobs."""
    whole = dict.fromkeys(("less_0_0", "less_0_1", "u_4_0", "u_5_0"), 1)
    model = Model(whole, {"y_4_0_0": 3, "y_5_0_0": 2})
    model.maximise(u_4_0=3.7, u_5_0=10.0)
    model.at_least(0, u_4_0=-1, y_4_0_0=1)
    model.at_least(0, u_5_0=-2, y_5_0_0=1)
    model.at_most(1.000000001, y_4_0_0=0.333333333333, y_5_0_0=0.333333333333)
    model.at_most(3, less_0_0=2, y_4_0_0=1)
    model.at_most(2, less_0_1=1, y_5_0_0=1)
    model.at_least(1, less_0_0=1, less_0_1=1)
    return model.problem, 13.7


def a_worker_less_of_one_that_is_worth_more() -> tuple[pulp.LpProblem, float]:
    """The same, with a parameter server, and room for one of the two jobs alone."""
    whole = dict.fromkeys(("less_0_0", "less_0_1", "u_1_0", "u_2_0"), 1)
    model = Model(whole, {"y_1_0_0": 2, "y_2_0_0": 2, "z_1_0_0": 2})
    model.maximise(u_1_0=99.75, u_2_0=2.3)
    model.at_least(0, u_1_0=-2, y_1_0_0=1)
    model.at_least(0, y_1_0_0=-1, z_1_0_0=2)
    model.at_most(0, y_1_0_0=-1, z_1_0_0=1)
    model.at_least(0, u_2_0=-2, y_2_0_0=1)
    model.at_most(1.000000001, y_1_0_0=0.25, y_2_0_0=0.5)
    model.at_most(2, less_0_0=2, y_1_0_0=1)
    model.at_most(2, less_0_1=1, y_2_0_0=1)
    model.at_least(1, less_0_0=1, less_0_1=1)
    return model.problem, 99.75


KNOWN = (a_worker_less_of_one_of_two, a_worker_less_of_one_that_is_worth_more)


@pytest.mark.parametrize("made", KNOWN)
@pytest.mark.parametrize("presolve", [True, False])
def test_known_false_optima_of_masters_are_solved_right(
    made: Callable[[], tuple[pulp.LpProblem, float]], presolve: bool
) -> None:
    problem, truth = made()
    found = highs.solve(problem, presolve=presolve, is_relaxation=True)
    assert found.objective == pytest.approx(truth)


@pytest.mark.parametrize("made", KNOWN)
def test_presolve_rule_13_is_what_makes_them_false(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[], tuple[pulp.LpProblem, float]]
) -> None:
    problem, truth = made()
    monkeypatch.setattr(highs, "PRESOLVE_RULE_OFF", 4096)
    wrong = highs.solve(problem)
    assert wrong.status is Status.OPTIMAL
    assert wrong.bound < truth * (1 - 1e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(20))
def test_highs_cbc_and_highs_without_presolve_agree_on_600_masters(block: int) -> None:
    for model in islice(masters(10_000 + 1000 * block), 30):
        assert_solvers_agree_at_every_level(model)


@pytest.mark.nightly
def test_large_masters_have_the_same_optimum_whatever_the_seed() -> None:
    """Of masters in fractions that get cuts around each other's plans, the last are the hardest."""
    model, separation = large_master()
    model.require(LEVELS[0].workers, LEVELS[0].ps)
    before = np.inf
    for _ in range(6):
        master = model.read()
        found = [highs.solve(master, seed=seed, is_relaxation=True) for seed in range(4)]
        truth = pytest.approx(found[0].bound, rel=1e-6)
        assert [one.bound for one in found] == [truth] * len(found)
        assert found[0].bound <= before * (1 + 1e-6)
        before = found[0].bound
        while separation.cut(found[0].values, Budget()):
            near = model.near(model.completions(found[0].values), 0)
            found[0] = highs.solve(model.read().limited(near), is_relaxation=True)


def large_master() -> tuple[CountModel, Separation]:
    """The master of fifty jobs, and its cuts; one of which false optima are known."""
    instance = calibrated(20, 50, 50, 204)
    model = CountModel(OfflineArrays.of(instance))
    return model, Separation(model)
