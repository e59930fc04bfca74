"""What a result was made from, so that it can be made again from itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oasis.model.content import STANDARD_INPUT, read_content
from oasis.model.errors import OasisError
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_to_dict
from oasis.model.validation import describe


def instance_digest(instance: Instance) -> str:
    """SHA-256 of the content of `instance`; layout of the file and metadata do not count.

    Examples
    --------
    >>> import oasis
    >>> drawn = [oasis.generate("testbed", jobs=2, seed=seed) for seed in (1, 1, 2)]
    >>> [instance_digest(one) == instance_digest(drawn[0]) for one in drawn]
    [True, True, False]
    """
    content = instance_to_dict(instance)
    content.pop("metadata", None)
    return hashlib.sha256(json.dumps(content, allow_nan=False).encode()).hexdigest()


def instance_reference(instance: Instance, file: str | None) -> dict[str, Any]:
    """Plain data that name an instance: its file, the digest of its content, its metadata.

    Parameters
    ----------
    instance : Instance
        The problem.
    file : str or None
        Where it was read from, as the caller named it; None if it was not. Standard input, ``-``,
        is no file that could be read again.
    """
    metadata = dict(instance.metadata)
    file = None if file == STANDARD_INPUT else file
    return {"file": file, "sha256": instance_digest(instance), "metadata": metadata}


def file_reference(file: Path) -> dict[str, str | None]:
    """Plain data that name a trace or a file of elastic jobs: the file, the digest of its bytes.

    The digest is None for a pipe, which can be read only once; the file for standard input.
    """
    if str(file) == STANDARD_INPUT:
        return {"file": None, "sha256": hashlib.sha256(read_content(file)).hexdigest()}
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return {"file": str(file), "sha256": digest}


def check_digest(instance: Instance, sha256: str) -> None:
    """Check that `instance` is the one whose digest a result has.

    Raises
    ------
    OasisError
        If it is another.
    """
    found = instance_digest(instance)
    if found != sha256:
        raise OasisError(
            f"instance.sha256: the result is of another instance: expected {sha256[:16]}, "
            f"got {found[:16]}"
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make the result of ``oasis run`` again.

    Parameters
    ----------
    policy : str
        Name of the policy.
    parameters : mapping
        All its options.
    file : str or None
        Name of the instance file, as it was given; None if there was none.
    sha256 : str
        Digest of the instance (`instance_digest`).
    version : str
        Version of the package that made the result.
    """

    policy: str
    parameters: Mapping[str, Any]
    file: str | None
    sha256: str
    version: str

    @classmethod
    def of(cls, document: Any) -> Recipe:
        """Read the recipe that the JSON document of ``oasis run`` contains.

        Raises
        ------
        OasisError
            Naming the key that is missing or has the wrong type.

        Examples
        --------
        >>> instance = {"file": "a.json", "sha256": "0123", "metadata": {}}
        >>> result = {"policy": "fifo", "parameters": {"seed": 1}, "version": "1.0"}
        >>> Recipe.of(result | {"instance": instance}).parameters
        {'seed': 1}
        """
        instance = _entry(document, "instance", dict, "an object")
        file = instance.get("file")
        if file is not None and not isinstance(file, str):
            raise OasisError(f"instance.file: expected text or null, got {describe(file)}")
        return cls(
            _entry(document, "policy", str, "text"),
            _entry(document, "parameters", dict, "an object"),
            file,
            _entry(instance, "sha256", str, "text", "instance."),
            _entry(document, "version", str, "text"),
        )

    def check(self, instance: Instance) -> None:
        """Check that `instance` is the one that the result is of.

        Raises
        ------
        OasisError
            If it is another.
        """
        check_digest(instance, self.sha256)


def _entry(document: Any, key: str, kind: type, wanted: str, prefix: str = "") -> Any:
    if not isinstance(document, dict) or key not in document:
        raise OasisError(f"{prefix}{key}: missing; expected the JSON document of oasis run")
    if not isinstance(document[key], kind):
        raise OasisError(f"{prefix}{key}: expected {wanted}, got {describe(document[key])}")
    return document[key]
