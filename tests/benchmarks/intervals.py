"""Intervals of the offline methods: as JSON lines and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline import Milestone, OfflineResult, Status

Key = tuple[str, str, float]

TITLES = {
    "milp": "compact HiGHS",
    "colgen": "column generation",
    "benders": "Benders decomposition",
    "cpsat": "CP-SAT",
}


@dataclass(frozen=True)
class Interval:
    """A result without its schedules, and what it is the result of: names, and seconds it had."""

    instance: str
    method: str
    limit: float
    result: OfflineResult

    @property
    def key(self) -> Key:
        return self.instance, self.method, self.limit

    def to_json(self) -> str:
        plain = self.result.to_dict() | {"method": self.method}
        del plain["schedules"]
        return json.dumps({"instance": self.instance, "limit": self.limit} | plain)

    def gaps(self, times: Iterable[float]) -> list[str]:
        """The gap at each time, as text; a dash where the run did not go on until then."""
        is_cut = self.result.status is Status.INTERRUPTED
        end = self.result.seconds if is_cut else self.limit
        return [f"{self.result.gap_at(t) * 100:.1f} %" if t <= end else "-" for t in times]

    def line(self, times: Sequence[float]) -> str:
        """The result, for one who waits for the next."""
        r = self.result
        early = ", ".join(
            f"{gap} at {t:g} s" for gap, t in zip(self.gaps(times), times, strict=True)
        )
        refused = len(r.parameters.get("refused", ()))
        return (
            f"{self.instance} {self.method}: {r.status} {r.objective:.6g} .. {r.upper_bound:.6g}, "
            f"gap {r.gap * 100:.2f} % after {r.seconds:.1f} s ({early})"
            + (f", {refused} not verified" if refused else "")
        )


def read(path: Path) -> list[Interval]:
    """The intervals of a JSON-lines file; an error names the line that is none."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(_interval(json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"{path}, line {number}: expected what --json writes, got {line[:40]!r}"
            raise ValueError(text) from error
    return found


def _interval(given: dict[str, Any]) -> Interval:
    history = tuple(
        Milestone(at["seconds"], at["objective"], _bound(at["upper_bound"]))
        for at in given.pop("history")
    )
    names = (given.pop("instance"), given.pop("method"), float(given.pop("limit")))
    given |= {"status": Status(given["status"]), "history": history, "schedules": {}}
    del given["gap"]  # of objective and bound
    given.pop("kind", None)  # older files do not say it
    return Interval(*names, OfflineResult(method=names[1], **given))


def _bound(value: float | None) -> float:
    return math.inf if value is None else value


def append(path: Path, interval: Interval) -> None:
    """Add a line, in one write, so that several programs may use one file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(interval.to_json() + "\n")
