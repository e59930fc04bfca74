"""Reading and writing instance files (docs/file-format): strict, exact, atomic."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from importlib.resources import files
from typing import Any, TypeVar

from oasis.model.errors import InstanceError, located_at
from oasis.model.file_kinds import INSTANCE, kind_of, kind_of_data, read_content, refuse_other
from oasis.model.files import write_text
from oasis.model.instance import Cluster, Instance, Job, Server, expect_instance
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.model.validation import check_keys, check_list, describe

FORMAT, VERSION = "oasis-instance", 1
UTILITIES: dict[str, type[Any]] = {
    cls.kind: cls for cls in (Sigmoid, Constant, Deadline, Piecewise)
}
Item = TypeVar("Item")
_TOP = ("format", "version", "horizon", "slot_seconds", "resources", "worker_servers", "jobs")
_JOB = tuple(f.name for f in fields(Job) if f.default is MISSING)
_JOB_OPTIONS = {f.name: f.default for f in fields(Job) if f.default is not MISSING}
# Jobs without parameter servers need neither machines for them nor what one of them demands.
_NO_SERVERS: Mapping[str, Any] = {"ps_servers": []}
_NO_DEMAND: Mapping[str, Any] = {"ps": {}}


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
    """Parse a JSON file strictly: UTF-8, no repeated keys.

    Parameters
    ----------
    path : path
        The file, compressed or not; ``-`` stands for standard input.
    kinds : collection of str
        What it may be, by the names of `oasis.model.file_kinds`. A file that looks like another
        kind is refused with the command that takes it; empty: it may be any JSON.
    expected : str
        The same in words.
    """
    return parse_json(read_content(path), kinds, expected, os.fspath(path))


def parse_json(
    content: bytes, kinds: Collection[str] = (), expected: str = "", file: str = "FILE"
) -> Any:
    """Parse the `content` of a JSON file, which the user named `file`, as `read_json` does."""
    text = content.decode("utf-8-sig", errors="replace")
    try:
        data = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        refuse_other(kind_of(text), kinds, expected or "JSON", file)
        raise InstanceError("", f"expected UTF-8 text ({error})") from None
    except InstanceError:
        raise
    except (ValueError, RecursionError) as error:
        refuse_other(kind_of(text), kinds, expected or "JSON", file)
        raise InstanceError("", f"expected JSON: {error}") from None
    if kinds:
        refuse_other(kind_of_data(data), kinds, expected, file)
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
    write_text(path, json.dumps(instance_to_dict(instance), indent=1, allow_nan=False) + "\n")


def instance_from_dict(data: Any) -> Instance:
    """Build an instance from the plain data of an instance file."""
    check_keys(data, _TOP, optional=(*_NO_SERVERS, "metadata"))
    if data["format"] != FORMAT:
        raise InstanceError("format", f"expected {FORMAT!r}, got {describe(data['format'])}")
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise InstanceError("version", f"expected {VERSION}, got {describe(data['version'])}")
    metadata = data.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise InstanceError("metadata", f"expected an object, got {describe(metadata)}")
    try:
        json.dumps(metadata, allow_nan=False)
    except ValueError:
        raise InstanceError("metadata", "expected finite numbers, got NaN or infinity") from None
    cluster = cluster_from_dict(data)
    jobs = _each(data, "jobs", job_from_dict)
    return Instance(data["horizon"], cluster, jobs, dict(metadata))


def cluster_from_dict(data: Mapping[str, Any]) -> Cluster:
    """Build a cluster from the part of an instance file that describes it."""
    return Cluster(
        resources=tuple(check_list(data["resources"], "resources")),
        worker_servers=_each(data, "worker_servers", _server),
        ps_servers=_each({**_NO_SERVERS, **data}, "ps_servers", _server),
        slot_seconds=data["slot_seconds"],
    )


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Plain data of `cluster`, the inverse of `cluster_from_dict`."""
    return {
        "slot_seconds": cluster.slot_seconds,
        "resources": list(cluster.resources),
        "worker_servers": [_server_to_dict(server) for server in cluster.worker_servers],
        "ps_servers": [_server_to_dict(server) for server in cluster.ps_servers],
    }


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """Plain data of `instance`, the inverse of `instance_from_dict`."""
    expect_instance(instance)
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "horizon": instance.horizon,
        **cluster_to_dict(instance.cluster),
        "jobs": [job_to_dict(job) for job in instance.jobs],
    }
    if instance.metadata:
        data["metadata"] = dict(instance.metadata)
    return data


def job_from_dict(data: Any) -> Job:
    """Build a job from its entry in an instance file."""
    required = [name for name in _JOB if name not in _NO_DEMAND]
    check_keys(data, required, optional=(*_NO_DEMAND, *_JOB_OPTIONS))
    with located_at("utility"):
        utility = _utility(data["utility"])
    return Job(**{**_NO_DEMAND, **data, "utility": utility})


def job_to_dict(job: Job) -> dict[str, Any]:
    """Plain data of `job`, the inverse of `job_from_dict`."""
    data = {name: getattr(job, name) for name in _JOB}
    given = {name: getattr(job, name) for name in _JOB_OPTIONS}
    data |= {name: value for name, value in given.items() if value != _JOB_OPTIONS[name]}
    kind = _kind(job.utility)
    points = {f.name: _plain(getattr(job.utility, f.name)) for f in fields(UTILITIES[kind])}
    return data | {
        "worker": dict(job.worker),
        "ps": dict(job.ps),
        "utility": {"kind": kind, **points},
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _kind(utility: Utility) -> str:
    for kind, cls in UTILITIES.items():
        if type(utility) is cls:
            return kind
    raise InstanceError("utility", f"expected one of {', '.join(UTILITIES)} to write a file")


def _utility(data: Any) -> Utility:
    if not isinstance(data, Mapping):
        raise InstanceError("", f"expected an object with a kind, got {describe(data)}")
    if "kind" not in data:
        raise InstanceError("kind", f"expected an object with a kind, got {describe(data)}")
    if not isinstance(data["kind"], str) or data["kind"] not in UTILITIES:
        expected = f"expected one of {', '.join(UTILITIES)}"
        raise InstanceError("kind", f"{expected}, got {describe(data['kind'])}")
    cls = UTILITIES[data["kind"]]
    names = tuple(f.name for f in fields(cls))
    check_keys(data, ("kind", *names))
    utility: Utility = cls(**{name: data[name] for name in names})
    return utility


def _server(data: Any) -> Server:
    check_keys(data, ("id", "capacity"), optional=("count",))
    return Server(**data)


def _server_to_dict(server: Server) -> dict[str, Any]:
    data: dict[str, Any] = {"id": server.id, "capacity": dict(server.capacity)}
    return data if server.count == 1 else {**data, "count": server.count}


def _each(data: Any, name: str, build: Callable[[Any], Item]) -> tuple[Item, ...]:
    items = []
    for k, entry in enumerate(check_list(data[name], name)):
        with located_at(f"{name}[{k}]"):
            items.append(build(entry))
    return tuple(items)


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
    return packaged_schema("oasis.model", "instance")


def packaged_schema(package: str, name: str) -> dict[str, Any]:
    """Read ``NAME.schema.json``, which is part of `package`."""
    text = files(package).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
