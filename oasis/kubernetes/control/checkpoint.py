"""Checkpoints of the controller in ConfigMaps: compressed, in parts, written by their reader."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.api.resources import CONFIG_MAPS, Object, Objects

# In base64 these are 933,336 bytes; the rest of the MiB is left to names and annotations.
PART = 700_000  # bytes of an object; a ConfigMap holds 1 MiB, and base64 takes a third
FORMAT = "oasis-checkpoint 1"
NOTE = f"{names.GROUP}/checkpoint"


class Checkpoint:
    """A JSON document in ConfigMaps, which outlives the controller."""

    # The first part, the head, says how many there are and what the whole must be; it is replaced
    # last, and only in the version that was read: of two controllers, one is refused. `name` is
    # that of the head; the other parts have ``-0-1``, ``-1-1``, .. added.
    def __init__(self, objects: Objects, namespace: str, name: str) -> None:
        self._objects, self._namespace, self._name = objects, namespace, name
        self._version: str | None = None
        self._parity = 0
        self._digest = ""
        self.size = 0  # bytes of the last document, compressed

    def read(self) -> Any | None:
        """Return the document; None if there is none or its parts do not belong together."""
        head = self._objects.get(CONFIG_MAPS, self._name, self._namespace)
        if head is None:
            self._version = None
            return None
        # It is noted even if the content is of no use: a head that is there can only be replaced.
        self._version = head["metadata"]["resourceVersion"]
        note = json.loads((head["metadata"].get("annotations") or {}).get(NOTE) or "{}")
        if note.get("format") != FORMAT:
            return None
        self._parity = note["parity"]
        content = _content(head)
        for k in range(1, note["parts"]):
            part = self._objects.get(CONFIG_MAPS, self._part(k), self._namespace)
            # A part that is missing, or of another write, shows as a wrong digest below.
            content += b"" if part is None else _content(part)
        if hashlib.sha256(content).hexdigest() != note["digest"]:
            return None
        self._digest, self.size = note["digest"], len(content)
        return json.loads(zlib.decompress(content))

    def write(self, document: Any) -> None:
        """Write `document` if it has changed; `ApiError` 409: another controller wrote first."""
        # Sorted keys give equal documents equal bytes, by which it is seen that nothing changed.
        text = json.dumps(document, separators=(",", ":"), sort_keys=True)
        content = zlib.compress(text.encode("utf-8"), 6)
        digest = hashlib.sha256(content).hexdigest()
        if digest == self._digest:
            return
        parts = [content[k : k + PART] for k in range(0, len(content), PART)] or [b""]
        # Parts alternate between two sets of names. Those of the head that is valid now are not
        # touched, so a crash before the head is replaced leaves the last checkpoint whole.
        self._parity = 1 - self._parity
        for k, part in enumerate(parts[1:], start=1):
            self._objects.apply(CONFIG_MAPS, self._object(self._part(k), part))
        note = {"format": FORMAT, "parts": len(parts), "digest": digest, "parity": self._parity}
        head = self._object(self._name, parts[0])
        head["metadata"]["annotations"] = {NOTE: json.dumps(note)}
        if self._version is None:
            written = self._objects.create(CONFIG_MAPS, head)
        else:
            head["metadata"]["resourceVersion"] = self._version
            written = self._objects.replace(CONFIG_MAPS, head)
        self._version = written["metadata"].get("resourceVersion")  # a dry run gives none
        self._digest, self.size = digest, len(content)

    def _part(self, k: int) -> str:
        return f"{self._name}-{self._parity}-{k}"

    def _object(self, name: str, content: bytes) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self._namespace},
            "binaryData": {"content": base64.b64encode(content).decode("ascii")},
        }


def _content(part: Object) -> bytes:
    return base64.b64decode((part.get("binaryData") or {}).get("content", ""))
