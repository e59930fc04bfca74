"""Files of learned prices: they come back as they were, and what is wrong in them is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import InstanceError, LearnedPrices, OASiS, PriceBounds
from oasis.online.recourse.learned import learned_from
from tests.builders import changed, malformed

PAST = oasis.generate("testbed", jobs=3, seed=1)


def learned(slots: int = 4) -> LearnedPrices:
    rng = np.random.default_rng(3)
    size = (slots, len(PAST.cluster.resources))
    jobs = [oasis.generate("testbed", jobs=1, seed=seed).jobs[0] for seed in range(3)]
    jobs = [replace(job, arrival=k) for k, job in enumerate(jobs)]
    return LearnedPrices(
        PAST.cluster.resources,
        PAST.slot_seconds,
        np.array([2.0, 2.0, 1.0, 1.0]),
        rng.random(size),
        rng.random(size) / 3,
        PriceBounds.from_instance(PAST),
        tuple(jobs),
    )


def test_a_file_that_was_written_and_read_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    first, path = learned(), tmp_path / "prices.json"
    first.write(path)
    again = LearnedPrices.read(path)
    for name in ("days", "worker", "ps"):
        assert getattr(again, name).tobytes() == getattr(first, name).tobytes()
    assert again.bounds.to_dict() == first.bounds.to_dict()
    assert again.jobs == first.jobs
    assert again.digest == first.digest
    again.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("field", "value", "message", "_"), malformed(__file__, "learned_malformed.txt")
)
def test_what_is_wrong_in_a_file_is_named_in_one_line(
    field: str, value: Any, message: str, _: bool, tmp_path: Path
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(changed(learned().to_dict(), field, value)), encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        LearnedPrices.read(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "NaN", '{"a": 1, "a": 1}', "\x00"])
def test_what_is_no_file_of_prices_at_all_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError, match=r"prices: .*prices\.json: ") as caught:
        learned_from(str(path), "prices")
    assert "\n" not in str(caught.value)


def test_prices_of_other_slots_are_named_with_the_option_and_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "p.json")
    hours = replace(PAST, cluster=replace(PAST.cluster, slot_seconds=3600.0))
    learned().write(path)
    with pytest.raises(InstanceError, match=r"^bounds: .*p\.json: slot_seconds: expected 3600"):
        OASiS.from_instance(hours, bounds=path)
    for admission in ("learned", "futures"):
        options: dict[str, Any] = {"commitment": "arrival", "admission": admission}
        policy = oasis.Recourse(prices=path, **options)
        with pytest.raises(InstanceError, match=r"^prices\.slot_seconds: expected 3600, got 1200"):
            oasis.simulate(hours, policy)


def test_oasis_takes_its_bounds_from_the_file_and_says_so(tmp_path: Path) -> None:
    first, path = learned(), tmp_path / "prices.json"
    first.write(path)
    scheduler = OASiS.from_instance(PAST, bounds=str(path), scale=2.0)
    assert scheduler.bounds.to_dict() == first.bounds.scaled(2.0).to_dict()
    assert scheduler.parameters["bounds"] == str(path)
    scheduler.save(tmp_path / "saved")
    assert OASiS.load(tmp_path / "saved").parameters == scheduler.parameters
    assert OASiS.from_instance(PAST, bounds=first).parameters["bounds"] == first.name
    assert OASiS.from_instance(PAST).parameters["bounds"] is None
