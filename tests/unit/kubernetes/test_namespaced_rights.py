"""A controller with rights in some namespaces alone asks for nothing beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import OASIS_JOBS, PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.controller import Controller, followed
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.objects.manifests import everything, rights
from oasis.kubernetes.objects.namespaced import namespaced
from oasis.model.errors import InputError
from tests.unit.kubernetes.fake_api import FakeConnection

SPACES = ("team-a", "team-b")
CLUSTER_WIDE = {"nodes", "utilityclasses", "capacitywindows"}


def rules(made: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for one in made
        for rule in one.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_rights_are_the_same_but_for_where_they_hold() -> None:
    whole, made = rights("there"), namespaced(rights("there"), SPACES)
    assert rules(made) == rules(whole)
    (everywhere,) = (one for one in made if one["kind"] == "ClusterRole")
    assert {(resource, verb) for _, resource, verb in rules([everywhere])} == {
        *((resource, verb) for resource in CLUSTER_WIDE for verb in ("list", "watch")),
        ("capacitywindows/status", "patch"),
    }
    for space in SPACES:
        own = [one for one in made if one["metadata"].get("namespace") == space]
        assert [one["kind"] for one in own] == ["Role", "RoleBinding"]
        assert own[1]["roleRef"]["name"] == own[0]["metadata"]["name"]
        assert [s["namespace"] for s in own[1]["subjects"]] == ["there"]
        assert not CLUSTER_WIDE & {resource for _, resource, _ in rules(own)}
        assert rules(own) | rules([everywhere]) | rules(made[-2:]) == rules(whole)


def test_roles_of_tenants_stay_what_they_are() -> None:
    before = [one for one in everything("there") if "aggregationRule" not in one]
    after = namespaced(everything("there"), SPACES)
    tenants = [one for one in before if one["metadata"]["name"].startswith("oasis-scheduler-")]
    assert tenants
    assert all(one in after for one in tenants)
    assert len(after) == len(before) + 2 * len(SPACES)


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
