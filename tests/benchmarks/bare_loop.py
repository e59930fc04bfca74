"""FIFO of rigid jobs as a bare event loop, a heap and a list: the least that simulating can cost.

It shares nothing with the engine, knows one policy, checks nothing and keeps no history. The rule
is that of `tests/oracle/reference_schedulers.py`.
"""

from heapq import heappop, heappush


def fifo(jobs, servers):
    """End of each of `jobs`, (submitted, duration, gpus) in order of arrival."""
    free, ends = list(servers), [0.0] * len(jobs)
    running, now, arrived, head = [], 0.0, 0, 0
    while head < len(jobs):
        now = min(
            running[0][0] if running else float("inf"),
            jobs[arrived][0] if arrived < len(jobs) else float("inf"),
        )
        while running and running[0][0] <= now:
            _, _, server, gpus = heappop(running)
            free[server] += gpus
        while arrived < len(jobs) and jobs[arrived][0] <= now:
            arrived += 1
        while head < arrived:
            _, duration, gpus = jobs[head]
            fitting = [(room, server) for server, room in enumerate(free) if room >= gpus]
            if not fitting:
                break
            server = min(fitting)[1]
            free[server] -= gpus
            ends[head] = now + duration
            heappush(running, (now + duration, head, server, gpus))
            head += 1
    return ends
