"""Following a kind of objects: one list, then a watch, for as long as it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from oasis.kubernetes.api.connection import ApiError, LostAnswerError
from oasis.kubernetes.api.resources import Object, Objects, ResourceKind

Key = tuple[str, str]
# The server is asked to end a watch after this; 30 s later we end one that hangs without a word.
WATCH_SECONDS = 300
PAUSE = 0.2
ABSENT_SECONDS = 60.0
NEWEST = 1 << 63  # no version is newer
REFUSED_SECONDS = 30.0  # so long rights may be missing before we give up


class ObjectStore:
    """The objects of one kind as they were last seen.

    Only a newer version replaces one that is there, so that what an own write answered is not
    undone by a watch that lags behind.

    Examples
    --------
    >>> store = ObjectStore()
    >>> new = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "7"}}
    >>> old = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "5"}}
    >>> store.put(new), store.put(old), len(store.items())
    (True, False, 1)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[Key, Object] = {}
        self._gone: dict[str, int] = {}  # versions of deleted objects by uid, against late answers
        self.synced = threading.Event()

    def put(self, found: Object) -> bool:
        """Keep `found` unless it is known in a newer version, or was gone in a newer one.

        An object whose label was removed is gone for a watch by that label, and comes back in a
        newer version when the label is set again.
        """
        meta = found["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        with self._lock:
            known = self._items.get(key)
            if _version(found) <= self._gone.get(meta["uid"], -1):
                return False
            self._gone.pop(meta["uid"], None)
            if known is not None and _version(known) >= _version(found):
                return False
            self._items[key] = found
            return True

    def drop(self, found: Mapping[str, Any]) -> bool:
        """Forget an object that is gone."""
        meta = found["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        with self._lock:
            self._gone[meta["uid"]] = _version(found)
            # Late answers come within seconds of a deletion, so the last ten thousand are enough.
            while len(self._gone) > 10_000:
                del self._gone[next(iter(self._gone))]
            known = self._items.get(key)
            if known is not None and known["metadata"]["uid"] == meta["uid"]:
                del self._items[key]
                return True
            return False

    def replace(self, found: list[Object], version: int) -> None:
        """Take over a whole list; what it lacks is gone, unless it is newer than the list."""
        keys = {(o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in found}
        with self._lock:
            for key, known in list(self._items.items()):
                if key not in keys and _version(known) <= version:
                    del self._items[key]
        for item in found:
            self.put(item)
        self.synced.set()

    def items(self) -> list[Object]:
        """All objects now; they are not to be changed."""
        with self._lock:
            return list(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        """One object; None if there is none."""
        with self._lock:
            return self._items.get((namespace, name))


class Watcher(threading.Thread):
    """A thread that keeps a `ObjectStore` as the API server has it.

    Parameters
    ----------
    objects : Objects
        Reads.
    kind : ResourceKind
        What is followed.
    on_change : callable
        Called with the event's type and the object after each change, in this thread.
    stopping : threading.Event
        Ends it.
    namespace : str, optional
        Only there.
    selector : str, optional
        Only objects with these labels.
    optional : bool
        Whether the API server may not know the kind; it is asked again every minute.
    """

    def __init__(
        self,
        objects: Objects,
        kind: ResourceKind,
        on_change: Callable[[str, Object], None],
        stopping: threading.Event,
        namespace: str | None = None,
        selector: str | None = None,
        optional: bool = False,
    ) -> None:
        super().__init__(name=f"watch-{kind.plural}", daemon=True)
        self.store = ObjectStore()
        self.lists = 0
        self.failure: Exception | None = None
        self._refused_since: float | None = None
        self._objects, self._kind, self._on_change = objects, kind, on_change
        self._stopping, self._namespace = stopping, namespace
        self._selector, self._optional = selector, optional

    def run(self) -> None:
        try:
            self._follow()
        except Exception as error:  # noqa: BLE001 (the controller raises it again)
            self.failure = error

    def _follow(self) -> None:
        version: str | None = None
        while not self._stopping.is_set():
            try:
                if version is None:
                    version = self._list()
                version = self._watch(version)
            except ApiError as error:
                if error.status == 410:
                    version = None
                    continue
                if error.status == 404 and self._optional:  # nobody has installed it
                    version = None
                    self.store.replace([], NEWEST)
                    self._stopping.wait(ABSENT_SECONDS)
                    continue
                self._refused(error)
                self._stopping.wait(max(PAUSE, error.retry_after or 0.0))
            except LostAnswerError:
                self._stopping.wait(PAUSE)

    def _refused(self, error: ApiError) -> None:
        """Rights that are missing for long are missing for good.

        An API server that has just started refuses everybody until it knows the roles.
        """
        if error.status not in (401, 403):
            return
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since > REFUSED_SECONDS:
            self.failure = error

    def _list(self) -> str:
        items, version = self._objects.list_all(
            self._kind, self._namespace, self._selector, self._kind.kept
        )
        self.lists += 1
        self.store.replace(items, int(version))
        self._refused_since = None
        self._on_change("LISTED", {})
        return version

    def _watch(self, version: str) -> str | None:
        """Follow from `version` on until the watch ends; where to go on, None: list again."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            # Bookmarks move the version on while nothing of this kind changes. A quiet watch would
            # otherwise begin again from one that was compacted away (410).
            "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_SECONDS,
        }
        if self._selector is not None:
            query["labelSelector"] = self._selector
        path = self._kind.path(self._namespace)
        latest = version
        try:
            for event in self._objects.connection.stream(path, query, WATCH_SECONDS + 30.0):
                kind, found = event["type"], event["object"]
                if kind == "ERROR":
                    # A watch that has begun answers 200, and
                    # reports an expired version as an event.
                    if found.get("code") == 410:
                        return None
                    return latest
                self._refused_since = None
                latest = found["metadata"]["resourceVersion"]
                if kind == "BOOKMARK":
                    continue
                found = self._kind.kept(found)
                changed = self.store.drop(found) if kind == "DELETED" else self.store.put(found)
                if changed:
                    self._on_change(kind, found)
                if self._stopping.is_set():
                    break
        except LostAnswerError:
            self._stopping.wait(PAUSE)
        return latest


def _version(found: Mapping[str, Any]) -> int:
    return int(found["metadata"]["resourceVersion"])
