"""A goal such as ``p95 wait < 10 min``, and the fewest machines with which a policy reaches it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.evaluation.limits import read_seconds
from experiments.evaluation.whatif_result import KEPT
from oasis.model.errors import InputError, located_at

OF = {
    **dict.fromkeys(("wait", "waiting"), "waiting"),
    **dict.fromkeys(("turnaround", "completion"), "completion"),
    "slowdown": "slowdown",
}
STATISTICS = ("mean", *(f"p{k}" for k in KEPT))
WORDS = re.compile(r"\s*(\w+)\s+(\w+)\s*(<=?)\s*(.+)")
EXPECTED = f"expected {'|'.join(STATISTICS)} {'|'.join(OF)} < LIMIT, such as 'p95 wait < 10 min'"


@dataclass(frozen=True, slots=True)
class Goal:
    """A statistic of the jobs, and what it must not exceed: seconds, or a slowdown."""

    text: str
    statistic: str
    of: str
    limit: float
    strict: bool = True

    @classmethod
    def read(cls, text: str) -> Goal:
        """Read a goal."""
        words = WORDS.fullmatch(text)
        if words is None or words[1] not in STATISTICS or words[2] not in OF:
            raise InputError("", EXPECTED, text)
        of = OF[words[2]]
        with located_at("limit"):
            limit = read_seconds(words[4], "a limit", is_time=of != "slowdown")
        return cls(text.strip(), words[1], of, limit, words[3] == "<")

    def value(self, row: Mapping[str, Any]) -> float | None:
        """The statistic of a run; None where jobs did not finish, which reaches no goal."""
        return None if row["unfinished"] else row[self.of][self.statistic]

    def reached(self, value: float | None) -> bool:
        """Whether a value is within the limit."""
        return value is not None and (
            value < self.limit or (value == self.limit and not self.strict)
        )


@dataclass(slots=True)
class Search:
    """Bisection over numbers of machines from `least` to `most`, with what each tried one gave."""

    goal: Goal
    least: int
    most: int
    tried: dict[int, float | None] = field(default_factory=dict)

    @property
    def fewest(self) -> int | None:
        """The fewest of the tried numbers that reach the goal."""
        return min((n for n, v in self.tried.items() if self.goal.reached(v)), default=None)

    @property
    def next(self) -> int | None:
        """The number to try next; None if the fewest stands, or `most` does not reach the goal.

        It ends with one machine fewer tried too: what is not known is whether far fewer would do.
        """
        if self.most not in self.tried:
            return self.most
        high = self.fewest
        if high is None:
            return None
        low = max((n for n in self.tried if n < high), default=self.least - 1)
        return (low + high) // 2 if high - low > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        tried = [[n, self.tried[n]] for n in sorted(self.tried)]
        return {"machines": self.fewest, "tried": tried}
