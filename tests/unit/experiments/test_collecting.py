"""Python's own setting comes back, however a command ends."""

from __future__ import annotations

import gc

import pytest

from experiments.cli.main import SELDOM, seldom_collected


def test_cycles_are_looked_for_seldom_inside_and_as_before_outside() -> None:
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold() == (SELDOM, *before[1:])
        assert gc.isenabled()
    assert gc.get_threshold() == before


def test_an_error_restores_it_too() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="over"), seldom_collected():
        raise ValueError("over")
    assert gc.get_threshold() == before
