"""No change of structure changes a decision or an output: all are those recorded."""

from __future__ import annotations

import json

import pytest

from tests.recorded.__main__ import (
    KEPT,
    KEPT_RUNS,
    difference,
    found_output,
    is_same,
    run_differences,
)
from tests.recorded.runs import digest, runs

RUNS = dict(runs())
KINDS = {"simulate", "replay", "elastic", "live", "cluster", "proven"}
WORLDS = sorted({" ".join(name.split()[:2]) for name in RUNS})
OUTPUTS = sorted(path.name for path in KEPT.iterdir())


def test_twelve_digits_of_floats_count_and_all_of_the_rest() -> None:
    def differences(*values: object) -> list[str]:
        kept, found = ({"a": {"decisions": digest([value, 3.0])}} for value in values)
        return run_differences(kept, found)

    assert differences(0.3, 0.1 + 0.2) == []
    assert len(differences(0.3, 0.3 + 1e-10)) == 1
    assert len(differences(1, 2)) == 1
    assert len(differences("x", "y")) == 1
    assert is_same("costs 0.3 in 2", "costs 0.30000000000000004 in 2")
    assert not is_same("costs 0.3 in 2", "costs 0.3 in 3")
    assert not is_same("costs 0.3000000001", "costs 0.3")


def test_every_world_is_among_the_recorded_runs() -> None:
    kept = json.loads(KEPT_RUNS.read_text())
    assert list(kept) == list(RUNS)
    assert {world.split()[0] for world in WORLDS} == KINDS


@pytest.mark.parametrize("world", WORLDS)
def test_runs_are_those_recorded(world: str) -> None:
    kept = json.loads(KEPT_RUNS.read_text())
    of_world = [name for name in RUNS if name.startswith(world + " ")]
    found = {name: RUNS[name]() for name in of_world}
    assert run_differences({name: kept[name] for name in of_world}, found) == []


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_those_recorded(name: str) -> None:
    found = found_output(KEPT / name)
    assert is_same((KEPT / name).read_text(), found), difference(KEPT / name, found)
