"""The state of any policy as plain data, and back, without running what is read.

A policy is written down attribute by attribute. It is read back into a fresh one of the same making:
functions are those of the fresh one, and classes are only those of this project.
"""

from __future__ import annotations

import base64
import importlib
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from oasis.model.errors import OasisError
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site

PACKAGES = ("oasis.", "baselines.")
_SEQUENCES: dict[str, type[Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}
_NAMES = {kind: name for name, kind in _SEQUENCES.items()}


def encode(policy: Any) -> Any:
    """The state of `policy` as plain data for JSON.

    Raises
    ------
    OasisError
        If it holds something that cannot be written down.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.scheduling import Machine
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> one, other = FIFO(3), FIFO(3)
    >>> one.reset(site), other.reset(site)
    (None, None)
    >>> decode(encode(one), other, {}, site)
    """
    return _Encoder().value(policy)


def decode(data: Any, fresh: Any, jobs: Mapping[int, PolicyJob], site: Site) -> None:
    """Bring `fresh` into the state that `encode` wrote.

    Parameters
    ----------
    data : object
        From `encode`.
    fresh : Policy
        Of the same making and on the same machines; changed.
    jobs : mapping of int to PolicyJob
        Live jobs by index.
    site : Site
        The machines.

    Raises
    ------
    OasisError
        If `data` do not belong to such a policy.
    """
    if not isinstance(data, dict) or data.get("is") != "object":
        raise OasisError("policy state: expected the state of a policy")
    _Decoder(jobs, site).value(data, fresh)


class _Encoder:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return value
        if isinstance(value, PolicyJob):
            return {"is": "job", "index": value.index}
        if isinstance(value, Site):
            return {"is": "site"}
        if isinstance(value, np.generic):
            return {"is": "number", "type": value.dtype.str, "value": value.item()}
        if callable(value) and not hasattr(type(value), "__dataclass_fields__"):
            return {"is": "function"}
        if id(value) in self._seen:
            return {"is": "again", "number": self._seen[id(value)]}
        number = self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        return {**self._compound(value), "number": number}

    def _compound(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        if kind in _NAMES:
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            return {"is": _NAMES[kind], "items": [self.value(item) for item in items]}
        if isinstance(value, dict):
            pairs = [[self.value(key), self.value(item)] for key, item in value.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(value, np.ndarray):
            content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
            shape, fixed = list(value.shape), not value.flags.writeable
            return {
                "is": "array",
                "type": value.dtype.str,
                "shape": shape,
                "fixed": fixed,
                "data": content,
            }
        if isinstance(value, np.random.Generator):
            return {"is": "random", "state": value.bit_generator.state}
        name = f"{kind.__module__}:{kind.__qualname__}"
        if not name.startswith(PACKAGES):
            raise OasisError(f"policy state: expected plain data, got {name}")
        if isinstance(value, tuple):
            return {"is": "named", "class": name, "items": [self.value(item) for item in value]}
        return {
            "is": "object",
            "class": name,
            "items": {key: self.value(item) for key, item in attributes(value).items()},
        }


def attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary and in its slots."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


class _Decoder:
    def __init__(self, jobs: Mapping[int, PolicyJob], site: Site) -> None:
        self._jobs, self._site = jobs, site
        self._made: dict[int, Any] = {}

    def value(self, data: Any, fresh: Any = None) -> Any:
        if not isinstance(data, dict):
            return data
        kind = data["is"]
        if kind == "job":
            return self._jobs.get(data["index"])
        if kind == "site":
            return self._site
        if kind == "number":
            return np.dtype(data["type"]).type(data["value"])
        if kind == "function":
            if not callable(fresh):
                raise OasisError("policy state: a function has no counterpart in a fresh policy")
            return fresh
        if kind == "again":
            return self._made[data["number"]]
        made = self._compound(kind, data, fresh)
        self._made[data["number"]] = made
        return made

    def _compound(self, kind: str, data: dict[str, Any], fresh: Any) -> Any:
        number = data["number"]
        if kind == "array":
            shape, type_ = data["shape"], np.dtype(data["type"])
            content = base64.b64decode(data["data"])
            array = np.frombuffer(content, dtype=type_).reshape(shape).copy()
            array.flags.writeable = not data["fixed"]
            return array
        if kind == "random":
            generator = np.random.default_rng()
            generator.bit_generator.state = data["state"]
            return generator
        if kind == "dict":
            mapping: Any = fresh if type(fresh) is dict else {}
            before = dict(mapping)
            mapping.clear()
            self._made[number] = mapping
            for key, item in data["items"]:
                name = self.value(key)
                mapping[name] = self.value(item, before.get(name))
            return mapping
        if kind in ("list", "deque"):
            row: Any = fresh if type(fresh) is _SEQUENCES[kind] else _SEQUENCES[kind]()
            olds = list(row)
            row.clear()
            self._made[number] = row
            for k, item in enumerate(data["items"]):
                row.append(self.value(item, olds[k] if k < len(olds) else None))
            return row
        if kind in _SEQUENCES:
            olds = list(fresh) if type(fresh) is tuple else []
            items = [
                self.value(item, olds[k] if k < len(olds) else None)
                for k, item in enumerate(data["items"])
            ]
            return _SEQUENCES[kind](items)
        cls = _class(data["class"])
        if kind == "named":
            return tuple.__new__(cls, [self.value(item) for item in data["items"]])
        made = fresh if type(fresh) is cls else object.__new__(cls)
        self._made[number] = made
        olds_by_name = attributes(made)
        for name, item in data["items"].items():
            object.__setattr__(made, name, self.value(item, olds_by_name.get(name)))
        return made


def _class(name: str) -> type[Any]:
    """A class of this project."""
    module, _, qualified = name.partition(":")
    if not name.startswith(PACKAGES) or "." in qualified:
        raise OasisError(f"policy state: expected a class of this project, got {name}")
    found = getattr(importlib.import_module(module), qualified, None)
    if not isinstance(found, type):
        raise OasisError(f"policy state: expected a class of this project, got {name}")
    return found
