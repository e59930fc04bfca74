"""Faults that the real API server makes itself, because a validating webhook makes it."""

from __future__ import annotations

import time

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError

from tests.kubernetes.faults.webhook import FaultyWebhook, Refusal


@pytest.fixture
def webhook(cluster):
    with FaultyWebhook(cluster.plane, cluster.namespace, ["configmaps"], timeout=1) as webhook:
        yield webhook


@pytest.fixture
def configmaps(cluster):
    client = cluster.plane.admin.client()
    client.client.rest_client.pool_manager.connection_pool_kw["retries"] = False
    return client.resources.get(api_version="v1", kind="ConfigMap")


def refused_with(configmaps, namespace: str) -> int:
    with pytest.raises((DynamicApiError, ApiException)) as caught:
        configmaps.create(body={"metadata": {"name": "one"}}, namespace=namespace)
    with pytest.raises(NotFoundError):
        configmaps.get(name="one", namespace=namespace)
    return caught.value.status


@pytest.mark.parametrize("code", [409, 429, 500, 504])
def test_refusal_reaches_the_client_and_nothing_is_done(code, webhook, configmaps, cluster):
    webhook.refusals.append(Refusal(code=code))
    assert refused_with(configmaps, cluster.namespace) == code
    configmaps.create(body={"metadata": {"name": "one"}}, namespace=cluster.namespace)
    assert webhook.asked == 2


def test_hanging_webhook_fails_the_request_after_its_time_limit(webhook, configmaps, cluster):
    webhook.refusals.append(Refusal(seconds=20))
    start = time.monotonic()
    assert refused_with(configmaps, cluster.namespace) == 500
    assert 1 <= time.monotonic() - start < 15


def test_broken_webhook_fails_the_request(webhook, configmaps, cluster):
    webhook.refusals.append(Refusal(broken=503))
    assert refused_with(configmaps, cluster.namespace) == 500


def test_other_namespaces_and_other_kinds_are_left_alone(webhook, configmaps, cluster):
    webhook.refusals.append(Refusal(code=500))
    configmaps.create(body={"metadata": {"name": cluster.namespace}}, namespace="default")
    configmaps.delete(name=cluster.namespace, namespace="default")
    assert webhook.asked == 0
