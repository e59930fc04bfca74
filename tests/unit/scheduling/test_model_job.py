"""Jobs of the model as policies see them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oasis
from oasis.scheduling.site import policy_job
from oasis.simulator.workload import Workload

INSTANCE = oasis.generate("testbed", jobs=5, seed=3)
SITE = Workload.from_instance(INSTANCE).site


def test_work_is_what_the_model_says_rounded_at_most() -> None:
    for job in INSTANCE.jobs:
        seen = policy_job(job, SITE)
        assert seen.work <= job.work(SITE.unit_seconds) < seen.work + 1


def test_an_unknown_resource_is_refused() -> None:
    strange = replace(INSTANCE.jobs[0], worker={"tpu": 1, "bandwidth_gbps": 0.1})
    with pytest.raises(ValueError, match="not in tuple"):
        policy_job(strange, SITE)
