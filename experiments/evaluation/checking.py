"""Checks of a stored result: its schedules, and every figure that it states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.provenance import (
    MISSING,
    check_digest,
    differences,
    digest_of,
    named_file,
)
from oasis.certify.certificate import Certificate, WeakDuality, certify
from oasis.certify.verify import verify
from oasis.model.document import entry, mapping, optional, real, text
from oasis.model.errors import InputError, VerificationError
from oasis.model.instance import Instance
from oasis.model.instance_file import read
from oasis.model.schedule import schedules_by_job
from oasis.simulator.result import result_from_dict
from oasis.solvers import PROOF, Status


def instance_of(data: Mapping[str, Any], instances: Mapping[str, Instance]) -> Instance | None:
    """Find the instance of a result among those that are given, or in the file that it names."""
    digest = digest_of(data)
    if digest is not None and digest in instances:
        return instances[digest]
    file = named_file(data)
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
    """A document that agrees with its instance."""

    kind: str  # the command that wrote it, or `SCHEDULES`
    schedules: int
    totals: Mapping[str, float]  # recomputed (1), by the names that the document has for them


def check_document(instance: Instance, data: Any) -> Checked:
    """Check a result against its instance: its schedules, and every figure that follows."""
    if "instance" in mapping(data):
        check_digest(instance, entry(data, "instance", lambda named: entry(named, "sha256", text)))
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
        raise InputError(
            "kind",
            f"expected schedules to verify: a result of run, solve or ratio, or an object "
            f"with {SCHEDULES!r}, got a result of {kind}",
        )
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
    """Refuse the first figure of a document that does not follow from its other contents."""
    for place, value, is_stated in differences(anew, stated, path, _agree):
        what = "missing" if is_stated is MISSING else f"states {is_stated!r}"
        raise VerificationError(place, f"{what}, recomputed {value!r}")


def _agree(anew: Any, stated: Any) -> bool:
    if isinstance(anew, float) and type(stated) in (int, float):
        # The absolute part is for figures that are 0 but for rounding.
        return math.isclose(stated, anew, rel_tol=EXACT, abs_tol=1e-12)
    return type(stated) is type(anew) and bool(stated == anew)
