"""The instances on which choices are studied: small and large, sparse and congested."""

from __future__ import annotations

from typing import Any

from experiments.figures.figure import Row
from experiments.figures.settings import FigureSettings
from oasis.model.errors import InputError


def testbed() -> dict[str, Any]:
    """Twelve jobs on nine machines, as in the paper's experiment."""
    return {"preset": "testbed"}


def calibrated(settings: FigureSettings, jobs: int, servers: int, horizon: int) -> dict[str, Any]:
    """Jobs on machines of both kinds, as many of the one as of the other, at the asked scale."""
    machines = settings.scaled(servers)
    return {
        "preset": "calibrated",
        "jobs": settings.scaled(jobs),
        "worker_servers": machines,
        "ps_servers": machines,
        "horizon": horizon,
    }


def refuse_what_is_fixed(settings: FigureSettings) -> None:
    """Raise `ValueError` for settings that a study fixes itself: policies and sizes."""
    for name in ("policies", "jobs", "servers"):
        if getattr(settings, name) is not None:
            raise InputError(name, "expected none, the study has its own")


def family(cell: Row) -> str:
    """Name of the family that a cell belongs to."""
    if cell["instance.preset"] == "testbed":
        return "testbed, 12 jobs"
    jobs, servers = int(cell["instance.jobs"]), int(cell["instance.worker_servers"])
    return f"T = {int(cell['instance.horizon'])}, {servers} + {servers} servers, {jobs} jobs"
