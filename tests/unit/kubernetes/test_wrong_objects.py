"""Whatever makes no sense in an object is told in one line that names the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from oasis.kubernetes import names
from oasis.kubernetes.objects.capacity_window import parse_window
from oasis.kubernetes.objects.conditions import read_status
from oasis.kubernetes.objects.existing import JOB, JOBSET
from oasis.kubernetes.objects.oasis_job import parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.schema import checked_template
from oasis.kubernetes.objects.utility_class import parse_class
from oasis.model.errors import InstanceError
from tests.unit.kubernetes.played import merged
from tests.unit.kubernetes.test_capacity_windows import window
from tests.unit.kubernetes.test_existing_jobs import job, jobset, read
from tests.unit.kubernetes.test_objects import CLOCK
from tests.unit.kubernetes.test_tenant_rules import utility_class

ROWS = yaml.safe_load(Path(__file__).with_name("wrong_objects.yaml").read_text(encoding="utf-8"))
META = {"name": "j", "namespace": "ns", "uid": "u"}


def existing(row: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    notes = {getattr(names, key): value for key, value in row.get("notes", {}).items()}
    meta = {"annotations": notes}
    return merged(base, {"metadata": meta, "spec": row.get("spec", {})})  # type: ignore[no-any-return]


READERS = {
    "OasisJob": lambda row: parse_job(
        {"metadata": META, "spec": merged(ROWS["base"], row["spec"])}, CLOCK, DEFAULT_RESOURCES
    ),
    "pod": lambda row: checked_template(row, ""),
    "CapacityWindow": lambda row: parse_window(
        merged(window("w", 2, 4, nodes=["n1"]), {"spec": row["spec"]})
    ),
    "UtilityClass": lambda row: parse_class(merged(utility_class(), {"spec": row["spec"]})),
    "Job": lambda row: read(existing(row, job()), JOB),
    "JobSet": lambda row: read(existing(row, jobset()), JOBSET),
    "status": lambda row: read_status(row["text"]),
}


@pytest.mark.parametrize(
    ("kind", "row"),
    [(kind, row) for kind in READERS for row in ROWS[kind]],
    ids=lambda given: str(given)[:80],
)
def test_what_makes_no_sense_is_named(kind: str, row: dict[str, Any]) -> None:
    with pytest.raises(InstanceError) as told:
        READERS[kind](row)
    begin, inside, part = row["says"].partition("..")
    assert str(told.value).startswith(begin)
    assert not inside or part in str(told.value)


def test_the_bases_make_sense() -> None:
    parse_job({"metadata": META, "spec": ROWS["base"]}, CLOCK, DEFAULT_RESOURCES)
    parse_window(window("w", 2, 4, nodes=["n1"]))
    parse_class(utility_class())
    read(job(), JOB)
    read(jobset(SERVERS="s"), JOBSET)
