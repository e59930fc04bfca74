"""Immutable tables by name, and amounts of named resources: a demand or a capacity."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.rounding import FloatArray
from oasis.model.validation import amount, text

V = TypeVar("V")
BANDWIDTH = "bandwidth_gbps"


class Table(Mapping[str, V], Generic[V]):
    """A read-only mapping of names to values; equal tables have the same entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Any]) -> None:
        if not isinstance(entries, Mapping):
            raise InstanceError("", f"expected an object of {self.contents}", entries)
        self._entries: dict[str, V] = {
            text(name, "name"): self.checked(value, name) for name, value in entries.items()
        }

    contents: ClassVar[str]
    checked: ClassVar[staticmethod[[Any, str], Any]]  # the value as it is kept, by value and name

    def __getitem__(self, name: str) -> V:
        return self._entries[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._entries.get(name, default)  # the inherited one raises and catches a KeyError

    def items(self) -> ItemsView[str, V]:
        return self._entries.items()  # the inherited ones look every name up again

    def values(self) -> ValuesView[V]:
        return self._entries.values()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)  # what the constructors of machines and jobs take

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._entries,)


class ResourceVector(Table[float]):
    """Amounts by resource name, read-only; a resource left out is 0.

    Parameters
    ----------
    amounts : mapping of str to float
        Amounts from 0 to 1e30, each in the unit its resource name states.

    Raises
    ------
    InstanceError
        If an amount is no such number; its path is the resource name.

    Examples
    --------
    >>> import oasis
    >>> demand = oasis.ResourceVector({"gpu": 1, "cpu": 4})
    >>> demand["cpu"], demand.get("memory_gb", 0.0)
    (4.0, 0.0)
    """

    __slots__ = ("_array", "_resources")
    contents = "amounts"
    checked = staticmethod(amount)

    def __init__(self, amounts: Mapping[str, float]) -> None:
        super().__init__(amounts)
        self._resources: Sequence[str] | None = None

    def __repr__(self) -> str:
        return f"ResourceVector({self._entries!r})"

    def in_order(self, resources: Sequence[str]) -> FloatArray:
        """Return `as_array` of the amounts, read-only; cached for the same object `resources`."""
        if self._resources is not resources:
            self._array = np.array([self._entries.get(name, 0.0) for name in resources])
            self._array.flags.writeable = False
            self._resources = resources
        return self._array

    @classmethod
    def of(cls, amounts: Mapping[str, float]) -> ResourceVector:
        """Return `amounts` itself if it is a `ResourceVector`, else a checked copy."""
        return amounts if isinstance(amounts, cls) else cls(amounts)


def as_array(amounts: Mapping[str, float], resources: Sequence[str]) -> FloatArray:
    """Return the amounts as a float array of shape (R,), in the order of `resources`."""
    if isinstance(amounts, ResourceVector) and isinstance(resources, tuple):
        return amounts.in_order(resources)
    return np.array([amounts.get(name, 0.0) for name in resources], dtype=np.float64)


def check_known(amounts: Mapping[str, float], resources: Sequence[str]) -> None:
    """Raise `InstanceError` for the first resource that is not in `resources`."""
    for name in amounts:
        if name not in resources:
            raise InstanceError(name, f"expected one of the resources {', '.join(resources)}")
