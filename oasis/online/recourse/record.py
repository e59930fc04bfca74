"""What became of promises and of work that was begun."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oasis.online.recourse.live_job import LiveJob


@dataclass(slots=True)
class Record:
    """Counts over one run.

    Parameters
    ----------
    given_up : list of str
        Jobs that were given up after they had run.
    wasted : int
        Worker-slots that they had run.
    done : int
        Worker-slots run by all jobs that have left.
    broken : list of str
        Jobs whose promise could not be kept, because a server was lost or work turned out longer.
    cut_short : int
        Decisions in which the limit in seconds left rounds undone.
    """

    given_up: list[str] = field(default_factory=list)
    wasted: int = 0
    done: int = 0
    broken: list[str] = field(default_factory=list)
    cut_short: int = 0

    def leave(self, live: LiveJob, completed: bool) -> None:
        """Take note of a job that is complete or will never run again."""
        self.done += live.done
        if not completed and live.started:
            self.given_up.append(live.job.id)
            self.wasted += live.done

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "given_up_after_start": list(self.given_up),
            "worker_slots_wasted": self.wasted,
            "worker_slots_done": self.done,
            "broken_promises": list(self.broken),
            "decisions_cut_short": self.cut_short,
        }
