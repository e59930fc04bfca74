"""Keep the state of any policy as text and read it back, without running code from the text.

The text is a `pickle`. Its reader knows the few names in `_PLAIN` and its own five methods, and no
class or function of anybody else: objects are made empty and filled attribute by attribute. What a
fresh policy of the same making has, its functions too, stays and is brought into the saved state.
"""

from __future__ import annotations

import base64
import io
import pickle
import pickletools
import sys
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache, cached_property, partial
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError, OasisError, located_at
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.policy_check import in_words
from oasis.scheduling.site import Site, cluster_of

PACKAGES = ("oasis.model.", "oasis.online.", "oasis.scheduling.", "baselines.")
GIVEN = "_given"  # what a policy was made with, which a fresh one has
_PLAIN = {
    "builtins": ("bool", "dict", "float", "int", "list", "set", "str", "tuple"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
}
_FUNCTIONS = (BuiltinFunctionType, FunctionType, MethodType, partial, type, np.ufunc)
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # of numpy.random
# The writer writes none of these: they change machines and live jobs, or allocate without a limit.
_FORBIDDEN = frozenset(("BUILD", "PUT", "BINPUT", "LONG_BINPUT"))


def policy_state(policy: Any, live: Container[int]) -> str:
    """Return the state of `policy` as text; jobs of `live` are written as their index alone."""
    with located_at("policy"):
        try:
            content = _written(policy, policy, live)
        except InputError:
            for name, item in attributes(policy).items():  # which of them it is
                if name != GIVEN and not isinstance(item, _FUNCTIONS):
                    with located_at(name):
                        _written(item, policy, live)
            raise
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def _written(value: Any, policy: Any, live: Container[int]) -> bytes:
    content = io.BytesIO()
    try:
        writer = _StateWriter(content, policy, live)
        writer.dump(value)
        saved = writer.memo.copy().keys() - writer.paths  # by id
        # A function that works on a saved object would, in a fresh policy, work on another one.
        astray = [f for f, target in _targets(writer.parts) if id(target) in saved]
    except OasisError:
        raise
    except Exception as error:  # too deep, or an attribute that cannot be read
        raise _unwritable(in_words(error)) from error
    if astray:
        raise _unwritable(astray[0])
    return content.getvalue()


def restore_policy(fresh: Any, text: Any, jobs: Mapping[int, PolicyJob], site: Site) -> None:
    """Bring a policy that has just been reset on `site` into the state of `policy_state`."""
    try:
        content = zlib.decompress(base64.b64decode(text, validate=True))
        _StateReader(content, fresh, jobs, site).bring()
    except OasisError:
        raise
    except Exception as error:
        expected = "expected the state of such a policy, undamaged"
        raise OasisError(f"policy state: {expected}: {in_words(error)}") from error


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
        if isinstance(value, _FUNCTIONS):
            if value in _MAKERS or (isinstance(value, type) and _is_plain(value)):
                return NotImplemented
            raise _unwritable(_called(value))
        if _is_plain(kind):
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
        is_unknown = path is None and _class_of(name, self._own) is not kind
        if is_unknown or (is_collection and not isinstance(value, Enum)):
            raise _unwritable(name)
        if isinstance(value, Enum):
            return _StateReader.made, (name, None, value.name)
        if isinstance(value, tuple):
            return _StateReader.made, (name, None, *value)
        items = attributes(value)
        for known in (GIVEN, *getattr(kind, "REMADE", ())):  # what a fresh one has, too
            items.pop(known, None)
        functions = {key: _called(f) for key, f in items.items() if isinstance(f, _FUNCTIONS)}
        if path is None and functions:
            raise _unwritable(*functions.values())
        state = {key: item for key, item in items.items() if key not in functions}
        return _StateReader.made, (name, path, functions), state, None, None, _StateReader.filled


class _StateReader(pickle.Unpickler):
    """An unpickler that calls nothing but its own methods and `_PLAIN`, whatever it reads."""

    def __init__(
        self, content: bytes, fresh: Any, jobs: Mapping[int, PolicyJob], site: Site
    ) -> None:
        super().__init__(io.BytesIO(content))
        self._content, self._fresh = content, fresh
        self._own, self._jobs, self._site = type(fresh).__module__, jobs, site
        self._parts = _parts(fresh, self._own)
        self._made: dict[int, Any] = {}

    def bring(self) -> None:
        """Load the state into the fresh policy; `OasisError` if it is not that of such a policy."""
        for code, _, _ in pickletools.genops(self._content):
            if code.name in _FORBIDDEN:
                raise OasisError(f"policy state: expected plain data, got {code.name}")
        if self.load() is not self._fresh:
            raise OasisError("policy state: expected the state of a policy")
        kept = {id(part) for part in _parts(self._fresh, self._own).values()}
        replaced = {id(part) for part in self._parts.values()} - kept
        for function, target in _targets(self._parts):
            if id(target) in replaced:
                raise OasisError(f"policy state: the function {function} is of a part that is gone")

    def persistent_load(self, name: Any) -> Any:
        if name == "cluster":
            return self._cluster
        return self._site if name == "site" else self._jobs[name]

    @cached_property
    def _cluster(self) -> Cluster:
        return cluster_of(self._site)

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
            made = object.__new__(kind)
        (functions,), before = parts, attributes(made)
        for key, called in functions.items():
            if not isinstance(before.get(key), _FUNCTIONS) or _called(before[key]) != called:
                function = f"the function {called}"
                raise OasisError(f"policy state: {function} has no counterpart in a fresh policy")
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


def _unwritable(*names: str) -> InputError:
    got = ", ".join(name.replace(":", ".").lstrip(".") for name in names)
    return InputError("", "expected plain data", got)


def _is_plain(kind: type[Any]) -> bool:
    return kind.__qualname__ in _PLAIN.get(kind.__module__, ())


def _called(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _targets(parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each function among the attributes, and each object that it refers to."""
    for part in parts.values():
        for function in attributes(part).values():
            if isinstance(function, _FUNCTIONS):
                targets = [getattr(function, "__self__", None)]
                for cell in getattr(function, "__closure__", None) or ():
                    with suppress(ValueError):  # the variable has no value yet
                        targets.append(cell.cell_contents)
                if isinstance(function, partial):
                    targets += [*function.args, *function.keywords.values()]
                for value in targets:
                    if not (isinstance(value, _FUNCTIONS) or _is_frozen(value)):
                        yield _called(function), value


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
