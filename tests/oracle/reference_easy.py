"""EASY backfilling for rigid jobs, sharing nothing with the engine.

Jobs are (submitted, duration, gpus) in order of arrival; `servers` lists the GPUs of each server; a
job takes all its GPUs on one server, the fullest that has room. Time goes from event to event.
"""


def best(rooms, gpus):
    """The server with the least room that is enough, the lowest index among equals."""
    return min(((room, s) for s, room in enumerate(rooms) if room >= gpus), default=(0, None))[1]


def promise(gpus, free, running, jobs):
    """Latest time at which a job of this size fits, and what is free beside it then."""
    rooms = list(free)
    for time in sorted({end for end, _ in running.values()}):
        for k, (end, server) in running.items():
            if end == time:
                rooms[server] += jobs[k][2]
        server = best(rooms, gpus)
        if server is not None:
            rooms[server] -= gpus
            return time, rooms
    raise AssertionError("it fits on no empty server")


def schedule(jobs, servers):
    """(start, end) of each job, and what each was promised while it was the head of the line."""
    found, promised = [None] * len(jobs), [[] for _ in jobs]
    running, line, arrived = {}, [], 0
    free = list(servers)

    def start(k, server, now):
        free[server] -= jobs[k][2]
        found[k] = now, now + jobs[k][1]
        running[k] = now + jobs[k][1], server
        line.remove(k)

    while running or line or arrived < len(jobs):
        now = min([end for end, _ in running.values()] + [job[0] for job in jobs[arrived:][:1]])
        for k in [k for k, (end, _) in running.items() if end == now]:
            free[running.pop(k)[1]] += jobs[k][2]
        while arrived < len(jobs) and jobs[arrived][0] == now:
            line.append(arrived)
            arrived += 1
        while line and best(free, jobs[line[0]][2]) is not None:
            start(line[0], best(free, jobs[line[0]][2]), now)
        if not line:
            continue
        latest, beside = promise(jobs[line[0]][2], free, running, jobs)
        promised[line[0]].append(latest)
        for k in line[1:]:
            _, duration, gpus = jobs[k]
            if now + duration <= latest:
                server = best(free, gpus)
            else:
                server = best([min(pair) for pair in zip(free, beside, strict=True)], gpus)
                if server is not None:
                    beside[server] -= gpus
            if server is not None:
                start(k, server, now)
    return found, promised
