"""The kinds of objects that the adapter reads and writes, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.api.connection import ApiError, Connection, LostAnswerError
from oasis.kubernetes.api.trimming import trimmed_node, trimmed_pod, without_fields

Object = dict[str, Any]
DRY = {"dryRun": "All"}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A kind of objects, its path on the API server, and what of it is watched."""

    prefix: str  # path up to the namespace
    plural: str  # its name in paths
    namespaced: bool = True
    kept: Callable[[Mapping[str, Any]], Object] = without_fields  # of one while it is watched
    selector: str | None = None  # labels of those that are watched
    optional: bool = False  # whether the API server may not know the kind

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        """Return the path of an object, or of all if `name` is None; `sub`: such as ``status``."""
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        end = f"/{name}" if name else ""
        return f"{self.prefix}{within}/{self.plural}{end}{f'/{sub}' if sub else ''}"


PODS = ResourceKind("/api/v1", "pods", kept=trimmed_pod)
NODES = ResourceKind("/api/v1", "nodes", namespaced=False, kept=trimmed_node)
SERVICES = ResourceKind("/api/v1", "services", selector=names.JOB_UID)
NETWORK_POLICIES = ResourceKind(
    "/apis/networking.k8s.io/v1", "networkpolicies", selector=names.JOB_UID
)
EVENTS = ResourceKind("/api/v1", "events")
CONFIG_MAPS = ResourceKind("/api/v1", "configmaps")
OASIS_JOBS = ResourceKind(f"/apis/{names.API_VERSION}", names.PLURAL)
CLASSES, WINDOWS = (
    ResourceKind(f"/apis/{names.API_VERSION}", plural, namespaced=False, optional=True)
    for plural in (names.CLASS_PLURAL, names.WINDOW_PLURAL)
)
LEASES = ResourceKind("/apis/coordination.k8s.io/v1", "leases")

Followed = tuple[ResourceKind, str | None]  # a kind, and a namespace


class Objects:
    """Reads and writes objects of the API server; every write may be repeated without harm.

    Parameters
    ----------
    connection : Connection
        The API server.
    dry_run : bool
        Whether the server only checks what is written.
    left : callable, optional
        Tells in how many seconds a request that begins now has to be over; at 0 none is made any
        more.
    """

    def __init__(
        self,
        connection: Connection,
        dry_run: bool = False,
        left: Callable[[], float] | None = None,
    ) -> None:
        self.connection = connection
        self.is_dry = dry_run
        self._request = partial(connection.request, left=left)
        self._write: dict[str, Any] = DRY if dry_run else {}

    def get(self, kind: ResourceKind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object; None if there is none."""
        try:
            return self._request("GET", kind.path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list_all(
        self,
        kind: ResourceKind,
        namespace: str | None = None,
        selector: str | None = None,
        kept: Callable[[Mapping[str, Any]], Object] = dict,
    ) -> tuple[list[Object], str]:
        """Return all objects, each cut by `kept`, and the version of the list, read in pages."""
        while True:
            items: list[Object] = []
            # 500 is the page of kubectl too; whole lists of
            # large clusters would burden the API server.
            query: dict[str, Any] = {"limit": 500}
            if selector is not None:
                query["labelSelector"] = selector
            try:
                while True:
                    page = self._request("GET", kind.path(namespace), query=query)
                    items += map(kept, page.get("items") or ())
                    meta = page["metadata"]
                    if not meta.get("continue"):
                        return items, str(meta["resourceVersion"])
                    query["continue"] = meta["continue"]
            except ApiError as error:
                if error.status != 410:  # the token of a page is too old: from the beginning
                    raise

    def snapshot(self, followed: Iterable[Followed]) -> dict[str, list[Object]]:
        """Return the objects of several kinds, cut as watches cut them, by plural of their kind."""
        seen: dict[str, list[Object]] = {}
        for kind, namespace in followed:
            items = seen.setdefault(kind.plural, [])
            try:
                items += self.list_all(kind, namespace, kind.selector, kind.kept)[0]
            except ApiError as error:
                if error.status != 404 or not kind.optional:
                    raise
        return seen

    def create(
        self, kind: ResourceKind, body: Mapping[str, Any], *, dry_run: bool = False
    ) -> Object:
        """Create an object with a given name and return it; in a `dry_run` it is only checked."""
        # If the answer is lost, the object may be there: what is found under the name then is
        # accepted if it has the same owner.
        meta = body["metadata"]
        namespace = meta.get("namespace")
        # AlreadyExists may be the answer to our own attempt whose answer was lost.
        sure = True
        attempts = self.connection.params.attempts
        query = {"fieldManager": names.FIELD_MANAGER, **(DRY if dry_run else self._write)}
        for attempt in range(attempts):
            try:
                return self._request("POST", kind.path(namespace), body=body, query=query)
            except LostAnswerError:
                sure = False
                if dry_run or attempt == attempts - 1:
                    raise
            except ApiError as error:
                if error.status != 409 or error.reason == "Conflict":
                    raise
                existing = self.get(kind, meta["name"], namespace)
                if existing is not None and _is_same(existing, body):
                    return existing
                # What had the name is gone by now, so an
                # attempt that may have been ours is made again.
                if sure or existing is not None:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def delete(self, kind: ResourceKind, item: Mapping[str, Any]) -> None:
        """Delete exactly this object; another one of the same name is left alone."""
        meta = item["metadata"]
        body: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": meta["uid"]},
        }
        if self._write:
            body["dryRun"] = ["All"]
        try:
            self._request("DELETE", kind.path(meta.get("namespace"), meta["name"]), body=body)
        except ApiError as error:
            if error.status == 404:
                return
            # The precondition on the uid failed, or the object changed under the request.
            if error.status == 409:  # another may have its name now
                existing = self.get(kind, meta["name"], meta.get("namespace"))
                if existing is None or existing["metadata"]["uid"] != meta["uid"]:
                    return
            raise

    def _change(
        self,
        method: str,
        content: str,
        more: Mapping[str, str],
        kind: ResourceKind,
        item: Mapping[str, Any],
        sub: str = "",
        body: Any = None,
    ) -> Object:
        """Write an object with one HTTP method, and return the answer of the API server."""
        meta = item["metadata"]
        return self._request(
            method,
            kind.path(meta.get("namespace"), meta["name"], sub),
            body=item if body is None else body,
            query={"fieldManager": names.FIELD_MANAGER, **more, **self._write},
            content_type=f"application/{content}",
        )

    # Of fields that are known to exist: the server need not check that.
    json_patch = partialmethod(_change, "PATCH", "json-patch+json", {"fieldValidation": "Ignore"})
    # Into the object that the metadata name; they may name the uid too.
    merge_patch = partialmethod(_change, "PATCH", "merge-patch+json", {})
    # Server-side with our field manager: fields that are left out are removed.
    apply = partialmethod(_change, "PATCH", "apply-patch+yaml", {"force": "true"})
    # If it still has the version that its metadata name.
    replace = partialmethod(_change, "PUT", "json", {})


def _is_same(existing: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether `existing` is what `body` describes, made by us and not being deleted."""
    owners = [owner["uid"] for owner in existing["metadata"].get("ownerReferences") or ()]
    expected = [owner["uid"] for owner in body["metadata"].get("ownerReferences") or ()]
    managers = [entry.get("manager") for entry in existing["metadata"].get("managedFields") or ()]
    return (
        owners == expected
        and names.FIELD_MANAGER in managers
        and not existing["metadata"].get("deletionTimestamp")
    )
