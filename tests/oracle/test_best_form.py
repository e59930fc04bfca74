"""Jobs in several forms on machines of several kinds: the search against enumeration.

Each form is enumerated on the machines that it admits as if there were no others: every count of
workers in every slot, every way to put them and their parameter servers on these machines. Amounts
are whole numbers, so that nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, Piecewise, Server
from oasis.model.schedule import COUNT, SLOT
from oasis.online.search import Granularity
from tests.oracle.kinds import RESOURCES, Labels, machines, ways
from tests.strategies import Market
from tests.unit.online.test_minimum_of_workers import outcomes, priced


def market(seed: int) -> Market:
    """A job of two or three forms on a few machines; some prices are 0, some machines full."""
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(2, 5))
    cluster = Cluster(RESOURCES, machines(rng, "w"), machines(rng, "p"), slot_seconds=1.0)
    values = np.sort(rng.choice([0.0, 1.0, 2.0, 5.0, 9.0, 20.0], horizon))[::-1]
    job = Job(
        "j",
        arrival=0,
        epochs=int(rng.integers(1, 3)),
        chunks=int(rng.integers(1, 4)),
        minibatches=1,
        minibatch_time=float(rng.choice([0.5, 1.0])),
        gradient_mb=0.0,
        worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
        ps={"bandwidth_gbps": 2.0},
        utility=Piecewise(tuple(float(t) for t in range(horizon)), tuple(values.tolist())),
        **ways(rng),
    )
    return priced(rng, job, cluster, horizon)


def kept(servers: tuple[Server, ...], required: Labels) -> tuple[tuple[Server, ...], list[int]]:
    """The machines with these labels, one by one, and their indices."""
    each = [replace(server, id=name, count=1) for server in servers for name in server.ids]
    indices = [
        k
        for k, server in enumerate(each)
        if all(name in server.labels and server.labels[name] in required[name] for name in required)
    ]
    return tuple(each[k] for k in indices), indices


def narrowed(given: Market, form: Job) -> Market | None:
    """The market without the machines that a form does not admit; None if no worker has one."""
    workers, at = kept(given.cluster.worker_servers, form.requires)
    hosts, host_at = kept(given.cluster.ps_servers, form.ps_requires if form.bandwidth else {})
    if not workers or not hosts:
        return None
    return Market(
        replace(form, requires={}, ps_requires={}),
        Cluster(RESOURCES, workers, hosts, slot_seconds=1.0),
        given.horizon,
        given.worker_prices[:, at],
        given.ps_prices[:, host_at],
        given.worker_used[:, at],
        given.ps_used[:, host_at],
    )


@dataclass
class Expected:
    """Result of the enumeration: payoff, completion and form; least costs by completion."""

    best: tuple[float, int, int] | None
    costs: dict[int, float]


def enumerated(given: Market, fraction: float, granularity: Granularity) -> Expected:
    forms = [narrowed(given, form) for form in given.job.in_forms]
    utility = given.job.utility
    soonest = min(
        (-(-one.job.work(1.0) // one.job.chunks) for one in forms if one is not None), default=1
    )
    floor = fraction * float(utility(soonest - 1))
    best, costs = None, {}
    for k, one in enumerate(forms):
        if one is None:
            continue
        for t, cost in outcomes(one, 0, one.job.work(1.0), granularity).items():
            costs[t] = min(cost, costs.get(t, np.inf))
            worth = float(utility(t)) if float(utility(t)) >= floor else 0.0
            rank = (worth - cost, -t, -k)
            if worth > cost and (best is None or rank > best):
                best = rank
    return Expected(None if best is None else (best[0], -best[1], -best[2]), costs)


@pytest.mark.parametrize("granularity", ["worker-slot", "chunk"])
@pytest.mark.parametrize("fraction", [0.0, 0.5])
def test_the_best_form_is_that_of_an_enumeration(fraction: float, granularity: Granularity) -> None:
    forms, labels, several = set(), 0, 0
    for seed in range(500):
        given = market(seed)
        job = given.job
        expected = enumerated(given, fraction, granularity)
        found = oasis.best_schedule(
            **given.arguments, granularity=granularity, min_utility_fraction=fraction
        )
        assert (found.schedule is None) == (expected.best is None), seed
        if found.schedule is None:
            assert found.reason is not None
            labels += found.reason.startswith("no machine admits it: label")
            assert (found.rejection is None) == (not expected.costs), seed
            if found.rejection is not None:
                least = min(expected.costs.values())
                assert found.rejection.smallest_utility == pytest.approx(least), seed
                # Utilities are steps of a line: its floor is that of the search, a factor is not.
                worth = [
                    (cost, float(job.utility(t)))
                    for t, cost in expected.costs.items()
                    if float(job.utility(t)) > 0
                ]
                if fraction == 0 and found.rejection.utility_factor is not None:
                    factor = min(cost / value for cost, value in worth)
                    assert found.rejection.utility_factor == pytest.approx(factor), seed
            continue
        assert expected.best is not None
        assert found.payoff == pytest.approx(expected.best[0], abs=1e-9), seed
        assert (found.completion, found.schedule.form) == expected.best[1:], seed
        forms.add(found.schedule.form)
        several += found.schedule.form > 0
        form = job.in_forms[found.schedule.form]
        counts = np.bincount(found.schedule.workers[:, SLOT], found.schedule.workers[:, COUNT])
        assert all(n == 0 or form.min_workers <= n <= form.chunks for n in counts)
        instance = Instance(given.horizon, given.cluster, (job,))
        assert oasis.verify(instance, {"j": found.schedule}) == found.utility
    assert forms == {0, 1, 2}
    assert several > 50
    assert labels > 10
