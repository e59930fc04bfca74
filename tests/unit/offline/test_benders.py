"""The decomposition against enumeration: its master is a relaxation, its cuts spare the feasible.

Jobs at odds make its last resort necessary: which two jobs get along depends on the server, so
that patterns often cover in halves what no placement holds.
"""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import oasis
from oasis.solvers import Status, highs
from oasis.solvers.budget import Budget
from oasis.solvers.lp import Relaxation
from oasis.testing import small_instances
from offline import BendersParams, solve
from offline.benders.decomposition import LEVELS
from offline.benders.master import CountModel
from offline.heuristics.recombination import Alternation
from offline.heuristics.window_search import WindowSearch
from offline.model.arrays import GROUPS, OfflineArrays
from offline.patterns import CutGenerator, PatternPool, classes
from offline.state import trivial_bound
from tests.oracle.odds import CROSSED, at_odds, crossed, quarrels, unit_job
from tests.oracle.tiny import FALSE_OPTIMA, seeded, tiny_instance
from tests.strategies import all_instances, bare, fewer, of
from tests.unit.linear import as_pulp

NO_LIMIT = Budget()
PROOF = 1e-6
DIGITS = 1e-9
# Neither every job at its best nor the relaxation of the master is enough.
TIGHT = (24, 36, 98, 189, 307, 323, 360, 375, 395)
PATIENCE = 2_000  # phases until a solve without a limit is taken for endless

# -- the oracle ------------------------------------------------------------------------------------


def optimum(instance):
    """The best schedules, if the instance is small enough to enumerate."""
    try:
        return solve(instance, "bruteforce").schedules
    except ValueError:
        assume(False)
        raise


def feasible(instance):
    """OASiS's schedules, the best ones, and all of these but one or one alone."""
    best = optimum(instance)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    parts = [{name: schedule} for name, schedule in best.items()]
    rest = [{k: v for k, v in best.items() if k != name} for name in best]
    return [{}, best, run.schedules, *parts, *rest]


def assert_within(limits, values):
    for name, (least, most) in limits.items():
        assert least <= values.get(name, 0.0) <= most, name


def assert_satisfies(model, rows, values):
    for variable in model.problem.variables():
        value = values.get(variable.name, 0.0)
        assert value == round(value)
        assert variable.lowBound <= value <= variable.upBound
    for row in rows:
        used = math.fsum(c * values.get(v.name, 0.0) for v, c in row.items())
        lower, upper = row.getLb(), row.getUb()
        slack = DIGITS * max(1.0, abs(used))
        assert lower is None or used >= lower - slack, row
        assert upper is None or used <= upper + slack, row


def placeable(model, group, counts):
    """Return whether the servers of a group hold these counts, tried unit by unit."""
    units = [k for k, n in enumerate(counts) for _ in range(n)]
    capacity, demand = model.capacity(group), model.demand(group)
    for hosts in product(range(len(capacity)), repeat=len(units)):
        used = np.zeros_like(capacity)
        for k, host in zip(units, hosts, strict=True):
            used[host] += demand[k]
        if (used <= capacity * (1 + DIGITS)).all():
            return True
    return False


def boxed(model, group, slot):
    """All counts of a slot that the bounds of the variables allow; none if they are many."""
    values = {v.name: float(v.upBound) for v in model.problem.variables()}
    most = model.counts(values, group, slot).astype(int).tolist()
    return list(product(*(range(n + 1) for n in most))) if sum(most) <= 6 else []


def misfits(model, group, slot):
    box = boxed(model, group, slot)
    return [counts for counts in box if not placeable(model, group, counts)]


def generator(capacity, classes_at_most, demand, most):
    pool = PatternPool(*classes(capacity, classes_at_most), demand, most)
    return CutGenerator(pool)


def with_cuts(model, number):
    """Cut the master's relaxation off, round after round, with few classes and with single ones."""
    relaxation, added = Relaxation(model.read()), 0
    most_units = np.array([c.parallel for c in model.jobs])
    for most in (1, None):
        served = {
            group: generator(model.capacity(group), most, model.demand(group), most_units)
            for group in GROUPS
        }
        for _ in range(number):
            solution = relaxation.solve(Budget())
            assert solution is not None
            for group, slot in product(GROUPS, range(model.arrays.horizon)):
                counts = model.counts(solution.values, group, slot)
                cut = served[group].separate(counts, NO_LIMIT)
                if cut is not None:
                    rows = model.add(group, cut, range(model.arrays.horizon))
                    assert rows
                    relaxation.add(model.rows(rows))
                    added += 1
    return added


# -- the master ------------------------------------------------------------------------------------


@given(st.one_of(small_instances(), quarrels()))
@fewer(3)
def test_every_feasible_solution_satisfies_the_master_and_its_cuts(instance):
    solutions = feasible(instance)
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    for schedules in solutions:
        rows = as_pulp(model.read()).constraints()
        assert_satisfies(model, rows, model.values_of(schedules))
    value = oasis.verify(instance, solutions[1])
    for relaxation in (Relaxation(model.read()).solve(Budget()), highs.solve(model.read())):
        assert relaxation is not None
        assert relaxation.bound >= value * (1 - PROOF) - DIGITS


@given(st.one_of(quarrels(most_jobs=4), small_instances()), st.data())
@example(at_odds(CROSSED, *(unit_job(f"j{k}", 1.0) for k in range(4))), None)
@fewer(3)
def test_forbidden_counts_are_out_of_reach_and_no_others(instance, data):
    """A row asks for less of some job: nothing else goes, above all nothing that can be placed."""
    solutions = feasible(instance)
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    places = list(product(GROUPS, range(instance.horizon)))
    choices = [(*place, counts) for place in places for counts in misfits(model, *place)]
    assume(choices)
    group, slot, chosen = data.draw(st.sampled_from(choices)) if data else choices[-1]
    before = {str(row) for row in as_pulp(model.read()).constraints()}
    model.forbid(group, np.array(chosen), [slot])
    rows = [row for row in as_pulp(model.read()).constraints() if str(row) not in before]
    for schedules in solutions:
        assert_satisfies(model, rows, model.values_of(schedules))
    for counts in boxed(model, group, slot):
        reaches = all(n >= limit for n, limit in zip(counts, chosen, strict=True))
        assert is_possible(model, rows, group, slot, counts) == (not reaches)


def is_possible(
    model,
    rows,
    group,
    slot,
    counts,
):
    """Return whether the binaries of the rows can be chosen to allow these counts."""
    ones = {v.name: 1.0 for row in rows for v in row}
    known = {
        name: float(counts[k])
        for name in ones
        for k in range(len(counts))
        if model.counts({name: 1.0}, group, slot)[k]
    }
    free = [name for name in ones if name not in known]
    for bits in product((0.0, 1.0), repeat=len(free)):
        values = known | dict(zip(free, bits, strict=True))
        if all(
            (row.getLb() is None or total >= row.getLb())
            and (row.getUb() is None or total <= row.getUb())
            for row in rows
            for total in [sum(c * values[v.name] for v, c in row.items())]
        ):
            return True
    return False


@given(small_instances(), st.integers(0, 3))
@fewer(4)
def test_limits_close_to_a_plan_allow_it_and_what_completes_a_little_later(instance, window):
    best = optimum(instance)
    model = CountModel(OfflineArrays.of(instance))
    planned = model.completions(model.values_of(best))
    known = ((c.index, best.get(c.job.id)) for c in model.jobs)
    assert planned == {form: s.completion for form, s in known if s is not None}
    near = model.near(planned, window)
    for schedules in (best, {}):
        assert_within(near, model.values_of(schedules))
    for c in model.jobs:
        first = planned.get(c.index, math.inf)
        for slot, variable in c.done.items():
            assert near[variable.name] == (0, int(first <= slot <= first + window))


@given(small_instances())
@fewer(2)
def test_held_counts_may_fall_but_not_rise_in_their_slots(instance):
    model, best = CountModel(OfflineArrays.of(instance)), optimum(instance)
    values, last = model.values_of(best), instance.horizon - 1
    limits = model.capped(values, range(last))
    assert_within(limits, values)
    assert_within(limits, {})
    for c, group in product(model.jobs, GROUPS):
        for (slot, _), variable in c.units(group).items():
            assert limits.get(variable.name) == (
                (0, values.get(variable.name, 0)) if slot < last else None
            )


# -- the whole method ------------------------------------------------------------------------------


SMALL = BendersParams().whole_size


def hurried(whole_size=SMALL):
    """Short searches for better solutions: here the proof must do the work, not they.

    With a `whole_size` of 0, no instance is small enough to try whole counts at once.
    """
    return BendersParams(search_limit=0.02, patch_limit=0.02, whole_size=whole_size)


def unaided(patch):
    """No search for better schedules: masters alone must find the optimum."""
    patch.setattr(WindowSearch, "start", lambda *_: None)
    patch.setattr(Alternation, "search", lambda *_: None)


class Patience:
    """Follows a solve, and fails after too many changes of phase: it must be endless.

    Reports say nothing: while a master runs there are more of them on a slower machine.
    """

    def __init__(self, most=PATIENCE):
        self.most, self.phases = most, [""]

    def __call__(self, progress):
        if progress.phase != self.phases[-1]:
            self.phases.append(progress.phase)
        assert len(self.phases) <= self.most, progress


FRACTIONS, _, WHOLE = (phase for phase, *_ in LEVELS)
EXAMPLES, FORBIDDEN = "examples", "forbidden counts"


def proven(
    instance,
    warm_start=None,
    reached=None,
    params=None,
):
    """Value that the method proves without a time limit.

    `reached` counts the examples that entered a phase or forbade counts.
    """
    watch = Patience()
    forbid = CountModel.forbid
    parts = {EXAMPLES}

    def noted(*given):
        parts.add(FORBIDDEN)
        return forbid(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CountModel, "forbid", noted)
        result = solve(
            instance,
            "benders",
            time_limit=None,
            params=params or hurried(),
            warm_start=warm_start,
            on_progress=watch,
        )
    parts |= set(watch.phases)
    assert oasis.verify(instance, result) == result.objective
    assert result.status is Status.OPTIMAL
    assert result.upper_bound == pytest.approx(result.objective, rel=PROOF, abs=DIGITS)
    if reached is not None:
        reached.update(parts)
    return result.objective


# In what follows a property is searched within the test, which then asks what the examples reached:
# heuristics and simple bounds prove most of them before there is any master.


def test_optimum_of_jobs_at_odds_is_the_enumerated_one():
    reached: Counter[str] = Counter()

    @given(st.one_of(quarrels(), crossed()))
    @fewer(4)
    def holds(instance):
        best = oasis.verify(instance, optimum(instance))
        assert proven(instance, None, reached) == pytest.approx(best, rel=PROOF)

    holds()
    assert reached[WHOLE] > reached[EXAMPLES] / 3
    assert reached[FORBIDDEN] > reached[EXAMPLES] / 5


def test_optimum_is_the_one_of_the_compact_model(monkeypatch):
    unaided(monkeypatch)
    reached: Counter[str] = Counter()

    @given(st.one_of(all_instances(most_servers=3), bare(all_instances())))
    @fewer(4)
    def holds(instance):
        compact = solve(instance, "milp", time_limit=None)
        assert compact.status is Status.OPTIMAL
        best = pytest.approx(compact.objective, rel=PROOF, abs=DIGITS)
        assert proven(instance, {}, reached) == best

    holds()
    assert reached[WHOLE] > reached[EXAMPLES] / 2


def test_cycles_of_masters_prove_the_optimum_of_small_instances_too(
    monkeypatch,
):
    unaided(monkeypatch)
    reached: Counter[str] = Counter()

    plain = small_instances(), bare(small_instances())

    @given(st.one_of(*plain, quarrels(), crossed(), crossed(), crossed(), crossed()))
    @example(at_odds(CROSSED, *(unit_job(f"j{k}", 1.0) for k in range(4))))
    @fewer(4)
    def holds(instance):
        best = oasis.verify(instance, optimum(instance))
        found = proven(instance, {}, reached, hurried(whole_size=0))
        assert found == pytest.approx(best, rel=PROOF, abs=DIGITS)

    holds()
    assert reached[FRACTIONS] > reached[EXAMPLES] / 2
    assert reached[WHOLE] > reached[EXAMPLES] / 8
    assert reached[FORBIDDEN] > reached[EXAMPLES] / 8


FIRST = pytest.mark.parametrize(("size", "phase"), [(SMALL, WHOLE), (0, FRACTIONS)])


@FIRST
@pytest.mark.parametrize("seed", FALSE_OPTIMA)
def test_masters_do_not_repeat_the_known_false_optima(monkeypatch, seed, size, phase):
    unaided(monkeypatch)
    instance, reached = tiny_instance(seeded(seed)), Counter[str]()
    best = pytest.approx(oasis.verify(instance, optimum(instance)), rel=PROOF, abs=DIGITS)
    assert proven(instance, {}, reached, hurried(size)) == best
    assert reached[phase]


@FIRST
def test_masters_prove_the_enumerated_optimum_below_simple_bounds(size, phase):
    """The whole method, heuristics and all: they cannot help where the proof is what is missing."""
    reached: Counter[str] = Counter()
    for seed in TIGHT:
        instance = tiny_instance(seeded(seed))
        best = oasis.verify(instance, optimum(instance))
        assert best < trivial_bound(instance) * (1 - PROOF)
        found = proven(instance, None, reached, hurried(size))
        assert found == pytest.approx(best, rel=PROOF, abs=DIGITS)
    assert reached[phase] > len(TIGHT) / 2


def test_counts_that_patterns_cover_in_halves_are_forbidden(
    monkeypatch,
):
    """No cut of patterns can tell that four crossed friends do not fit on their two servers."""
    instance = at_odds(CROSSED, *(unit_job(f"j{k}", 1.0) for k in range(4)))
    forbidden: list[tuple[int, ...]] = []
    forbid = CountModel.forbid

    def noted(self, group, counts, slots):
        forbidden.append(tuple(counts.tolist()))
        forbid(self, group, counts, slots)

    monkeypatch.setattr(CountModel, "forbid", noted)
    assert proven(instance) == 3.0
    assert forbidden == [(1, 1, 1, 1)]


@given(quarrels(), of(0.0, 1e-3, 0.01, 0.05))
@fewer(5)
def test_a_tiny_limit_encloses_the_optimum_of_jobs_at_odds(instance, seconds):
    best = oasis.verify(instance, optimum(instance))
    for warm_start in (None, {}):
        result = solve(instance, "benders", time_limit=seconds, warm_start=warm_start)
        assert oasis.verify(instance, result) == result.objective
        assert result.objective <= best * (1 + PROOF)
        assert result.upper_bound >= best * (1 - PROOF)
        if result.status is Status.OPTIMAL:
            assert result.objective == pytest.approx(best, rel=PROOF)
