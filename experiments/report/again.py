"""The commands that make a result again, from its document."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.evaluation.comparison import OVER_SEEDS
from experiments.evaluation.policies import POLICIES, SEED
from experiments.evaluation.provenance import file_reference
from oasis.simulator.elastic import FORMAT

UNNAMED = "INSTANCE.json"  # where a result does not say
REPLAY_DEFAULTS = {"servers": 8, "gpus": 8, "placement": "pooled", "first": 0}
REPLAY_OPTIONS = {  # by key of the document
    "servers": "--servers",
    "gpus": "--gpus-per-server",
    "placement": "--placement",
    "cluster": "--virtual-cluster",
    "max_gpus": "--max-gpus",
    "first": "--skip",
    "max_jobs": "--max-jobs",
}


def commands_of(name: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Commands that make a result again.

    Parameters
    ----------
    name : str
        File of the result.
    data : mapping
        Its document.

    Returns
    -------
    tuple of str
        Lines for a shell. A file that the document does not name is called in capitals.

    Examples
    --------
    >>> document = {"kind": "run", "policy": "fifo", "parameters": {"seed": 3}}
    >>> commands_of("r.json", document | {"instance": {"file": "a.json"}})
    ('oasis run --from r.json', 'oasis run a.json --policy fifo --set fifo.seed=3')
    """
    kind = data.get("kind")
    elastic = kind == "compare" and data.get("format") == FORMAT
    file = (data.get("trace" if elastic else "instance") or {}).get("file") or UNNAMED
    words: list[Any] = [kind, file]
    if kind in ("run", "ratio", "quote"):
        words += ["JOB.json"] if kind == "quote" else []
        words += ["--policy", data["policy"], *_set(data["policy"], data)]
    if kind in ("solve", "ratio"):
        words += _offline(data["method"], data[_OFFLINE[kind]])
    if kind == "replay":
        words = [kind, *_trace(data)]
    if kind in ("compare", "replay"):
        words += _policies(data["policies"])
    if elastic:
        words += ["--slot-seconds", text_of(data["slot_seconds"])]
    if kind is None:
        return ()
    return (_line("run", "--from", name), _line(*words)) if kind == "run" else (_line(*words),)


_OFFLINE = {"solve": "parameters", "ratio": "offline_parameters"}


def _line(*words: Any) -> str:
    return "oasis " + " ".join(shlex.quote(str(word)) for word in words)


def _set(policy: str, row: Mapping[str, Any]) -> list[str]:
    """Options that differ from the defaults of a known policy; all of an unknown one.

    A policy may tell of more than its options, such as of what it found in the file of the jobs.
    """
    known = POLICIES[policy].resolve({}) if policy in POLICIES else {}
    parameters = row.get("parameters", {})
    options = row.get("policy_options", parameters)
    words = []
    for name, value in parameters.items():
        own = policy not in POLICIES and name in options
        if own or (name in known and known[name] != value):
            words += ["--set", f"{policy}.{name}={text_of(value)}"]
    return words


def text_of(value: Any) -> str:
    """A value of an option as ``--set`` reads it.

    Examples
    --------
    >>> text_of([1.0, 2.5]), text_of(None), text_of(True)
    ('1.0,2.5', 'none', 'true')
    """
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _policies(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    words = ["--policies", ",".join(rows)]
    for name, row in rows.items():
        words += _set(name, row)
    seeds = max(
        (len(row[OVER_SEEDS]["seeds"]) for row in rows.values() if OVER_SEEDS in row), default=1
    )
    return words if seeds == 1 else [*words, "--seeds", str(seeds)]


def _offline(method: str, parameters: Mapping[str, Any]) -> list[str]:
    from offline.solve import METHOD_BY_NAME  # noqa: PLC0415 (needs an extra, as the result does)

    words = ["--method", method]
    for name in ("time_limit", "work_limit", "gap", "no_improvement", SEED):
        if name in parameters:
            value = "inf" if parameters[name] is None else parameters[name]
            option = "solver_seed" if name == SEED else name
            words += [f"--{option.replace('_', '-')}", str(value)]
    kind = METHOD_BY_NAME.get(method)  # None where Ctrl-C came before "auto" had chosen one
    if kind is not None:
        defaults = dict(_named(kind.kind().to_dict()))
        for name, value in _named(parameters.get("params", {})):
            if defaults.get(name) != value:
                words += ["--set", f"{method}.{name}={json.dumps(value)}"]
    return words


def changed_files(data: Mapping[str, Any]) -> tuple[str, ...]:
    """List the files that have changed since the result was made: code, options, the trace.

    Parameters
    ----------
    data : mapping
        The document of a result.

    Returns
    -------
    tuple of str
        A sentence for each file that is not as it was when the result was made.

    Examples
    --------
    >>> changed_files({"policy_files": [{"of": "module m", "file": "no/m.py", "sha256": "0"}]})
    ('The command does not make it again: no/m.py (module m) is not there.',)
    """
    rows = [data, *(data.get("policies") or {}).values()]
    named = [one for row in rows for one in row.get("policy_files", ())]
    trace = data.get("trace") or {}
    if trace.get("file") and trace.get("sha256"):
        named.append({"of": "the trace", **trace})
    found = []
    for one in named:
        file = Path(one["file"])
        now = file_reference(file)["sha256"]
        if now != one["sha256"]:
            how = "is not there" if not file.exists() else "has changed since"
            found.append(f"The command does not make it again: {file} ({one['of']}) {how}.")
    return tuple(dict.fromkeys(found))


def _named(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each single parameter with its name, those of parts after the name of the part."""
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _named(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", list(value) if isinstance(value, tuple) else value


def _trace(data: Mapping[str, Any]) -> list[str]:
    words = [(data.get("trace") or {}).get("file") or "TRACE.csv"]
    given = {**data, **(data.get("reading") or {})}
    names = {name: f"--{name.replace('_', '-')}" for name in data.get("reading") or {}}
    for name, option in (names | REPLAY_OPTIONS).items():
        value = given.get(name)
        if value is True:  # a flag without a value
            words.append(option)
        elif value is not None and value != REPLAY_DEFAULTS.get(name):
            words += [option, str(value)]
    return words
