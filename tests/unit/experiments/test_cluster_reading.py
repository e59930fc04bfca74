"""What the commands for a cluster say of jobs by name, and of controllers that live or do not."""

from __future__ import annotations

import time
from typing import Any

import pytest

import oasis
from experiments.cli.commands.kubernetes.cluster import (
    Found,
    of_controller,
    sign_of_life,
)
from experiments.cli.commands.kubernetes.reading import named_job
from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.lease import micro_time

NOW = 1.8e9


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (("bert", None), "default/bert"),
        (("bert", "research"), "research/bert"),
        (("research/bert", None), "research/bert"),
        (("research/bert", "research"), "research/bert"),
        (("research/jobset/bert", None), "research/jobset/bert"),
        (("research/oasisjob/bert", None), "research/bert"),
        (("research/oasisjob", None), "research/oasisjob"),
    ],
)
def test_a_job_may_be_named_as_status_prints_it(given: Any, meant: str) -> None:
    assert named_job(*given) == meant


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (("a/b/c/d", None), "NAME"),
        (("a//d", None), "NAME"),
        (("", None), "NAME"),
        (("research/bert", "other"), "--namespace"),
    ],
)
def test_a_name_and_an_option_that_differ_are_refused(given: Any, field: str) -> None:
    with pytest.raises(oasis.InputError) as told:
        named_job(*given)
    assert told.value.field == field


class Leases:
    def __init__(self, found: dict[str, Any] | None, status: int = 0) -> None:
        self.found, self.status = found, status

    def get(self, kind: Any, name: str, namespace: str) -> dict[str, Any] | None:
        assert (kind.plural, name, namespace) == ("leases", "a", "ns")
        if self.status:
            raise ApiError("GET", "/leases", self.status, "", "")
        return self.found


def lease(holder: str, ago: float) -> dict[str, Any]:
    renewed = micro_time(NOW - ago)
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


@pytest.mark.parametrize(
    ("found", "alive", "words"),
    [
        (Leases(None), False, "has never run"),
        (Leases({"spec": {}}), False, "has never run"),
        (Leases(lease("one", 5.0)), True, "is at work"),
        (Leases(lease("one", -60.0)), True, "is at work"),
        (Leases(lease("one", 47.0)), False, "no sign of life for 47 s"),
        (Leases(lease("", 9.0)), False, "was ended 9 s ago"),
        (Leases(None, 403), None, "no right to read its lease"),
    ],
)
def test_whether_a_controller_lives(
    found: Any, alive: bool | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    told = sign_of_life(found, "ns/a")
    assert told["alive"] is alive
    assert words in told["message"]
    assert told["message"].startswith("ns/a ")


def test_what_keeps_the_lease_from_us_is_not_hidden() -> None:
    with pytest.raises(ApiError, match="500"):
        sign_of_life(Leases(None, 500), "ns/a")  # type: ignore[arg-type]


def test_the_jobs_of_one_controller() -> None:
    jobs: list[Found] = [(None, {"name": k, "status": {"controller": k}}) for k in ("s/a", "s/b")]
    jobs += [(None, {"name": "new"}), (None, {"name": "old", "status": {}})]
    found, names = of_controller(jobs, "s", "a")
    assert ([job["name"] for _, job in found], names) == (["s/a", "new", "old"], ["s/a"])
    assert of_controller(jobs, "s", None) == (jobs, ["s/a", "s/b"])
    assert of_controller([], "s", None) == ([], ["s/oasis-scheduler"])
