"""Results that live on: every run can be read back, and says the same again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.evaluation.policies import RIVALS, make_policy
from oasis.certify.certificate import Certificate
from oasis.simulator.result import READERS, Run, read_result, result_from_dict

INSTANCE = oasis.generate("testbed", jobs=5, seed=3)


def run_of(name: str) -> Run:
    return oasis.simulate(INSTANCE, make_policy(name, INSTANCE))


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("name", RIVALS)
def test_a_run_is_read_back_as_it_was(name: str) -> None:
    run = run_of(name)
    document = run.to_dict()
    for data in (document, through_json(document)):
        again = Run.from_dict(data)
        assert again.to_dict() == document
        assert again.decisions == run.decisions
        assert again.schedules == run.schedules
        assert oasis.verify(INSTANCE, again) == oasis.verify(INSTANCE, run)
    if run.bounds is not None:
        certificate = oasis.certify(INSTANCE, again)
        assert certificate == oasis.certify(INSTANCE, run)
        assert Certificate.from_dict(through_json(certificate.to_dict())) == certificate


def test_a_file_is_read_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    document = run_of("fifo").to_dict()
    path.write_text(json.dumps(document | {"added": "by a command"}))
    found = read_result(path)
    assert isinstance(found, Run)
    assert oasis.read_result(path).to_dict() == found.to_dict() == document


def test_every_kind_names_a_class_that_reads() -> None:
    for kind in READERS:
        with pytest.raises(oasis.InstanceError, match="missing; this key is required"):
            result_from_dict({"kind": kind})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": None},
            f"kind: expected one of {', '.join(READERS)}, got None",
        ),
        ({"decisions": {}}, "decisions: expected a list, got {}"),
        ({"decisions": [1]}, "decisions[0]: expected an object, got 1"),
        ({"seed": "x"}, "seed: expected an integer, got 'x'"),
        ({"bounds": {}}, "bounds.worker: missing; this key is required"),
        ({"policy": 3}, "policy: expected text, got 3"),
        ({"decision_seconds": {}}, "decision_seconds.median: missing; this key is required"),
        ({"simulation": 1}, "simulation: expected an object, got 1"),
    ],
)
def test_what_is_wrong_in_a_document_is_said_with_its_path(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(oasis.InstanceError, match=f"^{re.escape(message)}$"):
        result_from_dict(run_of("fifo").to_dict() | change)


def test_a_frame_has_a_row_for_each_decision() -> None:
    run = run_of("oasis")
    frame = run.to_frame()
    assert list(frame["job_id"]) == [decision.job_id for decision in run.decisions]
    assert frame["utility"].sum() == pytest.approx(run.total_utility)
    assert set(frame["job_id"][frame["start"].notna()]) == set(run.schedules)
    for job_id, slots in zip(frame["job_id"], frame["worker_slots"], strict=True):
        assert job_id not in run.schedules or slots == run.schedules[job_id].worker_slots
