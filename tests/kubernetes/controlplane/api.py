"""A client of the API server that shares nothing with the adapter's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Object = dict[str, Any]
_SERVED = {
    "/api/v1": "configmaps events nodes pods services",
    "/apis/batch/v1": "jobs",
    "/apis/coordination.k8s.io/v1": "leases",
    "/apis/jobset.x-k8s.io/v1alpha2": "jobsets",
    "/apis/kueue.x-k8s.io/v1beta2": "workloads",
    "/apis/oasis-scheduler.io/v1alpha1": "capacitywindows oasisjobs utilityclasses",
    "/apis/trainer.kubeflow.org/v1alpha1": "trainjobs",
}
PREFIXES = {plural: prefix for prefix, found in _SERVED.items() for plural in found.split()}
MERGE = "application/merge-patch+json"
# What the server says while it starts, or has too much to do: nothing was done.
_AWAY = (429, 500, 502, 503, 504)


class RefusedError(Exception):
    """The server answered without success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


def path_of(plural: str, space: str | None = None, name: str | None = None, sub: str = "") -> str:
    """Path of an object, or of all of a kind; `sub` is a subresource such as ``status``."""
    parts = [PREFIXES[plural], *(("namespaces", space) if space else ()), plural, name, sub]
    return "/".join(part for part in parts if part)


class Client:
    """Asks as somebody with a `token`; kinds are named by their plural."""

    def __init__(self, url: str, authority: Path, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "tests"}
        again = {"status_forcelist": _AWAY, "allowed_methods": None, "raise_on_status": False}
        retries = urllib3.Retry(5, backoff_factor=0.2, **again)
        self._pool = urllib3.PoolManager(
            ca_certs=str(authority), maxsize=16, timeout=20.0, retries=retries
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        **query: str,
    ) -> Object:
        target = self._url + path + (f"?{urlencode(query)}" if query else "")
        sent = None if body is None else json.dumps(body)
        headers = {**self._headers, "Content-Type": content}
        answer = self._pool.request(method, target, body=sent, headers=headers)
        if answer.status >= 400:
            said = answer.data.decode(errors="replace")  # 429 is plain text
            message = json.loads(said)["message"] if said.startswith("{") else said
            raise RefusedError(answer.status, message)
        found: Object = answer.json()
        return found

    def get(self, plural: str, name: str, space: str | None = None) -> Object | None:
        """An object; None if there is none."""
        try:
            return self.ask("GET", path_of(plural, space, name))
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    def items(self, plural: str, space: str | None = None, **query: str) -> list[Object]:
        found: list[Object] = self.ask("GET", path_of(plural, space), **query)["items"]
        return found

    def create(
        self, plural: str, body: Mapping[str, Any], space: str | None = None, **query: str
    ) -> Object:
        return self.ask("POST", path_of(plural, space), body, **query)

    def patch(
        self, plural: str, name: str, space: str | None = None, *, sub: str = "", **change: Any
    ) -> Object:
        return self.ask("PATCH", path_of(plural, space, name, sub), change, MERGE)

    def delete(self, plural: str, name: str | None = None, space: str | None = None) -> None:
        """Delete an object, or all of a kind, without grace; one may have gone by itself."""
        try:
            self.ask("DELETE", path_of(plural, space, name), {"gracePeriodSeconds": 0})
        except RefusedError as error:
            if error.status != 404:
                raise
