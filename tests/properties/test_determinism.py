"""The same seed gives the same bytes; nothing depends on the clock, the hash seed or the past."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

import oasis
from oasis import Instance, Run
from tests.portable import switched_off
from tests.strategies import Maker, all_instances, schedulers


def without_times(run: Run) -> str:
    data = run.to_dict()
    del data["decision_seconds"]
    return json.dumps(data)


@given(all_instances(), schedulers())
def test_same_instance_runs_the_same_and_decisions_survive_json(
    instance: Instance, make: Maker
) -> None:
    one, other = (oasis.simulate(instance, make(instance)) for _ in range(2))
    assert without_times(one) == without_times(other)
    assert one.decisions == other.decisions
    for decision in one.decisions:
        again = oasis.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
        assert again == decision


@pytest.mark.parametrize(
    ("there", "off"),
    [
        (("X86_V3",), ["X86_V3"]),
        (("X86_V3", "X86_V4", "AVX512_ICL"), ["X86_V4", "AVX512_ICL"]),
        (("AVX2", "FMA3", "AVX512F"), ["AVX512F"]),  # by the names of older releases of NumPy
        (("ASIMDHP",), ["ASIMDHP"]),
        ((), []),
    ],
)
def test_the_widest_instructions_of_a_processor_can_be_switched_off(
    there: tuple[str, ...], off: list[str]
) -> None:
    """NumPy refuses to start where it is told to do without what is not there."""
    known = (*there, "NOT_THERE")
    assert switched_off(known, {name: name in there for name in known}) == off
