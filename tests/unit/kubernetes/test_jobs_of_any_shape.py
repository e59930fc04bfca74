"""Jobs of every shape under every policy: none of them ends the controller or stops another job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from baselines import registry
from baselines.counts import FixedCounts
from experiments.evaluation.policies import POLICIES
from tests.unit.kubernetes.played import Played, job, merged, policy

ROWS = yaml.safe_load(Path(__file__).with_name("shapes.yaml").read_text(encoding="utf-8"))
SHAPES: dict[str, dict[str, Any]] = ROWS["shapes"]


def shape(name: str) -> dict[str, Any]:
    made = job("odd")
    made["spec"] = merged(ROWS["base"], SHAPES[name]["spec"])
    return made


def with_ps(**workers: Any) -> dict[str, Any]:
    made = job("odd", **workers)
    made["spec"] = merged(made["spec"], ROWS["with parameter servers"])
    return made


ELSEWHERE = {"Completed", "Rejected", "GivenUp", "Pending", "Waiting", "Running"}
DRAWING = [
    name
    for name, make in registry.ALL.items()
    if isinstance(getattr(make(), "_counts", None), FixedCounts)
]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("which", SHAPES)
def test_a_job_of_any_shape_is_served_or_told_why_not(which: str, name: str) -> None:
    wanted = SHAPES[which]["phase"]
    played = Played(policy(name))
    other = played.submit(job("other", minimum=2, initial=2, maximum=2, slots=4.0))
    odd = played.submit(shape(which))
    played.run(18)  # some policies give an ordinary job one worker, and keep it there
    phase = played.phase(odd)
    if wanted is None:
        assert phase in ELSEWHERE
    else:
        assert phase == wanted, played.status(odd)
    if which != "work without end":
        assert played.phase(other) == "Completed"
        assert not played.pods
    if "parameterServers" not in played.jobs[odd]["spec"]:
        assert played.seen_ps == 0, "without a template there are none"
    for error in ("planning", "acting on", "following", "telling of", "reading"):
        assert played.measured("oasis_job_errors_total", doing=error) == 0
    assert played.measured("oasis_policy_errors_total") == 0


@pytest.mark.parametrize("with_template", [True, False])
@pytest.mark.parametrize("name", DRAWING)
def test_without_an_initial_number_a_job_gets_its_maximum(name: str, with_template: bool) -> None:
    """One after the other, so that each could be drawn another number."""
    played = Played(policy(name))
    for k, most in enumerate((8, 3, 5, 50, 7, 2)):
        made = with_ps(maximum=most) if with_template else job("odd", maximum=most)
        made["metadata"]["name"] = f"j{k}"
        uid = played.submit(made)
        played.run(8)
        assert played.phase(uid) == "Completed"
        assert played.most[f"j{k}"] == min(most, 8)
    assert bool(played.seen_ps) is with_template


@pytest.mark.parametrize("name", DRAWING)
def test_a_seed_that_is_asked_for_draws_as_in_the_simulator(name: str) -> None:
    played = Played(policy(name, seed=5))
    counts = []
    for k in range(4):
        made = with_ps()
        made["metadata"]["name"] = f"j{k}"
        played.submit(made)
        played.run(16)
        counts.append(played.most[f"j{k}"])
    assert counts != [8, 8, 8, 8]
