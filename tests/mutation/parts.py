"""The table of what is mutated, `parts.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = ["tests/packaging/test_data_classes.py"]  # after the tests of each part


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the core: the files that are mutated, and the tests that have to notice."""

    name: str
    modules: list[str]
    tests: list[str]


TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PARTS = tuple(Part(**entry) for entry in TABLE["part"])


def files(patterns: list[str], root: Path = ROOT) -> list[str]:
    """The files that `patterns` match, in their order, as paths relative to `root`."""
    found: list[str] = []
    for pattern in patterns:
        matches = sorted(path.relative_to(root).as_posix() for path in root.glob(pattern))
        if not matches:
            raise FileNotFoundError(f"tests/mutation/parts.toml: no file matches {pattern!r}")
        found += [match for match in matches if match not in found]
    return found
