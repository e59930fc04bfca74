"""Shares of jobs, the line that ordered policies serve, and how policies are made and place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines.fair_shares import Fairness, Portions, Shares, fair_shares
from baselines.registry import ALL, CONTROLLERS, POLICIES, QUEUES, make
from oasis.model.rounding import FloatArray
from oasis.scheduling.job import Allocation, PolicyJob
from oasis.scheduling.site import Machine, Site

WRONG = tomllib.loads(Path(__file__).with_name("wrong_options.toml").read_text())["wrong"]
# Eight GPUs and sixteen cores for workers, eight cores for parameter servers.
SITE = Site(
    ("gpu", "cpu"),
    (
        Machine("w0", (4.0, 8.0), frozenset({"worker"})),
        Machine("w1", (4.0, 8.0), frozenset({"worker"})),
        Machine("p0", (0.0, 8.0), frozenset({"ps"})),
    ),
)
FULL = [machine.capacity for machine in SITE.machines]
WORKER, PS = ((0, 1), (1, 1)), ((1, 2),)


def job(name: str = "a", index: int = 0, **changes: object) -> PolicyJob:
    given = {"ps": PS, "max_workers": 4, "ps_per_worker": 0.5, "index": index}
    return PolicyJob(name, 0.0, 60.0, WORKER, **(given | changes))  # type: ignore[arg-type]


# -- shares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "ps", "share"),
    [(0, 0, 0.0), (1, 0, 1 / 8), (4, 1, 4 / 8), (1, 1, 2 / 8), (0, 3, 6 / 8)],
)
def test_the_dominant_share_is_the_largest_of_any_resource(
    workers: int, ps: int, share: float
) -> None:
    assert Shares(SITE).dominant(job(), workers, ps) == share


def vectors(*rows: list[float]) -> dict[int, FloatArray]:
    return {k: np.array(row) for k, row in enumerate(rows)}


def test_a_resource_that_is_gone_stops_only_who_needs_it() -> None:
    portions = vectors([0.1, 0.1], [0.1, 0.0], [0.0, 0.0])
    found = fair_shares(portions, dict.fromkeys(range(3), 99), np.array([1.0, 0.0]))
    assert found == pytest.approx({0: 0.0, 1: 1.0, 2: 0.0})


def test_the_loss_is_the_distance_from_the_fair_share() -> None:
    """Two alike: each of them may have half of the GPUs, four workers of an eighth."""
    jobs = {0: job("a", 0, max_workers=8), 1: job("b", 1, max_workers=8)}
    fairness = Fairness.among(jobs, Portions(SITE), FULL)
    assert fairness.fair == pytest.approx({0: 0.5, 1: 0.5})
    assert fairness.per_worker == {0: 0.125, 1: 0.125}
    assert [fairness.loss(0, n) for n in (0, 4, 6)] == pytest.approx([0.5, 0.0, 0.25])
    held = {0: Allocation(((0, 4), (1, 2))), 1: Allocation(((1, 2),))}
    assert fairness.total(held) == pytest.approx(0.25 + 0.25)


# -- making policies -------------------------------------------------------------------------------


def test_every_policy_is_known_by_its_name_and_in_one_list() -> None:
    lists = (POLICIES, QUEUES, CONTROLLERS)
    assert set(ALL) == {name for names in lists for name in names}
    assert len(ALL) == sum(map(len, lists))
    assert [make(name).name for name in ALL] == list(ALL)


@pytest.mark.parametrize("name", ALL)
def test_the_seed_goes_to_those_that_draw(name: str) -> None:
    parameters = make(name, 5).parameters
    assert parameters.get("seed", 5) == 5
    draws_nothing = {"drf", "dorm", *CONTROLLERS} - {"kubernetes-default"}
    assert ("seed" in parameters) == (name not in draws_nothing)


def test_an_unknown_name_or_option_is_refused() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        make("best")
    assert str(caught.value) == f"policy: expected one of {', '.join(ALL)}, got 'best'"
    with pytest.raises(ValueError, match="placement: expected one of "):
        make("fifo", placement="anywhere")
    with pytest.raises(TypeError, match="thresholds"):
        make("fifo", thresholds=(1.0,))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["says"])
def test_a_wrong_option_is_refused_by_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=re.escape(wrong["says"])):
        ALL[wrong["policy"]](**wrong["options"])
