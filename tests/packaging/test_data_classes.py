"""Data are frozen, slotted dataclasses: nothing changes them, and no misspelt field is added."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import baselines
import oasis
import offline

# Working state, which changes as its owner goes on.
MUTABLE = {
    *("Container", "Entry", "Events", "Fill", "Known", "Ledger", "LiveJob"),
    *("MergedServers", "Patience", "PatternPool", "PlainTrace", "Plan", "Planning"),
    *("PromiseRecord", "Requests", "Row", "ServerGroup", "Share", "SlotClock", "SlotOutcome"),
    *("StabilityCentre", "Steps", "Turn", "Verdicts"),
}
WITH_DICT = {"PlainTrace", "Run"}  # have a cached property


def classes() -> Iterator[type]:
    for package in (oasis, offline, baselines):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(found.name)
            for member in vars(module).values():
                if isinstance(member, type) and member.__module__ == module.__name__:
                    yield member


DATA = [member for member in classes() if dataclasses.is_dataclass(member)]


@pytest.mark.parametrize("data", DATA, ids=lambda data: f"{data.__module__}.{data.__qualname__}")
def test_data_are_frozen_and_slotted(data: type) -> None:
    is_frozen = data.__dataclass_params__.frozen  # type: ignore[attr-defined]
    is_private = data.__name__.startswith("_")
    assert is_frozen or is_private or data.__name__ in MUTABLE, "frozen, or listed in MUTABLE"
    assert "__slots__" in vars(data) or data.__name__ in WITH_DICT, "slotted, or in WITH_DICT"
