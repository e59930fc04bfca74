"""Machines that stay busy while jobs that leave them save their state."""

from __future__ import annotations

from oasis.scheduling.allocation import Allocation, Tasks
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.site import Site

Rows = dict[int, list[int]]  # amounts by machine


def added_tasks(before: Tasks, after: Tasks) -> Tasks:
    """The tasks of `after` that are not in `before`, machine by machine."""
    held = dict(before)
    return tuple((m, n - held.get(m, 0)) for m, n in after if n > held.get(m, 0))


class Saving:
    """What jobs that save still keep busy, though it is no longer theirs in the plan.

    A policy plans as if machines came free at once. A job that was given some of them begins when
    what is still being saved there fits beside all that is planned there.

    Parameters
    ----------
    site : Site
        The machines.

    Attributes
    ----------
    kept : dict of int to list of (float, list of int)
        By machine: until when how much of it is kept busy.
    busy : list of float
        By resource, the amount times the time for which machines were kept busy by nothing but
        saving, so far: for worker tasks and parameter servers together.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self.kept: dict[int, list[tuple[float, list[int]]]] = {}
        self._since = 0.0
        self.busy = [0.0] * len(site.resources)

    def keep(
        self, job: PolicyJob, before: Allocation, after: Allocation, now: float, until: float
    ) -> None:
        """Keep busy from `now` to `until` what `job` gives up between `before` and `after`."""
        if not self.kept:
            self._since = now
        for machine, row in self._rows(job, after, before).items():
            self.kept.setdefault(machine, []).append((until, row))
            self.kept[machine].sort()

    def free_at(
        self,
        job: PolicyJob,
        before: Allocation,
        after: Allocation,
        now: float,
        free: list[tuple[int, ...]],
    ) -> float:
        """When the machines have room for what `after` has more than `before`.

        `free` is what the plan leaves free, `after` being part of it.
        """
        begin = now
        for machine in self._rows(job, before, after):
            kept = self.kept.get(machine, [])
            for k in range(len(kept)):
                amounts = self._sum(kept[k:])
                if all(a <= left for a, left in zip(amounts, free[machine], strict=True)):
                    break
                begin = max(begin, kept[k][0])
        return begin

    def drop(self, machine: int) -> None:
        """Forget what is saved on a machine that is lost."""
        self.kept.pop(machine, None)

    def advance(self, now: float, free: list[tuple[int, ...]]) -> None:
        """Account for the time up to `now`, during which `free` was planned to be free."""
        for machine, kept in list(self.kept.items()):
            begin = self._since
            for k, (until, _) in enumerate(kept):
                end = min(until, now)
                if end > begin:
                    for r, amount in enumerate(self._sum(kept[k:])):
                        self.busy[r] += min(amount, free[machine][r]) * (end - begin)
                    begin = end
            left = [entry for entry in kept if entry[0] > now]
            if left:
                self.kept[machine] = left
            else:
                del self.kept[machine]
        self._since = now

    def amounts(self, machine: int) -> list[int]:
        """What is kept busy on `machine`."""
        return self._sum(self.kept.get(machine, []))

    def _sum(self, kept: list[tuple[float, list[int]]]) -> list[int]:
        total = [0] * len(self._site.resources)
        for _, row in kept:
            total = [a + b for a, b in zip(total, row, strict=True)]
        return total

    def _rows(self, job: PolicyJob, before: Allocation, after: Allocation) -> Rows:
        """Amounts of the tasks that `after` has more than `before`, by machine."""
        rows: Rows = {}
        for old, new, demand in (
            (before.workers, after.workers, job.worker),
            (before.ps, after.ps, job.ps),
        ):
            for machine, count in added_tasks(old, new):
                row = rows.setdefault(machine, [0] * len(self._site.resources))
                for resource, amount in demand:
                    row[resource] += count * amount
        return rows
