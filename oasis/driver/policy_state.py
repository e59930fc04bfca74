"""Keep the state of any policy as text and read it back, without running code from the text.

The text is a `pickle`. Its reader knows the few names in `_PLAIN` and its own five methods, and no
class or function of anybody else: objects are made empty and filled attribute by attribute. What a
fresh policy of the same making has and names in `REMADE`, such as functions, stays.
"""

from __future__ import annotations

import base64
import io
import pickle
import pickletools
import sys
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache, partial
from types import FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError, OasisError, located_at
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.policy_check import in_words
from oasis.scheduling.site import Site, cluster_of

PACKAGES = ("oasis.model.", "oasis.online.", "oasis.scheduling.", "baselines.")
PLAIN = "expected plain data, or attributes that REMADE names"
GIVEN = "_given"  # what a policy was made with, which a fresh one has
_PLAIN = {
    "builtins": ("bool", "dict", "float", "int", "list", "set", "str", "tuple"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
}
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # of numpy.random
# The writer writes none of these: they change machines and live jobs, or allocate without a limit.
_FORBIDDEN = frozenset(("BUILD", "PUT", "BINPUT", "LONG_BINPUT"))


def policy_state(policy: Any, live: Container[int]) -> str:
    """Return the state of `policy` as text; jobs of `live` are written as their index alone."""
    with located_at("policy"):
        try:
            content = _written(policy, policy, live)
        except InputError:
            for name, item in _kept(policy).items():  # which of them it is
                with located_at(name):
                    _written(item, policy, live)
            raise
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def _written(value: Any, policy: Any, live: Container[int]) -> bytes:
    content = io.BytesIO()
    with in_one_line("", PLAIN):  # too deep, or an attribute that cannot be read
        writer = _StateWriter(content, policy, live)
        writer.dump(value)
        saved = writer.memo.copy().keys() - writer.paths  # by id
        # A function that works on a saved object would, in a fresh policy, work on another one.
        for part in writer.parts.values():
            for name in attributes(part).keys() & _remade(part):
                function = getattr(part, name)
                if not saved.isdisjoint(map(id, _works_on(function))):
                    raise InputError("", PLAIN, getattr(function, "__qualname__", "a partial"))
    return content.getvalue()


def _works_on(function: Any) -> Iterator[Any]:
    """Yield the objects that a function refers to."""
    if isinstance(function, partial):
        yield from (*function.args, *function.keywords.values(), *_works_on(function.func))
    yield getattr(function, "__self__", None)
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # the variable has no value yet
            yield cell.cell_contents


def restore_policy(fresh: Any, text: Any, jobs: Mapping[int, PolicyJob], site: Site) -> None:
    """Bring a policy that has just been reset on `site` into the state of `policy_state`."""
    with in_one_line("policy state", "expected the state of such a policy, undamaged"):
        content = zlib.decompress(base64.b64decode(text, validate=True))
        for code, _, _ in pickletools.genops(content):
            if code.name in _FORBIDDEN:
                raise OasisError(f"policy state: expected plain data, got {code.name}")
        if _StateReader(content, fresh, {**jobs, "site": site}).load() is not fresh:
            raise OasisError("policy state: expected the state of a policy")


@contextmanager
def in_one_line(field: str, expected: str) -> Iterator[None]:
    """Turn every exception of the block that is no `OasisError` into an `InputError` of `field`."""
    try:
        yield
    except OasisError:
        raise
    except Exception as error:
        raise InputError(field, f"{expected}: {in_words(error)}") from error


def site_text(site: Site) -> list[Any]:
    """Return names, amounts and tasks of the machines, equal for equal sets of machines."""
    return [[m.id, list(m.amounts), sorted(m.hosts)] for m in site.machines]


class _StateWriter(pickle.Pickler):
    def __init__(self, file: io.BytesIO, policy: Any, live: Container[int]) -> None:
        super().__init__(file, protocol=5)
        self._own, self._live = type(policy).__module__, live
        self.parts = _parts(policy, self._own)
        self.paths = {id(part): path for path, part in self.parts.items()}

    def persistent_id(self, value: Any) -> Any:
        # Live jobs and machines are the driver's: they are named.
        if isinstance(value, (Cluster, Site)):
            return "site" if isinstance(value, Site) else "cluster"
        is_live = isinstance(value, PolicyJob) and value.index in self._live
        return value.index if is_live else None

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        plain = value if kind is type else kind
        is_maker = isinstance(value, FunctionType) and value in _MAKERS
        if is_maker or plain.__qualname__ in _PLAIN.get(plain.__module__, ()):
            return NotImplemented
        if kind is np.ndarray and not (value.dtype.hasobject or value.dtype.names):
            data = value.tobytes() if not value.flags.writeable else bytearray(value.tobytes())
            return _StateReader.array, (value.dtype.str, value.shape, data)
        if isinstance(value, np.generic) and isinstance(value.item(), (bool, float, int, str)):
            return _StateReader.number, (value.dtype.str, value.item())
        if kind is np.random.Generator and type(value.bit_generator).__name__ in _BIT_GENERATORS:
            source = value.bit_generator
            return _StateReader.generator, (type(source).__name__, source.state)
        return self._record(value)

    def _record(self, value: Any) -> tuple[Any, ...]:
        kind, path = type(value), self.paths.get(id(value))
        name = name_of(kind, self._own)
        # What could not be read back is refused now, not when the state is needed; what
        # an object holds as one of Python's collections is no attribute.
        is_collection = isinstance(value, (dict, float, frozenset, int, list, set, str))
        is_unknown = path is None and (_class_of(name, self._own) is not kind or _remade(value))
        if is_unknown or (is_collection and not isinstance(value, Enum)):
            known_as = getattr(value, "__qualname__", name)
            raise InputError("", PLAIN, known_as.replace(":", ".").lstrip("."))
        if isinstance(value, Enum):
            return _StateReader.made, (name, None, value.name)
        if isinstance(value, tuple):
            return _StateReader.made, (name, None, *value)
        made = _StateReader.made, (name, path)
        return *made, _kept(value), None, None, _StateReader.filled


class _StateReader(pickle.Unpickler):
    """An unpickler that calls nothing but its own methods and `_PLAIN`, whatever it reads."""

    def __init__(self, content: bytes, fresh: Any, named: dict[Any, Any]) -> None:
        super().__init__(io.BytesIO(content))
        self._own, self._named = type(fresh).__module__, named  # live jobs and the site
        self._parts = _parts(fresh, self._own)
        self._made: dict[int, Any] = {}

    def persistent_load(self, name: Any) -> Any:
        if name == "cluster" and name not in self._named:
            self._named[name] = cluster_of(self._named["site"])
        return self._named[name]

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()):
            return vars(sys.modules[module])[name]
        for maker in _MAKERS:
            if (module, name) == (maker.__module__, maker.__qualname__):
                return getattr(self, maker.__name__)
        raise OasisError(f"policy state: expected plain data, got {module}.{name}")

    def array(self, kind: str, shape: tuple[int, ...], data: bytes | bytearray) -> Any:
        return np.frombuffer(data, np.dtype(kind)).reshape(shape)  # writable if `data` are

    def number(self, kind: str, value: Any) -> Any:
        return np.dtype(kind).type(value)

    def generator(self, kind: str, state: Any) -> np.random.Generator:
        source = getattr(np.random, _BIT_GENERATORS[_BIT_GENERATORS.index(kind)])()
        source.state = state
        return np.random.Generator(source)

    def made(self, name: str, path: str | None, *parts: Any) -> Any:
        """Return the fresh policy's object at `path`, or a new one of class `name`, yet empty."""
        made: Any = None if path is None else self._parts.get(path)
        if made is None or name_of(type(made), self._own) != name:
            kind: Any = _class_of(name, self._own)
            if kind is None:
                raise OasisError(f"policy state: expected a class of this project, got {name}")
            if issubclass(kind, Enum):
                return kind.__members__[parts[0]]
            if issubclass(kind, tuple):
                return tuple.__new__(kind, parts)
            if _remade(kind):
                raise OasisError(f"policy state: a fresh policy has no {name} at {path}")
            made = object.__new__(kind)
        self._made[id(made)] = made
        return made

    def filled(self, made: Any, state: Mapping[str, Any]) -> None:
        """Set the attributes of `made`, past every `__setattr__` and property, also if frozen."""
        slots = _slots(self._made[id(made)].__class__)  # neither the machines nor a live job
        for name, value in state.items():
            if name in slots:
                slots[name].__set__(made, value)
            else:
                vars(made)[name] = value


_MAKERS = [vars(_StateReader)[name] for name in ("array", "number", "generator", "made", "filled")]


def _remade(value: Any) -> list[str]:
    """Return the names of the attributes that a fresh object of the same making has, too."""
    names: list[str] = []
    for holder in (value, *(value if isinstance(value, type) else type(value)).__mro__):
        own = getattr(holder, "__dict__", {}).get("REMADE", ())
        if not isinstance(own, tuple) or not all(isinstance(name, str) for name in own):
            raise InputError("REMADE", "expected a tuple of names of attributes", own)
        names += own
    return names


def _kept(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are part of a state, by name."""
    left_out = (GIVEN, *_remade(value))
    return {name: item for name, item in attributes(value).items() if name not in left_out}


def _parts(
    value: Any, own: str, path: str = "policy", parts: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return, by path, the policy and the objects reached by attributes, of known classes."""
    parts = {} if parts is None else parts
    is_new = all(value is not other for other in parts.values())
    is_part = not parts or _class_of(name_of(type(value), own), own) is type(value)
    is_part |= hasattr(type(value), "REMADE")  # such as a rule of admission of another module
    if is_new and is_part and not isinstance(value, (PolicyJob, Site)) and not _is_frozen(value):
        parts[path] = value
        for name, item in sorted(attributes(value).items()):
            _parts(item, own, f"{path}.{name}", parts)
    return parts


def _is_frozen(value: Any) -> bool:
    """Return whether `value` never changes, so that its attributes must not be overwritten."""
    kind = getattr(type(value), "__dataclass_params__", None)
    return isinstance(value, (Enum, frozenset, str, tuple)) or (kind is not None and kind.frozen)


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object by name: those in its dictionary and in its slots."""
    items = dict(getattr(value, "__dict__", {}))
    for name, slot in _slots(value.__class__).items():
        # the slot itself: an `UntoldJob` has none of what it is asked for in vain
        with suppress(AttributeError):
            items[name] = slot.__get__(value)
    return items


@cache
def _slots(kind: Any) -> dict[str, MemberDescriptorType]:
    return {
        name: slot
        for cls in kind.__mro__
        for name, slot in vars(cls).items()
        if isinstance(slot, MemberDescriptorType)
    }


def name_of(kind: type[Any], own: str) -> str:
    """Return ``module:name`` of a class; no module if it is `own`, which may be a script."""
    module = "" if kind.__module__ == own and not own.startswith(PACKAGES) else kind.__module__
    return f"{module}:{kind.__qualname__}"


def _class_of(name: str, own: str) -> type[Any] | None:
    """Return the class of this name in the toolkit or `own`, if loaded; None for any other."""
    module, _, qualified = name.partition(":")
    if not name.startswith((*PACKAGES, ":")):
        return None
    kind = vars(sys.modules.get(module or own, object)).get(qualified)
    is_known = isinstance(kind, type) and kind.__module__ == (module or own)
    return kind if is_known else None
