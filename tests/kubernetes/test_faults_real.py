"""What the faults of the proxy are to a client of the real API server: what was done, and seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError
from urllib3.exceptions import HTTPError

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.faults.plan import Fault, FaultPlan
from tests.kubernetes.faults.proxy import FaultProxy


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    files = cluster.plane.components.certificates
    where = (files.authority, files.serving, files.serving_key)
    with FaultProxy(cluster.plane.url, *where, only="/configmaps") as proxy:
        yield proxy


def create(cluster: Cluster, proxy: FaultProxy, name: str) -> None:
    """Make a ConfigMap through the proxy, by a client that never asks twice by itself."""
    client = cluster.plane.admin.client(proxy.url)
    client.client.rest_client.pool_manager.connection_pool_kw["retries"] = False
    kind = client.resources.get(api_version="v1", kind="ConfigMap")
    kind.create(body={"metadata": {"name": name}}, namespace=cluster.namespace)


STATUSES = [Fault("status", code=code) for code in (409, 429, 500, 503, 504)]
OTHERS = [Fault("reset"), Fault("hang", seconds=0.5), Fault("lost"), Fault("delay", seconds=0.5)]


@pytest.mark.parametrize(
    "fault", [*STATUSES, *OTHERS], ids=lambda fault: f"{fault.kind}{fault.code}"
)
def test_a_fault_strikes_once_and_what_was_done_is_what_it_says(
    fault: Fault, proxy: FaultProxy, cluster: Cluster
) -> None:
    proxy.plan = FaultPlan.of(fault)
    if fault.kind == "delay":
        create(cluster, proxy, "one")
    else:
        with pytest.raises((DynamicApiError, ApiException, HTTPError)) as caught:
            create(cluster, proxy, "one")
        assert getattr(caught.value, "status", 0) == fault.code
    direct = cluster.plane.client.resources.get(api_version="v1", kind="ConfigMap")
    there = {item.metadata.name for item in direct.get(namespace=cluster.namespace).items}
    assert ("one" in there) == (fault.kind in {"lost", "delay"})
    create(cluster, proxy, "two")
    assert proxy.struck() == [fault]
