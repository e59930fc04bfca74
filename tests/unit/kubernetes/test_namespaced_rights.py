"""A controller with rights in some namespaces alone asks for nothing beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import OASIS_JOBS, PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.controller import Controller, followed
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.objects.existing import EXISTING
from oasis.kubernetes.objects.manifests import own, shared
from oasis.model.errors import InputError
from tests.unit.kubernetes.fake_api import FakeConnection

SPACES = ("team-a", "team-b")
CLUSTER_WIDE = {"nodes", "utilityclasses", "capacitywindows"}


def test_jobs_of_every_kind_may_be_switched_and_their_status_is_protected() -> None:
    rules = [rule for made in own("sys", name="other") for rule in made.get("rules", ())]
    groups = {group for rule in rules for group in rule["apiGroups"] if group.startswith("o")}
    assert groups == {names.GROUP}, "whatever its name is"
    policies = [made for made in shared() if made["metadata"]["name"] == "oasis-scheduler-status"]
    guarded = policies[0]["spec"]["matchConstraints"]["resourceRules"]
    for kind in EXISTING:
        group, _, version = kind.api_version.partition("/")
        of_kind = {"apiGroups": [group], "resources": [kind.where.plural]}
        assert {**of_kind, "verbs": ["list", "watch", "patch"]} in rules
        operations = ["CREATE", "UPDATE"]
        assert {**of_kind, "apiVersions": [version], "operations": operations} in guarded


def test_everything_is_followed_where_there_are_rights() -> None:
    found = followed(ControllerSettings(namespaced=SPACES))
    everywhere = {kind.plural for kind, where, *_ in found if where is None}
    assert everywhere == CLUSTER_WIDE
    assert {where for kind, where, *_ in found if kind is PODS} == set(SPACES)
    # of one namespace that is watched, all pods of the cluster are seen
    found = followed(ControllerSettings(watched="team-a"))
    assert [where for kind, where, *_ in found if kind is PODS] == [None]
    assert [where for kind, where, *_ in found if kind is OASIS_JOBS] == ["team-a"]


def item(namespace: str, name: str, version: int) -> dict[str, Any]:
    meta = {"namespace": namespace, "name": name, "uid": f"{namespace}{name}"}
    return {"metadata": {**meta, "resourceVersion": str(version)}}


def test_the_list_of_one_namespace_says_nothing_of_another() -> None:
    store = ObjectStore()
    store.replace([item("team-a", "x", 5)], 6, "team-a")
    store.replace([item("team-b", "x", 5)], 7, "team-b")
    assert len(store.items()) == 2
    store.replace([], 8, "team-b")
    assert [one["metadata"]["namespace"] for one in store.items()] == ["team-a"]
    store.replace([], 8)
    assert store.items() == []


def test_watchers_of_a_kind_share_what_they_see_and_all_have_to_have_listed() -> None:
    settings = ControllerSettings(namespaced=SPACES)
    made = Controller(Objects(FakeConnection()), FIFO, settings, "one")  # type: ignore[arg-type]
    pods = [watcher for watcher in made.watchers if watcher.name == "watch-pods"]
    assert [watcher.store for watcher in pods] == [made.stores["pods"]] * 2
    assert pods[0].synced is not pods[1].synced


@pytest.mark.parametrize(
    "more", [{"namespaced": ("a", "a")}, {"namespaced": ("a",), "watched": "a"}]
)
def test_settings_that_contradict_each_other(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="namespaced"):
        ControllerSettings(**more)
