"""A controller with rights in some namespaces alone asks for nothing beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import OASIS_JOBS, PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.controller import Controller, followed
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.objects.manifests import own
from oasis.model.errors import InputError
from tests.unit.kubernetes.fake_api import FakeConnection

SPACES = ("team-a", "team-b")
CLUSTER_WIDE = {"nodes", "persistentvolumes", "utilityclasses", "capacitywindows"}


def test_the_rights_are_the_same_but_for_where_they_hold() -> None:
    whole, made = own("there"), own("there", spaces=SPACES)
    roles = [one for one in made if "rules" in one]
    assert roles == [one for one in whole if "rules" in one]
    bound = {
        one["roleRef"]["name"]: one["metadata"].get("namespace")
        for one in made
        if one["kind"].endswith("RoleBinding") and one["metadata"].get("namespace") not in SPACES
    }
    assert bound == {"there:oasis-scheduler": None, "oasis-scheduler": "there"}
    (everywhere,) = (one for one in roles if one["metadata"]["name"] == "there:oasis-scheduler")
    resources = {resource for rule in everywhere["rules"] for resource in rule["resources"]}
    assert resources == {*CLUSTER_WIDE, "capacitywindows/status"}
    (within,) = (one for one in roles if one["metadata"]["name"].endswith(":jobs"))
    assert not CLUSTER_WIDE & {name for rule in within["rules"] for name in rule["resources"]}
    for space in SPACES:
        (binding,) = (one for one in made if one["metadata"].get("namespace") == space)
        assert (binding["kind"], binding["roleRef"]["name"]) == (
            "RoleBinding",
            "there:oasis-scheduler:jobs",
        )
        assert [s["namespace"] for s in binding["subjects"]] == ["there"]


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
