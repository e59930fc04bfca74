"""Where the printed Theorem 4 fails on finite instances, as small as the failures come.

Theorem 4 says OPT <= 2 alpha P with alpha = max_r (1, ln U1^r/L1, ln U2^r/L2). Its proof moves the
prices by infinitesimal steps and lets every job see the whole cluster. Neither holds when one job
takes a visible share of a server: the price it pays is that of before, and the next job finds no
room at a price far below U. docs/theory ("Theorem 4 on finite instances") has the corrected form

    OPT <= D_0 + alpha_x P + G,

which every test here asserts too. All instances have one resource, one worker server of capacity
1, and jobs that need no parameter server, so that every number can be checked by hand.
"""

import math

import pytest

import oasis
from oasis import Cluster, Constant, Instance, Job, Piecewise, Server
from offline import solve


def job(name, workers, share, utility, **changes):
    """A job that keeps `workers` workers busy for a slot, each on `share` of the server."""
    fields = {"epochs": 1, "chunks": workers, "minibatches": 1, "minibatch_time": 1.0} | changes
    return Job(name, 0, gradient_mb=0.0, worker={"cpu": share}, ps={}, utility=utility, **fields)


def instance(*jobs, horizon=1):
    servers = (Server("w", {"cpu": 1.0}),), (Server("p", {"cpu": 1.0}),)
    return Instance(horizon, Cluster(("cpu",), *servers, 1.0), jobs)


def outcome(problem, **options):
    """Proven optimum, run and certificate; the corrected form is asserted of each."""
    run = oasis.simulate(problem, oasis.OASiS.from_instance(problem, **options))
    oasis.verify(problem, run)
    certificate = oasis.certify(problem, run)
    optimum = solve(problem, method="milp")
    assert optimum.gap <= 3e-9  # what HiGHS drops, and the rounding outward of results
    assert optimum.objective <= certificate.upper_bound * (1 + 1e-9)
    return optimum.objective, run, certificate


def test_printed_ratio_fails_although_a_worker_is_a_thousandth_of_the_server():
    """Two jobs of 510 workers: the first takes 51 % of the server at the price of an empty one.

    It meets the printed assumption (one worker is tiny), since that says nothing of one job.
    OPT / P is 10^6; 2 alpha = 2 ln(U/L) with U = 10^6 / 0.001 and L = 1/4 is 44.2. The second job
    finds 490 of its 510 workers' room at 8 % of U, so G, the payoff it finds on the empty cluster
    only, carries nearly all of the corrected bound.
    """
    problem = instance(
        job("first", 510, 0.001, Constant(1.0)), job("second", 510, 0.001, Constant(1e6))
    )
    optimum, run, certificate = outcome(problem)
    assert [decision.admitted for decision in run.decisions] == [True, False]
    assert "no room: 490 of 510 worker-slots" in run.decisions[1].reason
    assert optimum == 1e6
    assert run.total_utility == 1.0
    assert certificate.alpha == pytest.approx(math.log(4e9), rel=1e-12)
    assert optimum > 1000 * 2 * certificate.alpha * run.total_utility  # the printed form fails
    x = 0.51 * math.log(4e9)
    growth = math.log(4e9) * math.expm1(x) / x
    assert math.exp(certificate.log_alpha_x) == pytest.approx(growth, rel=1e-9)
    final_cost = 0.51 * 0.25 * 4e9**0.51
    assert certificate.payoff_gap == pytest.approx(1e6 - final_cost, rel=1e-9)
    assert optimum <= 2 * growth * run.total_utility + 2 * certificate.payoff_gap


def test_smallest_counterexample_is_two_jobs_of_one_worker_worth_1_and_7():
    """The first fills the server; the ratio is 7, and 2 alpha = 2 ln(4 * 7) = 6.66.

    G is 0 here: the server is full, its price is U, nobody wants it. alpha_x alone makes up for
    the price that the first job did not pay. With 6 instead of 7 the printed form holds.
    """
    problem = instance(job("first", 1, 1.0, Constant(1.0)), job("second", 1, 1.0, Constant(7.0)))
    optimum, run, certificate = outcome(problem)
    assert optimum / run.total_utility == 7.0
    assert 2 * certificate.alpha == pytest.approx(2 * math.log(28), rel=1e-12)
    assert optimum > 2 * certificate.alpha * run.total_utility  # the printed form fails
    assert certificate.payoff_gap == pytest.approx(0.0, abs=1e-12)
    assert math.exp(certificate.log_alpha_x) == pytest.approx(27.0)  # (28^1 - 1) for x = ln 28
    assert certificate.upper_bound == pytest.approx(0.25 + 27.0)

    problem = instance(job("first", 1, 1.0, Constant(1.0)), job("second", 1, 1.0, Constant(6.0)))
    optimum, run, certificate = outcome(problem)
    assert optimum <= 2 * certificate.alpha * run.total_utility


def test_online_payoffs_need_not_be_dual_feasible():
    """Theorem 2, second half: mu of the second job is 0, yet (20) asks for more at final prices.

    The first job leaves 0.4 of the server, the second needs 0.6. So mu = 0, while its schedule on
    the empty cluster pays 5 - 0.6 L (U/L)^0.6 > 0 at the final price.
    """
    problem = instance(job("first", 1, 0.6, Constant(1.0)), job("second", 1, 0.6, Constant(5.0)))
    _, run, certificate = outcome(problem)
    assert run.decisions[1].payoff == 0.0
    lower, upper = 0.25, 5 / 0.6
    final = lower * (upper / lower) ** 0.6
    assert certificate.payoff_gap == pytest.approx(5 - 0.6 * final, rel=1e-12)
    assert certificate.payoff_gap > 3


def test_finite_steps_break_the_allocation_cost_relationship():
    """Lemma 2 asks p (g' - g) >= c (p' - p) / alpha; a job as large as the server breaks it.

    U = 1 and L = 1/4, so alpha = ln 4 = 1.386: 1/4 is paid, the price rises by 3/4.
    """
    problem = instance(job("only", 1, 1.0, Constant(1.0)))
    _, run, certificate = outcome(problem)
    paid, rise = run.decisions[0].cost, 1.0 - 0.25
    assert paid == pytest.approx(0.25)
    assert certificate.alpha == pytest.approx(math.log(4))
    assert paid < rise / certificate.alpha
    assert paid >= rise / math.exp(certificate.log_alpha_x) * (1 - 1e-9)


def test_half_of_opt_need_not_cover_the_initial_dual_under_the_floor():
    """D_0 <= OPT / 2 needs a job that L is defined by and that the cluster can complete in time.

    One job, two workers for a slot; the server holds one, so it completes in the second slot, worth
    1e-4, below the floor of 1e-3: OASiS gets nothing. The only utility that counts is 1, D_0 is 1/4
    and G = 0, so 2 alpha_x P + 2 G = 0 < OPT = 1e-4. What holds is OPT <= D_0 + alpha_x P + G, and
    the two-alpha form up to what the floor gives away. Without the floor it holds as it stands.
    """
    late = Piecewise((0.0, 1.0), (1.0, 1e-4))
    problem = instance(job("late", 2, 1.0, late), horizon=2)
    optimum, run, certificate = outcome(problem)
    assert (optimum, run.total_utility, certificate.payoff_gap) == (1e-4, 0.0, 0.0)
    assert certificate.initial_dual == pytest.approx(0.25)
    assert certificate.initial_dual > optimum / 2
    assert optimum <= 1e-3 * 1.0  # phi times the best utility

    optimum, run, certificate = outcome(problem, min_utility_fraction=0.0)
    assert optimum == run.total_utility == 1e-4
    assert certificate.initial_dual <= optimum / 2


def test_initial_dual_exceeds_opt_if_no_job_fits():
    """A job that no server holds still defines L: OPT = 0, D_0 = 1/4. The bound holds, loosely."""
    optimum, run, certificate = outcome(instance(job("big", 1, 2.0, Constant(1.0))))
    assert optimum == run.total_utility == 0.0
    assert certificate.upper_bound == pytest.approx(0.25)
