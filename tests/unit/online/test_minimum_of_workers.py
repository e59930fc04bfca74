"""Jobs that work with a minimum of workers: what is left of them, and splits over slots."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.online.completions import Completions
from oasis.online.dp import best_split
from oasis.online.dp.worker_slots import costs_of_work, workers_for
from oasis.online.ledger import Ledger
from oasis.online.search import RemainingWork, Search
from tests.oracle.reference_search import Question, textbook_costs
from tests.strategies import calm_markets, gang_markets, more, rugged_markets


def test_what_is_left_of_a_job_is_placed_at_the_least_cost():
    """Also where less is left than the minimum does in a slot."""
    placed = []

    @more(3)
    @given(gang_markets(st.one_of(rugged_markets(), calm_markets())), st.data())
    def check(market, data):
        question, job = Question(**market.arguments), market.job
        begin = data.draw(st.integers(0, min(1, market.horizon - 1 - job.arrival)))
        work = data.draw(st.integers(1, question.work))
        placed.append(check_rest(market, question, begin, work))

    check()
    assert sum(placed) > 40


def check_rest(market, question, begin, work):
    """Slots are counted from the arrival; whether there is a placement."""
    job, first = market.job, begin - 1 - (-work // market.job.chunks)
    utility = job.utility(np.arange(first, market.horizon - job.arrival))
    ends = Completions(job.arrival + first, utility, np.where(utility > 0, 0.0, -np.inf))
    prices = market.worker_prices, market.ps_prices
    ledger = Ledger.of_arrays(market.cluster, *prices, market.worker_used, market.ps_used)
    search = Search(job, ledger, remaining=RemainingWork(job.arrival + begin, work, ends))
    costs = textbook_costs(question, work, begin)
    able = [(t, cost, float(job.utility(t))) for t, cost in enumerate(costs) if cost < math.inf]
    split, cheapest = search.best(), search.cheapest()
    payoff = max([0.0, *(worth - cost for _, cost, worth in able)])
    assert (split.payoff if split else 0.0) == pytest.approx(payoff, abs=1e-9)
    assert (cheapest is None) == (not able)
    if cheapest is not None:
        assert -cheapest.payoff == pytest.approx(costs[-1])
    counted = [(t, cost / worth) for t, cost, worth in able if worth > 0]
    earliest, factor = search.earliest(market.horizon - 1), search.smallest_factor()
    assert (earliest is None) == (factor is None) == (not counted)
    if earliest is None or factor is None:
        return False
    schedule = search.schedule(earliest)
    assert schedule.completion == job.arrival + counted[0][0]
    assert schedule.worker_slots >= work
    assert factor == pytest.approx(min(each for _, each in counted), rel=1e-9, abs=1e-12)
    return True


def textbook(rows, utility, least, work):
    """Best payoff by a programme over slots whose state is the work done, at most `work`."""
    cost, best = np.full(work + 1, np.inf), 0.0
    cost[0] = 0.0
    for row, worth in zip(rows, utility, strict=True):
        after = cost.copy()
        for n in range(least, len(row)):
            for done in np.flatnonzero(cost < np.inf).tolist():
                now = min(work, done + n)
                after[now] = min(after[now], cost[done] + row[n])
        cost = after
        best = max(best, float(worth - cost[work]))
    return best


def test_splits_of_many_slots_and_workers_are_those_of_the_textbook():
    """Costs rise anyhow, with steps of parameter servers and ties in them."""
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        slots, most = int(rng.integers(3, 20)), int(rng.integers(2, 14))
        least = int(rng.integers(1, most + 1))
        steps = rng.choice([0.0, 0.25, 1.0, 1.0, 4.0], (slots, most)) + rng.random() * 0.1
        rows = np.concatenate([np.zeros((slots, 1)), steps.cumsum(axis=1)], axis=1)
        for row, room in zip(rows, rng.integers(0, 2 * most, slots), strict=True):
            row[(room if room >= least else 0) + 1 :] = np.inf
        work = int(rng.integers(1, 1 + most * slots // 2))
        utility = np.sort(rng.integers(1, 3 * work + 2, slots).astype(float))[::-1]
        expected = textbook(rows, utility, least, work)
        costs = costs_of_work(rows.copy(), least, work)
        split = best_split(costs, np.ones(slots, np.int64), utility, work, 0.0)
        assert (split.payoff if split else 0.0) == pytest.approx(expected, abs=1e-9), seed
        if split is not None:
            workers = workers_for(split.counts[: split.completion + 1], least, work)
            paid = sum(row[n] for row, n in zip(rows, workers, strict=False))
            assert utility[len(workers) - 1] - paid == pytest.approx(expected, abs=1e-9), seed
            found += 1
    assert found > 100
