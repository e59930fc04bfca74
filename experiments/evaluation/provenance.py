"""Origin of a result, from which it can be reproduced; checks of every figure that it states."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oasis.certify.certificate import Certificate, WeakDuality, certify
from oasis.certify.verify import verify
from oasis.model.document import entry, list_of, mapping, optional, real, text
from oasis.model.errors import InputError, OasisError, VerificationError, describe, located_at
from oasis.model.file_kinds import STANDARD_INPUT, read_content
from oasis.model.instance import Instance
from oasis.model.instance_file import instance_to_dict, read
from oasis.model.schedule import schedules_by_job
from oasis.results import result_from_dict
from oasis.solvers import PROOF, Status


def instance_digest(instance: Instance) -> str:
    """Return the SHA-256 of an instance's content, without its metadata or layout in the file."""
    content = instance_to_dict(instance)
    # Where an instance came from changes no result, so a note in it makes no other instance.
    content.pop("metadata", None)
    return hashlib.sha256(json.dumps(content, allow_nan=False).encode()).hexdigest()


def instance_reference(instance: Instance, file: str | None) -> dict[str, Any]:
    """Return plain data that identify an instance: file, digest and metadata."""
    metadata = dict(instance.metadata)
    file = None if file == STANDARD_INPUT else file
    return {"file": file, "sha256": instance_digest(instance), "metadata": metadata}


def file_reference(file: Path) -> dict[str, str | None]:
    """Return plain data that identify a file: name and digest; None for what a pipe lacks."""
    if str(file) == STANDARD_INPUT:
        return {"file": None, "sha256": hashlib.sha256(read_content(file)).hexdigest()}
    # A pipe can be read only once.
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return {"file": str(file), "sha256": digest}


def named_instance(data: Mapping[str, Any]) -> tuple[Path | None, str | None]:
    """Return file and digest of the instance that a result names; None for what it lacks."""
    reference = entry(data, "instance", mapping) if "instance" in data else {}
    known = {"file": None, "sha256": None, **reference}
    with located_at("instance"):
        file, sha256 = (entry(known, name, optional(text)) for name in ("file", "sha256"))
    return None if file is None else Path(file), sha256


def stated_digest(data: Mapping[str, Any]) -> str:
    """Return the digest of the result's instance; raise an error if the result has none."""
    return entry(data, "instance", lambda named: entry(named, "sha256", text))


def check_digest(instance: Instance, sha256: str) -> None:
    """Raise `InputError` unless `instance` has the digest that a result records."""
    digest = instance_digest(instance)
    if digest != sha256:
        other = f"the result is of another instance: expected {sha256[:16]}, got {digest[:16]}"
        raise InputError("instance.sha256", other)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Command and arguments from which a result of ``oasis run`` is reproduced."""

    policy: str
    parameters: Mapping[str, Any]
    file: Path | None
    sha256: str  # `instance_digest`
    version: str  # of the package that made the result
    files: Sequence[Mapping[str, Any]] | None = None  # that the policy depends on, if it says
    command: str | None = None  # that made the result, if a command did

    @classmethod
    def of(cls, document: Any) -> Recipe:
        """Read the recipe that the JSON document of ``oasis run`` contains."""
        known = {"policy_files": None, "command": None, **mapping(document)}
        return cls(
            sha256=stated_digest(document),
            file=named_instance(document)[0],
            policy=entry(known, "policy", text),
            parameters=entry(known, "parameters", mapping),
            version=entry(known, "version", text),
            files=entry(known, "policy_files", optional(list_of(mapping))),
            command=entry(known, "command", optional(text)),
        )

    def check_files(self, files: Sequence[Mapping[str, Any]]) -> None:
        """Raise `InputError` if a file that the policy depends on differs from the recorded one."""
        before, now = (
            {str(one.get("of")): one for one in some} for some in (self.files or (), files)
        )
        for name in {**before, **now}:
            was, is_now = before.get(name), now.get(name)
            expected, got = (str((one or {}).get("sha256")) for one in (was, is_now))
            how = f"has changed since: expected sha256 {expected[:16]}, got {got[:16]}"
            if was is None or is_now is None:
                how = "was not part of the run" if was is None else "is not there any more"
            elif expected == got:
                continue
            raise InputError("policy_files", f"{(is_now or was or {}).get('file')} ({name}) {how}")


# `check_digest` compares the instance, and a note names another version, before the run; the last
# is how long its decisions took.
NOT_COMPARED = ("instance", "seed", "version", "decision_seconds")


def check_reproduced(recorded: Mapping[str, Any], reproduced: Mapping[str, Any]) -> None:
    """Raise `OasisError` at the first difference of a repeated run, measured times aside."""
    # The figure that people look at first is the first difference that is told.
    names = sorted(recorded, key=lambda name: name != "total_utility")
    compared = {name: recorded[name] for name in names if name not in NOT_COMPARED}
    for path, *both in differences(compared, reproduced):
        if not OWN_TIMES.match(path):
            was, is_now = ("missing" if v is MISSING else describe(v) for v in both)
            raise OasisError(f"the run is not reproduced: {path} was {was}, is {is_now} now")


OWN_TIMES = re.compile(r"report\..*seconds(\.|\[|$)")
MISSING = object()


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def differences(
    first: Any, second: Any, path: str = "", same: Callable[[Any, Any], bool] = _is_same
) -> Iterator[tuple[str, Any, Any]]:
    """Yield path and both values where `second` lacks or changes an entry of `first`."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name, value in first.items():
            inner = f"{path}.{name}" if path else name
            yield from differences(value, second.get(name, MISSING), inner, same)
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            yield path, first, second
            return
        for k, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differences(one, other, f"{path}[{k}]", same)
    elif not same(first, second):
        yield path, first, second


def instance_of(data: Mapping[str, Any], instances: Mapping[str, Instance]) -> Instance | None:
    """Find a result's instance in `instances` (by digest) or in its file; None without either."""
    file, digest = named_instance(data)
    if digest is not None and digest in instances:
        return instances[digest]
    if file is None or not file.is_file():
        return None
    instance = read(file)
    # A file may have been written over since: its name alone proves nothing.
    if digest is not None:
        check_digest(instance, digest)
    return instance


EXACT = 1e-9  # relative: how far a stated figure may be from the recomputed one
SCHEDULES = "schedules"  # what a document is called that holds schedules and nothing else
TOTALS = ("total_utility", "objective")


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of a successful check of a document against its instance."""

    kind: str  # the command that wrote it, or `SCHEDULES`
    schedules: int
    totals: Mapping[str, float]  # recomputed (1), by the names that the document has for them


def check_document(instance: Instance, data: Any) -> Checked:
    """Verify the schedules of a result, and all figures that follow from them; raise if wrong."""
    if "instance" in mapping(data):
        check_digest(instance, stated_digest(data))
    if "kind" not in data and SCHEDULES in data:
        return _check_schedules(instance, data)
    result = result_from_dict(data)
    kind = data["kind"]
    if kind == "run":
        checked = Checked(kind, len(result.schedules), {TOTALS[0]: verify(instance, result)})
    elif kind == "solve":
        checked = _check_offline(instance, result)
    elif kind == "ratio":
        checked = _check_ratio(instance, result)
    else:
        what = f"a result of run, solve or ratio, or an object with {SCHEDULES!r}"
        raise InputError("kind", f"expected schedules to verify: {what}, got a result of {kind}")
    _compare_figures(data, result.to_dict())
    return checked


def _check_schedules(instance: Instance, data: Mapping[str, Any]) -> Checked:
    schedules = entry(data, SCHEDULES, schedules_by_job)
    total = verify(instance, schedules)
    for name in TOTALS:
        stated = entry(data, name, optional(real)) if name in data else None
        if stated is not None:
            _compare_figures({name: stated}, {name: total})
    return Checked(SCHEDULES, len(schedules), {TOTALS[0]: total})


def _check_offline(instance: Instance, result: Any) -> Checked:
    total = verify(instance, result)
    # Nobody can check a bound without a solver, but a proof whose own two numbers differ is none.
    if result.status is Status.OPTIMAL and result.gap > PROOF:
        raise VerificationError("status", f"states optimal, but the gap is {result.gap:.3g}")
    return Checked("solve", len(result.schedules), {"objective": total})


def _check_ratio(instance: Instance, result: Any) -> Checked:
    run = result.run
    # a run that was interrupted has not decided on every job: only its schedules can be checked
    online = verify(instance, run if result.is_complete else run.schedules)
    offline = _check_offline(instance, result.offline).totals
    # Prices of one's own are code, which a result does not hold.
    if isinstance(result.certificate, Certificate):
        anew = certify(instance, run).to_dict()
        _compare_figures(result.certificate.to_dict(), anew, "certificate")
    elif isinstance(result.certificate, WeakDuality):
        stated = {"online_utility": result.certificate.online_utility}
        _compare_figures(stated, {"online_utility": online}, "certificate")
        if result.offline.objective > result.certificate.upper_bound * (1 + PROOF):
            raise VerificationError("certificate.upper_bound", "a schedule is worth more")
    count = len(run.schedules) + len(result.offline.schedules)
    return Checked("ratio", count, {"total_utility": online, **offline})


def _compare_figures(stated: Any, anew: Any, path: str = "") -> None:
    """Raise `VerificationError` at the first figure in `stated` that differs from `anew`."""
    for place, value, is_stated in differences(anew, stated, path, _agree):
        what = "missing" if is_stated is MISSING else f"states {is_stated!r}"
        raise VerificationError(place, f"{what}, recomputed {value!r}")


def _agree(anew: Any, stated: Any) -> bool:
    if isinstance(anew, float) and type(stated) in (int, float):
        # The absolute part is for figures that are 0 but for rounding.
        return math.isclose(stated, anew, rel_tol=EXACT, abs_tol=1e-12)
    return type(stated) is type(anew) and bool(stated == anew)
