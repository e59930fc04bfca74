"""Verdicts of the cluster on jobs, learnt from what it refuses and forgotten after some slots."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from oasis.kubernetes.objects.oasis_job import JobSpec

ANY = ""  # stands for every node where a verdict is about all pods of a job
LONGEST = 64  # slots for which a verdict holds; more on a cluster of more nodes


@dataclass(slots=True)
class Verdicts:
    """Nodes that are left out for a job, and jobs of which no pod can be made.

    A verdict holds for 1 slot, and each further one on the same for twice as many as the one
    before. An edit of the job ends it.
    """

    # By job and node: version of the job, how often in a row, from and until which slot, and why.
    _known: dict[tuple[str, str], tuple[int, int, int, int, str]] = field(default_factory=dict)

    longest: int = LONGEST  # for which one against a node holds

    def refuse(self, spec: JobSpec, slot: int, why: str, node: str = ANY) -> None:
        """Exclude the node from `slot` on; a node that is excluded already is no new verdict."""
        generation, times, _, until, _ = self._known.get((spec.uid, node), (0, 0, 0, slot, ""))
        if generation != spec.generation:
            times, until = 0, slot
        if until <= slot:
            until = slot + min(2 ** min(times, LONGEST), LONGEST if node == ANY else self.longest)
            self._known[spec.uid, node] = spec.generation, times + 1, slot, until, why

    def accept(self, uid: str, node: str = ANY, slot: int | None = None) -> None:
        """Forget a verdict, as a pod was made or is bound; with a `slot`, one that is over then."""
        if slot is None or self.until(uid, node) <= slot:
            self._known.pop((uid, node), None)

    def why(self, spec: JobSpec, slot: int, node: str = ANY, *, runs: bool = False) -> str | None:
        """Why the node is left out in `slot`; None if it is not."""
        # For a job that runs elsewhere all verdicts are long: a node that comes back moves it.
        key = spec.uid, node
        generation, _, since, until, why = self._known.get(key, (None, 0, 0, 0, ""))
        until = max(until, since + LONGEST) if runs else until
        return why if generation == spec.generation and slot < until else None

    def until(self, uid: str, node: str = ANY) -> int:
        """The first slot in which a refused job is tried again; 0 if it was not refused."""
        return self._known.get((uid, node), (0, 0, 0, 0, ""))[3]

    def forget(self, existing: Container[str]) -> None:
        """Forget all jobs but the `existing` ones."""
        self._known = {key: verdict for key, verdict in self._known.items() if key[0] in existing}

    def state(self) -> list[Any]:
        """Plain data for a takeover."""
        return [[*key, *verdict] for key, verdict in self._known.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Restore the verdicts from the data of `state`."""
        self._known = {(uid, node): tuple(verdict) for uid, node, *verdict in state}
