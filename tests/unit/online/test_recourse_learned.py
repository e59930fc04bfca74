"""Files of learned prices: they come back as they were, and what is wrong in them is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import InstanceError, LearnedPrices, OASiS, PriceBounds
from oasis.model.groups import TaskGroup
from oasis.online.recourse.learned import learned_from

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


def test_prices_and_rates_repeat_every_day() -> None:
    first = learned()
    assert first.prices(TaskGroup.PS, [1, 5, 9]).tolist() == [first.ps[1].tolist()] * 3
    assert first.rates(0, 6).tolist() == [0.5, 0.5, 1.0, 0.0, 0.5, 0.5]


Change = Callable[[dict[str, Any]], object]
WRONG: list[tuple[Change, str]] = [
    (
        lambda d: d.update(format="oasis-instance"),
        "expected a file of learned prices, got what looks like an instance",
    ),
    (lambda d: d.update(version=2), "version: expected 1, got 2"),
    (lambda d: d.update(version=True), "version: expected 1, got True"),
    (lambda d: d.pop("ps"), "ps: missing; this key is required"),
    (lambda d: d.update(extra=1), "extra: unknown key"),
    (lambda d: d.update(slots_per_day=0), "slots_per_day: expected an integer >= 1, got 0"),
    (lambda d: d.update(slots_per_day=5), "worker: expected 5 rows, one for a slot, got 4"),
    (lambda d: d["worker"].pop(), "worker: expected 4 rows, one for a slot, got 3"),
    (lambda d: d["ps"][2].pop(), r"ps\[2\]: expected 5 numbers, got 4"),
    (lambda d: d["ps"][2].__setitem__(1, -1.0), r"ps\[2\]\[1\]: expected a finite number >= 0"),
    (lambda d: d["ps"][2].__setitem__(1, None), r"ps\[2\]\[1\]: expected a finite number >= 0"),
    (lambda d: d["days"].__setitem__(0, "2"), r"days\[0\]: expected a finite number >= 0"),
    (lambda d: d["days"].__setitem__(0, 0), r"jobs\[0\].arrival: expected a slot that a past day"),
    (lambda d: d["jobs"][1].update(arrival=4), r"jobs\[1\].arrival: expected an integer <= 3"),
    (lambda d: d["jobs"][1].update(epochs=0), r"jobs\[1\].epochs: expected an integer >= 1"),
    (lambda d: d["bounds"].pop("ps"), "bounds.ps: missing"),
    (lambda d: d["bounds"].update(scale=0), "bounds.scale: expected a finite number > 0, got 0"),
    (lambda d: d["bounds"].update(normalize=1), "bounds.normalize: expected true or false, got 1"),
    (lambda d: d["bounds"].update(min_utility_fraction=1), "bounds.min_utility_fraction: expected"),
    (
        lambda d: d["bounds"]["worker"].update(log_ratio=[-1, 0, 0, 0, 0]),
        r"bounds.worker.log_ratio\[0\]: expected a finite number >= 0, got -1",
    ),
    (
        lambda d: d["bounds"]["ps"].update(log_lower=["x", 0, 0, 0, 0]),
        r"bounds.ps.log_lower\[0\]: expected a finite number",
    ),
    (lambda d: d["bounds"]["ps"].update(eta=-1), "bounds.ps.eta: expected a finite number >= 0"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_is_wrong_in_a_file_is_named_in_one_line(
    change: Change, message: str, tmp_path: Path
) -> None:
    data, path = learned().to_dict(), tmp_path / "prices.json"
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InstanceError, match=f"prices.json: {message}") as caught:
        LearnedPrices.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "NaN", '{"a": 1, "a": 1}', "\x00"])
def test_what_is_no_file_of_prices_at_all_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError, match=r"prices: .*prices\.json: ") as caught:
        learned_from(str(path), "prices")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"bounds: .*none\.json: No such file or directory"):
        learned_from(str(tmp_path / "none.json"), "bounds")


def test_prices_of_another_cluster_are_refused() -> None:
    first = learned()
    with pytest.raises(InstanceError, match="slot_seconds: expected 60, got 1200"):
        first.check_resources(first.resources, 60.0)
    with pytest.raises(InstanceError, match="resources: expected"):
        first.check_resources(("gpu",), first.slot_seconds)


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
