"""What is given in place of an instance, a policy or a workload is named, with how to get one."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.builders import elastic

INSTANCE = oasis.generate("testbed", jobs=2, seed=1)
MADE = elastic(2)
READ = r"got 't\.json'; oasis\.read\('t\.json'\) reads one from that file$"

TAKE_AN_INSTANCE: dict[str, Callable[[Any], object]] = {
    "simulate": lambda given: oasis.simulate(given, FIFO()),
    "verify": lambda given: oasis.verify(given, {}),
    "certify": lambda given: oasis.certify(given, oasis.simulate(INSTANCE, FIFO())),
    "dual_bound": lambda given: oasis.dual_bound(given, None, None),  # type: ignore[arg-type]
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
def test_a_path_in_place_of_an_instance_is_told_how_it_is_read(name: str) -> None:
    with pytest.raises(TypeError, match=f"^instance: expected an oasis.Instance, {READ}"):
        TAKE_AN_INSTANCE[name]("t.json")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Path("t.json"), r"oasis.read\('t.json'\) reads"),
        (FIFO(), r"got FIFO\(\), a policy; the instance comes first"),
        (oasis.Instance, "got the class Instance"),
        (INSTANCE.cluster, "got <Cluster: "),
        ({"format": "oasis-instance"}, "instance_from_dict makes one"),
        (None, "got None"),
    ],
)
def test_what_is_no_instance_is_named(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^instance: expected an oasis.Instance, .*{message}"):
        oasis.simulate(given, FIFO())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (FIFO, r"got the class FIFO; FIFO\(\) makes one"),
        (oasis.OASiS, r"got the class OASiS; OASiS.from_instance\(instance\) makes one"),
        (oasis.Recourse, r"got the class Recourse; Recourse\(\) makes one"),
        (int, "got the class int$"),
        ("srtf", r"got 'srtf'; baselines.make\('srtf'\) makes one"),
        ("oasis", r"got 'oasis'; oasis.OASiS.from_instance\(instance\) makes one"),
        (INSTANCE, "the policy comes second"),
        (BasePolicy(), "got "),
        (None, "got None"),
    ],
)
@pytest.mark.parametrize("run", [oasis.simulate, replay])
def test_what_is_no_policy_is_named(run: Any, given: Any, message: str) -> None:
    first = INSTANCE if run is oasis.simulate else MADE
    with pytest.raises(TypeError, match=f"^policy: expected a policy, such as .*{message}"):
        run(first, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("t.csv", r"read_plain\('t.csv'\).jobs, servers, gpus\)"),
        (INSTANCE, r"oasis.simulate\(instance, policy\)"),
        (FIFO(), "the workload comes first"),
    ],
)
def test_what_is_no_workload_is_named(given: Any, message: str) -> None:
    expected = "^workload: expected an oasis.simulator.Workload, "
    with pytest.raises(TypeError, match=f"{expected}.*{message}"):
        replay(given, FIFO())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare(INSTANCE, ["fifo"]), r"^policies: expected a mapping .* got \['fifo'\]"),  # type: ignore[arg-type]
        (lambda: compare(INSTANCE, {"f": FIFO()}), r"^policies\['f'\]: .* got FIFO\(\)$"),  # type: ignore[dict-item]
        (lambda: offline.learn_prices(INSTANCE), "^past: expected a sequence of oasis.Instance"),  # type: ignore[arg-type]
        (lambda: offline.learn_prices(["t.json"]), rf"^past\[0\]: .* {READ}"),  # type: ignore[list-item]
        (lambda: oasis.verify(INSTANCE, "r.json"), r"^result: .* oasis.read_result\('r.json'\)"),  # type: ignore[arg-type]
        (lambda: oasis.certify(INSTANCE, FIFO()), r"^run: expected a Run of OASiS, got FIFO\(\)"),  # type: ignore[arg-type]
        (
            lambda: oasis.OASiS.from_instance(INSTANCE).quote("j0"),  # type: ignore[arg-type]
            "^job: expected an oasis.Job, got 'j0'",
        ),
        (
            lambda: oasis.OASiS(INSTANCE, 3, None),  # type: ignore[arg-type]
            "^cluster: expected oasis.Cluster, as OASiS.from_instance makes it",
        ),
    ],
)
def test_other_arguments_are_named_too(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "an instance for a cluster": (
        lambda: oasis.LiveScheduler.recourse(INSTANCE, 10),  # type: ignore[arg-type]
        r"^cluster: expected an oasis\.Cluster, got <Instance: .*; its cluster is one$",
    ),
    "a path for a cluster": (
        lambda: oasis.LiveScheduler.recourse("t.json", 10),  # type: ignore[arg-type]
        r"^cluster: expected an oasis\.Cluster, got 't\.json'$",
    ),
    "a path for jobs": (
        lambda: rigid_workload("t.csv", 1, 8),  # type: ignore[arg-type]
        r"^jobs: .*got 't\.csv'; oasis\.traces\.read_plain\('t\.csv'\)\.jobs reads them",
    ),
    "a trace for its jobs": (
        lambda: rigid_workload(MADE, 1, 8),  # type: ignore[arg-type]
        r"^jobs: expected plain jobs, got <Workload: ",
    ),
    "other jobs": (
        lambda: rigid_workload(INSTANCE.jobs, 1, 8),  # type: ignore[arg-type]
        r"^jobs\[0\]: expected a PlainJob, got <Job: ",
    ),
    "a word for a speed": (
        lambda: replay(MADE, FIFO(), speed="fast"),  # type: ignore[arg-type]
        r"^speed: expected an object with rate and coupled, .*, got 'fast'$",
    ),
    "numbers for costs": (
        lambda: oasis.simulate(INSTANCE, FIFO(), costs={"start": 1}),  # type: ignore[arg-type]
        r"^costs: expected an object with overhead, .*, got \{'start': 1\}$",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_arguments_of_another_kind_are_named(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("servers", [0, -1, 1.5])
def test_a_cluster_has_a_server(servers: Any) -> None:
    with pytest.raises(oasis.InstanceError, match=r"^servers: expected an integer >= 1"):
        rigid_workload([PlainJob("a", 0.0, 1.0, 1)], servers, 8)


@pytest.mark.parametrize("seed", ["a", -1, 1.5, True])
@pytest.mark.parametrize("made", [FIFO, KubernetesDefault, RRH])
def test_a_seed_is_checked_where_it_is_given(made: Callable[..., object], seed: Any) -> None:
    with pytest.raises(ValueError, match=r"^seed: expected an integer >= 0, got"):
        made(seed=seed)
