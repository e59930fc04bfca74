"""What a policy can do beside deciding is seen by its members, and by nothing else."""

from __future__ import annotations

import pytest

import oasis
from baselines import FIFO, SRTF, Kod2
from oasis.scheduling import capabilities
from oasis.scheduling.capabilities import (
    Bounded,
    Deciding,
    Forecasting,
    NamingStates,
    Persistent,
    PlanningInModel,
    Promising,
    Withdrawing,
    is_told,
)


def test_abilities_of_the_policies_are_those_that_they_have() -> None:
    assert isinstance(Kod2(), NamingStates)
    assert isinstance(oasis.Recourse(), PlanningInModel)
    for ability in (NamingStates, PlanningInModel, Promising, Withdrawing, Forecasting, Persistent):
        assert not isinstance(FIFO(), ability)
    assert isinstance(FIFO(), Deciding)


def test_oasis_has_bounds_and_its_rivals_have_none() -> None:
    instance = oasis.generate("testbed", jobs=3, seed=1)
    assert isinstance(oasis.OASiS.from_instance(instance), Bounded)
    assert not isinstance(FIFO(), Bounded)


def test_a_policy_that_declares_nothing_is_not_told() -> None:
    class Silent:
        name = "silent"

    assert not is_told(Silent())
    assert is_told(SRTF())
    assert not is_told(FIFO())


@pytest.mark.parametrize("name", [n for n in vars(capabilities) if n[0].isupper()])
def test_nothing_has_an_ability_by_chance(name: str) -> None:
    ability = getattr(capabilities, name)
    if getattr(ability, "_is_protocol", False) and ability.__module__ == capabilities.__name__:
        assert not isinstance(object(), ability)
