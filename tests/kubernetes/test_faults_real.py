"""Faults between the official client and the real API server: what was done, what was seen."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.request
from functools import partial

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, DynamicApiError, GoneError
from urllib3.exceptions import HTTPError

from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults.handler import events
from tests.kubernetes.faults.plan import Fault, FaultPlan
from tests.kubernetes.faults.proxy import FaultProxy


@pytest.fixture
def proxy(cluster):
    files = cluster.plane.components.certificates
    where = (files.authority, files.serving, files.serving_key)
    with FaultProxy(cluster.plane.url, *where, only="/configmaps") as proxy:
        yield proxy


@pytest.fixture
def configmaps(cluster, proxy):
    """ConfigMaps through the proxy, by a client that never asks twice by itself."""
    client = cluster.plane.admin.client(proxy.url)
    client.client.rest_client.pool_manager.connection_pool_kw["retries"] = False
    return client.resources.get(api_version="v1", kind="ConfigMap")


@pytest.fixture
def names(cluster):
    """Names of our ConfigMaps, past the proxy."""
    direct = cluster.plane.client.resources.get(api_version="v1", kind="ConfigMap")

    def names():
        found = direct.get(namespace=cluster.namespace).items
        return {item.metadata.name for item in found} - {"kube-root-ca.crt"}

    return names


@pytest.fixture
def version(cluster):
    """The resourceVersion of now."""
    direct = cluster.plane.client.resources.get(api_version="v1", kind="ConfigMap")
    return lambda: direct.get(namespace=cluster.namespace).metadata.resourceVersion


@pytest.fixture
def create(configmaps, cluster):
    return partial(created, configmaps, cluster)


@pytest.mark.parametrize("code", [409, 429, 500, 503, 504])
def test_refused_write_was_not_done_and_works_the_next_time(code, proxy, create, names):
    proxy.plan = FaultPlan.of(Fault("status", code=code))
    with pytest.raises((DynamicApiError, ApiException)) as caught:
        create("one")
    assert caught.value.status == code
    assert names() == set()
    create("one")
    assert names() == {"one"}


def test_lost_answer_leaves_a_write_that_the_client_does_not_know_of(proxy, create, names):
    proxy.plan = FaultPlan.of(Fault("lost"))
    with pytest.raises(HTTPError):
        create("one")
    assert names() == {"one"}
    with pytest.raises(ConflictError):
        create("one")


def test_reset_write_was_not_done(proxy, create, names):
    proxy.plan = FaultPlan.of(Fault("reset"))
    with pytest.raises(HTTPError):
        create("one")
    assert names() == set()


def test_watch_goes_on_after_a_cut_and_after_410(proxy, create, cluster, version):
    old = version()
    for name in ("a", "b", "c"):
        create(name)
    proxy.plan = FaultPlan.of(Fault("cut", events=1), Fault("gone"))
    assert watch(cluster, proxy.url, old) == ["ADDED", "cut"]
    assert watch(cluster, proxy.url, old) == [410]
    assert watch(cluster, proxy.url, old) == ["ADDED"] * 3


def watch(cluster, server: str, version: str) -> list:
    """Types of the events of one watch of two seconds on our ConfigMaps, as they come over the
    wire; for an error its code."""
    admin = cluster.plane.admin
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    query = f"?watch=true&timeoutSeconds=2&resourceVersion={version}"
    request = urllib.request.Request(server + path + query)
    request.add_header("Authorization", f"Bearer {admin.token}")
    seen = []
    with urllib.request.urlopen(request, context=tls_of(admin), timeout=30) as answer:
        try:
            for event in map(json.loads, events(answer)):
                seen.append(event["object"].get("code") or event["type"])
        except (http.client.IncompleteRead, ConnectionResetError):
            seen.append("cut")
    return seen


def tls_of(account) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(account.authority))


def test_seeded_plan_strikes_all_its_faults_and_nothing_is_lost(proxy, create, names):
    proxy.plan = FaultPlan.drawn(
        3, 30, pause=1.0, kinds=("status", "delay", "reset", "lost"), longest=0.2
    )
    wanted = {f"map-{number}" for number in range(40)}
    for name in sorted(wanted):
        until(lambda name=name: tried(create, name), f"{name} is there")
    assert names() == wanted
    assert proxy.plan.left == 0
    assert len(proxy.struck()) == 30


def tried(create, name: str) -> bool:
    """One try. An injected 409 and the API server's own look alike: only the reason tells."""
    try:
        create(name)
    except ConflictError as error:
        return json.loads(error.body)["reason"] == "AlreadyExists"
    except (DynamicApiError, ApiException, HTTPError):
        return False
    return True


def test_list_that_goes_on_after_a_compaction_is_gone(cluster):
    plane = cluster.plane
    plane.restart_api_server("--feature-gates=ListFromCacheSnapshot=false")
    direct = plane.client.resources.get(api_version="v1", kind="ConfigMap")
    for name in ("a", "b", "c"):
        until(lambda name=name: tried(partial(created, direct, cluster), name), "it is there")
    page = direct.get(namespace=cluster.namespace, limit=2)
    created(direct, cluster, "d")
    plane.compact_etcd()
    with pytest.raises(GoneError):
        direct.get(namespace=cluster.namespace, limit=2, _continue=page.metadata["continue"])
    plane.restart_api_server()


def created(kind, cluster, name: str) -> None:
    kind.create(body={"metadata": {"name": name}}, namespace=cluster.namespace)


def test_killed_api_server_keeps_its_data_and_expires_old_watches(create, names, cluster, version):
    create("before")
    old = version()
    create("between")
    cluster.plane.kill("kube-apiserver")
    with pytest.raises(HTTPError):
        create("meanwhile")
    cluster.plane.restart_api_server()
    until(lambda: tried(create, "after"), "it answers")
    assert names() == {"before", "between", "after"}
    assert watch(cluster, cluster.plane.url, old) == [410]
