"""Short representations of objects, with what matters."""

from __future__ import annotations

from typing import Any

import pytest

import baselines
import experiments
import oasis
import offline
from baselines import DRF, FIFO, LAS, Dragon, Gittins, KubernetesDefault
from experiments.evaluation.comparison import compare
from oasis.scheduling.job import TrainingCurve
from oasis.simulator import Workload, replay
from tests.builders import elastic

MOST = 200


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Public results of larger runs, and what they are of."""
    instance = oasis.generate(jobs=300, worker_servers=20, ps_servers=20, horizon=100, seed=7)
    scheduler = oasis.OASiS.from_instance(instance)
    run = oasis.simulate(instance, scheduler)
    fifo = oasis.simulate(instance, FIFO())
    small = oasis.generate("testbed", jobs=3, worker_servers=2, ps_servers=2, seed=1)
    ratio = experiments.competitive_ratio(small)
    made = elastic()
    outcome = replay(made, FIFO())
    live = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    ledger = oasis.OASiS.from_instance(small).ledger
    rejection = next(d.rejection for d in run.decisions if d.rejection is not None)
    found: dict[str, Any] = {
        "instance": instance,
        "cluster": instance.cluster,
        "job": instance.jobs[0],
        "scheduler": scheduler,
        "run": run,
        "outcome": fifo.outcome,
        "replayed": outcome,
        "times": outcome.jobs[0],
        "bounds": run.bounds,
        "prices": run.bounds.worker if run.bounds else None,
        "schedule": next(iter(run.schedules.values())),
        "admitted": next(d for d in run.decisions if d.admitted),
        "rejected": next(d for d in run.decisions if not d.admitted),
        "rejection": rejection,
        "bottleneck": rejection.bottleneck,
        "ratio": ratio,
        "offline": ratio.offline,
        "certificate": oasis.certify(instance, run),
        "comparison": compare(small, baselines.POLICIES),
        "learned": offline.learn_prices([small]),
        "lp": offline.configuration_bound(small),
        "warm start": offline.WarmStart(run.schedules),
        "workload": made,
        "site": made.site,
        "speed": made.speed,
        "policy job": Workload.from_instance(instance).jobs[0],
        "live": live,
        "recourse": oasis.Recourse("arrival", seed=4),
        "curve": TrainingCurve.exponential(2.0, 0.2, 3.0),
        "utility": oasis.Piecewise(tuple(map(float, range(50))), (5.0,) * 50),
    }
    job = small.jobs[0]
    prices = (ledger.worker_prices, ledger.ps_prices, ledger.worker_used, ledger.ps_used)
    found["best"] = oasis.best_schedule(job, small.cluster, small.horizon, *prices)
    return found


def test_nothing_public_is_shown_at_length(shown):
    lengths = {name: len(repr(value)) for name, value in shown.items()}
    assert {name: size for name, size in lengths.items() if size > MOST} == {}
    generic = [name for name, value in shown.items() if " object at 0x" in repr(value)]
    assert generic == []


def test_showing_a_rejection_does_not_look_for_its_reason():
    def explain() -> Any:
        raise AssertionError("took long")

    decision = oasis.Decision.rejected("j3", explain)
    assert repr(decision) == "<Decision: job j3, rejected>"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (FIFO(), "FIFO()"),
        (FIFO(3), "FIFO(seed=3)"),
        (DRF(by="owner"), "DRF(by='owner')"),
        (LAS(thresholds=(0.5, 2.0), line="fit"), "LAS(thresholds=[0.5, 2.0], line='fit')"),
        (LAS(thresholds=(1.0,)), "LAS()"),
        (Gittins(history=(1.0, 20.0)), "Gittins(history=[1.0, 20.0])"),
        (KubernetesDefault(interleave=False), "KubernetesDefault(interleave=False)"),
        (Dragon(30.0), "Dragon(urgent_after=30.0)"),
        (oasis.Recourse(), "Recourse(commitment='none', seed=0)"),
        (oasis.Recourse("start", rounds=3), "Recourse(commitment='start', seed=0, rounds=3)"),
    ],
)
def test_a_policy_shows_the_options_that_differ_from_their_defaults(policy, text):
    assert repr(policy) == text
