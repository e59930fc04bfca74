"""Origin of a result, from which it can be reproduced."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oasis.model.document import entry, list_of, mapping, optional, text
from oasis.model.errors import InputError, OasisError, describe, located_at
from oasis.model.file_kinds import STANDARD_INPUT, read_content
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_to_dict


def instance_digest(instance: Instance) -> str:
    """SHA-256 of the content of `instance`; layout of the file and metadata do not count."""
    content = instance_to_dict(instance)
    # Where an instance came from changes no result, so a note in it makes no other instance.
    content.pop("metadata", None)
    return hashlib.sha256(json.dumps(content, allow_nan=False).encode()).hexdigest()


def instance_reference(instance: Instance, file: str | None) -> dict[str, Any]:
    """Plain data that name an instance: its file, the digest of its content, its metadata."""
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
    """Check that `instance` has the digest that a result records."""
    digest = instance_digest(instance)
    if digest != sha256:
        raise InputError(
            "instance.sha256",
            f"the result is of another instance: expected {sha256[:16]}, got {digest[:16]}",
        )


@dataclass(frozen=True, slots=True)
class Recipe:
    """Command and arguments from which a result of ``oasis run`` is reproduced."""

    policy: str
    parameters: Mapping[str, Any]
    file: str | None
    sha256: str  # `instance_digest`
    version: str  # of the package that made the result
    files: Sequence[Mapping[str, Any]] | None = None  # that the policy depends on, if it says

    @classmethod
    def of(cls, document: Any) -> Recipe:
        """Read the recipe that the JSON document of ``oasis run`` contains."""
        reference = entry(document, "instance", mapping)
        with located_at("instance"):
            file = entry({"file": None} | dict(reference), "file", optional(text))
            sha256 = entry(reference, "sha256", text)
        return cls(
            entry(document, "policy", text),
            entry(document, "parameters", mapping),
            file,
            sha256,
            entry(document, "version", text),
            entry({"policy_files": None} | document, "policy_files", optional(list_of(mapping))),
        )

    def check(self, instance: Instance) -> None:
        """Check that `instance` is the one that the result is of."""
        check_digest(instance, self.sha256)

    def check_files(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Check that the policy's code, and the files that its options name, are as they were."""
        before = {str(one.get("of")): one for one in self.files or ()}
        now = {str(one["of"]): one for one in files}
        for name in [*before, *(name for name in now if name not in before)]:
            was, is_now = before.get(name), now.get(name)
            if was is None or is_now is None:
                file = (was or is_now or {}).get("file")
                how = "is not there any more" if was else "was not part of the run"
                raise InputError("policy_files", f"{file} ({name}) {how}")
            if was.get("sha256") != is_now["sha256"]:
                expected = f"expected sha256 {str(was.get('sha256'))[:16]}"
                got = str(is_now["sha256"])[:16]
                raise InputError(
                    "policy_files",
                    f"{is_now['file']} ({name}) has changed since: {expected}, got {got}",
                )


MEASURED = "decision_seconds"  # how long the decisions of a run took
# `Recipe.check` compares the instance, and a note names another version, before the run.
OF_THE_SOURCE = ("instance", "seed", "version")


def check_reproduced(recorded: Mapping[str, Any], reproduced: Mapping[str, Any]) -> None:
    """Check that a repeated run agrees with its recorded result, measured times aside.

    Measured times are ``decision_seconds`` and all entries of the policy's own report whose names
    end in ``seconds``. Keys that the result does not have, because the version that made it did not
    write them, are not compared.
    """
    # The figure that people look at first is the first difference that is told.
    first = ("total_utility",)
    names = [name for name in recorded if name not in (*first, *OF_THE_SOURCE, MEASURED)]
    for name in (*(name for name in first if name in recorded), *names):
        for path, was, is_now in _differences(recorded[name], reproduced.get(name, MISSING), name):
            difference = f"{path} was {_brief(was)}, is {_brief(is_now)} now"
            raise OasisError(f"the run is not reproduced: {difference}")


MISSING = object()


def _differences(was: Any, is_now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, Mapping) and isinstance(is_now, Mapping):
        # keys only grow: what the version that made the result did not write is not compared
        for name in was:
            if path.partition(".")[0] == "report" and name.endswith("seconds"):
                continue
            yield from _differences(was[name], is_now.get(name, MISSING), f"{path}.{name}")
    elif isinstance(was, list) and isinstance(is_now, list) and len(was) == len(is_now):
        for k, (mine, other) in enumerate(zip(was, is_now, strict=True)):
            yield from _differences(mine, other, f"{path}[{k}]")
    elif was != is_now or type(was) is not type(is_now):
        yield path, was, is_now


def _brief(value: Any) -> str:
    return "missing" if value is MISSING else describe(value)
