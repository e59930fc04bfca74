"""Where the instance of a cell comes from: drawn from its seed, or read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import oasis
from experiments.evaluation.options import GenerateOptions
from experiments.evaluation.provenance import instance_digest
from oasis.model.errors import located_at, readable
from oasis.model.instance import Instance
from oasis.workloads.arrivals import read_counts
from oasis.workloads.generator import resolve


class InstanceSource(Protocol):
    """An instance for each seed.

    Attributes
    ----------
    labels : mapping
        Plain data for people: the columns of the result.
    identity : mapping
        Plain data that determines the instance up to the seed.
    draws : bool
        Whether the instance depends on the seed.
    """

    @property
    def labels(self) -> Mapping[str, Any]: ...

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def draws(self) -> bool: ...

    def make(self, seed: int) -> Instance:
        """Return the instance."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Instances of `oasis.generate`; holds what it is given, hourly counts included."""

    labels: Mapping[str, Any]
    identity: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(repr=False)
    draws: ClassVar[bool] = True

    def make(self, seed: int) -> Instance:
        """Draw the instance of this seed."""
        return oasis.generate(**self.arguments, seed=seed)


@dataclass(frozen=True)
class Read:
    """The instance of a file, the same for every seed; travels with the cell to any worker."""

    labels: Mapping[str, Any]
    identity: Mapping[str, Any]
    instance: Instance = field(repr=False)
    draws: ClassVar[bool] = False

    def make(self, seed: int) -> Instance:
        """Return the instance of the file, whatever the seed, which is for the policy."""
        return self.instance


def drawn(point: Mapping[str, Any], base: Path, path: str) -> Drawn:
    """Check arguments of `oasis.generate`; `path` is the table they are from."""
    given = dict(point)
    with located_at(path):
        if "counts" in given:
            with readable("counts"):
                given["counts"] = read_counts(base / given["counts"]).tolist()
        settings = resolve(**asdict(GenerateOptions()) | given).metadata()
    del settings["seed"]
    labels = {"preset": settings["preset"], **settings["parameters"]}
    labels["counts"] = point.get("counts")
    return Drawn(labels, {"kind": "drawn", **settings}, given)


def read(name: str, base: Path, path: str) -> Read:
    """Read an instance file; `path` is the key it is from."""
    with readable(path), located_at(path), located_at(source=name):
        instance = oasis.read(base / name)
    identity = {"kind": "read", "sha256": instance_digest(instance)}
    return Read({"file": name}, identity, instance)
