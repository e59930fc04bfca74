"""A whole job on one machine."""

from __future__ import annotations

from oasis.scheduling import Allocation, PolicyJob, Room


def on_node(room: Room, job: PolicyJob, workers: int, ps: int, machine: int) -> Allocation | None:
    """All tasks on `machine`; None, and `room` as it was, if they do not fit there.

    Where it may host no parameter servers, as on an instance of the model, these go on the first
    machine that has room for all of them.

    Examples
    --------
    >>> from oasis.scheduling import Machine, Site
    >>> site = Site(("gpu",), tuple(Machine(name, (4.0,)) for name in "ab"))
    >>> job = PolicyJob("j", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> room = Room(site, [(1,), (2,)])
    >>> on_node(room, job, 2, 0, 0), on_node(room, job, 2, 0, 1)
    (None, Allocation(workers=((1, 2),), ps=()))
    """
    servers = room.site.machines_for("ps")
    hosts = (machine,) if machine in servers or not ps else servers
    for host in hosts:
        found = Allocation(((machine, workers),), ((host, ps),) if ps else ())
        if room.hold(job, found):
            return found
    return None
