"""The JSON Schema of instance files, for editors and for programs that write such files."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def instance_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of an instance file.

    Whatever it refuses, `oasis.read` refuses too. The reverse does not hold: a schema cannot say
    that names are unique or that a job asks for known resources alone.

    Examples
    --------
    >>> from oasis.model.schema import instance_schema
    >>> instance_schema()["required"][:3]
    ['format', 'version', 'horizon']
    """
    return packaged_schema("oasis.model", "instance")


def packaged_schema(package: str, name: str) -> dict[str, Any]:
    """Read ``NAME.schema.json``, which is part of `package`."""
    text = files(package).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
