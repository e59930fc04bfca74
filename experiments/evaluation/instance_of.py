"""The instance that a result is of: the one that is given, or the file that the result names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.evaluation.provenance import check_digest, instance_digest
from oasis.model.document import entry, mapping, optional, text
from oasis.model.instance import Instance
from oasis.model.instance_file import read


def named_file(data: Mapping[str, Any]) -> Path | None:
    """The instance file that a result names; None if it names none.

    Raises
    ------
    InstanceError
        If the reference is malformed.

    Examples
    --------
    >>> named_file({"instance": {"file": "a.json", "sha256": "0"}}).name
    'a.json'
    """
    reference = entry(data, "instance", mapping) if "instance" in data else {}
    if reference.get("file") is None:
        return None
    return Path(entry(reference, "file", text))


def digest_of(data: Mapping[str, Any]) -> str | None:
    """The digest of the instance that a result is of; None if it has none.

    Raises
    ------
    InstanceError
        If the reference is malformed.
    """
    reference = entry(data, "instance", mapping) if "instance" in data else {}
    return entry(reference, "sha256", optional(text)) if "sha256" in reference else None


def instance_of(data: Mapping[str, Any], given: Mapping[str, Instance]) -> Instance | None:
    """Find the instance of a result among those that are given, or in the file that it names.

    Parameters
    ----------
    data : mapping
        Document of a result.
    given : mapping of str to Instance
        Instances by their digest (`experiments.evaluation.provenance.instance_digest`).

    Returns
    -------
    Instance or None
        None if the result names no instance, or a file that is not there.

    Raises
    ------
    OasisError
        If the file that it names holds another instance, or is malformed.
    """
    digest = digest_of(data)
    if digest is not None and digest in given:
        return given[digest]
    file = named_file(data)
    if file is None or not file.is_file():
        return None
    instance = read(file)
    if digest is not None:
        check_digest(instance, digest)
    return instance


def by_digest(instances: list[Instance]) -> dict[str, Instance]:
    """Instances by their digest."""
    return {instance_digest(instance): instance for instance in instances}
