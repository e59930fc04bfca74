"""A controller that is killed at any boundary goes on as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.evaluation.policies import POLICIES
from oasis.driver.driver import Driver
from oasis.driver.policy_state import decode, encode
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.kubernetes.objects.oasis_job import as_it_was
from oasis.model.errors import OasisError
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of
from tests.unit.kubernetes.test_driver import live_oasis

EXAMPLE = Path(__file__).parents[3] / "docs/examples/congested.json"


def fresh(name: str, instance: oasis.Instance) -> Any:
    if name == "oasis":
        return live_oasis(instance, instance.horizon)
    return POLICIES[name].make(instance)


def reborn(driver: Driver, policy: Any, specs: dict[str, Any]) -> Driver:
    """A driver as a new process makes it from what the old one wrote."""
    own = getattr(driver.policy, "state", None)
    saved = encode(driver.policy) if own is None else own()
    written = json.loads(json.dumps({"driver": driver.state(), "policy": saved}))
    made = Driver(policy, driver.site)
    made.restore(written["driver"], specs, as_it_was)
    if own is None:
        jobs = {index: entry.job for index, entry in made.entries.items()}
        decode(written["policy"], policy, jobs, driver.site)
    else:
        policy.restore(written["policy"])
    return made


@pytest.mark.parametrize("name", POLICIES)
def test_a_restart_at_every_boundary_changes_nothing(name: str) -> None:
    shipped = oasis.read(EXAMPLE)
    specs, site = specs_of(shipped), site_for(shipped, shipped.horizon)
    instance = instance_of(specs.values(), site, shipped.horizon, {})
    steady = FakeCluster(Driver(fresh(name, instance), site), specs)
    killed = FakeCluster(Driver(fresh(name, instance), site), specs)
    plain = {uid: spec for uid, (spec, _) in specs.items()}
    for slot in range(shipped.horizon + 1):
        steady.step(slot)
        killed.step(slot)
        killed.driver = reborn(killed.driver, fresh(name, instance), plain)
    assert killed.history == steady.history
    assert killed.completed == steady.completed
    assert killed.rejected == steady.rejected


@pytest.mark.parametrize("name", ["builtins:eval", "os:system", "oasis.model.files:os.system"])
def test_only_classes_of_the_project_are_made(name: str) -> None:
    policy, site = POLICIES["fifo"].make(), site_for(oasis.read(EXAMPLE), 10)
    policy.reset(site)
    data = encode(policy)
    data["items"]["_line"] = {"is": "object", "class": name, "items": {}, "number": 999}
    with pytest.raises(OasisError, match="expected a class of this project"):
        decode(data, policy, {}, site)
