"""What a policy can do beside deciding is seen by its members, and by nothing else."""

from __future__ import annotations

import pytest

import oasis
from baselines import FIFO, Kod2
from oasis.scheduling import capabilities
from oasis.scheduling.capabilities import (
    Forecasting,
    NamingStates,
    Persistent,
    Promising,
    Withdrawing,
    wants,
)


def test_abilities_of_the_policies_are_those_that_they_have() -> None:
    assert isinstance(Kod2(), NamingStates)
    for ability in (NamingStates, Promising, Withdrawing, Forecasting, Persistent):
        assert not isinstance(FIFO(), ability)


def test_a_policy_that_declares_nothing_wants_nothing() -> None:
    class Silent:
        name = "silent"

    for attribute in ("told_remaining", "knows_forms", "keeps_run_times", "plans_in_model"):
        assert not wants(Silent(), attribute)
        assert wants(oasis.Recourse(), attribute)
    assert not wants(FIFO(), "told_remaining")


@pytest.mark.parametrize("name", [n for n in vars(capabilities) if n[0].isupper()])
def test_nothing_has_an_ability_by_chance(name: str) -> None:
    ability = getattr(capabilities, name)
    if getattr(ability, "_is_protocol", False) and ability.__module__ == capabilities.__name__:
        assert not isinstance(object(), ability)
