"""Reading and writing instance files (docs/file-format): strict, exact, atomic."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from oasis.model.document import entry, mapping
from oasis.model.errors import InstanceError, describe
from oasis.model.file_kinds import INSTANCE, kind_of_data, read_content, refuse_other
from oasis.model.files import json_text, write_text
from oasis.model.forms import Form, Speeds
from oasis.model.instance import Cluster, Instance, Job, Server, expect_instance
from oasis.model.records import AMOUNTS, Fixed, object_schema, parse, plain, properties
from oasis.model.utility import UTILITY
from oasis.model.validation import check_keys

FORMAT, VERSION = "oasis-instance", 1
_CLUSTER = ("slot_seconds", "resources", "worker_servers", "ps_servers")
_TOP = ("format", "version", "horizon", *_CLUSTER, "jobs")
_REQUIRED = [name for name in _TOP if name != "ps_servers"]


def read(path: str | os.PathLike[str]) -> Instance:
    """Read an instance file, compressed (gzip, bzip2, xz, zstd) or not; ``-``: standard input.

    Raises
    ------
    InstanceError
        If the file is no valid instance; names the field and what was expected there.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "instance.json")
    ...     oasis.write(instance, path)
    ...     oasis.read(path) == instance
    True
    """
    return instance_from_dict(read_json(path, (INSTANCE,), "an instance"))


def read_json(path: str | os.PathLike[str], kinds: Collection[str] = (), expected: str = "") -> Any:
    """Read a JSON file of one of `kinds`, `expected` in words; repeated keys are refused."""
    return parse_json(read_content(path), kinds, expected)


def parse_json(content: bytes, kinds: Collection[str] = (), expected: str = "") -> Any:
    """Return the plain data of the `content` of a JSON file; arguments as for `read_json`."""
    try:
        # Python keeps the last of two equal keys, and
        # an instance would lose a field without a word.
        data = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    except InstanceError:
        raise
    except UnicodeDecodeError as error:
        raise InstanceError("", f"expected UTF-8 text ({error})") from None
    except (ValueError, RecursionError) as error:
        begin = content.decode("utf-8-sig").strip().partition("\n")[0]
        if begin.startswith(("{", "[")):
            raise InstanceError("", f"expected JSON: {error}") from None
        got = f"a file that begins with {describe(begin)}" if begin else "an empty file"
        raise InstanceError("", f"expected {expected or 'JSON'}, got {got}") from None
    if expected:
        refuse_other(kind_of_data(data), kinds, expected)
    return data


def write(instance: Instance, path: str | os.PathLike[str]) -> None:
    """Write `instance` so that `read` gives an equal one; the file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "instance.json")
    ...     oasis.write(instance, path)
    ...     print(path.read_text().splitlines()[1].strip())
    "format": "oasis-instance",
    """
    expect_instance(instance)
    write_text(path, json_text(instance_to_dict(instance)))


def instance_from_dict(data: Any) -> Instance:
    """Build an instance from the plain data of an instance file."""
    check_keys(data, _REQUIRED, optional=("ps_servers", "metadata"))
    for name, value in (("format", FORMAT), ("version", VERSION)):
        Fixed(value).check(data[name], name)
    metadata = entry(data, "metadata", mapping) if "metadata" in data else {}
    try:
        # Python reads NaN from a file, but no strict reader would take the file that we write.
        json.dumps(metadata, allow_nan=False)
    except ValueError:
        raise InstanceError("metadata", "expected finite numbers, got NaN or infinity") from None
    cluster = cluster_from_dict(data)
    parts = {"horizon": data["horizon"], "cluster": cluster, "jobs": data["jobs"]}
    return parse(Instance, parts, metadata=dict(metadata))


def cluster_from_dict(data: Mapping[str, Any]) -> Cluster:
    """Build a cluster from the part of an instance file that describes it."""
    return parse(Cluster, {name: data[name] for name in _CLUSTER if name in mapping(data)})


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return `cluster` as plain data, the inverse of `cluster_from_dict`."""
    data = plain(cluster)
    return {name: data[name] for name in _CLUSTER}


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """Return `instance` as plain data, the inverse of `instance_from_dict`."""
    data = {"format": FORMAT, "version": VERSION, **plain(instance.cluster), **plain(instance)}
    metadata = {"metadata": dict(instance.metadata)} if instance.metadata else {}
    return {name: data[name] for name in _TOP} | metadata


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise InstanceError(name, "repeated key; expected each key once in an object")
        result[name] = value
    return result


def instance_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of an instance file.

    Whatever it refuses, `oasis.read` refuses too. The reverse does not hold: a schema cannot say
    that names are unique or that a job asks for known resources alone.

    Examples
    --------
    >>> from oasis.model.instance_file import instance_schema
    >>> instance_schema()["required"][:3]
    ['format', 'version', 'horizon']
    """
    fields = {**properties(Instance), **properties(Cluster)}
    metadata = (
        "Where the instance came from; kept, never interpreted, but for seed, which results repeat."
    )
    body = {
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "version": Fixed(VERSION).schema() | {"description": "Of the format."},
            **{name: fields[name] for name in _TOP[2:]},
            "metadata": {"type": "object", "description": metadata},
        },
        "required": _REQUIRED,
        "additionalProperties": False,
    }
    return file_schema(
        "OASiS instance",
        "Jobs of distributed training, the servers they share and the slots they share them in. "
        "What a schema cannot say, such as that names are unique and that jobs ask for known "
        "resources, is checked by oasis.read.",
        body,
        {
            "server": object_schema(Server),
            "job": object_schema(Job),
            "form": object_schema(Form),
            "speeds": object_schema(Speeds),
        },
    )


def file_schema(
    title: str, meaning: str, body: dict[str, Any], definitions: dict[str, Any]
) -> dict[str, Any]:
    """Return the JSON Schema of a file: `body`, headed by `title` and `meaning`, `definitions`."""
    form, version = (body["properties"][name]["const"] for name in ("format", "version"))
    shared = {"amounts": AMOUNTS.body(), "utility": UTILITY.body()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{form}:{version}",
        "title": title,
        "description": meaning,
        **body,
        "$defs": definitions | shared,
    }
