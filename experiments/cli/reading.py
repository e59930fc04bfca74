"""Reading the files that a command is given; errors name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.provenance import Recipe
from oasis.model.instance_file import job_from_dict, read_json


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Prepend the file's name to what is wrong inside it."""
    try:
        yield
    except oasis.OasisError as error:
        raise oasis.OasisError(f"{path}: {error}") from error.__cause__


def read_document(path: Path) -> Any:
    """Read a JSON file; errors name the file."""
    with errors_name(path):
        return read_json(path)


def read_instance(path: Path) -> oasis.Instance:
    """Read an instance file; errors name the file and the field."""
    with errors_name(path):
        return oasis.read(path)


def read_job(path: Path) -> oasis.Job:
    """Read a file with one job, an entry of ``jobs`` in an instance file."""
    with errors_name(path):
        return job_from_dict(read_json(path))


def read_recipe(path: Path) -> Recipe:
    """Read from a result of ``oasis run`` how to make it again."""
    with errors_name(path):
        return Recipe.of(read_json(path))
