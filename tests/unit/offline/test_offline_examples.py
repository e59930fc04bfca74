"""The examples in the docstrings of the offline methods run, and everything exported has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import oasis.solvers
import offline

MODULES = [
    found.name
    for package in (offline, oasis.solvers)
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in offline.__all__ if name != "METHODS"])
def test_everything_exported_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(offline, name).__doc__ or "")
