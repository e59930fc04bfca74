"""FIFO, SJF, SRTF, SRSF and LAS for rigid jobs in fifty lines, sharing nothing with the engine.

Jobs are (submitted, duration, gpus) in order of arrival; `servers` lists the GPUs of each server.
The rule: strict head of the line, unless `fills`; at one instant first all completions, then all
arrivals in file order, then one decision; best fit, lowest server index; a job that goes on stays
where it is; one that begins takes what nobody has, and only failing that what jobs behind it have.
"""


def never(job, left, now):
    return float("inf")


def ends(jobs, servers, order, preempts, crossing=never, fills=False):
    """End of each job; `order(k, left)` is what the line is sorted by."""
    left = [duration for _, duration, _ in jobs]
    where, found, now, arrived = {}, [None] * len(jobs), 0.0, 0
    waiting = set()
    while waiting or where or arrived < len(jobs):
        times = [now + left[k] for k in where]
        times += [now + crossing(jobs[k], left[k], now) for k in where]
        after = min([*times, *(jobs[arrived][0] for _ in range(arrived < len(jobs)))])
        for k in where:
            left[k] -= after - now
        now = after
        for k in [k for k in where if left[k] == 0]:
            found[k] = now
            del where[k]
        while arrived < len(jobs) and jobs[arrived][0] == now:
            waiting.add(arrived)
            arrived += 1
        kept = {} if preempts else dict(where)
        later = dict(where) if preempts else {}
        free = list(servers)
        for k, server in kept.items():
            free[server] -= jobs[k][2]
        for k in sorted(waiting | (where.keys() - kept.keys()), key=lambda k: order(k, left[k])):
            gpus = jobs[k][2]
            server = later.pop(k, None)
            if server is None or free[server] < gpus:
                idle = [
                    room - sum(jobs[j][2] for j, there in later.items() if there == s)
                    for s, room in enumerate(free)
                ]
                unused = [(room, s) for s, room in enumerate(idle) if room >= gpus]
                fitting = unused or [(room, s) for s, room in enumerate(free) if room >= gpus]
                if not fitting and fills:
                    continue
                if not fitting:
                    break
                server = min(fitting)[1]
            free[server] -= gpus
            kept[k] = server
        waiting = (waiting | where.keys()) - kept.keys()
        where = kept
    return found


def fifo(jobs, servers, fills=False):
    return ends(jobs, servers, lambda k, left: k, preempts=False, fills=fills)


def sjf(jobs, servers, fills=False):
    return ends(jobs, servers, lambda k, left: (jobs[k][1], k), preempts=False, fills=fills)


def srtf(jobs, servers, fills=False):
    return ends(jobs, servers, lambda k, left: (left, k), True, fills=fills)


def srsf(jobs, servers, fills=False):
    return ends(jobs, servers, lambda k, left: (left * jobs[k][2], k), True, fills=fills)


def las(jobs, servers, threshold, fills=False):
    """Two queues by attained GPU-seconds, in each the order of arrival."""

    def service(job, left):
        return (job[1] - left) * job[2]

    def order(k, left):
        return service(jobs[k], left) >= threshold, k

    def crossing(job, left, now):
        short = threshold - service(job, left)
        return short / job[2] if short > 0 else float("inf")

    return ends(jobs, servers, order, True, crossing, fills)
