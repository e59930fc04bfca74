"""The examples in the docstrings of `experiments` are what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import experiments


def modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(experiments.__path__, "experiments."):
        if not found.name.endswith("__main__"):
            yield found.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_examples_are_what_happens(
    name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0
