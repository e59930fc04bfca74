"""Among equivalent ways to carry out a plan, choose the one that moves the fewest tasks.

A plan says which servers a job has. Equal servers are interchangeable, so the plan that is worth as
much and leaves most tasks where they are is a relabelling of it. For example: a job runs on server
0, another one arrives, and the search puts the two on servers 1 and 0. Relabelled, the first one
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from oasis.model.cluster import BoolArray, Cluster
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.rounding import IntArray
from oasis.model.schedule import SERVER, SLOT, Schedule, placements
from oasis.online.assignment import largest_assignment
from oasis.online.recourse.live_job import LiveJob
from oasis.online.recourse.working_plan import WorkingPlan

LARGE = 64  # servers of a group; with more, this takes longer than the plan, and is left out


def kinds_of(cluster: Cluster) -> dict[TaskGroup, IntArray]:
    """Number the servers of each group so that equal ones (amounts, labels) have one number."""
    kinds = {}
    for group in GROUPS:
        labels = [server.labels for server in group.servers(cluster) for _ in server.ids]
        numbers: dict[object, int] = {}
        capacity = group.capacity(cluster).tolist()
        kinds[group] = np.array(
            [
                numbers.setdefault((tuple(row), tuple(sorted(own.items()))), len(numbers))
                for row, own in zip(capacity, labels, strict=True)
            ],
            dtype=np.int64,
        )
    return kinds


def stay(plan: WorkingPlan, kinds: Mapping[TaskGroup, IntArray]) -> None:
    """Change `plan` so that as many tasks as possible stay where jobs hold them now.

    No completion and no number of workers changes.
    """
    if max(map(len, kinds.values())) > LARGE:
        return
    # Each round keeps more tasks, so it ends; capacity that one job leaves may let another stay.
    while moving := [live for live in plan.planned() if _moves(plan, live)]:
        for group in GROUPS:
            _relabel(plan, group, kinds[group], moving)
        moving = [live for live in plan.planned() if _moves(plan, live)]
        has_stayed = [_keep_place(plan, live) for live in moving]
        if not any(has_stayed):
            return


def goes_on(plan: WorkingPlan, live: LiveJob) -> bool:
    """Return whether the plan keeps a job's allocation until that may change or the job is done."""
    assert live.current is not None
    if live.schedule is None:
        return False
    end = min(live.current.until, live.schedule.completion + 1)
    for group, current in zip(GROUPS, live.current.rows(np.arange(plan.now, end)), strict=True):
        rows = group.placed(live.schedule)
        if not np.array_equal(rows[: np.searchsorted(rows[:, SLOT], end)], current):
            return False
    return True


def in_the_way(plan: WorkingPlan, locked: Iterable[LiveJob]) -> list[LiveJob]:
    """Return movable jobs that are planned, in any slot, on servers that `locked` jobs hold."""
    blocking: dict[int, LiveJob] = {}
    for group in GROUPS:
        servers = np.concatenate(
            [group.placed(live.current)[:, 0] for live in locked if live.current]
        )
        for live in plan.movable():
            assert live.schedule is not None
            if np.isin(group.placed(live.schedule)[:, SERVER], servers).any():
                blocking[live.key] = live
    return list(blocking.values())


def _now(plan: WorkingPlan, live: LiveJob, group: TaskGroup) -> IntArray:
    """Servers and task counts (n, 2) that are planned for a job in the present slot."""
    assert live.schedule is not None
    rows = group.placed(live.schedule)
    return rows[: np.searchsorted(rows[:, SLOT], plan.now, side="right"), SERVER:]


def _moves(plan: WorkingPlan, live: LiveJob) -> bool:
    """Return whether the plan changes the allocation of a running job in the present slot."""
    assert live.schedule is not None
    if live.current is None or live.schedule.start > plan.now:
        return False
    return any(
        not np.array_equal(_now(plan, live, group), group.placed(live.current)) for group in GROUPS
    )


def _relabel(
    plan: WorkingPlan, group: TaskGroup, kinds: IntArray, moving: Iterable[LiveJob]
) -> None:
    """Exchange equal servers of a group in the plan, so that most tasks stay where they are."""
    pairs = {
        live.key: (_now(plan, live, group), group.placed(live.current))
        for live in plan.planned()
        if live.current is not None
    }
    # An assignment takes the cube of the number of servers, so only those count whose names may
    # have to change.
    concerned = _connected(pairs, [live.key for live in moving], len(kinds))
    concerned[sorted(group.of(plan.ledger).lost)] = False  # nothing is planned there
    # Servers that a calendar closes are equal to no other.
    first = len(plan.cluster.worker_ids) if group is TaskGroup.PS else 0
    for window in plan.ledger.calendar.windows:
        concerned[[k - first for k in window.machines if 0 <= k - first < len(kinds)]] = False
    for live in plan.planned():
        if live.current is not None and live.is_kept(plan.now):
            concerned[group.placed(live.current)[:, 0]] = False
    number = np.arange(len(kinds))
    for kind in np.unique(kinds[concerned]).tolist():
        servers = (concerned & (kinds == kind)).nonzero()[0]
        weight = np.zeros((len(servers), len(servers)), dtype=np.int64)
        for pair in pairs.values():
            planned, current = (table[np.isin(table[:, 0], servers)] for table in pair)
            at, to = (np.searchsorted(servers, table[:, 0]) for table in (planned, current))
            # As many tasks stay as are both planned on the one server and held on the other.
            weight[at[:, None], to] += np.minimum.outer(planned[:, 1], current[:, 1])
        number[servers] = servers[largest_assignment(weight)]
    changed = number != np.arange(len(kinds))
    renamed: list[tuple[LiveJob, Schedule]] = []
    for live in plan.planned() if changed.any() else ():
        assert live.schedule is not None
        rows = group.placed(live.schedule)
        if changed[rows[:, SERVER]].any():
            others = rows.copy()
            others[:, SERVER] = number[rows[:, SERVER]]
            renamed.append((live, _with(live.schedule, group, others)))
    # All leave before the first comes back: each takes what another one had.
    for live, _ in renamed:
        plan.remove(live)
    for live, schedule in renamed:
        plan.put(live, schedule)


def _connected(
    pairs: Mapping[int, tuple[IntArray, IntArray]], keys: Iterable[int], servers: int
) -> BoolArray:
    """Mask of servers of the jobs `keys`, and of jobs that share servers with these, and so on."""
    connected, unvisited = np.zeros(servers, dtype=bool), dict(pairs)
    now = set(keys)
    while now:
        for key in now:
            for rows in unvisited.pop(key):
                connected[rows[:, 0]] = True
        now = {
            key
            for key, pair in unvisited.items()
            if any(connected[rows[:, 0]].any() for rows in pair)
        }
    return connected


def _keep_place(plan: WorkingPlan, live: LiveJob) -> bool:
    """Replan tasks of a job to servers where they run now; return whether any was replanned."""
    before = live.schedule
    assert before is not None
    plan.remove(live)
    after = before
    for group in GROUPS:
        staying = _with_most_kept(plan, live, before, group)
        if staying is not None:
            after = _with(after, group, staying)
    plan.put(live, after)
    return after is not before


def _with_most_kept(
    plan: WorkingPlan, live: LiveJob, schedule: Schedule, group: TaskGroup
) -> IntArray | None:
    """Return rows of `schedule` with more tasks on the job's present servers; None if none."""
    assert live.current is not None
    rows, current = group.placed(schedule), dict(group.placed(live.current).tolist())
    slots, starts = np.unique(rows[:, SLOT], return_index=True)
    blocks = np.split(rows[:, SERVER:], starts[1:])
    if not len(rows) or slots[0] != plan.now:
        return None
    # The slots from the present one on in which it is to hold the same.
    alike = 1
    while alike < len(blocks) and np.array_equal(blocks[alike], blocks[0]):
        alike += 1
    alike = int((slots[:alike] == plan.now + np.arange(alike)).sum())
    planned = dict(blocks[0].tolist())
    at = np.arange(plan.now, plan.now + alike)
    servers = np.array(sorted(current), dtype=np.int64)
    room = plan.room_on(live, group, at, servers, int(blocks[0][:, 1].sum()))
    free = dict(zip(servers.tolist(), room[0].tolist(), strict=True))
    chosen = _most_kept(planned, current, free)
    if chosen is None:
        return None
    needed = np.array([chosen.get(server, 0) for server in servers.tolist()])
    fits = (room >= needed).all(axis=1)
    # From the first slot without room on, the plan is as it was: a later move is as good as one
    # now.
    length = alike if fits.all() else int(fits.argmin())
    fresh = [
        [plan.now + k, server, count] for k in range(length) for server, count in chosen.items()
    ]
    later = rows[rows[:, SLOT] >= plan.now + length]
    return placements(np.concatenate([np.array(fresh), later]))


def _most_kept(
    planned: Mapping[int, int], current: Mapping[int, int], room: Mapping[int, int]
) -> dict[int, int] | None:
    """Replan tasks to the job's present servers; return tasks by server, None if none can move."""
    counts = {server: min(count, planned.get(server, 0)) for server, count in current.items()}
    spare = {s: n - counts.get(s, 0) for s, n in planned.items() if n > counts.get(s, 0)}
    chosen = dict(planned)
    for server in sorted(current):
        more = min(current[server], room[server]) - counts[server]
        for other in sorted(spare, reverse=True):
            moved = min(more, spare[other])
            if moved > 0 and other != server:
                more -= moved
                spare[other] -= moved
                chosen[other] -= moved
                chosen[server] = chosen.get(server, 0) + moved
    if chosen == planned:
        return None
    return {server: chosen[server] for server in sorted(chosen) if chosen[server]}


def _with(schedule: Schedule, group: TaskGroup, rows: IntArray) -> Schedule:
    """Return the schedule with the given rows for `group`."""
    workers, ps = ((rows if part is group else part.placed(schedule)) for part in GROUPS)
    return Schedule(schedule.job_id, workers, ps, schedule.form)
