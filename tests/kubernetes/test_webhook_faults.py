"""Faults that the real API server makes itself, because a validating webhook makes it."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError

from tests.kubernetes.controlplane.access import apply
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults.answers import refusal
from tests.kubernetes.faults.throttle import throttled
from tests.kubernetes.faults.webhook import FaultyWebhook, Refusal

Answer = tuple[int, bytes, Mapping[str, str]]  # status, body and headers


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


def test_own_429_of_the_api_server_is_what_the_proxy_imitates(webhook, cluster):
    """A request that the webhook holds up takes the one seat; the next one is turned away."""
    plane, namespace = cluster.plane, cluster.namespace
    account = plane.service_account("throttled", namespace)
    with throttled(plane, account), ThreadPoolExecutor(1) as background:

        def turned_away() -> Answer | None:
            webhook.refusals.append(Refusal(seconds=0.7))
            held = background.submit(ask, account, namespace, b'{"metadata": {"name": "one"}}')
            until(lambda: not webhook.refusals or held.done(), "it is held up")
            answer = ask(account, namespace)
            held.result()
            webhook.refusals.clear()
            return answer if answer[0] == 429 else None

        grant(plane, account, namespace)
        _, said, with_headers = until(turned_away, "the API server throttles")
    body, headers = refusal(429)
    assert said == body
    assert {name: with_headers[name] for name in headers} == headers


def grant(plane, account, namespace: str) -> None:
    """All rights on ConfigMaps of `namespace`."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "throttled", "namespace": namespace}
    subject = {"kind": "User", "name": account.username, "apiGroup": group}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list"]}
    role = {"apiGroup": group, "kind": "Role", "name": "throttled"}
    about = {"apiVersion": f"{group}/v1", "metadata": metadata}
    binding = {**about, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}
    apply(plane.client, [{**about, "kind": "Role", "rules": [rule]}, binding])


def ask(account, namespace: str, body: bytes | None = None) -> Answer:
    """The answer to a list of ConfigMaps, or to a create with `body`, without any repetition."""
    url = f"{account.url}/api/v1/namespaces/{namespace}/configmaps"
    request = urllib.request.Request(url, data=body)
    request.add_header("Authorization", f"Bearer {account.token}")
    request.add_header("Content-Type", "application/json")
    tls = ssl.create_default_context(cafile=str(account.authority))
    try:
        with urllib.request.urlopen(request, context=tls, timeout=30) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.status, error.read(), error.headers


def test_other_namespaces_and_other_kinds_are_left_alone(webhook, configmaps, cluster):
    webhook.refusals.append(Refusal(code=500))
    configmaps.create(body={"metadata": {"name": cluster.namespace}}, namespace="default")
    configmaps.delete(name=cluster.namespace, namespace="default")
    assert webhook.asked == 0
