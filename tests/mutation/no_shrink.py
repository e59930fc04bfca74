"""A pytest plugin for the runs on mutants: a failure is enough, the smallest one is not needed."""

from __future__ import annotations

import resource

import pytest
from hypothesis import Phase, settings

MEMORY = 8 << 30  # bytes; a mutant may ask for any amount


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings(phases=phases, report_multiple_bugs=False))
    settings.load_profile("mutants")
