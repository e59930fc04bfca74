"""Commands for a cluster: names, signs of life, policies, what is installed and reported."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import Any

import pytest
import yaml

import oasis
from baselines import FIFO
from experiments.cli.commands.kubernetes import cluster, reporting, running
from experiments.cli.commands.kubernetes.reading import named_job
from experiments.evaluation import live
from experiments.evaluation.comparison import Comparison, compare
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import comparison_table
from experiments.plotting import comparison_page
from experiments.report import report_page, section_of
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.lease import micro_time
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.schema import PHASES
from offline import learn_prices, solve

NOW = 1.8e9


def test_a_job_and_its_namespace_may_be_named_apart():
    assert named_job("bert", "research") == named_job("research/bert", "research")
    assert named_job("bert", "research") == "research/bert"
    with pytest.raises(oasis.InputError, match=r"^--namespace: expected"):
        named_job("research/bert", "other")


class Leases:
    def __init__(self, found: dict[str, Any] | None, status: int = 0) -> None:
        self.found, self.status = found, status

    def get(self, kind: Any, name: str, namespace: str) -> dict[str, Any] | None:
        assert (kind.plural, name, namespace) == ("leases", "a", "ns")
        if self.status:
            raise ApiError("GET", "/leases", self.status, "", "")
        return self.found


def lease(holder: str, ago: float) -> dict[str, Any]:
    renewed = micro_time(NOW - ago)
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


@pytest.mark.parametrize(
    ("found", "alive", "words"),
    [
        (Leases(None), False, "has never run"),
        (Leases({"spec": {}}), False, "has never run"),
        (Leases(lease("one", 5.0)), True, "is at work"),
        (Leases(lease("one", -60.0)), True, "is at work"),
        (Leases(lease("one", 25.0)), True, "is at work"),
        (Leases(lease("one", 47.0)), False, "no sign of life for 47 s"),
        (Leases(lease("", 9.0)), False, "was ended 9 s ago"),
        (Leases(None, 403), None, "no right to read its lease"),
    ],
)
def test_whether_a_controller_lives(found, alive, words, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)
    told = cluster.sign_of_life(found, "ns/a")
    assert told["alive"] is alive
    assert words in told["message"]
    assert told["message"].startswith("ns/a ")
    with pytest.raises(ApiError, match="500"):
        cluster.sign_of_life(Leases(None, 500), "ns/a")  # type: ignore[arg-type]


def test_the_jobs_of_one_controller():
    jobs: list[cluster.Found] = [
        (None, {"name": k, "status": {"controller": k}}) for k in ("s/a", "s/b")
    ]
    jobs += [(None, {"name": "new"}), (None, {"name": "old", "status": {}})]
    found, names = cluster.of_controller(jobs, "s", "a")
    assert ([job["name"] for _, job in found], names) == (["s/a", "new", "old"], ["s/a"])
    assert cluster.of_controller(jobs, "s", None) == (jobs, ["s/a", "s/b"])
    assert cluster.of_controller([], "s", None) == ([], ["s/oasis-scheduler"])


def job(name: str, phase: str, **said: Any) -> dict[str, Any]:
    known = {"utility": None, "promised": None, "late": False, "completion_slot": None}
    return {"job": name, "phase": phase, "reasons": {}, **known, **said}


JOBS = [
    job("a/one", "Completed", utility=5.0, promised="12:00", completion_slot=7),
    job("a/job/two", "Completed", utility=2.5, promised="12:00", late=True, completion_slot=9),
    job("a/three", "Running", promised="13:00"),
    job("b/four", "GivenUp", promised="13:00"),
    job("b/five", "Rejected"),
    job("b/six", "Failed"),
]


def test_jobs_are_counted_by_namespace_and_each_in_one_column():
    found = live.by_namespace(JOBS)
    assert found["a"] == {
        "jobs": 3,
        "completed": 2,
        "live": 1,
        "rejected": 0,
        "lost": 0,
        "utility": 7.5,
        "kept": 1,
        "broken": 1,
        "open": 1,
    }
    assert (found["b"]["rejected"], found["b"]["lost"], found["b"]["broken"]) == (1, 2, 1)
    *_, total = live.namespace_rows(found)
    assert total == ("all", "6", "2", "1", "1", "2", "7.5", "1 of 3")
    assert len(live.namespace_rows({"a": found["a"]})) == 1


@pytest.mark.parametrize("phase", PHASES)
def test_a_job_of_any_phase_is_in_one_column(phase):
    (row,) = live.by_namespace([job("a/one", phase)]).values()
    assert sum(row[part] for part in ("completed", "live", "rejected", "lost")) == 1


def test_the_cluster_gets_a_share_of_the_optimum_too():
    instance = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=1, horizon=6, seed=1)
    optimum = solve(instance).objective
    assert optimum > 0
    earned = {**live.actual_figures([], {}), "total_utility": 0.8 * optimum}
    found, notes = reporting.measured(instance, ["fifo"], earned, {"time_limit": 30.0}, 0)
    assert notes == []
    row = found.policies[live.ACTUAL]
    assert row["certified_share_lower"] == pytest.approx(0.8)
    assert row["certified_share_upper"] == pytest.approx(0.8)
    # Without a search, what was earned is the best that is known.
    found, notes = reporting.measured(instance, [], earned, {"gap": float("inf")}, 0)
    row = found.policies[live.ACTUAL]
    assert row["certified_share_lower"] <= 0.8 + 1e-9 <= row["certified_share_upper"] + 2e-9 <= 1.1
    _, notes = reporting.measured(instance, [], earned | {"total_utility": 1e6}, {}, 0)
    assert notes == [
        "this cluster earned 1e+06, more than the bound: jobs needed less work than they declare"
    ]
    clock = SlotClock(60.0, 0.0, 0.0)  # a job that nobody has read arrives after its creation
    assert reporting.slot_of(clock, "1970-01-01T00:02:05Z") == 3


def test_what_happened_is_a_row_beside_the_policies_that_is_read_again_and_drawn():
    instance = oasis.generate("testbed", jobs=4, seed=1)
    figures = live.actual_figures(JOBS, {"a/one": 3, "a/job/two": 3})
    assert (figures["total_utility"], figures["finished"], figures["unfinished"]) == (7.5, 2, 4)
    assert (figures["mean_completion"], figures["p95_completion"]) == (6.0, 7.0)
    found = live.with_actual(compare(instance, {"fifo": FIFO}), figures)
    assert (live.ACTUAL, "7.5") in [row[:2] for row in comparison_table(found)[1]]
    document = json.loads(json.dumps(found.to_dict()))
    assert Comparison.from_dict(document).to_dict() == document
    assert comparison_page(Comparison.from_dict(document)).axes
    document |= {"cluster": {"namespaces": {}}, "instance": instance_reference(instance, None)}
    assert live.ACTUAL in report_page([section_of("day.json", document, None)])


OF = cluster.ControllerOptions()


def test_what_one_controller_has_of_its_own_is_printed_alone(capsys):
    running.install(of=OF, image="oasis:1")
    whole = list(yaml.safe_load_all(capsys.readouterr().out))
    running.install(of=OF, image="oasis:1", own=True, spaces="team-a", monitored=True)
    made = list(yaml.safe_load_all(capsys.readouterr().out))
    kinds = {each["kind"] for each in made}
    assert kinds >= {"Namespace", "Deployment", "RoleBinding", "ServiceMonitor"}
    shared = {each["kind"] for each in whole if each not in made}
    assert shared >= {"CustomResourceDefinition", "ValidatingAdmissionPolicy"}
    assert not kinds & {"CustomResourceDefinition", "ValidatingAdmissionPolicy"}
    args = made[-3]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "--namespaced=team-a"
    for argument, message in (
        ("--slot-seconds 10", "expected --name=value, got '--slot-seconds 10'"),
        ("--metrics-port=0", "expected none of "),
    ):
        with pytest.raises(oasis.InputError, match=f"^--argument: {message}"):
            running.install(of=OF, image="oasis:1", arguments=["--policy=fifo", argument])
    with pytest.raises(oasis.InputError, match="--image: expected a name without blanks, got "):
        running.install(of=OF, image="a b")


def test_the_policy_of_a_cluster_is_oasis_where_its_bounds_are_given(tmp_path):
    past, prices = tmp_path / "past.json", tmp_path / "prices.json"
    instance = oasis.generate("testbed", jobs=4, seed=1)
    oasis.write(instance, past)
    assert running.policy_maker(None, None, None, 10, None)().name == "recourse"
    assert running.policy_maker(None, None, past, 10, None)().name == "oasis"
    with pytest.raises(oasis.OasisError, match="--bounds: expected none with policy las"):
        running.policy_maker("las", None, past, 10, None)
    with pytest.raises(oasis.OasisError, match="--bounds: expected a file with U and L"):
        live.cluster_policy("oasis", {}, lookahead=10)
    assert live.cluster_policy("recourse", {"rounds": 2}, lookahead=10)().name == "recourse"
    learned = learn_prices([instance])
    learned.write(prices)
    assert live.read_bounds(prices, 10)(instance.cluster).alpha == learned.bounds.alpha


def test_the_share_of_a_machine_that_hosts_both():
    assert cluster.NodeOptions().share is None
    assert cluster.NodeOptions("1/4").share == Fraction(1, 4)
    with pytest.raises(oasis.OasisError, match=r"^--ps-share: expected a number between 0 and 1"):
        assert cluster.NodeOptions("a half").share
