"""A wrong argument of a public name: what it should have been, how one is got, what was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import oasis
import offline
from baselines import FIFO, RRH, KubernetesDefault
from experiments import competitive_ratio
from experiments.evaluation.comparison import compare
from oasis.scheduling import BasePolicy
from oasis.simulator import PlainJob, replay, rigid_workload
from tests import builders

SMALL = oasis.generate("testbed", jobs=2, seed=1)
JOB = SMALL.jobs[0]
MADE = builders.elastic(2)
READ = "got 't.json'; oasis.read('t.json') reads one from that file"


def service() -> Any:
    return oasis.LiveScheduler.recourse(SMALL.cluster, 8)


TAKE_AN_INSTANCE: dict[str, Callable[[Any], object]] = {
    "simulate": lambda given: oasis.simulate(given, FIFO()),
    "verify": lambda given: oasis.verify(given, {}),
    "certify": lambda given: oasis.certify(given, oasis.simulate(SMALL, FIFO())),
    "dual_bound": lambda given: oasis.dual_bound(given, None, None),
    "write": lambda given: oasis.write(given, "never.json"),
    "OASiS": oasis.OASiS.from_instance,
    "Recourse": oasis.Recourse.from_instance,
    "PriceBounds": oasis.PriceBounds.from_instance,
    "solve": offline.solve,
    "configuration_bound": offline.configuration_bound,
    "competitive_ratio": competitive_ratio,
    "compare": lambda given: compare(given, {"fifo": FIFO}),
}


@pytest.mark.parametrize("name", TAKE_AN_INSTANCE)
def test_a_path_in_place_of_an_instance_is_told_how_it_is_read(name):
    with pytest.raises(TypeError) as caught:
        TAKE_AN_INSTANCE[name]("t.json")
    assert str(caught.value) == f"instance: expected an oasis.Instance, {READ}"


simulate: Any = partial(oasis.simulate, policy=FIFO())
run_workload: Any = partial(replay, policy=FIFO())
rigid: Any = partial(rigid_workload, servers=1, gpus_per_server=8)
recourse: Any = partial(oasis.LiveScheduler.recourse, lookahead=10)
POLICY = "policy: expected a policy, such as "
# what is called, the argument, how the message begins, and what else it says
WRONG: list[tuple[Any, Any, str, str]] = [
    (simulate, Path("t.json"), "instance: expected an oasis.Instance", READ.split("; ")[1]),
    (simulate, FIFO(), "instance: expected", "got FIFO(), a policy; the instance comes first"),
    (simulate, oasis.Instance, "instance: expected", "got the class Instance"),
    (simulate, SMALL.cluster, "instance: expected", "got <Cluster: "),
    (simulate, {"format": "oasis-instance"}, "instance: expected", "instance_from_dict makes one"),
    (simulate, None, "instance: expected", "got None"),
    *(
        (partial(run, first), given, POLICY, message)
        for run, first in ((oasis.simulate, SMALL), (replay, MADE))
        for given, message in (
            (FIFO, "got the class FIFO; FIFO() makes one"),
            (oasis.OASiS, "got the class OASiS; OASiS.from_instance(instance) makes one"),
            (oasis.Recourse, "got the class Recourse; Recourse() makes one"),
            (int, "got the class int"),
            ("srtf", "got 'srtf'; baselines.make('srtf') makes one"),
            ("oasis", "got 'oasis'; oasis.OASiS.from_instance(instance) makes one"),
            (SMALL, "the policy comes second"),
            (BasePolicy(), "got "),
            (None, "got None"),
        )
    ),
    (
        run_workload,
        "t.csv",
        "workload: expected an oasis.simulator.Workload",
        "read_plain('t.csv')",
    ),
    (run_workload, SMALL, "workload: expected", "oasis.simulate(instance, policy)"),
    (run_workload, FIFO(), "workload: expected", "the workload comes first"),
    (partial(compare, SMALL), ["fifo"], "policies: expected a mapping", "got ['fifo']"),
    (partial(compare, SMALL), {"f": FIFO()}, "policies['f']: expected", "got FIFO()"),
    (offline.learn_prices, SMALL, "past: expected a sequence of oasis.Instance", "got "),
    (offline.learn_prices, ["t.json"], "past[0]: expected an oasis.Instance", READ),
    (partial(oasis.verify, SMALL), "r.json", "result: expected", "oasis.read_result('r.json')"),
    (partial(oasis.certify, SMALL), FIFO(), "run: expected a Run of OASiS", "got FIFO()"),
    (oasis.OASiS.from_instance(SMALL).quote, "j0", "job: expected an oasis.Job", "got 'j0'"),
    (partial(oasis.OASiS, horizon=3, bounds=None), SMALL, "cluster: expected oasis.Cluster", "as "),
    (recourse, SMALL, "cluster: expected an oasis.Cluster", "its cluster is one"),
    (recourse, "t.json", "cluster: expected an oasis.Cluster", "got 't.json'"),
    (lambda given: oasis.Instance(4, given, []), None, "cluster: expected an oasis.Cl", "got None"),
    (rigid, "t.csv", "jobs: ", "got 't.csv'; oasis.traces.read_plain('t.csv').jobs reads them"),
    (rigid, MADE, "jobs: expected plain jobs", "got <Workload: "),
    (rigid, SMALL.jobs, "jobs[0]: expected a PlainJob", "got <Job: "),
    (
        lambda given: replay(MADE, FIFO(), speed=given),
        "fast",
        "speed: expected an object",
        "'fast'",
    ),
    (
        lambda given: replay(MADE, FIFO(), costs=given),
        {"s": 1},
        "costs: expected an object",
        "{'s'",
    ),
]


@pytest.mark.parametrize(("call", "given", "begins", "says"), WRONG)
def test_an_argument_of_another_kind_is_named(call, given, begins, says):
    with pytest.raises(TypeError) as caught:
        call(given)
    assert str(caught.value).startswith(begins)
    assert says in str(caught.value)


ROWS = "expected rows of integers (slot, server, count)"


@pytest.mark.parametrize(
    ("call", "field", "expected", "got"),
    [
        (partial(oasis.solve, SMALL, "x"), "method", "expected one of auto, milp, ", "'x'"),
        (partial(competitive_ratio, SMALL, method=None), "method", "expected one of auto", "None"),
        (partial(oasis.solve, SMALL, params=3), "params", "expected AutoParams for method ", "3"),
        (
            partial(oasis.solve, SMALL, "milp", params={"presolve": 3}),
            "presolve",
            "expected true or false",
            "3",
        ),
        (partial(oasis.Schedule, "a", workers="x", ps=[]), "workers", ROWS, "'x'"),
        (partial(oasis.Schedule, "a", [], ps=[[0, 0, 1.5]]), "ps", ROWS, "[[0, 0, 1.5]]"),
        (
            partial(oasis.Instance, 4, SMALL.cluster, [JOB, 1]),
            "jobs[1]",
            "expected an object of oasis.Job",
            "1",
        ),
        (
            partial(oasis.OASiS.from_instance, SMALL, scale="x"),
            "scale",
            "expected a finite number > 0",
            "'x'",
        ),
        (
            partial(oasis.OASiS.from_instance, SMALL, min_utility_fraction=None),
            "min_utility_fraction",
            "expected 0 <= phi < 1",
            "None",
        ),
        (partial(oasis.Recourse, seconds="x"), "seconds", "expected a number >= 0", "'x'"),
        (lambda: service().submit(3), "job", "expected an object of oasis.Job", "3"),
        (
            lambda: service().submit(replace(JOB, arrival=4)),
            "arrival",
            "expected the present slot 0",
            "4",
        ),
        (lambda: service().cancel("b"), "job_id", "expected a live job", "'b'"),
        (lambda: service().cancel(5), "job_id", "expected a live job", "5"),
        (lambda: service().revise(["a"], 3), "job_id", "expected a live job", "['a']"),
        (lambda: service().revise("nope", 0), "job_id", "expected a live job", "'nope'"),
        (lambda: service().restore(None), "server", "expected the id of a se", "None"),
        (lambda: service().lose("b"), "server", "expected the id of a se", "'b'"),
        (
            lambda: rigid([PlainJob("a", 0.0, 1.0, 1)], servers=1.5),
            "servers",
            "expected an integer >= 1",
            "1.5",
        ),
        *(
            (partial(made, seed=seed), "seed", "expected an integer >= 0", repr(seed))
            for made in (FIFO, KubernetesDefault, RRH)
            for seed in ("a", -1, 1.5, True)
        ),
    ],
)
def test_the_error_has_field_expectation_and_value(call, field, expected, got):
    with pytest.raises(oasis.InputError) as caught:
        call()
    error = caught.value
    assert (error.field, error.got) == (field, got)
    assert error.expected.startswith(expected)
    assert ", got " not in error.expected
