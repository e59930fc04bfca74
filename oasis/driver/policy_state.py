"""Convert the state of any policy to plain data and back, without running code from the data.

A policy is written down attribute by attribute. It is read back into a fresh one of the same
making: functions are those of the fresh one, and classes are only those of this project and of the
module that the policy itself is from, which is imported already. What cannot be read back as it was
is refused when it is to be written.
"""

from __future__ import annotations

import base64
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from oasis.model.errors import InputError, OasisError, located_at
from oasis.scheduling.capabilities import Persistent
from oasis.scheduling.job import Allocation, PolicyJob
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
_MAPPINGS: dict[str, type[Any]] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
    "defaultdict": defaultdict,
}
_NAMES = {kind: name for name, kind in (_SEQUENCES | _MAPPINGS).items()}
_FUNCTIONS = (BuiltinFunctionType, FunctionType, MethodType, partial, type, np.ufunc)
# what a `defaultdict` may make by itself; another factory is that of the fresh policy
_FACTORIES: dict[str, Callable[[], Any]] = {
    made.__name__: made for made in (bool, dict, float, int, list, set, str, tuple)
}
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # of numpy.random


def encode(policy: Any, live: Container[int]) -> Any:
    """The state of `policy` as plain data for JSON.

    Parameters
    ----------
    policy : Policy
        The policy; it is not changed.
    live : container of int
        Indices of the live jobs: whoever reads the state has them. Others are written out.

    Raises
    ------
    InputError
        If an attribute cannot be saved; names the attribute.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.scheduling import Machine
    >>> site = Site(("gpu",), (Machine("n0", (4.0,)),))
    >>> one, other = FIFO(3), FIFO(3)
    >>> one.reset(site), other.reset(site)
    (None, None)
    >>> decode(encode(one, live=()), other, {}, site)
    """
    with located_at("policy"):
        return _Encoder(type(policy).__module__, live).value(policy)


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


def policy_state(policy: Policy, live: Container[int]) -> Any:
    """The state of a policy: its own way of writing it, or attribute by attribute (`encode`).

    What the policy does afterwards does not change it.
    """
    if not isinstance(policy, Persistent):
        return encode(policy, live)
    # A policy may hand out its own lists: without a copy they would go on changing.
    # For plain data this is many times faster than `deepcopy`.
    return pickle.loads(pickle.dumps(policy.state()))


def restore_policy(policy: Policy, state: Any, jobs: Mapping[int, PolicyJob], site: Site) -> None:
    """Bring a policy that has just been reset into the state that `policy_state` gave.

    Parameters
    ----------
    policy : Policy
        A policy made in the same way; it is changed.
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
    """Canonical text of a set of machines."""
    return [[m.id, list(m.amounts), sorted(m.hosts)] for m in site.machines]


class _Encoder:
    def __init__(self, own: str, live: Container[int]) -> None:
        self._own, self._live = own, live
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def value(self, value: Any) -> Any:
        # Exact types: np.float64 is a float and an enum may be a str, and
        # each would come back as one of Python's.
        if value is None or type(value) in (bool, float, int, str):
            return value
        leaf = self._leaf(value)
        if leaf is not None:
            return leaf
        # Two names for one object stay two names for one object, and a cycle ends.
        if id(value) in self._seen:
            return {"is": "again", "number": self._seen[id(value)]}
        number = self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        return {**self._compound(value), "number": number}

    def _leaf(self, value: Any) -> dict[str, Any] | None:
        """Encode an object without parts; None for objects with parts."""
        # Live jobs, machines and functions are the driver's or the code's: they are named.
        if isinstance(value, PolicyJob) and value.index in self._live:
            return {"is": "job", "index": value.index}
        if isinstance(value, Site):
            return {"is": "site"}
        if isinstance(value, Enum):
            name = self._class(type(value))
            if "." in type(value).__qualname__:  # the reader takes no part of a part
                raise _unwritable(name)
            return {"is": "member", "class": name, "name": value.name}
        if isinstance(value, np.generic) and isinstance(value.item(), (bool, float, int, str)):
            return {"is": "number", "type": value.dtype.str, "value": value.item()}
        if isinstance(value, _FUNCTIONS):
            return {"is": "function", "name": _called(value)}
        return None

    def _compound(self, value: Any) -> dict[str, Any]:
        kind = type(value)
        name = _NAMES.get(kind)
        if name in _SEQUENCES:
            # The order of a set differs from process to process; a checkpoint must not.
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            most = {"most": value.maxlen} if kind is deque else {}
            return {"is": name, **most, "items": [self.value(item) for item in items]}
        if name in _MAPPINGS:
            pairs = [[self.value(key), self.value(item)] for key, item in value.items()]
            found: dict[str, Any] = {"is": "dict", "type": name, "items": pairs}
            if kind is defaultdict:
                known = _FACTORIES.get(_called(value.default_factory))
                found["makes"] = known.__name__ if known is value.default_factory else None
            return found
        if kind is np.ndarray:
            return _written(value)
        if kind is np.random.Generator:
            source = value.bit_generator
            if type(source).__name__ not in _BIT_GENERATORS:
                raise _unwritable(name_of(type(source), self._own))
            state = self.value(source.state)
            return {"is": "random", "type": type(source).__name__, "state": state}
        name = self._class(kind)
        if isinstance(value, Allocation) and not value.form:
            value = value.by_group  # as a job of one form has it
        if isinstance(value, tuple):
            return {"is": "named", "class": name, "items": [self.value(item) for item in value]}
        if isinstance(value, (dict, float, frozenset, int, list, np.ndarray, set, str)):
            raise _unwritable(name)  # what it holds as one of these is no attribute
        return {
            "is": "object",
            "class": name,
            # by name, as a checkpoint sorts its keys: what is seen again comes after the first time
            "items": {
                key: self._part(key, item) for key, item in sorted(attributes(value).items())
            },
        }

    def _part(self, name: str, value: Any) -> Any:
        with located_at(name):
            return self.value(value)

    def _class(self, kind: type[Any]) -> str:
        name = name_of(kind, self._own)
        # What could not be read back is refused now, not when the state is needed.
        if not name.startswith((*PACKAGES, ":")):
            raise _unwritable(name)
        return name


def _unwritable(name: str) -> InputError:
    return InputError("", "expected plain data", name.replace(":", ".").lstrip("."))


def _written(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.hasobject or array.dtype.names:
        raise _unwritable(f"an array of {array.dtype}")
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    shape, fixed = list(array.shape), not array.flags.writeable
    kind = array.dtype.str
    return {"is": "array", "type": kind, "shape": shape, "fixed": fixed, "data": content}


def _called(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def attributes(value: Any) -> dict[str, Any]:
    """Attributes of an object, in its dictionary and its slots."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        for name, slot in cls.__dict__.items():
            if isinstance(slot, MemberDescriptorType):
                # the slot itself: an `UntoldJob` has none of what it is asked for in vain
                with suppress(AttributeError):
                    found[name] = slot.__get__(value)
    return found


class _Decoder:
    def __init__(self, jobs: Mapping[int, PolicyJob], site: Site, own: str) -> None:
        self._jobs, self._site, self._own = jobs, site, own
        self._made: dict[int, Any] = {}
        self._kinds: dict[str, Callable[[dict[str, Any], Any], Any]] = {
            "job": lambda data, _: self._jobs.get(data["index"]),
            "site": lambda _, __: self._site,
            "number": lambda data, _: np.dtype(data["type"]).type(data["value"]),
            "member": lambda data, _: self._class(data["class"], None)[data["name"]],
            "again": lambda data, _: self._made[data["number"]],
            "function": _function,
            "array": _array,
            "random": self._generator,
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

    def _generator(self, data: dict[str, Any], _: Any) -> np.random.Generator:
        kind = _BIT_GENERATORS[_BIT_GENERATORS.index(data["type"])]  # nothing else is made
        source = getattr(np.random, kind)()
        source.state = self.value(data["state"])
        return np.random.Generator(source)

    def _mapping(self, data: dict[str, Any], fresh: Any) -> dict[Any, Any]:
        kind = _MAPPINGS[data["type"]]
        made: dict[Any, Any] = fresh if type(fresh) is kind else kind()
        if isinstance(made, defaultdict):
            if data["makes"] is not None:
                made.default_factory = _FACTORIES[data["makes"]]
            elif made is not fresh:
                raise OasisError("policy state: a defaultdict has no counterpart in a fresh policy")
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
        if isinstance(made, deque) and made.maxlen != data["most"]:
            made = deque(maxlen=data["most"])
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
        items = [self.value(item) for item in data["items"]]
        return Allocation(*items) if cls is Allocation else tuple.__new__(cls, items)

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


def _function(data: dict[str, Any], fresh: Any) -> Any:
    if not callable(fresh) or _called(fresh) != data["name"]:
        function = f"the function {data['name']}"
        raise OasisError(f"policy state: {function} has no counterpart in a fresh policy")
    return fresh


def _array(data: dict[str, Any], _: Any) -> Any:
    content = base64.b64decode(data["data"])
    made = np.frombuffer(content, dtype=np.dtype(data["type"])).reshape(data["shape"]).copy()
    made.flags.writeable = not data["fixed"]
    return made
