"""Reading the files that a command is given; errors name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oasis
from experiments.evaluation.provenance import Recipe
from oasis.model.file_kinds import ELASTIC, INSTANCE, JOB, RESULTS, SCHEDULES, kind_of_data
from oasis.model.instance_file import instance_from_dict, job_from_dict, read_json
from oasis.simulator import ElasticWorkload, elastic_from_dict


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Prepend the file's name to what is wrong inside it."""
    try:
        yield
    except oasis.OasisError as error:
        raise oasis.OasisError(f"{path}: {error}") from error.__cause__


def read_document(path: Path) -> Any:
    """Read the JSON document of a result; errors name the file, or what it is instead."""
    with errors_name(path):
        return read_json(path, (*RESULTS, SCHEDULES), "a result")


def read_instance(path: Path) -> oasis.Instance:
    """Read an instance file; errors name the file and the field."""
    with errors_name(path):
        return oasis.read(path)


def read_workload(path: Path) -> oasis.Instance | ElasticWorkload:
    """Read an instance, or a workload of elastic jobs; errors name the file and the field."""
    kinds, expected = (INSTANCE, ELASTIC), "an instance or a workload of elastic jobs"
    with errors_name(path):
        data = read_json(path, kinds, expected)
        kind = kind_of_data(data)
        is_elastic = kind is not None and kind.name == ELASTIC
        return elastic_from_dict(data) if is_elastic else instance_from_dict(data)


def read_job(path: Path) -> oasis.Job:
    """Read a file with one job, an entry of ``jobs`` in an instance file."""
    with errors_name(path):
        return job_from_dict(read_json(path, (JOB,), "one job, an entry of an instance's jobs"))


def read_recipe(path: Path) -> Recipe:
    """Read from a result of ``oasis run`` how to make it again."""
    with errors_name(path):
        return Recipe.of(read_json(path, ("run",), "a result of oasis run"))
