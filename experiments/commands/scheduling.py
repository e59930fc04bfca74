"""Reading problems and building the scheduler from command-line options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import oasis
from oasis.io import job_from_dict, read_json
from oasis.search import Granularity


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


def scheduler_for(
    instance: oasis.Instance,
    *,
    scale: float,
    min_utility_fraction: float,
    granularity: str,
    raw_units: bool,
) -> oasis.OASiS:
    """OASiS with the exact bounds of `instance` and the given options."""
    return oasis.OASiS.from_instance(
        instance,
        normalize=not raw_units,
        min_utility_fraction=min_utility_fraction,
        scale=scale,
        granularity=cast(Granularity, granularity),  # checked by the constructor
    )
