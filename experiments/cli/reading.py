"""Reading problems and building the scheduler from command-line options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import oasis
from experiments.evaluation.policies import OASIS, POLICIES, check_policy, policy_for, scheduler_for
from oasis.model.instance_file import job_from_dict, read_json

__all__ = [
    "OASIS",
    "POLICIES",
    "check_policy",
    "errors_name",
    "policy_for",
    "read_instance",
    "read_job",
    "scheduler_for",
]


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Prepend the file's name to what is wrong inside it."""
    try:
        yield
    except oasis.InstanceError as error:
        raise oasis.OasisError(f"{path}: {error}") from None


def read_instance(path: Path) -> oasis.Instance:
    """Read an instance file; errors name the file and the field."""
    with errors_name(path):
        return oasis.read(path)


def read_job(path: Path) -> oasis.Job:
    """Read a file with one job, an entry of ``jobs`` in an instance file."""
    with errors_name(path):
        return job_from_dict(read_json(path))
