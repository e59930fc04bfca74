"""The JSON Schema of files of elastic jobs."""

from __future__ import annotations

from typing import Any

from oasis.model.schema import packaged_schema


def elastic_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file of elastic jobs.

    Whatever it refuses, `oasis.simulator.read_elastic` refuses too; the reverse does not hold.

    Examples
    --------
    >>> from oasis.simulator.elastic_schema import elastic_schema
    >>> elastic_schema()["required"]
    ['format', 'version', 'resources', 'machines', 'jobs']
    """
    return packaged_schema("oasis.simulator", "elastic")
