"""Follow the objects of one kind: one list, then watches until the controller stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from oasis.kubernetes.api.connection import ApiError, LostAnswerError, TooLateError
from oasis.kubernetes.api.resources import Object, Objects, ResourceKind

Key = tuple[str, str]
WATCH_SECONDS = 300  # after which the server is asked to end a watch
QUIET_SECONDS = 90.0  # after which we end one that hangs: the server sends a word each minute
PAUSE = 0.2  # seconds after an error, so that a server in trouble is not flooded
ABSENT_SECONDS = 5.0  # to the next look for a kind that is not installed
NEWEST = 1 << 63  # no version is newer
REFUSED_SECONDS = 30.0  # so long rights may be missing before we give up
ASKED = "asked for"  # for the time of a deletion that the watch has not told of yet
SILENT_SECONDS = 3.0  # so long a question may be without answer before it is said


class Asker(threading.Thread):
    """A thread that queries the API server repeatedly, and records why it gets no answer."""

    # Its `failure` is what ended it, or does not go away: whoever started it raises that.
    def __init__(self, name: str, stopping: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.failure: Exception | None = None
        self._stopping = stopping
        self._asked_at: float | None = None  # of the first question since the last answer
        self._cause = "no answer"

    @property
    def trouble(self) -> str | None:
        """Why the API server has not answered for some seconds; None while it answers."""
        since = self._asked_at
        silent = since is not None and time.monotonic() - since >= SILENT_SECONDS
        return self._cause if silent else None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._asked_at is None:
                    self._asked_at = time.monotonic()
                try:
                    pause = self._ask()
                except (ApiError, LostAnswerError, TooLateError) as error:
                    pause = self._after_error(error)
                self._stopping.wait(pause)
        except Exception as error:  # noqa: BLE001 (whoever started the thread raises it again)
            self.failure = error

    def _ask(self) -> float:
        """Send a request, pass the answer to `_answered`; return seconds to the next request."""
        raise NotImplementedError

    def _answered(self) -> None:
        self._asked_at, self._cause = None, "no answer"

    def _after_error(self, error: ApiError | LostAnswerError | TooLateError) -> float:
        """Record an error in place of an answer; return the seconds to the next request."""
        # Rights that are missing for long are missing for good. An API server that has just started
        # refuses every client until it knows the roles.
        if not isinstance(error, TooLateError):
            self._cause = error.cause
        if not isinstance(error, ApiError):
            return PAUSE
        since = self._asked_at or time.monotonic()
        if error.status in (401, 403) and time.monotonic() - since > REFUSED_SECONDS:
            self.failure = error
        return max(PAUSE, error.retry_after or 0.0)


class ObjectStore:
    """Holds the objects of one kind as they were last seen."""

    # Only a newer version replaces one that is there, so that what an own write answered is not
    # undone by a watch that lags behind.
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[Key, Object] = {}
        self._gone: dict[str, int] = {}  # versions of deleted objects by uid, against late answers

    def put(self, item: Object) -> bool:
        """Store `item` and return True; False if a newer version, or its deletion, is known."""
        # An object whose label was removed is gone for a watch by that label, and comes back in a
        # newer version when the label is set again.
        meta, key = item["metadata"], _key(item)
        with self._lock:
            known = self._items.get(key)
            if _version(item) <= self._gone.get(meta["uid"], -1):
                return False
            self._gone.pop(meta["uid"], None)
            if known is not None and _version(known) >= _version(item):
                return False
            self._items[key] = item
            return True

    def drop(self, item: Mapping[str, Any]) -> bool:
        """Remove a deleted object, and refuse late versions of it; return whether it was there."""
        meta, key = item["metadata"], _key(item)
        with self._lock:
            self._gone[meta["uid"]] = _version(item)
            # Late answers come within seconds of a deletion, so the last ten thousand are enough.
            while len(self._gone) > 10_000:
                del self._gone[next(iter(self._gone))]
            known = self._items.get(key)
            if known is not None and known["metadata"]["uid"] == meta["uid"]:
                del self._items[key]
                return True
            return False

    def end(self, item: Mapping[str, Any]) -> None:
        """Mark an object whose deletion was requested, until the watch reports it."""
        meta, key = item["metadata"], _key(item)
        with self._lock:
            known = self._items.get(key)
            if known is not None and known["metadata"]["uid"] == meta["uid"]:
                marked = {"deletionTimestamp": ASKED, **known["metadata"]}
                self._items[key] = {**known, "metadata": marked}

    def replace(self, items: list[Object], version: int, namespace: str | None = None) -> None:
        """Store a list, of all or one `namespace`; remove what it lacks unless newer than it."""
        # The list may be that of one `namespace`: then the others stay as they are.
        keys = {_key(item) for item in items}
        with self._lock:
            for key, known in list(self._items.items()):
                is_listed = namespace is None or key[0] == namespace
                if is_listed and key not in keys and _version(known) <= version:
                    del self._items[key]
        for item in items:
            self.put(item)

    def items(self) -> list[Object]:
        """Return all objects now; do not change them."""
        with self._lock:
            return list(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        """Return one object; None if there is none."""
        with self._lock:
            return self._items.get((namespace, name))


class Watcher(Asker):
    """A thread that keeps an `ObjectStore` as the API server has the objects."""

    # In it `on_change` is called with the event's type and the object after each change. A kind
    # that the API server does not know is asked for again every 5 seconds. Watchers of several
    # namespaces may share a `store`.
    # `synced` is set when all objects were listed once.
    def __init__(
        self,
        objects: Objects,
        kind: ResourceKind,
        on_change: Callable[[str, Object], None],
        stopping: threading.Event,
        namespace: str | None = None,
        store: ObjectStore | None = None,
    ) -> None:
        super().__init__(f"watch-{kind.plural}", stopping)
        self.store, self.synced = store or ObjectStore(), threading.Event()
        self._from: str | None = None  # the version from which the next watch goes on
        self._objects, self._kind, self._on_change = objects, kind, on_change
        self._namespace = namespace

    def _ask(self) -> float:
        try:
            if self._from is None:
                self._from = self._list()
            self._watch()
        except ApiError as error:
            if error.status == 410:
                self._from = None
                return 0.0
            if error.status != 404 or not self._kind.optional:
                raise
            self._from = None  # the kind is not installed
            self._answered()
            self.store.replace([], NEWEST, self._namespace)
            self.synced.set()
            return ABSENT_SECONDS
        return 0.0

    def _list(self) -> str:
        items, version = self._objects.list_all(
            self._kind, self._namespace, self._kind.selector, self._kind.kept
        )
        self.store.replace(items, int(version), self._namespace)
        self.synced.set()
        self._answered()
        self._on_change("LISTED", {})
        return version

    def _watch(self) -> None:
        """Store the changes since the last version until the watch ends."""
        query = {
            "watch": "true",
            "resourceVersion": self._from,
            # Bookmarks move the version on while nothing of this kind changes. A quiet watch would
            # otherwise begin again from one that was compacted away (410).
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_SECONDS,
        }
        if self._kind.selector is not None:
            query["labelSelector"] = self._kind.selector
        path = self._kind.path(self._namespace)
        stream = self._objects.connection.stream
        for event in stream(path, query, QUIET_SECONDS, self._answered):
            kind, item = event["type"], event["object"]
            if kind == "ERROR":
                # A watch that has begun answers 200, and
                # reports an expired version as an event.
                if item.get("code") == 410:
                    self._from = None
                return
            self._from = item["metadata"]["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            item = self._kind.kept(item)
            changed = self.store.drop(item) if kind == "DELETED" else self.store.put(item)
            if changed:
                self._on_change(kind, item)
            if self._stopping.is_set():
                return


def _key(item: Mapping[str, Any]) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _version(item: Mapping[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])
