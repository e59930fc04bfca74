"""The same seed gives the same bytes; nothing depends on the clock, the hash seed or the past."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis import Instance, Run
from tests.portable import switched_off
from tests.strategies import Maker, all_instances, fewer, of, schedulers

PRESETS = ("paper", "calibrated", "testbed", "testbed-observed", "kinds")
SIZES = {"jobs": 5, "worker_servers": 3, "ps_servers": 2, "horizon": 10}


def without_times(run: Run) -> str:
    data = run.to_dict()
    del data["decision_seconds"]
    return json.dumps(data)


@fewer(4)
@given(of(*PRESETS), st.integers(0, 2**32))
def test_same_seed_writes_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, preset: str, seed: int
) -> None:
    files = [tmp_path_factory.getbasetemp() / f"seed{k}.json" for k in range(2)]
    for path in files:
        oasis.write(oasis.generate(preset, **SIZES, seed=seed), path)
    assert files[0].read_bytes() == files[1].read_bytes()
    other = oasis.generate(preset, **SIZES, seed=seed + 1)
    assert other.jobs != oasis.read(files[0]).jobs


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
