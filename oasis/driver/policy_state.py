"""The state of any policy as plain data, and back, without running what is read.

A policy is written down attribute by attribute. It is read back into a fresh one of the same
making: functions are those of the fresh one, and classes are only those of this project and of the
module that the policy itself is from, which is imported already.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from oasis.model.errors import OasisError
from oasis.scheduling.capabilities import Persistent
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.policy import Policy
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
    return _Encoder(type(policy).__module__).value(policy)


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
    _Decoder(jobs, site, type(fresh).__module__).value(data, fresh)


def policy_state(policy: Policy) -> Any:
    """The state of a policy: its own way of writing it, or attribute by attribute.

    What the policy does afterwards does not change it.
    """
    # A policy may hand out its own lists: without a copy they would go on changing.
    return deepcopy(policy.state()) if isinstance(policy, Persistent) else encode(policy)


def restore_policy(policy: Policy, state: Any, jobs: Mapping[int, PolicyJob], site: Site) -> None:
    """Bring a policy that has just been reset into the state that `policy_state` gave.

    Parameters
    ----------
    policy : Policy
        Of the same making; changed.
    state : object
        From `policy_state`.
    jobs : mapping of int to PolicyJob
        Live jobs by index.
    site : Site
        The machines, those that the policy was reset on.
    """
    if isinstance(policy, Persistent):
        policy.restore(state)
    else:
        decode(state, policy, jobs, site)


def site_text(site: Site) -> list[Any]:
    """What tells one set of machines from another."""
    return [[m.id, list(m.amounts), sorted(m.hosts)] for m in site.machines]


class _Encoder:
    def __init__(self, own: str) -> None:
        self._own = own
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def value(self, value: Any) -> Any:
        # Exact types of numbers: np.float64 is a float, too, and
        # would come back as one of Python's.
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return value
        leaf = _leaf(value)
        if leaf is not None:
            return leaf
        # Two names for one object stay two names for one object, and a cycle ends.
        if id(value) in self._seen:
            return {"is": "again", "number": self._seen[id(value)]}
        number = self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        return {**self._compound(value), "number": number}

    def _compound(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        if kind in _NAMES:
            # The order of a set differs from process to process; a checkpoint must not.
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
        name = name_of(kind, self._own)
        # What could not be read back is refused now, not when the state is needed.
        if not name.startswith((*PACKAGES, ":")):
            raise OasisError(f"policy state: expected plain data, got {name}")
        if isinstance(value, tuple):
            return {"is": "named", "class": name, "items": [self.value(item) for item in value]}
        return {
            "is": "object",
            "class": name,
            # by name, as a checkpoint sorts its keys: what is seen again comes after the first time
            "items": {key: self.value(item) for key, item in sorted(attributes(value).items())},
        }


def _leaf(value: Any) -> dict[str, Any] | None:
    """What is written in one piece; None for what has parts."""
    if isinstance(value, PolicyJob):
        # Jobs, machines and functions are the driver's or the code's: they are named, not copied.
        return {"is": "job", "index": value.index}
    if isinstance(value, Site):
        return {"is": "site"}
    if isinstance(value, np.generic):
        return {"is": "number", "type": value.dtype.str, "value": value.item()}
    if callable(value) and not hasattr(type(value), "__dataclass_fields__"):
        return {"is": "function"}
    return None


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
    def __init__(self, jobs: Mapping[int, PolicyJob], site: Site, own: str) -> None:
        self._jobs, self._site, self._own = jobs, site, own
        self._made: dict[int, Any] = {}
        self._kinds: dict[str, Callable[[dict[str, Any], Any], Any]] = {
            "job": lambda data, _: self._jobs.get(data["index"]),
            "site": lambda _, __: self._site,
            "number": lambda data, _: np.dtype(data["type"]).type(data["value"]),
            "again": lambda data, _: self._made[data["number"]],
            "function": _function,
            "array": _array,
            "random": _generator,
            "dict": self._mapping,
            "list": self._row,
            "deque": self._row,
            "tuple": self._fixed,
            "set": self._fixed,
            "frozenset": self._fixed,
            "named": self._named,
            "object": self._object,
        }

    def value(self, data: Any, fresh: Any = None) -> Any:
        if not isinstance(data, dict):
            return data
        made = self._kinds[data["is"]](data, fresh)
        if data["is"] != "again" and "number" in data:
            self._made[data["number"]] = made
        return made

    def _mapping(self, data: dict[str, Any], fresh: Any) -> dict[Any, Any]:
        made: dict[Any, Any] = fresh if type(fresh) is dict else {}
        before = dict(made)
        made.clear()
        # Noted before its parts are read: a part may refer back to the whole.
        self._made[data["number"]] = made
        for key, item in data["items"]:
            name = self.value(key)
            made[name] = self.value(item, before.get(name))
        return made

    def _row(self, data: dict[str, Any], fresh: Any) -> Any:
        kind = _SEQUENCES[data["is"]]
        made = fresh if type(fresh) is kind else kind()
        before = list(made)
        made.clear()
        self._made[data["number"]] = made
        for k, item in enumerate(data["items"]):
            made.append(self.value(item, before[k] if k < len(before) else None))
        return made

    def _fixed(self, data: dict[str, Any], fresh: Any) -> Any:
        before = list(fresh) if type(fresh) is tuple else []
        return _SEQUENCES[data["is"]](
            self.value(item, before[k] if k < len(before) else None)
            for k, item in enumerate(data["items"])
        )

    def _named(self, data: dict[str, Any], fresh: Any) -> Any:
        cls: Any = self._class(data["class"], fresh)
        return tuple.__new__(cls, [self.value(item) for item in data["items"]])

    def _object(self, data: dict[str, Any], fresh: Any) -> Any:
        cls = self._class(data["class"], fresh)
        made: Any = fresh if type(fresh) is cls else object.__new__(cls)
        self._made[data["number"]] = made
        before = attributes(made)
        for name, item in data["items"].items():
            # A frozen dataclass refuses assignments, so its own setter is passed by.
            object.__setattr__(made, name, self.value(item, before.get(name)))
        return made

    def _class(self, name: str, fresh: Any) -> type[Any]:
        """A class of this project, or of the policy's own module."""
        if name == name_of(type(fresh), self._own):
            return type(fresh)
        module, _, qualified = name.partition(":")
        found = None
        # what is read imports nothing but parts of this project, and takes no part of a part
        if name.startswith((*PACKAGES, ":")) and "." not in qualified:
            found = getattr(import_module(module or self._own), qualified, None)
        if not isinstance(found, type):
            raise OasisError(f"policy state: expected a class of this project, got {name}")
        return found


def name_of(kind: type[Any], own: str) -> str:
    """Module and name of a class; no module for one of `own`, which may be run as a script."""
    module = "" if kind.__module__ == own and not own.startswith(PACKAGES) else kind.__module__
    return f"{module}:{kind.__qualname__}"


def _function(_: dict[str, Any], fresh: Any) -> Any:
    if not callable(fresh):
        raise OasisError("policy state: a function has no counterpart in a fresh policy")
    return fresh


def _array(data: dict[str, Any], _: Any) -> Any:
    content = base64.b64decode(data["data"])
    made = np.frombuffer(content, dtype=np.dtype(data["type"])).reshape(data["shape"]).copy()
    made.flags.writeable = not data["fixed"]
    return made


def _generator(data: dict[str, Any], _: Any) -> np.random.Generator:
    made = np.random.default_rng()
    made.bit_generator.state = data["state"]
    return made
