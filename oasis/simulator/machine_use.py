"""What every machine was used for over time, kept only where it changed."""

from __future__ import annotations

from oasis.simulator.state import State

Row = tuple[int, ...]
MachineTimeline = tuple[tuple[float, Row], ...]


class MachineUse:
    """Amounts in use on each machine from each time on.

    Parameters
    ----------
    state : State
        Of the run.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        idle = (0,) * len(state.site.resources)
        self._rows: list[list[tuple[float, Row]]] = [[(0.0, idle)] for _ in state.site.machines]
        self._seen = state.free.copy()
        self._saving = False

    def note(self) -> None:
        """Write down what has changed by now."""
        state = self._state
        saving = bool(state.saving.kept)
        for machine, rows in enumerate(self._rows):
            if state.free[machine] is self._seen[machine] and not (saving or self._saving):
                continue
            row = state.busy(machine)
            if row != rows[-1][1]:
                if rows[-1][0] == state.now:
                    rows.pop()
                if not rows or rows[-1][1] != row:
                    rows.append((state.now, row))
        self._seen, self._saving = state.free.copy(), saving

    def timelines(self) -> tuple[MachineTimeline, ...]:
        """The notes of each machine, as (time, amounts in grid units by resource)."""
        return tuple(map(tuple, self._rows))
